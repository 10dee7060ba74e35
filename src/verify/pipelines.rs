//! The pipelines of a run: sealed by their bytes, just those that its items name, and fit for what attempts say of their blocks.
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
use super::findings::{Findings, counted};
use super::objects::Objects;
use super::run_chain::RunChain;

/// The pipelines that were sealed with a run, by their digests; none where the bytes are not here, or are no pipeline.
pub(super) struct Sealed {
    specs: BTreeMap<Digest, Option<Spec>>,
    /// How many blocks were held against their pipelines.
    blocks: usize,
}

/// What the attempt that ended an item says of its blocks.
#[derive(Clone, Debug)]
pub struct Told {
    /// The item.
    pub item: ItemId,
    /// The attempt.
    pub attempt: u32,
    /// What became of each block that was run.
    pub blocks: Vec<BlockEnded>,
}

impl Told {
    /// Returns what the entries say, whether or not it holds.
    pub(super) fn all(chain: &RunChain) -> Vec<Self> {
        let told = chain.links.iter().filter_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) if !e.blocks.is_empty() => {
                Some(Self { item: e.item.clone(), attempt: e.attempt, blocks: e.blocks.clone() })
            }
            _ => None,
        });
        told.collect()
    }

    /// Returns it as part of an answer.
    pub fn to_json(&self) -> Value {
        json!({ "item": self.item, "attempt": self.attempt, "blocks": self.blocks })
    }

    /// Returns it in one line.
    pub fn in_words(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(ToString::to_string).collect();
        format!("{} #{}: {}", self.item, self.attempt, blocks.join(", "))
    }
}

/// Returns the digests of all pipelines of a run, by the names that items give them.
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

impl Sealed {
    /// Reads what was sealed, and holds each against its digest and its name.
    pub(super) fn read(case: &Case<'_>, findings: &mut Findings) -> Self {
        let objects = Objects::new(case.store);
        let mut specs = BTreeMap::new();
        for (digest, held) in &case.chain.pipelines {
            let whose = format!("the pipeline {}", digest.short());
            let spec = match held.read(&objects, case.lazy, bounds::PIPELINE) {
                None => {
                    findings.report(Code::PipelineUnread, format!("{whose} is not in the tree"));
                    None
                }
                Some(Err(fault)) => {
                    findings.report_fault(Code::PipelineUnread, &whose, &fault);
                    None
                }
                Some(Ok(bytes)) if Digest::of(&bytes) != *digest => {
                    findings.report(
                        Code::PipelineDigest,
                        format!("{whose} is not what was sealed: it is {}", Digest::of(&bytes).short()),
                    );
                    None
                }
                Some(Ok(bytes)) => Spec::parse(&bytes)
                    .map_err(|problems| {
                        let first = problems.first().map(ToString::to_string).unwrap_or_default();
                        findings.report(Code::PipelineInvalid, format!("{whose} is none: {first}"));
                    })
                    .ok(),
            };
            specs.insert(*digest, spec);
        }
        for (name, digest) in named(&case.chain) {
            let is_named = match specs.get(&digest) {
                Some(Some(spec)) => Reference::parse(name).is_some_and(|reference| reference.names(spec)),
                Some(None) | None => true,
            };
            if !is_named {
                findings
                    .report(Code::PipelineName, format!("the pipeline {} is not what {name:?} names", digest.short()));
            }
        }
        Self { specs, blocks: 0 }
    }

    /// Holds what an entry says of the blocks of an attempt against the pipeline of its item.
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
            // That it cannot be read was said.
            (Some(None), _) => Ok(()),
            (Some(Some(spec)), Event::ItemReconciled(e)) if attempt > 0 => spec.expect_ended(e),
            (Some(Some(spec)), _) if attempt > 0 => spec.expect_begun(blocks),
            _ if blocks.is_empty() => Ok(()),
            _ => Err(Misfit::NoPipeline),
        };
        match fits {
            Ok(()) => self.blocks += blocks.len(),
            Err(misfit) => findings.report(Code::Blocks, format!("entry {seq}: item {item} #{attempt}: {misfit}")),
        }
    }

    /// Returns what there is to say of all; nothing of a run without pipelines.
    pub(super) fn detail(&self) -> String {
        if self.specs.is_empty() {
            return String::new();
        }
        let pipelines = counted(self.specs.len(), "pipeline", "pipelines");
        format!(", {} as {pipelines} have them", counted(self.blocks, "block", "blocks"))
    }
}

/// Checks that just those pipelines were sealed at submit that items of the plan and of the rules name.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, rules: &[Rule], findings: &mut Findings) {
    let written = rules.iter().flat_map(Rule::written_items);
    let named: BTreeSet<&str> = plan.items.iter().chain(written).filter_map(Item::pipeline).collect();
    if !submitted.pipelines.keys().map(String::as_str).eq(named) {
        let why = "entry 0: the pipelines sealed at submit are not those that the plan and the rules name";
        findings.report(Code::Pipelines, why.to_owned());
    }
}
