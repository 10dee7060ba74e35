//! Items whose products were taken from another run: whether that run had them, of the same task, and whose word that is.
//!
//! The evidence lies in the run itself, so that this needs nothing of the other one.

use std::collections::HashMap;

use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemFired, ItemReconciled};
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::reused::{Evidence, Reused, task};

use super::continues::Continued;
use super::objects::Objects;
use super::proof::{self, Sealed};
use super::taken::{Kind, Origin, Shown, Taken, Wrong};
use super::tree::Slot;
use super::{Case, Options};

/// Looks at all of them, in the order of their entries.
pub(super) fn examine(case: &Case<'_>, continued: Option<&Result<Continued, Wrong>>) -> Vec<Taken> {
    let objects = Objects::new(case.store);
    let mut manifests: HashMap<&ItemId, &Slot> = HashMap::new();
    let mut reuses = Vec::new();
    for (link, after) in case.chain.with_trees() {
        match &link.entry.event {
            Event::ItemFired(e) => drop(manifests.insert(&e.item, &after.manifest)),
            Event::ItemReconciled(e) if !link.vouched => {
                if let Some(reused) = &e.reused {
                    let own = manifests.get(&e.item).copied();
                    let found = one(case, (&objects, continued), (&after.reused, own), (e, reused));
                    let whose = format!("entry {}: what item {} takes from another run", link.entry.seq, e.item);
                    reuses.push(Taken { whose, kind: Kind::Item, found });
                }
            }
            _ => {}
        }
    }
    reuses
}

fn one(
    case: &Case<'_>,
    (objects, continued): (&Objects, Option<&Result<Continued, Wrong>>),
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
    if reused.continued == evidence.proof.is_some() {
        return Err(differs("the entry says otherwise what its evidence is"));
    }
    let Some(proof) = &evidence.proof else {
        let (dispatch, end, shown) = of_continued(continued, reused).map_err(differs)?;
        return hold(e, (&evidence.manifest, &reused.run), (dispatch, end)).map(|()| shown).map_err(differs);
    };
    let Sealed { dispatch, end, keys, first } = proof::sealed(proof, &Options::default()).map_err(Wrong::Differs)?;
    if (&proof.run, proof.item.as_ref(), &proof.root) != (&reused.run, Some(&reused.item), &reused.root) {
        return Err(differs("the proof is of another run, item or root"));
    }
    if proof.product.is_some() {
        return Err(differs("the proof is of one product, and not of the item"));
    }
    hold(e, (&evidence.manifest, &proof.run), (&dispatch, &end)).map_err(differs)?;
    Ok(Shown { keys, from: Origin::Run { run: proof.run.clone(), first, root: proof.root, open: None } })
}

/// Finds the attempt of an item of the run that is continued. Its keys are judged with that run as a whole.
fn of_continued<'c>(
    continued: Option<&'c Result<Continued, Wrong>>,
    reused: &Reused,
) -> Result<(&'c ItemFired, &'c ItemReconciled, Shown), &'static str> {
    let continued = match continued {
        Some(Ok(continued)) => continued,
        Some(Err(_)) => return Err("the run that this one continues does not hold"),
        None => return Err("reused.json has no proof, and the run continues none"),
    };
    if !matches!(&continued.origin, Origin::Run { run, root, .. } if (run, root) == (&reused.run, &reused.root)) {
        return Err("it is of another run or root than the one that is continued");
    }
    let (dispatch, end) = continued.done(&reused.item).ok_or("the item is not done in the run that is continued")?;
    Ok((dispatch, end, Shown { keys: Vec::new(), from: continued.origin.clone() }))
}

/// Holds what was taken against the attempt that made it.
fn hold(
    e: &ItemReconciled,
    (manifest, run): (&Manifest, &RunId),
    (dispatch, end): (&ItemFired, &ItemReconciled),
) -> Result<(), &'static str> {
    if dispatch.manifest != Digest::of(&manifest.canonical()) || manifest.run != *run {
        return Err("the manifest is not the one that the proof shows");
    }
    if end.reused.is_some() {
        return Err("that run took the products from yet another one");
    }
    if end.is_red() {
        return Err("the item of that run is red");
    }
    if (&end.products, &end.verify, &end.blocks) != (&e.products, &e.verify, &e.blocks) {
        return Err("the item of that run handed other products over");
    }
    Ok(())
}
