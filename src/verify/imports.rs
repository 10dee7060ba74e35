//! The products that were sealed at submit from other runs and from threads: whether what they come from had them.
//!
//! The evidence lies in the run itself, so that this needs nothing of the others.

use std::collections::BTreeSet;

use gix::objs::Kind as Object;

use crate::git::codec::{self, Decoded};
use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::elsewhere::{Elsewhere, Evidence, Import, of_checkpoint};
use crate::model::entry::{Event, Product, RunSubmitted};
use crate::model::name::{ItemId, RunId, ThreadId};
use crate::model::plan::{Need, Plan, ProductKey};
use crate::model::printable::cut_to;
use crate::model::proof::Proof;
use crate::model::thread::{CheckpointId, STATE};

use super::codes::Code;
use super::findings::Findings;
use super::objects::Objects;
use super::proof::{self, Sealed};
use super::reader;
use super::taken::{Kind, Origin, Shown, SignedEntry, Taken, Wrong};
use super::tree::Slot;
use super::{Case, Options};

/// What is found stands behind a name, of which so many letters are said.
const NAMED: usize = 500;

/// Evidence that was read, and what of it does not depend on what it is evidence of.
enum Read {
    /// The proof of an item of a sealed run.
    Item(Box<Proof>, Box<Result<Sealed, String>>),
    /// The entry of a thread, and the key that signed it.
    Checkpoint(Box<Result<(Decoded, String), String>>),
}

/// Looks at all that entry 0 seals, unless somebody vouches for it.
pub(super) fn examine(case: &Case<'_>) -> Vec<Taken> {
    let Some(submitted) = case.chain.submitted().filter(|_| !case.chain.links[0].vouched) else { return Vec::new() };
    let objects = Objects::new(case.store);
    let slot = |name: &String| case.chain.imports.get(name).unwrap_or(&Slot::Nothing);
    let mut imports: Vec<(usize, &String, &Import)> =
        submitted.imports.iter().enumerate().map(|(at, (name, import))| (at, name, import)).collect();
    // One blob can be the evidence of all of them: it is read once, and only one is held at a time.
    imports.sort_by_key(|(_, name, _)| slot(name).blob());
    let mut taken = Vec::new();
    for same in imports.chunk_by(|(_, a, _), (_, b, _)| slot(a).blob().is_some() && slot(a).blob() == slot(b).blob()) {
        let evidence = read(case, &objects, slot(same[0].1));
        let one = |(at, name, import): &(usize, &String, &Import)| {
            let found = shows(&evidence, name, import);
            (*at, Taken { whose: format!("entry 0: {}", cut_to((*name).clone(), NAMED)), kind: Kind::Product, found })
        };
        taken.extend(same.iter().map(one));
    }
    taken.sort_by_key(|(at, _)| *at);
    taken.into_iter().map(|(_, taken)| taken).collect()
}

/// Takes the name of an import apart: where it comes from, and which product.
fn named(name: &str) -> Option<(Elsewhere, ProductKey)> {
    // A source is encoded and holds no colon, but what stands behind it may.
    let (from, key) = name.split_once(':')?;
    Some((from.parse().ok()?, key.parse().ok()?))
}

/// Reads evidence; returns what it hashes to, too.
fn read(case: &Case<'_>, objects: &Objects, slot: &Slot) -> Result<(Digest, Option<Read>), Wrong> {
    let bytes = match slot.read(objects, case.lazy, bounds::BLOB) {
        Some(Ok(bytes)) => bytes,
        Some(Err(fault)) => return Err(Wrong::Fault(fault)),
        None => return Err(Wrong::Differs("its evidence is not in the tree".to_owned())),
    };
    let read = Evidence::parse(&bytes).map(|evidence| match evidence {
        Evidence::Item(proof) => {
            let sealed = proof::sealed(&proof, &Options::default());
            Read::Item(proof, Box::new(sealed))
        }
        Evidence::Checkpoint(commit) => Read::Checkpoint(Box::new(signed(&commit))),
    });
    Ok((Digest::of(&bytes), read))
}

fn signed(commit: &str) -> Result<(Decoded, String), String> {
    let decoded = codec::decode(commit.as_bytes()).map_err(|error| error.to_string())?;
    let signer = reader::signer(&decoded)?;
    Ok((decoded, signer))
}

/// Returns whose word the evidence is, where it shows that a product comes from where its name says.
fn shows(evidence: &Result<(Digest, Option<Read>), Wrong>, name: &str, import: &Import) -> Result<Shown, Wrong> {
    let differs = |why: &str| Wrong::Differs(why.to_owned());
    let (digest, read) = evidence.as_ref().map_err(Clone::clone)?;
    if *digest != import.evidence {
        return Err(differs("its evidence is not what the entry names"));
    }
    let read = read.as_ref().ok_or_else(|| differs("its evidence is none"))?;
    let (from, key) = named(name).ok_or_else(|| differs("it names no product of anything"))?;
    let shown = match (read, &from) {
        (Read::Item(proof, sealed), Elsewhere::Item { run, item, .. }) => (**sealed)
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|sealed| of_item((proof, sealed), (run, item, &key), &import.product)),
        (Read::Checkpoint(signed), Elsewhere::Checkpoint { thread, at, .. }) => (**signed)
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|signed| of_thread(signed, (thread, at.as_ref(), &key), &import.product)),
        _ => Err("its evidence is of something else".to_owned()),
    };
    shown.map_err(Wrong::Differs)
}

fn of_item(
    (proof, sealed): (&Proof, &Sealed),
    (run, item, key): (&RunId, &ItemId, &ProductKey),
    product: &Product,
) -> Result<Shown, String> {
    if (&proof.run, proof.item.as_ref()) != (run, Some(item)) {
        return Err("the proof is of another run or item".to_owned());
    }
    if sealed.end.is_red() {
        return Err("the item of that run is red".to_owned());
    }
    match sealed.end.products.get(key) {
        Some(handed) if (handed.sha256, handed.size) == (product.sha256, product.size) => {}
        _ => return Err("the item of that run did not hand that over".to_owned()),
    }
    let from = Origin::Run { run: proof.run.clone(), first: sealed.first, root: proof.root, open: None };
    Ok(Shown { keys: sealed.keys.clone(), from })
}

fn of_thread(
    (decoded, signer): &(Decoded, String),
    (thread, at, key): (&ThreadId, Option<&CheckpointId>, &ProductKey),
    product: &Product,
) -> Result<Shown, String> {
    let (entry, id) = (&decoded.entry, CheckpointId::new(decoded.entry.seq, decoded.hash));
    if entry.about.thread() != Some(thread) || at.is_some_and(|at| *at != id) {
        return Err("the checkpoint is another one, or another thread's".to_owned());
    }
    let first = entry.seq == 0;
    let content = match &entry.event {
        Event::ThreadCheckpointed(e) => e.content(),
        Event::ThreadAdopted(e) if first => e.content(),
        Event::ThreadForked(e) if first => e.content(),
        _ => return Err("its evidence is no entry that holds a state".to_owned()),
    };
    let tree = gix::objs::compute_hash(decoded.tree.0.kind(), Object::Tree, &content.tree());
    let follows = first || !decoded.parents.is_empty();
    if first != entry.prev.is_none() || !follows || tree.ok() != Some(decoded.tree.0) {
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
    let signed = SignedEntry { seq: entry.seq, hash: decoded.hash, prev: entry.prev, key: signer.clone() };
    let from = Origin::Thread { thread: thread.clone(), checkpoint: id, entry: signed };
    Ok(Shown { keys: vec![(signer.clone(), entry.at)], from })
}

/// Checks that just that was sealed at submit which items of the plan take from elsewhere.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, findings: &mut Findings) {
    let needs = plan.items.iter().flat_map(|item| item.needs.values());
    let wanted: BTreeSet<String> = needs.filter_map(Need::import).collect();
    if !submitted.imports.keys().eq(&wanted) {
        let why = "entry 0: what was sealed from elsewhere is not what the plan takes";
        findings.report(Code::Imports, why.to_owned());
    }
}
