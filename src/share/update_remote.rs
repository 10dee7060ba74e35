//! Updates the remote's refs and reads them back.

use std::collections::BTreeMap;

use crate::git::remote::{self, Spec};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::compare::RemoteRefs;
use super::push::{Error, Moved, Request, list_refs, moving};
use super::remote_logs::{self, Overtaken};
use super::{Kind, Place, transcripts};

/// Updates the remote's refs and reads them back. Returns the refs after it, or `None` if there was
/// nothing to update.
pub(super) fn update_refs(
    there: &RemoteRefs<'_>,
    request: &Request,
    moves: &[Moved],
    key: Option<&str>,
) -> Result<Option<BTreeMap<Place, Oid>>, AnyError> {
    let RemoteRefs { store, reach, url, .. } = *there;
    let specs: Vec<Spec> = moving(moves)
        .map(|moved| Spec {
            oid: moved.new,
            to: moved.to.clone(),
            instead_of: moved.old.filter(|_| !moved.place.kind.is_chain()),
            goes_first: moved.place.kind == Kind::Log,
        })
        .collect();
    if specs.is_empty() {
        return Ok(None);
    }
    let (answers, messages) = remote::push(store, reach, &request.remote.given, &specs)?;
    let has = list_refs(store, reach, url, &request.space);
    if answers.iter().any(|answer| !answer.accepted) {
        let overtaken = has.ok().and_then(|has| {
            transcripts::overtaken(moves, &has)
                .or_else(|| key.and_then(|key| remote_logs::overtaken(key, moves, &answers, &has)))
        });
        let error = Error::Declined { answers, messages };
        return Err(match overtaken {
            Some(how) => Error::Overtaken(error.into(), how).into(),
            None => error.into(),
        });
    }
    let has = has?;
    for moved in moving(moves) {
        let found = has.get(&moved.place).copied();
        // Drivers may add transcripts at any time.
        let grows = moved.place.kind == Kind::Transcripts && found.is_some();
        if found == Some(moved.new) || grows || remote_logs::went_on(there, moved, found)? {
            continue;
        }
        let error = Error::ReadBack { name: moved.to.clone(), pushed: moved.new, found };
        // Another push may have folded the log into another.
        let is_ours = key.is_some_and(|key| remote_logs::is_log_of(&moved.place, key));
        Err(if is_ours { Error::Overtaken(error.into(), Overtaken::Busy) } else { error })?;
    }
    Ok(Some(has))
}
