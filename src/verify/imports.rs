//! The products that were sealed at submit from other runs and from threads: whether what they come from had them.
//!
//! The evidence lies in the run itself, so that this needs nothing of the others.

use std::collections::BTreeSet;

use gix::objs::Kind;

use crate::git::codec;
use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::elsewhere::{Elsewhere, Evidence, Import, of_checkpoint};
use crate::model::entry::{Event, Product, RunSubmitted};
use crate::model::plan::{Need, Plan, ProductKey};
use crate::model::printable::cut_to;
use crate::model::proof::Proof;
use crate::model::thread::{CheckpointId, STATE};

use super::findings::Findings;
use super::objects::Objects;
use super::proof::{self, Sealed};
use super::reader;
use super::taken::{Origin, Shown, SignedEntry, Taken, Wrong};
use super::{Case, Options};

/// What is found stands behind a name, of which so many letters are said.
const NAMED: usize = 500;

/// Looks at all that entry 0 seals, unless somebody vouches for it.
pub(super) fn examine(case: &Case<'_>) -> Vec<Taken> {
    let Some(submitted) = case.chain.submitted().filter(|_| !case.chain.links[0].vouched) else { return Vec::new() };
    let objects = Objects::new(case.store);
    let one = |(name, import): (&String, &Import)| {
        let found = read(case, &objects, name, import).and_then(|evidence| {
            let (from, key) =
                named(name).ok_or_else(|| Wrong::Differs("it names no product of anything".to_owned()))?;
            shows(&evidence, (&from, &key), &import.product).map_err(Wrong::Differs)
        });
        Taken { whose: format!("entry 0: {}", cut_to(name.clone(), NAMED)), item: false, found }
    };
    submitted.imports.iter().map(one).collect()
}

/// Takes the name of an import apart: where it comes from, and which product.
fn named(name: &str) -> Option<(Elsewhere, ProductKey)> {
    // A source is encoded and holds no colon, but what stands behind it may.
    let (from, key) = name.split_once(':')?;
    Some((from.parse().ok()?, key.parse().ok()?))
}

fn read(case: &Case<'_>, objects: &Objects, name: &str, import: &Import) -> Result<Evidence, Wrong> {
    let held = case.chain.imports.get(name).and_then(|held| held.read(objects, case.lazy, bounds::BLOB));
    let bytes = match held {
        Some(Ok(bytes)) => bytes,
        Some(Err(fault)) => return Err(Wrong::Fault(fault)),
        None => return Err(Wrong::Differs("its evidence is not in the tree".to_owned())),
    };
    if Digest::of(&bytes) != import.evidence {
        return Err(Wrong::Differs("its evidence is not what the entry names".to_owned()));
    }
    Evidence::parse(&bytes).ok_or_else(|| Wrong::Differs("its evidence is none".to_owned()))
}

/// Returns whose word the evidence is, where it shows that a product comes from there.
fn shows(evidence: &Evidence, (from, key): (&Elsewhere, &ProductKey), product: &Product) -> Result<Shown, String> {
    match (evidence, from) {
        (Evidence::Item(proof), Elsewhere::Item { .. }) => of_item(proof, (from, key), product),
        (Evidence::Checkpoint(commit), Elsewhere::Checkpoint { .. }) => of_thread(commit, (from, key), product),
        _ => Err("its evidence is of something else".to_owned()),
    }
}

fn of_item(proof: &Proof, (from, key): (&Elsewhere, &ProductKey), product: &Product) -> Result<Shown, String> {
    let Elsewhere::Item { run, item, .. } = from else { return Err("the evidence is of an item".to_owned()) };
    let Sealed { end, key: signer, at, first, .. } = proof::sealed(proof, &Options::default())?;
    if (&proof.run, proof.item.as_ref()) != (run, Some(item)) {
        return Err("the proof is of another run or item".to_owned());
    }
    if end.is_red() {
        return Err("the item of that run is red".to_owned());
    }
    match end.products.get(key) {
        Some(handed) if (handed.sha256, handed.size) == (product.sha256, product.size) => {}
        _ => return Err("the item of that run did not hand that over".to_owned()),
    }
    Ok(Shown { key: signer, at, from: Origin::Run { run: proof.run.clone(), first, root: proof.root } })
}

fn of_thread(commit: &str, (from, key): (&Elsewhere, &ProductKey), product: &Product) -> Result<Shown, String> {
    let Elsewhere::Checkpoint { thread, at, .. } = from else { return Err("the evidence is of a thread".to_owned()) };
    let decoded = codec::decode(commit.as_bytes()).map_err(|error| error.to_string())?;
    let signer = reader::signer(&decoded)?;
    let (entry, id) = (&decoded.entry, CheckpointId::new(decoded.entry.seq, decoded.hash));
    if entry.about.thread() != Some(thread) || at.as_ref().is_some_and(|at| *at != id) {
        return Err("the checkpoint is another one, or another thread's".to_owned());
    }
    let first = entry.seq == 0;
    let content = match &entry.event {
        Event::ThreadCheckpointed(e) => e.content(),
        Event::ThreadAdopted(e) if first => e.content(),
        Event::ThreadForked(e) if first => e.content(),
        _ => return Err("its evidence is no entry that holds a state".to_owned()),
    };
    let tree = gix::objs::compute_hash(decoded.tree.0.kind(), Kind::Tree, &content.tree());
    if first != entry.prev.is_none() || tree.ok() != Some(decoded.tree.0) {
        return Err("its evidence is an entry that stands in no thread".to_owned());
    }
    let held = match of_checkpoint(key) {
        Some(STATE) => Some(content.state),
        Some(_) => content.packet,
        None => None,
    };
    match held {
        Some(held) if (held.sha256, held.size) == (product.sha256, product.size) => {}
        _ => return Err("the checkpoint does not hold that".to_owned()),
    }
    let signed = SignedEntry { hash: decoded.hash, prev: entry.prev, key: signer.clone() };
    let from = Origin::Thread { thread: thread.clone(), checkpoint: id, entry: signed };
    Ok(Shown { key: signer, at: entry.at, from })
}

/// Checks that just that was sealed at submit which items of the plan take from elsewhere.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, findings: &mut Findings) {
    let needs = plan.items.iter().flat_map(|item| item.needs.values());
    let wanted: BTreeSet<String> = needs.filter_map(Need::import).collect();
    if !submitted.imports.keys().eq(&wanted) {
        findings.add("entry 0: what was sealed from elsewhere is not what the plan takes".to_owned());
    }
}
