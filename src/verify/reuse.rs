//! Items whose products were taken from another run: whether that run had them, of the same task, and whose word that is.
//!
//! The evidence lies in the run itself, so that this needs nothing of the other one.

use std::collections::HashMap;

use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemReconciled};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::reused::{Evidence, Reused, task};

use super::objects::Objects;
use super::proof::{self, Sealed};
use super::taken::{Origin, Shown, Taken, Wrong};
use super::tree::Slot;
use super::{Case, Options};

/// Looks at all of them, in the order of their entries.
pub(super) fn examine(case: &Case<'_>) -> Vec<Taken> {
    let objects = Objects::new(case.store);
    let mut manifests: HashMap<&ItemId, &Slot> = HashMap::new();
    let mut reuses = Vec::new();
    for (link, after) in case.chain.with_trees() {
        match &link.entry.event {
            Event::ItemFired(e) => drop(manifests.insert(&e.item, &after.manifest)),
            Event::ItemReconciled(e) if !link.vouched => {
                if let Some(reused) = &e.reused {
                    let own = manifests.get(&e.item).copied();
                    let found = one(case, &objects, (&after.reused, own), (e, reused));
                    let whose = format!("entry {}: what item {} takes from another run", link.entry.seq, e.item);
                    reuses.push(Taken { whose, item: true, found });
                }
            }
            _ => {}
        }
    }
    reuses
}

fn one(
    case: &Case<'_>,
    objects: &Objects,
    (held, own): (&Slot, Option<&Slot>),
    (e, reused): (&ItemReconciled, &Reused),
) -> Result<Shown, Wrong> {
    let differs = |why: &str| Wrong::Differs(why.to_owned());
    let read = |slot: &Slot, most, what: &str| match slot.read(objects, case.lazy, most) {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(fault)) => Err(Wrong::Fault(fault)),
        None => Err(Wrong::Differs(format!("{what} is not in the tree"))),
    };
    let bytes = read(held, bounds::BLOB, "reused.json")?;
    if Digest::of(&bytes) != reused.evidence {
        return Err(differs("reused.json is not the one that the entry names"));
    }
    let evidence = Evidence::parse(&bytes).ok_or_else(|| differs("reused.json is no evidence"))?;
    let own = read(own.unwrap_or(&Slot::Nothing), bounds::MANIFEST, "the manifest of the attempt")?;
    let own = Manifest::parse(&own).map_err(|error| Wrong::Differs(error.to_string()))?;
    if task(&own) != task(&evidence.manifest) {
        return Err(differs("what was to be done is not what was done there"));
    }
    let Sealed { dispatch, end, keys, first } =
        proof::sealed(&evidence.proof, &Options::default()).map_err(Wrong::Differs)?;
    let proof = &evidence.proof;
    if (&proof.run, proof.item.as_ref(), &proof.root) != (&reused.run, Some(&reused.item), &reused.root) {
        return Err(differs("the proof is of another run, item or root"));
    }
    if proof.product.is_some() {
        return Err(differs("the proof is of one product, and not of the item"));
    }
    if dispatch.manifest != Digest::of(&evidence.manifest.canonical()) || evidence.manifest.run != proof.run {
        return Err(differs("the manifest is not the one that the proof shows"));
    }
    if end.reused.is_some() {
        return Err(differs("that run took the products from yet another one"));
    }
    if end.is_red() {
        return Err(differs("the item of that run is red"));
    }
    if (&end.products, &end.verify, &end.blocks) != (&e.products, &e.verify, &e.blocks) {
        return Err(differs("the item of that run handed other products over"));
    }
    Ok(Shown { keys, from: Origin::Run { run: proof.run.clone(), first, root: proof.root } })
}
