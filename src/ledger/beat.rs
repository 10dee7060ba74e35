//! Writes and reads beats: signed commits that prove no more than who made them.

use crate::git::codec;
use crate::git::store::{KeepGuard, Store};
use crate::ledger::chain::Writer;
use crate::ledger::sign;
use crate::model::any_error::AnyError;
use crate::model::beat::Beat;
use crate::model::digest::Oid;

/// Writes a beat after the value that its ref has. No ref moves.
///
/// A value that is no beat, or is not here, does not become the parent: the remote would refuse it.
pub fn write(writer: &Writer, before: Option<Oid>, beat: &Beat) -> Result<(Oid, KeepGuard), AnyError> {
    let mut batch = writer.store.batch();
    let tree = batch.write(gix::objs::Kind::Tree, b"")?;
    let message = codec::Message { author: &writer.actor, at: beat.at, text: &beat.canonical() };
    let parents: Vec<Oid> = before.into_iter().filter(|oid| matches!(read(&writer.store, *oid), Ok(Some(_)))).collect();
    let signature = writer.signer.sign(&message.payload(tree, &parents))?;
    let oid = batch.write(gix::objs::Kind::Commit, &message.signed(tree, &parents, &signature))?;
    Ok((oid, batch.keep()?))
}

/// Reads a beat with the key that signed it, or returns `None` if the commit is no beat.
pub fn read(store: &Store, oid: Oid) -> Result<Option<(Beat, String)>, AnyError> {
    let (kind, raw) = store.read(oid)?;
    let Some(parsed) = (kind == gix::objs::Kind::Commit).then(|| codec::parse_message(&raw)).flatten() else {
        return Ok(None);
    };
    let Some(beat) = Beat::parse(&parsed.text) else { return Ok(None) };
    let key = sign::signer(&parsed.payload, parsed.signature.as_deref());
    Ok(key.ok().map(|key| (beat, key)))
}
