//! Creates proofs from sealed runs: of one product, or of how the run grew.
//!
//! Only a seal signs a root, so an unsealed run has no proofs.

use crate::git::store::{self, Store};
use crate::ledger::chain::{self, Link};
use crate::ledger::{merkle, sign};
use crate::model::digest::Digest;
use crate::model::entry::{Entry, Event, ItemReconciled, Outcome, Role};
use crate::model::name::{ItemId, RunId};
use crate::model::plan::ProductKey;
use crate::model::proof::{Earlier, Handed, Leaf, Proof, SCHEMA, Signed};

/// Proves the products of an item of a sealed run, or one of them. For an item that people decided
/// about, proves the decision.
pub fn item(store: &Store, reference: &str, item: &ItemId, product: Option<&ProductKey>) -> Result<Proof, Error> {
    item_of(store, &read(store, reference)?, item, product)
}

/// Creates the proof from the entries of a run; there is at least one.
pub fn item_of(store: &Store, links: &[Link], item: &ItemId, product: Option<&ProductKey>) -> Result<Proof, Error> {
    let (before, seal) = sealed(links)?;
    if let Some(at) = before.iter().rposition(|link| is_decided(&link.entry, item)) {
        if let Some(key) = product {
            return Err(Error::NoProduct(item.clone(), key.clone()));
        }
        let leaves = leaves(before);
        let entries = vec![Leaf { entry: value(&links[at].entry), path: path(&leaves, at) }];
        return Ok(Proof { item: Some(item.clone()), shown: entries, ..begin(store, before, seal, &leaves)? });
    }
    let ended = before.iter().rposition(|link| done(&link.entry).is_some_and(|e| e.item == *item));
    let ended = ended.ok_or_else(|| Error::NotDone(item.clone()))?;
    let reconciled = done(&before[ended].entry).expect("it was found as one that is done");
    let handed = match product {
        None => None,
        Some(key) => {
            let is = reconciled.products.get(key).ok_or_else(|| Error::NoProduct(item.clone(), key.clone()))?;
            Some(Handed { key: key.clone(), is: *is })
        }
    };
    let fired = before[..ended].iter().rposition(
        |link| matches!(&link.entry.event, Event::ItemFired(e) if e.item == *item && e.attempt == reconciled.attempt),
    );
    let fired = fired.ok_or_else(|| Error::NotDone(item.clone()))?;
    let leaves = leaves(before);
    Ok(Proof {
        item: Some(item.clone()),
        product: handed,
        shown: [fired, ended].map(|at| Leaf { entry: value(&links[at].entry), path: path(&leaves, at) }).to_vec(),
        ..begin(store, before, seal, &leaves)?
    })
}

/// Proves that a sealed run extends its first entries, up to `since`.
pub fn growth(store: &Store, reference: &str, since: u64) -> Result<Proof, Error> {
    let links = read(store, reference)?;
    let (before, seal) = sealed(&links)?;
    let leaves = leaves(before);
    let unknown = || Error::NoEntry { since, entries: leaves.len() as u64 };
    let old = usize::try_from(since).ok().and_then(|since| since.checked_add(1)).ok_or_else(unknown)?;
    let consistent = merkle::consistency(&leaves, old).ok_or_else(unknown)?;
    let root = merkle::root(leaves[..old].iter().copied());
    let earlier = Earlier { entries: old as u64, root, path: consistent };
    Ok(Proof { since: Some(earlier), ..begin(store, before, seal, &leaves)? })
}

fn run_of(link: &Link) -> Result<RunId, Error> {
    link.entry.about.run().cloned().ok_or(Error::NotARun)
}

/// Returns the entries before the seal, and the seal.
fn sealed(links: &[Link]) -> Result<(&[Link], &Link), Error> {
    let run = run_of(links.first().ok_or(Error::NotARun)?)?;
    let last = links.split_last().filter(|(last, _)| matches!(last.entry.event, Event::RunSealed(_)));
    last.map(|(seal, before)| (before, seal)).ok_or(Error::NotSealed(run))
}

fn leaves(links: &[Link]) -> Vec<Digest> {
    links.iter().map(|link| link.hash).collect()
}

fn begin(store: &Store, before: &[Link], seal: &Link, leaves: &[Digest]) -> Result<Proof, Error> {
    let first = &before[0];
    Ok(Proof {
        schema: SCHEMA.to_owned(),
        run: run_of(first)?,
        item: None,
        product: None,
        since: None,
        entries: leaves.len() as u64,
        root: merkle::root(leaves.iter().copied()),
        first: Signed { commit: commit(store, first)?, path: Some(path(leaves, 0)) },
        admitted: admission(store, before, seal, leaves)?,
        last: Signed { commit: commit(store, seal)?, path: None },
        shown: Vec::new(),
    })
}

/// Returns the entry that gave the sealing key the role `seal`, or `None` if entry 0 names that
/// key.
fn admission(store: &Store, before: &[Link], seal: &Link, leaves: &[Digest]) -> Result<Option<Signed>, Error> {
    let Event::RunSubmitted(submitted) = &before[0].entry.event else { return Ok(None) };
    let sealed = chain::decode(store, seal.commit)?;
    // The verifier reports an unsigned seal.
    let Ok(key) = sign::signer(&sealed.payload, sealed.signature.as_deref()) else { return Ok(None) };
    if submitted.sealers().contains(&key) {
        return Ok(None);
    }
    let admits =
        |link: &Link| matches!(&link.entry.event, Event::RunAdmitted(e) if e.role == Role::Seal && e.key == key);
    before
        .iter()
        .position(admits)
        .map(|at| Ok(Signed { commit: commit(store, &before[at])?, path: Some(path(leaves, at)) }))
        .transpose()
}

fn read(store: &Store, reference: &str) -> Result<Vec<Link>, Error> {
    let links = chain::read(store, reference)?.map(|(_, links)| links).filter(|links| !links.is_empty());
    links.ok_or_else(|| Error::Nothing(reference.to_owned()))
}

fn done(entry: &Entry) -> Option<&ItemReconciled> {
    match &entry.event {
        Event::ItemReconciled(e) if e.status == Outcome::Done => Some(e),
        _ => None,
    }
}

/// Returns true if the entry is a decision that completed the item.
fn is_decided(entry: &Entry, item: &ItemId) -> bool {
    matches!(&entry.event, Event::ItemDecided(e) if e.item == *item && e.status == Outcome::Done)
}

fn path(leaves: &[Digest], at: usize) -> Vec<Digest> {
    merkle::inclusion(leaves, at).expect("the leaf is one of these")
}

fn value(entry: &Entry) -> serde_json::Value {
    serde_json::from_slice(&entry.canonical()).expect("an entry is JSON")
}

fn commit(store: &Store, link: &Link) -> Result<String, Error> {
    let (_, raw) = store.read(link.commit)?;
    String::from_utf8(raw).map_err(|_| Error::Nothing(link.commit.to_string()))
}

errors! {
    /// A reason why there is no proof.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NotARun "prove": "the chain is not a run's";
    Nothing(String) "prove": "{0} holds no entries";
    NotSealed(RunId) "not-sealed": "run {0} is not sealed: no key has signed a root over its entries yet";
    NotDone(ItemId) "not-done": "item {0} is not done";
    NoProduct(ItemId, ProductKey) "no-such-thing": "item {0} did not hand over {1}";
    NoEntry { since: u64, entries: u64 } "prove":
        "there is no entry {since} under the root, which is over {entries} entries";
    #[from] Chain(chain::Error), Store(store::Error);
}
