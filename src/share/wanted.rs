//! What of ours may be handed over: chains before the logs that speak of them.

use std::collections::BTreeMap;

use crate::git::refs;
use crate::git::store::{Batch, Store};
use crate::git::tree;
use crate::model::digest::Oid;
use crate::model::format::REFS;

use super::place::{goes_with_threads, is_asked, unknown};
use super::push::{Asked, Error, Request};
use super::{Kind, Place, stamps};

/// Something of ours that may be handed over.
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) ours: Oid,
    /// Whether it was asked for; a chain that was not only goes along where the remote has it as it was before.
    pub(super) asked: bool,
    /// Whether it goes within an archive that goes as well, so that the remote needs no ref of it.
    pub(super) held: bool,
}

impl Wanted {
    /// Returns what is to be handed over. What is archived and named goes by a ref of its own; it is not to bring along what nobody named.
    pub(super) fn all(store: &Store, request: &Request) -> Result<Vec<Self>, Error> {
        let own = |(name, oid): (String, Oid)| Some((Place::parse(name.strip_prefix(REFS)?)?, oid));
        let stored: BTreeMap<Place, Oid> = refs::list(store, REFS)?.into_iter().filter_map(own).collect();
        let mut ours: BTreeMap<Place, Oid> =
            refs::list_with_archived(store, REFS)?.into_iter().filter_map(own).collect();
        ours.retain(|place, _| !request.threads_only || goes_with_threads(place));
        let names = request.asked.names().unwrap_or_default();
        if let Some(name) = unknown(names, &ours.keys().collect::<Vec<_>>()) {
            return Err(Error::Unknown(name.clone()));
        }
        let all = request.asked == Asked::All;
        let wanted = ours.into_iter().map(|(place, ours)| Self {
            asked: is_asked(&place, request.asked.names(), request.transcripts),
            held: all && !stored.contains_key(&place),
            place,
            ours,
        });
        let goes_along = |place: &Place| place.kind.is_chain() && place.kind != Kind::Archive;
        Ok(wanted.filter(|wanted| wanted.asked || goes_along(&wanted.place)).collect())
    }

    /// Returns what is to be there: of time stamps, what the remote has stays, as far as it is here; no ref of ours holds that.
    pub(super) fn united(&self, store: &Store, theirs: Option<Oid>, batch: &mut Batch) -> Result<Oid, Error> {
        let theirs = theirs.filter(|theirs| self.place.kind == Kind::Stamps && *theirs != self.ours);
        match theirs {
            Some(theirs) if store.kind(theirs)? == Some(gix::objs::Kind::Tree) => {
                Ok(stamps::together(store, theirs, tree::files(store, self.ours)?, batch)?)
            }
            _ => Ok(self.ours),
        }
    }
}
