//! Imports: items, products and runs that a run took from elsewhere, with the evidence for each.
//!
//! The evidence is part of the run, so the sources are not needed to check it.

use std::collections::BTreeSet;

use crate::git::codec::{self, Decoded};
use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::elsewhere::{Elsewhere, Import, of_checkpoint};
use crate::model::entry::{Event, Product, RunSubmitted, ThreadCheckpointed};
use crate::model::evidence::Evidence;
use crate::model::name::{ItemId, RunId, ThreadId};
use crate::model::plan::{Need, Plan, ProductKey};
use crate::model::printable::cut_to;
use crate::model::proof::Proof;
use crate::model::thread::{CheckpointId, STATE};
use crate::model::time::Moment;

use super::codes::Code;
use super::findings::Findings;
use super::objects::{Fault, Objects};
use super::proof::{self, ItemProof};
use super::reader;
use super::{Case, Options, continues, reuse};

pub(super) struct Imported {
    /// The number of the entry.
    pub(super) seq: u64,
    /// The entry and a description of the import, for findings.
    pub(super) label: String,
    pub(super) kind: ImportKind,
    /// The source that the evidence shows, or the reason why it is not valid.
    pub(super) found: Result<Source, Invalid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportKind {
    /// A product, sealed at submit.
    Product,
    /// All products of an item.
    Item,
    /// The run that this run continues. Its items are imported one by one.
    Run,
}

/// The source of an import, as valid evidence shows it.
pub(super) struct Source {
    /// The keys that signed the source, each with the time that it claims. Of a run, these are the
    /// keys that began and sealed it.
    pub(super) keys: Vec<(String, Moment)>,
    pub(super) from: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A run.
    Run {
        run: RunId,
        /// The leaf hash of its entry 0.
        first: Digest,
        root: Digest,
        /// The number of entries under the root, if the run was not sealed.
        open: Option<u64>,
    },
    /// A checkpoint of a thread.
    Thread { thread: ThreadId, checkpoint: CheckpointId, entry: SignedEntry },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SignedEntry {
    pub(super) seq: u64,
    pub(super) hash: Digest,
    pub(super) prev: Option<Digest>,
    pub(super) key: String,
}

#[derive(Clone)]
pub(super) enum Invalid {
    /// It contradicts the entry.
    Differs(String),
    /// It cannot be read.
    Fault(Fault),
}

impl Invalid {
    pub(super) fn differs(why: &str) -> Self {
        Self::Differs(why.to_owned())
    }
}

pub(super) fn examine(case: &Case<'_>) -> Vec<Imported> {
    let continued = continues::examine(case);
    let mut imports: Vec<Imported> = continues::import(case, continued.as_ref()).into_iter().collect();
    imports.extend(examine_products(case));
    imports.extend(reuse::examine(case, continued.as_ref()));
    imports
}

/// The length at which the names of imports are cut in findings.
const NAMED: usize = 500;

/// Evidence after the checks that do not depend on the import.
enum Read {
    /// The proof of an item of a sealed run.
    Item(Box<Proof>, Box<Result<ItemProof, String>>),
    /// The entry of a thread, with the key that signed it.
    Checkpoint(Box<Result<(Decoded, String), String>>),
}

/// Examines the products that entry 0 seals, unless they were verified before.
fn examine_products(case: &Case<'_>) -> Vec<Imported> {
    let Some(submitted) = case.chain.submitted().filter(|_| !case.chain.links[0].verified_before) else {
        return Vec::new();
    };
    let objects = Objects::new(case.store);
    let mut imports: Vec<(usize, &String, &Import)> =
        submitted.imports.iter().enumerate().map(|(at, (name, import))| (at, name, import)).collect();
    // Several imports may share one evidence blob. It is read once, and only one is in memory at a
    // time.
    imports.sort_by_key(|(_, _, import)| (import.evidence.oid, import.evidence.sha256, import.evidence.size));
    let mut found = Vec::new();
    for same in imports.chunk_by(|(_, _, a), (_, _, b)| a.evidence == b.evidence) {
        let evidence = read(case, &objects, &same[0].2.evidence);
        found.extend(same.iter().map(|(at, name, import)| {
            let source = shows(&evidence, name, import);
            (
                *at,
                Imported {
                    seq: 0,
                    label: format!("entry 0: {}", cut_to((*name).clone(), NAMED)),
                    kind: ImportKind::Product,
                    found: source,
                },
            )
        }));
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, import)| import).collect()
}

/// Reads bytes that an entry names as evidence; `what` names them in errors.
pub(super) fn read_evidence(
    case: &Case<'_>,
    objects: &Objects,
    product: &Product,
    most: u64,
    what: &str,
) -> Result<Vec<u8>, Invalid> {
    objects.read_product(product, case.lazy, most).map_err(|fault| match fault {
        Fault::Differs { .. } => Invalid::Differs(format!("{what} is not the one that the entry names")),
        fault => Invalid::Fault(fault),
    })
}

/// Splits the name of an import into source and product.
fn parse_name(name: &str) -> Option<(Elsewhere, ProductKey)> {
    // An encoded source holds no colon; a product key may.
    let (from, key) = name.split_once(':')?;
    Some((from.parse().ok()?, key.parse().ok()?))
}

/// Reads the evidence of an import; `None` if it is not valid.
fn read(case: &Case<'_>, objects: &Objects, product: &Product) -> Result<Option<Read>, Invalid> {
    let bytes = read_evidence(case, objects, product, bounds::BLOB, "its evidence")?;
    Ok(Evidence::parse(&bytes).map(|evidence| match evidence {
        Evidence::Proof(proof) => {
            let sealed = proof::read_item_proof(&proof, &Options::default());
            Read::Item(proof, Box::new(sealed))
        }
        Evidence::Commits(commits) => Read::Checkpoint(Box::new(signed(&commits))),
    }))
}

fn signed(commits: &[String]) -> Result<(Decoded, String), String> {
    let [commit] = commits else { return Err("its evidence is not one commit".to_owned()) };
    let decoded = codec::decode(commit.as_bytes()).map_err(|error| error.to_string())?;
    let signer = reader::signer(&decoded)?;
    Ok((decoded, signer))
}

/// Returns the source if the evidence shows that the product comes from where its name says.
fn shows(evidence: &Result<Option<Read>, Invalid>, name: &str, import: &Import) -> Result<Source, Invalid> {
    let read = evidence.as_ref().map_err(Clone::clone)?;
    let read = read.as_ref().ok_or_else(|| Invalid::differs("its evidence is not valid"))?;
    let (from, key) = parse_name(name).ok_or_else(|| Invalid::differs("its name is not that of a product"))?;
    let expected = ExpectedProduct { key: &key, product: &import.product };
    let result = match (read, &from) {
        (Read::Item(proof, sealed), Elsewhere::Item { run, item, .. }) => {
            (**sealed).as_ref().map_err(Clone::clone).and_then(|sealed| of_item(proof, sealed, run, item, &expected))
        }
        (Read::Checkpoint(signed), Elsewhere::Checkpoint { thread, at, .. }) => {
            let signed = (**signed).as_ref().map_err(Clone::clone);
            signed.and_then(|(decoded, signer)| of_thread(decoded, signer, thread, at.as_ref(), &expected))
        }
        _ => Err("its evidence is of something else".to_owned()),
    };
    result.map_err(Invalid::Differs)
}

struct ExpectedProduct<'a> {
    key: &'a ProductKey,
    product: &'a Product,
}

impl ExpectedProduct<'_> {
    fn is(&self, product: &Product) -> bool {
        (product.sha256, product.size) == (self.product.sha256, self.product.size)
    }
}

fn of_item(
    proof: &Proof,
    sealed: &ItemProof,
    run: &RunId,
    item: &ItemId,
    expected: &ExpectedProduct<'_>,
) -> Result<Source, String> {
    if (&proof.run, proof.item.as_ref()) != (run, Some(item)) {
        return Err("the proof is of another run or item".to_owned());
    }
    if sealed.end.is_red() {
        return Err("the item of that run is red".to_owned());
    }
    if !sealed.end.products.get(expected.key).is_some_and(|handed| expected.is(handed)) {
        return Err("the item of that run does not have that product".to_owned());
    }
    let from = Origin::Run { run: proof.run.clone(), first: sealed.first, root: proof.root, open: None };
    Ok(Source { keys: sealed.keys.clone(), from })
}

fn of_thread(
    decoded: &Decoded,
    signer: &str,
    thread: &ThreadId,
    at: Option<&CheckpointId>,
    expected: &ExpectedProduct<'_>,
) -> Result<Source, String> {
    let (entry, id) = (&decoded.entry, CheckpointId::new(decoded.entry.seq, decoded.hash));
    if entry.about.thread() != Some(thread) || at.is_some_and(|at| *at != id) {
        return Err("the checkpoint is another one, or another thread's".to_owned());
    }
    let Event::ThreadCheckpointed(ThreadCheckpointed { content, .. }) = &entry.event else {
        return Err("its evidence is not an entry with a state".to_owned());
    };
    let first = entry.seq == 0;
    if first != entry.prev.is_none() || (!first && decoded.parents.is_empty()) {
        return Err("its evidence is not an entry of a thread".to_owned());
    }
    let product = match of_checkpoint(expected.key) {
        Some(STATE) => Some(content.state),
        Some(_) => content.packet,
        None => None,
    };
    if !product.is_some_and(|product| expected.is(&product)) {
        return Err("the checkpoint does not hold that".to_owned());
    }
    let signed = SignedEntry { seq: entry.seq, hash: decoded.hash, prev: entry.prev, key: signer.to_owned() };
    let from = Origin::Thread { thread: thread.clone(), checkpoint: id, entry: signed };
    Ok(Source { keys: vec![(signer.to_owned(), entry.at)], from })
}

/// Checks that entry 0 seals exactly the imports that the plan needs.
pub(super) fn check_submitted(submitted: &RunSubmitted, plan: &Plan, findings: &mut Findings) {
    let needs = plan.items.iter().flat_map(|item| item.needs.values());
    let expected: BTreeSet<String> = needs.filter_map(Need::import).collect();
    if !submitted.imports.keys().eq(&expected) {
        let why = "entry 0: what was sealed from elsewhere is not what the plan takes";
        findings.report(Code::Imports, why.to_owned());
    }
}
