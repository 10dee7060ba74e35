//! Items that reuse the products of another run: that run made them, for the same task.
//!
//! The evidence is part of the run, so the other run is not needed to check it.

use std::collections::HashMap;

use crate::model::bounds;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, ItemFired, ItemReconciled, Product};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::reused::{Evidence, Reused, task};

use super::continues::Continued;
use super::imports::{ImportKind, Imported, Invalid, Origin, Source, read_evidence};
use super::objects::Objects;
use super::proof::{self, ItemProof};
use super::{Case, Options};

/// Examines all reused items, in the order of their entries.
pub(super) fn examine(case: &Case<'_>, continued: Option<&Result<Continued, Invalid>>) -> Vec<Imported> {
    let objects = Objects::new(case.store);
    let base = case.chain.submitted().map(|e| e.base);
    let mut manifests: HashMap<&ItemId, &Product> = HashMap::new();
    let mut reuses = Vec::new();
    for link in &case.chain.links {
        match &link.entry.event {
            Event::ItemFired(e) => drop(manifests.insert(&e.item, &e.manifest)),
            Event::ItemReconciled(e) if !link.verified_before => {
                if let Some(reused) = &e.reused {
                    let manifest = manifests.get(&e.item).copied();
                    let reuse = Reuse { end: e, reused, manifest, base };
                    reuses.push(imported(case, &objects, continued, link.entry.seq, &reuse));
                }
            }
            _ => {}
        }
    }
    reuses
}

/// Examines the item of a chain of one entry; `base` is that of its run, and `manifest` that of its
/// attempt.
///
/// Items of a continued run are left out: their evidence is in entry 0.
pub(super) fn examine_next(case: &Case<'_>, base: Oid, manifest: Option<&Product>) -> Option<Imported> {
    let link = case.chain.links.first()?;
    let Event::ItemReconciled(end) = &link.entry.event else { return None };
    let reused = end.reused.as_ref().filter(|reused| !reused.continued)?;
    let reuse = Reuse { end, reused, manifest, base: Some(base) };
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
    /// The manifest of the attempt in this run, if there is an attempt.
    manifest: Option<&'a Product>,
    /// The base of this run, if its entry 0 is known.
    base: Option<Oid>,
}

fn one(
    case: &Case<'_>,
    objects: &Objects,
    continued: Option<&Result<Continued, Invalid>>,
    &Reuse { end, reused, manifest, base }: &Reuse<'_>,
) -> Result<Source, Invalid> {
    let differs = |why: &str| Invalid::Differs(why.to_owned());
    let bytes = read_evidence(case, objects, &reused.evidence, bounds::BLOB, "reused.json")?;
    let evidence = Evidence::parse(&bytes).ok_or_else(|| differs("reused.json is not valid evidence"))?;
    let manifest = manifest.ok_or_else(|| differs("the item was not dispatched"))?;
    let own = read_evidence(case, objects, manifest, bounds::MANIFEST, "the manifest of the attempt")?;
    let own = Manifest::parse(&own).map_err(|error| Invalid::Differs(error.to_string()))?;
    if task(&own) != task(&evidence.manifest) {
        return Err(differs("its task differs from the task done there"));
    }
    if reused.continued == evidence.proof.is_some() {
        return Err(differs("the entry names another kind of evidence"));
    }
    let Some(proof) = &evidence.proof else {
        let (continued, dispatch, made) = of_continued(continued, reused).map_err(differs)?;
        expect_base(base, continued.base).map_err(differs)?;
        compare_products(end, &evidence.manifest, dispatch, made).map_err(differs)?;
        return Ok(Source { keys: Vec::new(), from: continued.origin.clone() });
    };
    let ItemProof { dispatch, end: made, keys, first, base: there } =
        proof::read_item_proof(proof, &Options::default()).map_err(Invalid::Differs)?;
    if (&proof.run, proof.item.as_ref(), &proof.root) != (&reused.run, Some(&reused.item), &reused.root) {
        return Err(differs("the proof is of another run, item or root"));
    }
    if proof.product.is_some() {
        return Err(differs("the proof is of one product, and not of the item"));
    }
    expect_base(base, there).map_err(differs)?;
    compare_products(end, &evidence.manifest, &dispatch, &made).map_err(differs)?;
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
        None => return Err("reused.json has no proof, and the run continues none"),
    };
    if !matches!(&continued.origin, Origin::Run { run, root, .. } if (run, root) == (&reused.run, &reused.root)) {
        return Err("it is of another run or root than the one that is continued");
    }
    let (dispatch, end) = continued.done(&reused.item).ok_or("the item is not done in the run that is continued")?;
    Ok((continued, dispatch, end))
}

/// Checks that the other run starts from the base of this one, which is part of every task.
fn expect_base(own: Option<Oid>, there: Oid) -> Result<(), &'static str> {
    if own == Some(there) { Ok(()) } else { Err("that run starts from another base") }
}

/// Compares the reused products with the attempt that made them.
fn compare_products(
    end: &ItemReconciled,
    manifest: &Manifest,
    dispatch: &ItemFired,
    made: &ItemReconciled,
) -> Result<(), &'static str> {
    if dispatch.manifest.sha256 != Digest::of(&manifest.canonical()) {
        return Err("the manifest is not the one that the proof shows");
    }
    if made.reused.is_some() {
        return Err("that run reused the products of a third run");
    }
    if made.is_red() {
        return Err("the item of that run is red");
    }
    if made.protected_judged {
        return Err("the item of that run changes protected files, which only its own check judged");
    }
    if (&made.products, &made.verify, &made.blocks) != (&end.products, &end.verify, &end.blocks) {
        return Err("the item of that run has other products");
    }
    Ok(())
}
