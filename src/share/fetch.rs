//! Takes in what a remote holds: objects first, checked as they come; then one ref after the other, each only forward.
//!
//! Nothing is written but objects and refs below `refs/handoff/remotes/<remote>/`. A crash leaves objects that git will prune,
//! or some of the refs moved; the next fetch moves the rest.

use super::{Kind, Place, Space, evidence};
use crate::git::remote::{self, Depth, Reach, Remote};
use crate::git::store::{self, Kept, Store};
use crate::git::{history, refs};
use crate::model::digest::Oid;

/// More refs than this are not taken from one remote.
const MOST_REFS: usize = 50_000;

/// What to take in.
#[derive(Clone, Debug)]
pub struct Request {
    /// From whom.
    pub remote: Remote,
    /// The names of runs and threads; none means every one.
    pub names: Vec<String>,
    /// The runs' transcripts as well.
    pub transcripts: bool,
    /// In a partial clone, products as well.
    pub content: bool,
    /// Where the remote keeps them.
    pub space: Space,
}

/// What became of one ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What it holds.
    pub place: Place,
    /// Our ref for it.
    pub reference: String,
    /// What we had from this remote.
    pub old: Option<Oid>,
    /// What the remote has.
    pub new: Oid,
    /// What was made of it.
    pub status: Status,
}

/// What was made of a ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was not here before.
    New,
    /// It goes on from what was here.
    Updated,
    /// It is what was here.
    UpToDate,
    /// It does not go on from what was fetched before; that is kept.
    Rewritten,
    /// It points at something that its kind of ref cannot hold; nothing was taken.
    Unfit(&'static str),
}

impl Status {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Updated => "updated",
            Self::UpToDate => "up-to-date",
            Self::Rewritten => "rewritten",
            Self::Unfit(_) => "unfit",
        }
    }

    /// Returns whether the remote's word was not taken.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Rewritten | Self::Unfit(_))
    }
}

/// What a fetch did.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// Every ref that was looked at.
    pub taken: Vec<Taken>,
    /// Names of the remote's that are none of ours.
    pub skipped: Vec<String>,
    /// How many blobs were brought besides, in one batch.
    pub blobs: usize,
}

/// Fetches.
pub fn fetch(store: &Store, reach: &Reach, request: &Request) -> Result<Fetched, Error> {
    let (wanted, skipped) = wanted(store, reach, request)?;
    let from = &request.remote.given;
    let folder = format!("refs/handoff/remotes/{}/", request.remote.name);
    let mut have = std::collections::HashMap::new();
    have.extend(refs::list(store, &folder)?);
    let absent: Vec<Oid> = wanted.iter().map(|(_, oid)| *oid).filter(|oid| !store.contains(*oid)).collect();
    let mut kept = Kept::default();
    if !absent.is_empty() {
        kept = remote::fetch(store, reach, from, &absent, Depth::History)?;
    }
    let mut fetched = Fetched { skipped, ..Fetched::default() };
    for (place, new) in wanted {
        let reference = place.below(&folder);
        let old = have.get(&reference).copied();
        let status = judge(store, &place, old, new)?;
        fetched.taken.push(Taken { place, reference, old, new, status });
    }
    fetched.blobs = bring_evidence(store, reach, request, &fetched.taken, &mut kept)?;
    // From here on what was fetched is seen, ref by ref.
    for taken in &fetched.taken {
        match (&taken.status, taken.old) {
            (Status::New, _) => refs::create(store, &taken.reference, taken.new)?,
            (Status::Updated, Some(old)) => refs::advance(store, &taken.reference, old, taken.new)?,
            _ => {}
        }
    }
    Ok(fetched)
}

/// What a remote shows, each with what it points at.
type Shown = Vec<(Place, Oid)>;

/// Returns what to take of what the remote shows, runs before the logs that speak of them; and the names that make no sense.
fn wanted(store: &Store, reach: &Reach, request: &Request) -> Result<(Shown, Vec<String>), Error> {
    let folder = request.space.folder();
    let listed = remote::list(store, reach, &request.remote.given, &request.space.pattern())?;
    let (mut places, mut skipped) = (Vec::new(), Vec::new());
    for (oid, name) in listed {
        // The pattern of ls-remote is found anywhere in a name.
        let Some(below) = name.strip_prefix(folder) else { continue };
        match Place::parse(below) {
            Some(place) => places.push((place, oid)),
            None if is_kept_private(below) => {}
            None => skipped.push(name),
        }
    }
    if let Some(name) = Place::unknown(&request.names, &places) {
        return Err(Error::Unknown(name.clone(), request.remote.name.clone()));
    }
    places.retain(|(place, _)| place.is_asked(&request.names, request.transcripts));
    places.sort();
    if places.len() > MOST_REFS {
        return Err(Error::TooMany(places.len()));
    }
    Ok((places, skipped))
}

/// Refs that a mirror or a shared repository has beside those that travel.
fn is_kept_private(below: &str) -> bool {
    ["bases/", "salvage/", "remotes/"].iter().any(|folder| below.starts_with(folder))
}

fn judge(store: &Store, place: &Place, old: Option<Oid>, new: Oid) -> Result<Status, Error> {
    use gix::objs::Kind as Object;
    if old == Some(new) {
        return Ok(Status::UpToDate);
    }
    match (place.kind, store.kind(new)?) {
        (_, None) => return Err(store::Error::Missing(new).into()),
        (Kind::Transcripts | Kind::Stamps, Some(Object::Tree))
        | (Kind::Run | Kind::Thread | Kind::Log, Some(Object::Commit)) => {}
        (_, Some(Object::Commit)) => return Ok(Status::Unfit("a commit")),
        (_, Some(Object::Tree)) => return Ok(Status::Unfit("a tree")),
        (_, Some(Object::Blob)) => return Ok(Status::Unfit("a blob")),
        (_, Some(Object::Tag)) => return Ok(Status::Unfit("a tag")),
    }
    let Some(old) = old else { return Ok(Status::New) };
    let forward = !place.kind.is_chain() || history::continues(store, old, new)?;
    Ok(if forward { Status::Updated } else { Status::Rewritten })
}

/// Brings what verify needs besides commits and trees, where a partial clone's filter kept it back; returns how many blobs.
fn bring_evidence(
    store: &Store,
    reach: &Reach,
    request: &Request,
    taken: &[Taken],
    kept: &mut Kept,
) -> Result<usize, Error> {
    if !history::is_partial(store) {
        return Ok(0);
    }
    let here = || taken.iter().filter(|taken| !taken.status.is_refused());
    let mut wanted = Vec::new();
    for taken in here() {
        let old = taken.old.filter(|_| !request.content);
        wanted.extend(evidence::missing(store, taken.place.kind, old, taken.new, request.content)?);
    }
    let first = bring(store, reach, request, wanted, kept)?;
    // Which documents the rules look into stands in what just came.
    let mut wanted = Vec::new();
    for taken in here().filter(|taken| taken.place.kind == Kind::Run) {
        wanted.extend(evidence::looked_into(store, taken.new)?);
    }
    Ok(first + bring(store, reach, request, wanted, kept)?)
}

/// Brings blobs, each once, in one batch; returns how many.
fn bring(
    store: &Store,
    reach: &Reach,
    request: &Request,
    mut wanted: Vec<Oid>,
    kept: &mut Kept,
) -> Result<usize, Error> {
    wanted.sort_unstable();
    wanted.dedup();
    if !wanted.is_empty() {
        kept.join(remote::fetch(store, reach, &request.remote.given, &wanted, Depth::Only)?);
    }
    Ok(wanted.len())
}

/// Why nothing was taken in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The remote has nothing of that name.
    #[error("there is no run or thread {0:?} on {1}")]
    Unknown(String, String),
    /// It shows more than anybody has.
    #[error("the remote shows {0} runs, threads and logs; not more than {MOST_REFS} are taken")]
    TooMany(usize),
    /// The remote could not be dealt with.
    #[error(transparent)]
    Remote(#[from] remote::Error),
    /// A ref could not be read or moved.
    #[error(transparent)]
    Ref(#[from] refs::Error),
    /// Objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}
