//! Takes in what a remote holds: objects first, checked as they come; then one ref after the other, each only forward.
//!
//! Nothing is written but objects and refs below `refs/handoff/remotes/<remote>/`. A crash leaves objects that git will prune,
//! or some of the refs moved; the next fetch moves the rest. So does what is refused: no ref comes to hold it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::git::race::{self, Lost};
use crate::git::remote::{self, Depth, Reach, Remote};
use crate::git::store::{self, Batch, Kept, Store};
use crate::git::{history, refs};
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::place::MOST_REFS;

use super::place::{is_asked, refuses, unknown};
use super::{Kind, Place, Space, evidence, stamps};

/// How often a remote is asked for less where not all of what it shows is sound.
const MOST_TRIES: usize = 100;

/// What to take in.
#[derive(Clone, Debug)]
pub struct Request {
    /// From whom.
    pub remote: Remote,
    /// The names of runs and threads; none means every one.
    pub names: Vec<String>,
    /// Threads and logs only, whatever else has one of the names, and what was fetched before and the logs speak of.
    pub threads_only: bool,
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
    /// What the remote has; of time stamps that were taken, what our ref has then, which is those and what was here.
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
    /// Its objects or entries are not what they must be, or not by who may write them: why. What was here before is kept.
    Unsound(String),
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
            Self::Unsound(_) => "unsound",
        }
    }

    /// Returns whether the remote's word was not taken.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Rewritten | Self::Unfit(_) | Self::Unsound(_))
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
    let folder = format::fetched_refs(&request.remote.name);
    let have: HashMap<String, Oid> = refs::list(store, &folder)?.into_iter().collect();
    let (wanted, skipped) = wanted(store, reach, request, |place| have.contains_key(&place.below(&folder)))?;
    let absent: BTreeSet<Oid> = wanted.values().flatten().copied().filter(|oid| !store.contains(*oid)).collect();
    let mut kept = Kept::default();
    let unsound = bring_history(store, reach, request, absent.into_iter().collect(), &mut kept)?;
    let mut fetched = Fetched { skipped, ..Fetched::default() };
    for (place, shown) in wanted {
        let reference = place.below(&folder);
        let old = have.get(&reference).copied();
        let (new, status) = match shown[..] {
            [new] if unsound.contains_key(&new) => (new, Status::Unsound(unsound[&new].clone())),
            [new] => (new, judge(store, &place, old, new)?),
            _ => (shown[0], Status::Unsound("it is shown more than once, with different objects".into())),
        };
        fetched.taken.push(Taken { place, reference, old, new, status });
    }
    fetched.blobs = bring_evidence(store, reach, request, &fetched.taken, &mut kept)?;
    let mut batch = store.batch();
    fetched.taken.iter_mut().try_for_each(|taken| unite(store, taken, &mut batch))?;
    kept.join(batch.keep()?);
    // From here on what was fetched is seen, ref by ref.
    for taken in &mut fetched.taken {
        race::run(|| show(store, taken, &mut kept))?;
    }
    Ok(fetched)
}

/// Moves our ref to what was fetched. Where another fetch was quicker, what it left is what that is judged by the next time.
fn show(store: &Store, taken: &mut Taken, kept: &mut Kept) -> Result<(), Error> {
    let moved = match (&taken.status, taken.old) {
        (Status::New, _) => refs::create(store, &taken.reference, taken.new),
        (Status::Updated, Some(old)) => refs::advance(store, &taken.reference, old, taken.new),
        _ => Ok(()),
    };
    if moved.as_ref().is_err_and(Lost::is_lost) {
        taken.old = refs::read(store, &taken.reference)?;
        let is_ahead = |now| taken.place.kind.is_chain() && history::continues(store, taken.new, now).unwrap_or(false);
        let surpassed = taken.old.is_some_and(is_ahead);
        taken.status = if surpassed { Status::UpToDate } else { judge(store, &taken.place, taken.old, taken.new)? };
        let mut batch = store.batch();
        unite(store, taken, &mut batch)?;
        kept.join(batch.keep()?);
    }
    Ok(moved?)
}

/// Brings what is not here, in one batch; returns why where git would not take it. What else there is comes all the same.
fn bring_history(
    store: &Store,
    reach: &Reach,
    request: &Request,
    absent: Vec<Oid>,
    kept: &mut Kept,
) -> Result<BTreeMap<Oid, String>, Error> {
    let mut unsound = BTreeMap::new();
    let mut batches = if absent.is_empty() { Vec::new() } else { vec![absent] };
    let mut tries = 0;
    while let Some(batch) = batches.pop() {
        tries += 1;
        match remote::fetch(store, reach, &request.remote.given, &batch, Depth::History) {
            Ok(brought) => kept.join(brought),
            // Whose fault it is can only be found out by asking for less.
            Err(remote::Error::Unsound(..)) if batch.len() > 1 && tries < MOST_TRIES => {
                let (one, other) = batch.split_at(batch.len() / 2);
                batches.extend([other.to_vec(), one.to_vec()]);
            }
            Err(remote::Error::Unsound(_, why)) if batch.len() == 1 => {
                unsound.insert(batch[0], format!("git finds what it holds unsound: {why}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unsound)
}

/// What a remote shows, each with what it points at: one object, from a remote that means well.
type Shown = BTreeMap<Place, Vec<Oid>>;

/// Returns what to take of what the remote shows, runs before the logs that speak of them; and the names that make no sense.
fn wanted(
    store: &Store,
    reach: &Reach,
    request: &Request,
    was_fetched: impl Fn(&Place) -> bool,
) -> Result<(Shown, Vec<String>), Error> {
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
    let is_wanted = |place: &Place| !request.threads_only || matches!(place.kind, Kind::Thread | Kind::Log);
    let wanted: Vec<(Place, Oid)> = places.iter().filter(|(place, _)| is_wanted(place)).cloned().collect();
    if let Some(name) = unknown(&request.names, &wanted) {
        return Err(Error::Unknown(name.clone(), request.remote.name.clone()));
    }
    // Logs come whole. The chains that were fetched before come with them, lest they speak of more than is here.
    places.retain(|(place, _)| {
        let is_asked = is_wanted(place) && is_asked(place, &request.names, request.transcripts);
        is_asked || (place.kind.is_chain() && was_fetched(place))
    });
    if places.len() > MOST_REFS {
        return Err(Error::TooMany(places.len()));
    }
    let mut shown = Shown::new();
    for (place, oid) in places {
        let objects = shown.entry(place).or_default();
        if !objects.contains(&oid) {
            objects.push(oid);
        }
    }
    Ok((shown, skipped))
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
        (_, None) => return Ok(Status::Unsound(in_words(&store::Error::Missing(new)))),
        (Kind::Transcripts | Kind::Stamps, Some(Object::Tree))
        | (Kind::Run | Kind::Thread | Kind::Log, Some(Object::Commit)) => {}
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
        if let Some(why) = evidence::oversized(store, place.kind, old, new)? {
            return Ok(Status::Unsound(why));
        }
    }
    Ok(if old.is_some() { Status::Updated } else { Status::New })
}

/// Makes of a remote's time stamps those and what was here: a remote cannot take any back.
fn unite(store: &Store, taken: &mut Taken, batch: &mut Batch) -> Result<(), Error> {
    if taken.place.kind != Kind::Stamps || taken.status == Status::UpToDate || taken.status.is_refused() {
        return Ok(());
    }
    let united = stamps::united(store, taken.old, taken.new, batch)?;
    if taken.old == Some(united) {
        taken.status = Status::UpToDate;
    } else if united == store.empty_tree() {
        taken.status = Status::Unsound("it holds nothing that its names say".into());
    }
    taken.new = if taken.status.is_refused() { taken.new } else { united };
    Ok(())
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

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Ref(error) if error.is_lost())
    }
}
