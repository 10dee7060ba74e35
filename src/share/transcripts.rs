//! Merges the transcripts of a run here with those of a remote, where each driver has put its own.

use std::collections::BTreeMap;

use crate::git::remote::{self, Depth};
use crate::git::store::KeepGuard;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::compare::RemoteRefs;
use super::push::Moved;
use super::remote_logs::Overtaken;
use super::{Kind, Place};

/// Returns the remote's tree of transcripts, fetched if necessary. Returns `None` for an object
/// that cannot be fetched soundly or is no tree, which gives way.
pub(super) fn bring(there: &RemoteRefs<'_>, theirs: Oid, guard: &mut KeepGuard) -> Result<Option<Oid>, AnyError> {
    if !there.store.contains(theirs) {
        match remote::fetch(there.store, there.reach, there.url, &[theirs], Depth::History) {
            Ok(brought) => guard.join(brought),
            Err(remote::Error::Unsound(..)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(theirs).filter(|_| matches!(there.store.kind(theirs), Ok(Some(gix::objs::Kind::Tree)))))
}

/// Returns [`Overtaken::Moved`] if a driver added transcripts since the remote was read.
pub(super) fn overtaken(moves: &[Moved], has: &BTreeMap<Place, Oid>) -> Option<Overtaken> {
    let mut transcripts = moves.iter().filter(|moved| moved.place.kind == Kind::Transcripts);
    transcripts
        .any(|moved| {
            let found = has.get(&moved.place).copied();
            moved.status.moves() && found != moved.old && found != Some(moved.new)
        })
        .then_some(Overtaken::Moved)
}
