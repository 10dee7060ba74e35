//! The pipelines of a run: sealed by digest, exactly those that items name, and consistent with the
//! blocks of attempts.
//!
//! Part of the row `plan`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::entry::{Event, Product, RunSubmitted};
use crate::model::name::ItemId;
use crate::model::pipeline::{BlockEnded, Misfit, Reference, Spec};
use crate::model::plan::{Item, Plan};
use crate::model::rule::Rule;
use crate::model::state::RunState;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, counted};
use super::objects::Objects;
use super::run_chain::RunChain;

/// Pipelines by name, each with the number of the entry that names it, and its bytes.
pub(super) type Named<'a> = BTreeMap<&'a str, (u64, &'a Product)>;

/// The sealed pipelines by name; `None` if one cannot be read or parsed.
pub(super) struct SealedPipelines {
    specs: BTreeMap<String, Option<Spec>>,
    blocks: usize,
}

/// The blocks of the attempt that ended an item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

    /// Returns one line of text.
    pub fn in_words(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(ToString::to_string).collect();
        format!("{} #{}: {}", self.item, self.attempt, blocks.join(", "))
    }
}

/// Returns all pipelines of a run, by the names in items.
pub(super) fn by_name(chain: &RunChain) -> Named<'_> {
    let mut pipelines = BTreeMap::new();
    for link in &chain.links {
        let brought = match &link.entry.event {
            Event::RunSubmitted(e) => &e.pipelines,
            Event::RunExtended(e) => &e.pipelines,
            _ => continue,
        };
        for (name, bytes) in brought {
            pipelines.entry(name.as_str()).or_insert((link.entry.seq, bytes));
        }
    }
    pipelines
}

impl SealedPipelines {
    /// Reads pipelines, and compares each with its digest and its name.
    pub(super) fn read(case: &Case<'_>, by_name: &Named<'_>, findings: &mut Findings) -> Self {
        let objects = Objects::new(case.store);
        let mut specs = BTreeMap::new();
        for (name, (seq, bytes)) in by_name {
            let at = At::entry(*seq);
            let label = format!("the pipeline {}", bytes.sha256.short());
            let spec = match objects.read_product(bytes, case.lazy, bounds::PIPELINE) {
                Err(fault) => {
                    findings.report_fault_at(at, Code::Pipelines, &label, &fault);
                    None
                }
                Ok(bytes) => Spec::parse(&bytes)
                    .map_err(|problems| {
                        let first = problems.first().map(ToString::to_string).unwrap_or_default();
                        findings.report_at(at, Code::Pipelines, format!("{label} is not a valid pipeline: {first}"));
                    })
                    .ok(),
            };
            if !spec.as_ref().is_none_or(|spec| Reference::parse(name).is_some_and(|reference| reference.names(spec))) {
                findings.report_at(at, Code::Pipelines, format!("{label} is not what {name:?} names"));
            }
            specs.insert((*name).to_owned(), spec);
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
        let reference = state.graph.item(at).pipeline();
        let sealed = reference.and_then(|name| self.specs.get(name));
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
                At::entry(seq).for_item(item),
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
        let digests: BTreeSet<Digest> = self.specs.values().flatten().map(Spec::digest).collect();
        let pipelines = counted(digests.len(), "pipeline", "pipelines");
        format!(", {} as {pipelines} have them", counted(self.blocks, "block", "blocks"))
    }
}

/// Checks that entry 0 seals exactly the pipelines that items of the plan and the rules name.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, rules: &[Rule], findings: &mut Findings) {
    let written = rules.iter().flat_map(Rule::written_items);
    let references: BTreeSet<&str> = plan.items.iter().chain(written).filter_map(Item::pipeline).collect();
    if !submitted.pipelines.keys().map(String::as_str).eq(references) {
        let why = "entry 0: the pipelines sealed at submit are not those that the plan and the rules name";
        findings.report(Code::Pipelines, why.to_owned());
    }
}
