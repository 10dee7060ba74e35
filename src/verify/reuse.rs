//! Items that reuse the products of another run: that run made them, for the same task.
//!
//! The evidence is part of the run, so the other run is not needed to check it.

use std::collections::HashMap;

use crate::model::bounds;
use crate::model::digest::Oid;
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::evidence::Evidence;
use crate::model::name::ItemId;
use crate::model::reused::{Reused, Work};
use crate::model::state::RunState;

use super::continues::Continued;
use super::imports::{ImportKind, Imported, Invalid, Origin, Source, read_evidence};
use super::objects::Objects;
use super::proof::{self, ItemProof};
use super::{Case, Options};

/// Examines all reused items, in the order of their entries.
pub(super) fn examine(case: &Case<'_>, continued: Option<&Result<Continued, Invalid>>) -> Vec<Imported> {
    let objects = Objects::new(case.store);
    let base = case.chain.submitted().map(|e| e.base);
    let mut works: HashMap<&ItemId, Work<'_>> = HashMap::new();
    let mut reuses = Vec::new();
    for link in &case.chain.links {
        match &link.entry.event {
            Event::ItemFired(e) => drop(works.insert(&e.item, Work::from_fired(e))),
            Event::ItemReconciled(e) if !link.verified_before => {
                if let Some(reused) = &e.reused {
                    let reuse = Reuse { end: e, reused, work: works.get(&e.item).copied(), base };
                    reuses.push(imported(case, &objects, continued, link.entry.seq, &reuse));
                }
            }
            _ => {}
        }
    }
    reuses
}

/// Examines the item of a chain of one entry; `state` is that of its run before.
///
/// Items of a continued run are left out: their evidence is in entry 0.
pub(super) fn examine_next(case: &Case<'_>, state: &RunState) -> Option<Imported> {
    let link = case.chain.links.first()?;
    let Event::ItemReconciled(end) = &link.entry.event else { return None };
    let reused = end.reused.as_ref().filter(|reused| reused.evidence.is_some())?;
    let work = state.graph.position(&end.item).and_then(|at| Work::latest(&state.items[at]));
    let reuse = Reuse { end, reused, work, base: Some(state.submitted.base) };
    Some(imported(case, &Objects::new(case.store), None, link.entry.seq, &reuse))
}

fn imported(
    case: &Case<'_>,
    objects: &Objects,
    continued: Option<&Result<Continued, Invalid>>,
    seq: u64,
    reuse: &Reuse<'_>,
) -> Imported {
    let label = format!("entry {seq}: the products that item {} reuses", reuse.end.item);
    Imported { seq, label, kind: ImportKind::Item, found: one(case, objects, continued, reuse) }
}

struct Reuse<'a> {
    end: &'a ItemReconciled,
    reused: &'a Reused,
    /// The work of the attempt in this run, if there is an attempt.
    work: Option<Work<'a>>,
    /// The base of this run, if its entry 0 is known.
    base: Option<Oid>,
}

fn one(
    case: &Case<'_>,
    objects: &Objects,
    continued: Option<&Result<Continued, Invalid>>,
    reuse: &Reuse<'_>,
) -> Result<Source, Invalid> {
    let reused = reuse.reused;
    let Some(evidence) = &reused.evidence else {
        let (continued, dispatch, made) = of_continued(continued, reused).map_err(Invalid::differs)?;
        reuse.compare(continued.base, dispatch, made).map_err(Invalid::differs)?;
        return Ok(Source { keys: Vec::new(), from: continued.origin.clone() });
    };
    let bytes = read_evidence(case, objects, evidence, bounds::BLOB, "reused.json")?;
    let proof = Evidence::parse(&bytes).and_then(Evidence::proof);
    let proof = proof.ok_or_else(|| Invalid::differs("reused.json is not valid evidence"))?;
    let ItemProof { dispatch, end: made, keys, first, base: there } =
        proof::read_item_proof(&proof, &Options::default()).map_err(Invalid::Differs)?;
    if (&proof.run, proof.item.as_ref(), &proof.root) != (&reused.run, Some(&reused.item), &reused.root) {
        return Err(Invalid::differs("the proof is of another run, item or root"));
    }
    if proof.product.is_some() {
        return Err(Invalid::differs("the proof is of one product, and not of the item"));
    }
    reuse.compare(there, &dispatch, &made).map_err(Invalid::differs)?;
    Ok(Source { keys, from: Origin::Run { run: proof.run.clone(), first, root: proof.root, open: None } })
}

/// Finds the attempt of an item in the continued run. The keys are judged with the continued run as
/// a whole.
fn of_continued<'c>(
    continued: Option<&'c Result<Continued, Invalid>>,
    reused: &Reused,
) -> Result<(&'c Continued, &'c ItemFired, &'c ItemReconciled), &'static str> {
    let continued = match continued {
        Some(Ok(continued)) => continued,
        Some(Err(_)) => return Err("the run that this one continues does not hold"),
        None => return Err("the entry names no evidence, and the run continues none"),
    };
    if !matches!(&continued.origin, Origin::Run { run, root, .. } if (run, root) == (&reused.run, &reused.root)) {
        return Err("it is of another run or root than the one that is continued");
    }
    let (dispatch, end) = continued.done(&reused.item).ok_or("the item is not done in the run that is continued")?;
    Ok((continued, dispatch, end))
}

impl Reuse<'_> {
    /// Compares the attempt with the one of the other run, which starts from `base`.
    fn compare(&self, base: Oid, dispatch: &ItemFired, made: &ItemReconciled) -> Result<(), &'static str> {
        let end = self.end;
        let work = self.work.ok_or("the item was not dispatched")?;
        if self.base != Some(base) {
            return Err("that run starts from another base");
        }
        if work != Work::from_fired(dispatch) {
            return Err("its task differs from the task done there");
        }
        if made.reused.is_some() {
            return Err("that run reused the products of a third run");
        }
        if made.is_red() {
            return Err("the item of that run is red");
        }
        if !made.protected.is_empty() {
            return Err("the item of that run changes protected files");
        }
        if (&made.products, &made.verify, &made.blocks) != (&end.products, &end.verify, &end.blocks) {
            return Err("the item of that run has other products");
        }
        Ok(())
    }
}
