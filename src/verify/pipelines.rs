//! The pipelines of a run: sealed by digest, exactly those that items name, and consistent with the
//! blocks of attempts.
//!
//! Part of the row `plan`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunSubmitted};
use crate::model::name::ItemId;
use crate::model::pipeline::{BlockEnded, Misfit, Reference, Spec};
use crate::model::plan::{Item, Plan};
use crate::model::rule::Rule;
use crate::model::state::RunState;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, counted};
use super::growth;
use super::objects::Objects;
use super::run_chain::RunChain;

/// The sealed pipelines by digest; `None` if one cannot be read or parsed.
pub(super) struct SealedPipelines {
    specs: BTreeMap<Digest, Option<Spec>>,
    blocks: usize,
}

/// The blocks of the attempt that ended an item.
#[derive(Clone, Debug)]
pub struct ItemBlocks {
    /// The item.
    pub item: ItemId,
    /// The attempt.
    pub attempt: u32,
    /// The outcome of each block that ran.
    pub blocks: Vec<BlockEnded>,
}

impl ItemBlocks {
    /// Returns the blocks as the entries claim them.
    pub(super) fn all(chain: &RunChain) -> Vec<Self> {
        let ended = chain.links.iter().filter_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) if !e.blocks.is_empty() => {
                Some(Self { item: e.item.clone(), attempt: e.attempt, blocks: e.blocks.clone() })
            }
            _ => None,
        });
        ended.collect()
    }

    /// Returns the JSON form.
    pub fn to_json(&self) -> Value {
        json!({ "item": self.item, "attempt": self.attempt, "blocks": self.blocks })
    }

    /// Returns one line of text.
    pub fn in_words(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(ToString::to_string).collect();
        format!("{} #{}: {}", self.item, self.attempt, blocks.join(", "))
    }
}

/// Returns the digests of all pipelines of a run, by the names in items.
pub(super) fn named(chain: &RunChain) -> BTreeMap<&str, Digest> {
    let mut named = BTreeMap::new();
    for link in &chain.links {
        let brought = match &link.entry.event {
            Event::RunSubmitted(e) => &e.pipelines,
            Event::RunExtended(e) => &e.pipelines,
            _ => continue,
        };
        for (name, digest) in brought {
            named.entry(name.as_str()).or_insert(*digest);
        }
    }
    named
}

impl SealedPipelines {
    /// Reads the sealed pipelines, and compares each with its digest and its name.
    pub(super) fn read(case: &Case<'_>, findings: &mut Findings) -> Self {
        let objects = Objects::new(case.store);
        let mut specs = BTreeMap::new();
        for (digest, (seq, held)) in &case.chain.sealed.pipelines {
            let label = format!("the pipeline {}", digest.short());
            let held = held.read(&objects, case.lazy, bounds::PIPELINE);
            let at = At::entry(*seq);
            let bytes = growth::read_or_report(held, at, Code::Pipelines, &label, findings).ok();
            let spec = bytes.and_then(|bytes| {
                if Digest::of(&bytes) != *digest {
                    let why = format!("{label} is not what was sealed: it is {}", Digest::of(&bytes).short());
                    findings.report_at(at, Code::Pipelines, why);
                    return None;
                }
                let spec = Spec::parse(&bytes).map_err(|problems| {
                    let first = problems.first().map(ToString::to_string).unwrap_or_default();
                    findings.report_at(at, Code::Pipelines, format!("{label} is not a valid pipeline: {first}"));
                });
                spec.ok()
            });
            specs.insert(*digest, spec);
        }
        for (name, digest) in named(&case.chain) {
            let is_named = match specs.get(&digest) {
                Some(Some(spec)) => Reference::parse(name).is_some_and(|reference| reference.names(spec)),
                Some(None) | None => true,
            };
            if !is_named {
                let at = At::entry(case.chain.sealed.pipelines[&digest].0);
                let why = format!("the pipeline {} is not what {name:?} names", digest.short());
                findings.report_at(at, Code::Pipelines, why);
            }
        }
        Self { specs, blocks: 0 }
    }

    /// Compares the blocks of an attempt with the pipeline of its item.
    pub(super) fn check(&mut self, state: &RunState, seq: u64, event: &Event, findings: &mut Findings) {
        let (item, attempt, blocks) = match event {
            Event::ItemReconciled(e) => (&e.item, e.attempt, &e.blocks),
            Event::ItemRetried(e) | Event::ItemRequeued(e) => (&e.item, e.attempt, &e.blocks),
            _ => return,
        };
        let Some(at) = state.graph.position(item) else { return };
        let named = state.graph.item(at).pipeline();
        let sealed = named.and_then(|name| state.pipelines.get(name)).and_then(|digest| self.specs.get(digest));
        let fits = match (sealed, event) {
            // The unreadable pipeline was reported before.
            (Some(None), _) => Ok(()),
            (Some(Some(spec)), Event::ItemReconciled(e)) if attempt > 0 => spec.expect_ended(e),
            (Some(Some(spec)), _) if attempt > 0 => spec.expect_begun(blocks),
            _ if blocks.is_empty() => Ok(()),
            _ => Err(Misfit::NoPipeline),
        };
        match fits {
            Ok(()) => self.blocks += blocks.len(),
            Err(misfit) => findings.report_at(
                At::entry(seq).of(item),
                Code::Blocks,
                format!("entry {seq}: item {item} #{attempt}: {misfit}"),
            ),
        }
    }

    /// Returns the addition to the row's text; empty without pipelines.
    pub(super) fn detail(&self) -> String {
        if self.specs.is_empty() {
            return String::new();
        }
        let pipelines = counted(self.specs.len(), "pipeline", "pipelines");
        format!(", {} as {pipelines} have them", counted(self.blocks, "block", "blocks"))
    }
}

/// Checks that entry 0 seals exactly the pipelines that items of the plan and the rules name.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, rules: &[Rule], findings: &mut Findings) {
    let written = rules.iter().flat_map(Rule::written_items);
    let named: BTreeSet<&str> = plan.items.iter().chain(written).filter_map(Item::pipeline).collect();
    if !submitted.pipelines.keys().map(String::as_str).eq(named) {
        let why = "entry 0: the pipelines sealed at submit are not those that the plan and the rules name";
        findings.report(Code::Pipelines, why.to_owned());
    }
}
