//! Fetches from a remote: objects first, checked on arrival, then each ref, forward only.
//!
//! Writes only objects, refs below `refs/handoff/remotes/<remote>/`, and the record of what the
//! remote has shown. After a crash or a refusal no ref points at the unreferenced objects, and the
//! next fetch completes the rest.

mod status;

pub use status::Status;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::git::remote::{self, Reach, Remote};
use crate::git::retry::{self, Lost};
use crate::git::store::{self, Batch, KeepGuard, Store};
use crate::git::{history, refs, work_tree};
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::place::MOST_REFS;
use crate::repository::remote_record::{RemoteRecord, RemoteState, Vanished};
use crate::verify::Logs;

use super::shared_refs::{goes_with_threads, is_asked, refuses, unknown};
use super::{Kind, Place, Space, archived_runs, evidence, fetch_objects, shared_log, stamps};

/// A fetch request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The remote.
    pub remote: Remote,
    /// The names of runs and threads; empty means all.
    pub names: Vec<String>,
    /// Fetch only threads and logs of these names, and what earlier fetched logs name.
    pub threads_only: bool,
    /// Include transcripts.
    pub transcripts: bool,
    /// In a partial clone, include products.
    pub content: bool,
    /// The folder of the remote's refs.
    pub space: Space,
}

impl Request {
    /// Returns the names, or `None` for all.
    fn selected_names(&self) -> Option<&[String]> {
        Some(self.names.as_slice()).filter(|names| !names.is_empty())
    }

    fn takes(&self, place: &Place) -> bool {
        !self.threads_only || goes_with_threads(place)
    }
}

/// The result for one ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FetchedRef {
    /// The kind and name.
    #[serde(flatten)]
    pub place: Place,
    /// Our ref for it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The object fetched before.
    pub old: Option<Oid>,
    /// The remote's object. For fetched time stamps, the union with those that were here.
    pub new: Oid,
    /// The status.
    #[serde(flatten)]
    pub status: Status,
}

/// The result of a fetch.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Fetched {
    /// Every examined ref.
    pub refs: Vec<FetchedRef>,
    /// Names on the remote that are not valid.
    pub skipped: Vec<String>,
    /// The number of blobs fetched in addition.
    pub blobs: usize,
    /// Names that the remote lacks although it had them or a log of its names them; absent if there
    /// are none. Fetched copies stay here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vanished: Vec<Vanished>,
    /// Runs whose fetched refs were replaced by an archive of the remote; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<crate::model::name::RunId>"))]
    pub archived: Vec<String>,
}

/// Fetches.
pub fn fetch(store: &Store, reach: &Reach, request: &Request) -> Result<Fetched, AnyError> {
    let folder = format::fetched_refs(&request.remote.name);
    let local_refs: HashMap<String, Oid> = refs::list(store, &folder)?.into_iter().collect();
    let mut listing = Listing::read(store, reach, request)?;
    let requested_places = || listing.places.iter().map(|(place, _)| place).filter(|place| request.takes(place));
    // A missing ref may be in an archive.
    let unlisted = unknown(&request.names, &requested_places().collect::<Vec<_>>());
    if let Some(name) = unlisted.filter(|_| requested_places().all(|place| place.kind != Kind::Archive)) {
        return Err(missed(store, request, name, &listing, &local_refs)?.into());
    }
    let objects =
        listing.select_objects(request, |place| local_refs.contains_key(&place.below(&folder)), unlisted.is_some())?;
    let missing_objects: BTreeSet<Oid> =
        objects.values().flatten().copied().filter(|oid| !store.contains(*oid)).collect();
    let mut guard = KeepGuard::default();
    let unsound = fetch_objects::history(store, reach, request, missing_objects.into_iter().collect(), &mut guard)?;
    let sound = objects.iter().filter(|(_, oids)| oids.len() == 1 && !unsound.contains_key(&oids[0]));
    let sound = sound.map(|(place, oids)| (place.kind, oids[0]));
    let needed = fetch_objects::trees(store, reach, request, sound, &mut guard)?;
    let mut fetched = Fetched { skipped: listing.skipped.clone(), ..Fetched::default() };
    for (place, oids) in objects {
        let reference = place.below(&folder);
        let old = local_refs.get(&reference).copied();
        let (new, status) = match oids[..] {
            [new] if unsound.contains_key(&new) => (new, Status::Unsound(unsound[&new].clone())),
            [new] => (new, judge(store, &place, old, new)?),
            _ => (oids[0], Status::Unsound("it is shown more than once, with different objects".into())),
        };
        fetched.refs.push(FetchedRef { place, reference, old, new, status });
    }
    fetched.blobs = fetch_objects::evidence(store, reach, request, &fetched.refs, needed, &mut guard)?;
    let mut batch = store.batch();
    fetched.refs.iter_mut().try_for_each(|fetched_ref| unite(store, fetched_ref, &mut batch))?;
    guard.join(batch.keep()?);
    // The fetched refs become visible from here on.
    for fetched_ref in &mut fetched.refs {
        retry::run(|| show(store, fetched_ref, &mut guard))?;
    }
    let listed_places: BTreeSet<Place> = listing.places.iter().map(|(place, _)| place.clone()).collect();
    // Only accepted objects count.
    let archived_refs = archived_runs::fetched(store, &folder, &listed_places)?;
    let in_archives = archived_refs.iter().filter(|(place, _)| place.kind == Kind::Run);
    in_archives.for_each(|(place, tip)| _ = listing.state.listed.entry(place.clone()).or_insert(*tip));
    fetched.archived = archived_runs::give_way(store, &folder, &listed_places, &archived_refs)?;
    listing.state.folded = shared_log::delete_folded(store, &folder, &listed_places)?;
    let known: Vec<&Place> =
        listed_places.iter().filter(|place| request.takes(place)).chain(archived_refs.keys()).collect();
    if let Some(name) = unknown(&request.names, &known) {
        return Err(missed(store, request, name, &listing, &local_refs)?.into());
    }
    let chains = fetched.refs.iter().filter(|fetched_ref| fetched_ref.place.kind.is_chain());
    let (refused, accepted): (Vec<_>, Vec<_>) = chains.partition(|fetched_ref| fetched_ref.status.is_refused());
    listing.state.refused = refused
        .into_iter()
        .filter_map(|fetched_ref| Some((fetched_ref.place.clone(), fetched_ref.status.refusal()?)))
        .collect();
    let local_refs = local_refs
        .into_iter()
        .chain(accepted.into_iter().map(|fetched_ref| (fetched_ref.reference.clone(), fetched_ref.new)))
        .collect();
    let (record, logged_places) = compare_refs(store, request, &listing, &local_refs)?;
    record.keep(store)?;
    fetched.vanished = record.vanished(store, &logged_places)?;
    Ok(fetched)
}

/// Compares the remote's refs with what it showed before, what was fetched and what its logs name.
fn compare_refs(
    store: &Store,
    request: &Request,
    listing: &Listing,
    have: &HashMap<String, Oid>,
) -> Result<(RemoteRecord, BTreeMap<Place, String>), AnyError> {
    let remote = &request.remote.name;
    let logged_places = Logs::fetched_from(store, remote)?.recorded_places(&format::fetched_refs(remote));
    let fetched = have.iter().filter_map(|(name, tip)| Some((Place::fetched(name)?.1, *tip)));
    let fetched = fetched.filter(|(place, _)| place.kind.is_chain()).collect();
    let mut record = RemoteRecord::read(store, remote)?;
    record.look(store, &RemoteState { fetched, ..listing.state.clone() }, &logged_places);
    Ok((record, logged_places))
}

/// Returns whether the remote is known to have had a missing name.
fn missed(
    store: &Store,
    request: &Request,
    name: &str,
    listing: &Listing,
    have: &HashMap<String, Oid>,
) -> Result<Error, AnyError> {
    let (record, logged_places) = compare_refs(store, request, listing, have)?;
    let mut vanished = record.vanished(store, &logged_places)?.into_iter();
    Ok(
        match vanished.find(|vanished| {
            !vanished.place.kind.is_of_key() && vanished.place.name == name && request.takes(&vanished.place)
        }) {
            Some(vanished) => Error::Vanished(vanished.into()),
            None => Error::Unknown(name.to_owned(), request.remote.name.clone()),
        },
    )
}

/// Moves our ref. After a lost race, compares with the winner's object.
fn show(store: &Store, fetched: &mut FetchedRef, guard: &mut KeepGuard) -> Result<(), AnyError> {
    // The runs of this fetch are here by now.
    if fetched.place.kind == Kind::Archive && !fetched.status.is_refused() {
        let folder = fetched.reference.strip_suffix(&fetched.place.below("")).unwrap_or_default();
        if let Some(why) = archived_runs::clash(store, folder, fetched.old, fetched.new).map_err(Error::Archive)? {
            fetched.status = Status::Unsound(why);
        }
    }
    let moved = match (&fetched.status, fetched.old) {
        (Status::New, _) => refs::create(store, &fetched.reference, fetched.new),
        (Status::Updated, Some(old)) => refs::advance(store, &fetched.reference, old, fetched.new),
        _ => Ok(()),
    };
    if moved.as_ref().is_err_and(Lost::is_lost) {
        fetched.old = refs::read(store, &fetched.reference)?;
        let surpassed =
            fetched.old.is_some_and(|now| fetched.place.kind.is_chain() && history::goes_on(store, fetched.new, now));
        fetched.status =
            if surpassed { Status::UpToDate } else { judge(store, &fetched.place, fetched.old, fetched.new)? };
        let mut batch = store.batch();
        unite(store, fetched, &mut batch)?;
        guard.join(batch.keep()?);
    }
    Ok(moved?)
}

/// The objects to fetch; an honest remote has one for each place.
type Wanted = BTreeMap<Place, Vec<Oid>>;

/// The refs of a remote.
struct Listing {
    /// The refs in the requested folder.
    places: Vec<(Place, Oid)>,
    /// Invalid names there.
    skipped: Vec<String>,
    /// The chains in that folder or in the other folders that runs may be pushed to.
    state: RemoteState,
}

impl Listing {
    fn read(store: &Store, reach: &Reach, request: &Request) -> Result<Self, AnyError> {
        let (folder, pattern) = (request.space.folder(), request.space.pattern());
        let patterns = [&pattern, "runs/*", "threads/*", "logs/*", "archives/*"];
        let mut listing = Self { places: Vec::new(), skipped: Vec::new(), state: RemoteState::default() };
        for (oid, name) in remote::list_any(store, reach, &request.remote.given, &patterns)? {
            match travelled(&name).filter(|(_, place)| place.kind.is_chain()) {
                Some((at, place)) if at == folder || at == format::REFS => _ = listing.state.listed.insert(place, oid),
                Some((_, place)) => listing.state.branches.push((place, oid)),
                None => {}
            }
            // A pattern of `ls-remote` matches at any slash in a name.
            let Some(below) = name.strip_prefix(folder) else { continue };
            match Place::parse(below) {
                Some(place) => listing.places.push((place, oid)),
                None if is_kept_private(below) => {}
                None => listing.skipped.push(name),
            }
        }
        Ok(listing)
    }

    /// Returns what to fetch, runs before the logs that name them. Includes archives if `unshown`,
    /// that is, if something requested has no ref.
    fn select_objects(
        &self,
        request: &Request,
        was_fetched: impl Fn(&Place) -> bool,
        unshown: bool,
    ) -> Result<Wanted, AnyError> {
        // Logs are fetched whole, with the chains fetched before, so that they do not name more
        // than is here.
        let places = self.places.iter().filter(|(place, _)| {
            let is_asked = request.takes(place) && is_asked(place, request.selected_names(), request.transcripts);
            let is_searched = unshown && place.kind == Kind::Archive && request.takes(place);
            is_asked || is_searched || (place.kind.is_chain() && was_fetched(place))
        });
        let places: Vec<_> = places.collect();
        if places.len() > MOST_REFS {
            return Err(Error::TooMany(places.len()).into());
        }
        let mut by_place = Wanted::new();
        for (place, oid) in places {
            let objects = by_place.entry(place.clone()).or_default();
            if !objects.contains(oid) {
                objects.push(*oid);
            }
        }
        Ok(by_place)
    }
}

/// Parses a ref in one of the folders that runs are pushed to: ours, or branches.
fn travelled(name: &str) -> Option<(&str, Place)> {
    let (at, _) = name.rmatch_indices('/').nth(1)?;
    let (folder, below) = name.split_at(at + 1);
    let is_one = folder == format::REFS || folder.starts_with(work_tree::BRANCHES);
    Some((folder, Place::parse(below).filter(|_| is_one)?))
}

/// Refs that a mirror or shared repository has and that are not shared.
fn is_kept_private(below: &str) -> bool {
    ["bases/", "drivers/", "protected/", "salvage/", "remotes/"].iter().any(|folder| below.starts_with(folder))
}

fn judge(store: &Store, place: &Place, old: Option<Oid>, new: Oid) -> Result<Status, AnyError> {
    use gix::objs::Kind as Object;
    if old == Some(new) {
        return Ok(Status::UpToDate);
    }
    match (place.kind, store.kind(new)?) {
        (_, None) => return Ok(Status::Unsound(in_words(&store::Error::Missing(new)))),
        (Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps, Some(Object::Tree))
        | (Kind::Run | Kind::Thread | Kind::Log | Kind::Archive, Some(Object::Commit)) => {}
        (_, Some(Object::Commit)) => return Ok(Status::Unfit("a commit")),
        (_, Some(Object::Tree)) => return Ok(Status::Unfit("a tree")),
        (_, Some(Object::Blob)) => return Ok(Status::Unfit("a blob")),
        (_, Some(Object::Tag)) => return Ok(Status::Unfit("a tag")),
    }
    if place.kind.is_chain() {
        match old.map(|old| history::continues(store, old, new)) {
            Some(Ok(false)) => return Ok(Status::Rewritten),
            Some(Err(error)) => return Ok(Status::Unsound(in_words(&error))),
            None | Some(Ok(true)) => {}
        }
        if let Err(why) = refuses(place, store, old, new) {
            return Ok(Status::Unsound(why));
        }
        if place.kind != Kind::Run
            && let Some(why) = evidence::oversized(store, place.kind, old, new)?
        {
            return Ok(Status::Unsound(why));
        }
    }
    Ok(if old.is_some() { Status::Updated } else { Status::New })
}

/// Merges the remote's time stamps with ours, so that the remote cannot remove any.
fn unite(store: &Store, fetched: &mut FetchedRef, batch: &mut Batch) -> Result<(), AnyError> {
    if !fetched.place.kind.is_stamps() || fetched.status == Status::UpToDate || fetched.status.is_refused() {
        return Ok(());
    }
    let united = stamps::united(store, fetched.old, fetched.new, batch)?;
    if fetched.old == Some(united) {
        fetched.status = Status::UpToDate;
    } else if united == store.empty_tree() {
        fetched.status = Status::Unsound("it holds nothing that its names say".into());
    }
    fetched.new = if fetched.status.is_refused() { fetched.new } else { united };
    Ok(())
}

errors! {
    /// An error while fetching.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unknown(String, String) "unknown-run": "there is no run or thread {0:?} on {1}";
    Vanished(Box<Vanished>) "vanished": "{}" [.0.sentence()];
    TooMany(usize) "too-many": "the remote shows {0} runs, threads and logs; not more than {MOST_REFS} are taken";
    Archive(#[source] AnyError) "archive": "{0}";
}
