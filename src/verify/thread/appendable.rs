//! Decides whether a thread may be continued.

use crate::git::history::is_partial;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::ThreadId;

use super::chain::ThreadChain;
use super::outside::no_place;
use super::{ThreadSnapshot, ThreadVerifier, Unsound, found, lineage, signed};
use crate::verify::{Logs, Mark, Options, State, Verified};

/// Verifies what appending to a thread needs: its chain up to `tip`, all signatures, and its
/// lineage.
pub fn verified_thread(
    store: &Store,
    thread: &ThreadId,
    tip: Oid,
    options: &Options,
) -> Result<Verified<ThreadSnapshot>, Unsound> {
    appendable(store, thread, tip, options, None)
}

/// Verifies like [`verified_thread`] for the owner of `own_key`, but checks only the signatures
/// after the commit of a mark.
///
/// Earlier entries are read, hashed, ordered and replayed as well. If anything is wrong, the whole
/// thread is verified.
pub fn verified_thread_on(
    store: &Store,
    thread: &ThreadId,
    tip: Oid,
    own_key: &str,
    mark: Option<&Mark>,
) -> Result<Verified<ThreadSnapshot>, Unsound> {
    let options = Options { own_key: Some(own_key.to_owned()), ..Options::default() };
    let mark = mark.filter(|mark| mark.key == own_key);
    match appendable(store, thread, tip, &options, mark) {
        Err(_) if mark.is_some() => appendable(store, thread, tip, &options, None),
        other => other,
    }
}

fn appendable(
    store: &Store,
    thread: &ThreadId,
    tip: Oid,
    options: &Options,
    mark: Option<&Mark>,
) -> Result<Verified<ThreadSnapshot>, Unsound> {
    let chain = ThreadChain::read_on(store, thread, tip, mark);
    let logs = Logs::default();
    let verifier = ThreadVerifier {
        store,
        home: store,
        logs: &logs,
        ask: &no_place,
        options,
        lazy: is_partial(store),
        shallow: false,
    };
    let signature = signed(&chain, options);
    let lineage = lineage::trace(&verifier, &chain);
    let chain_row = chain.findings.clone().verdict(false, String::new);
    let rows = [&chain_row, &signature.verdict, &lineage.verdict];
    if let Some(verdict) = rows.iter().find(|verdict| verdict.state == State::Failed) {
        return Err(Unsound::new(verdict.detail.clone(), thread));
    }
    let found = found(chain, lineage, &signature.signers);
    found.map(Verified::new).ok_or_else(|| Unsound::new("it has no readable entries".to_owned(), thread))
}
