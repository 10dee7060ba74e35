//! The runs, threads and archives that are handed over, with what belongs to them.

use std::collections::BTreeMap;

use crate::git::refs;
use crate::git::store::{Batch, Store};
use crate::git::tree;
use crate::model::digest::Oid;
use crate::model::format::REFS;
use crate::model::name::RunId;

use super::place::{goes_with_threads, is_asked, unknown};
use super::push::{Asked, Error, Request};
use super::{Kind, Place, stamps};

/// Returns everything of ours that travels, with the runs in archives.
pub(super) fn here(store: &Store) -> Result<BTreeMap<Place, Oid>, refs::Error> {
    Ok(refs::list_with_archived(store, REFS)?.into_iter().filter_map(own).collect())
}

fn own((name, oid): (String, Oid)) -> Option<(Place, Oid)> {
    Some((Place::parse(name.strip_prefix(REFS)?)?, oid))
}

/// Returns true if a run of this name was fetched: only what the log of our key says of it is handed over.
fn is_fetched(store: &Store, name: &str) -> Result<bool, refs::Error> {
    let Ok(run) = RunId::parse(name) else { return Ok(false) };
    Ok(!refs::fetched_at(store, &Place::of_run(&run))?.is_empty())
}

/// Something of ours that is handed over.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) ours: Oid,
    /// Whether it goes within an archive that goes as well, so that the remote needs no ref of it.
    pub(super) held: bool,
}

impl Wanted {
    /// Returns what is to be handed over of what lies here; the logs that speak of it are for [`super::outbound`]. What is archived and
    /// named goes by a ref of its own.
    pub(super) fn all(store: &Store, request: &Request, here: &BTreeMap<Place, Oid>) -> Result<Vec<Self>, Error> {
        let stored: BTreeMap<Place, Oid> = refs::list(store, REFS)?.into_iter().filter_map(own).collect();
        let mut ours = here.clone();
        ours.retain(|place, _| place.kind != Kind::Log && (!request.threads_only || goes_with_threads(place)));
        let names = request.asked.names().unwrap_or_default();
        let among: Vec<&Place> = ours.keys().collect();
        for name in names {
            if unknown(std::slice::from_ref(name), &among).is_some() && !is_fetched(store, name)? {
                return Err(Error::Unknown(name.clone()));
            }
        }
        let all = request.asked == Asked::All;
        ours.retain(|place, _| is_asked(place, request.asked.names(), request.transcripts));
        let held = |place: &Place| all && !stored.contains_key(place);
        Ok(ours.into_iter().map(|(place, ours)| Self { held: held(&place), place, ours }).collect())
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
