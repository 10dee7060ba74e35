//! The runs, threads and archives to push, with their related refs.

use std::collections::BTreeMap;

use crate::git::refs;
use crate::git::store::{Batch, KeepGuard, Store};
use crate::git::tree;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format::REFS;
use crate::model::name::RunId;

use super::compare::RemoteRefs;
use super::push::{Error, Request, Selection};
use super::shared_refs::{goes_with_threads, is_asked, unknown};
use super::{Kind, Place, stamps, transcripts};

/// Returns everything of ours that can be pushed, including the runs in archives.
pub(super) fn list_local(store: &Store) -> Result<BTreeMap<Place, Oid>, refs::Error> {
    Ok(refs::list_with_archived(store, REFS)?.into_iter().filter_map(|(name, oid)| own(&name, oid)).collect())
}

fn own(name: &str, oid: Oid) -> Option<(Place, Oid)> {
    Some((Place::parse(name.strip_prefix(REFS)?)?, oid))
}

/// Returns true if a run of this name was fetched. Then only our log's statements about it are
/// pushed.
fn is_fetched(store: &Store, name: &str) -> Result<bool, refs::Error> {
    let Ok(run) = RunId::parse(name) else { return Ok(false) };
    Ok(!refs::fetched_at(store, &Place::of_run(&run))?.is_empty())
}

/// Something to push.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) place: Place,
    pub(super) ours: Oid,
    /// Whether it is in an archive that is pushed too, so that the remote needs no ref for it.
    pub(super) is_archived: bool,
}

impl Outgoing {
    /// Returns the refs to push, without the logs, which [`super::push_logs`] selects. An archived
    /// run that is named gets a ref of its own.
    pub(super) fn all(store: &Store, request: &Request, here: &BTreeMap<Place, Oid>) -> Result<Vec<Self>, AnyError> {
        let stored: BTreeMap<Place, Oid> =
            refs::list(store, REFS)?.into_iter().filter_map(|(name, oid)| own(&name, oid)).collect();
        let mut ours = here.clone();
        ours.retain(|place, _| request.space.takes(place.kind));
        ours.retain(|place, _| place.kind != Kind::Log && (!request.threads_only || goes_with_threads(place)));
        let names = request.selection.names().unwrap_or_default();
        let among: Vec<&Place> = ours.keys().collect();
        for name in names {
            if unknown(std::slice::from_ref(name), &among).is_some() && !is_fetched(store, name)? {
                return Err(Error::Unknown(name.clone()).into());
            }
        }
        let all = request.selection == Selection::All;
        ours.retain(|place, _| is_asked(place, request.selection.names(), request.transcripts));
        Ok(ours
            .into_iter()
            .map(|(place, ours)| Self { is_archived: (all && !stored.contains_key(&place)), place, ours })
            .collect())
    }

    /// Returns the object to push. For time stamps, it includes those that the remote already has,
    /// as far as they are here, and for transcripts, those of others, which are fetched.
    pub(super) fn united(
        &self,
        there: &RemoteRefs<'_>,
        batch: &mut Batch,
        guard: &mut KeepGuard,
    ) -> Result<Oid, AnyError> {
        let (store, ours) = (there.store, self.ours);
        let Some(theirs) = there.has.get(&self.place).copied().filter(|theirs| *theirs != ours) else {
            return Ok(ours);
        };
        if self.place.kind == Kind::Transcripts {
            return match transcripts::bring(there, theirs, guard)? {
                Some(theirs) => Ok(tree::with_files_of(store, Some(theirs), ours, batch)?),
                None => Ok(ours),
            };
        }
        if self.place.kind.is_stamps() && store.kind(theirs)? == Some(gix::objs::Kind::Tree) {
            return Ok(stamps::together(store, theirs, tree::files(store, ours)?, batch)?);
        }
        Ok(ours)
    }
}
