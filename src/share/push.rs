//! Hands runs and threads to a remote, with the repository logs that anchor them.
//!
//! Nothing is pushed unless everything that was asked for goes on from what the remote has; afterwards the remote is read
//! back, since only what it shows is handed over.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::remote::{self, Reach, Remote, Spec};
use crate::git::screen::{self, Range};
use crate::git::store::{self, Kept, Store};
use crate::git::{history, program, refs, work_tree};
use crate::ledger::{chain, log};
use crate::model::credential::gate::{Gate, Secret};
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::format::{self, REFS, RUN_REFS};
use crate::model::log_name::LogName;

use super::archived;
use super::rival::{Found, Remotely, Rival};
use super::wanted::Wanted;
use super::{Kind, Place, Space};

/// Which runs and threads to hand over; our logs go along with either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Every one.
    All,
    /// Those with one of these names; no names are no runs and threads.
    Named(Vec<String>),
}

impl Asked {
    /// Returns the names that everything is held against, if not everything was asked for.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::Named(names) => Some(names),
        }
    }
}

/// What to hand over.
#[derive(Clone, Debug)]
pub struct Request {
    /// To whom.
    pub remote: Remote,
    /// Which runs and threads.
    pub asked: Asked,
    /// Threads and our logs only, whatever else has one of the names.
    pub threads_only: bool,
    /// The runs' transcripts as well.
    pub transcripts: bool,
    /// Where the remote keeps them.
    pub space: Space,
    /// Only say what would be done.
    pub dry_run: bool,
    /// What may not be handed over.
    pub gate: Gate,
}

/// What a push does, or did, to one ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// What it holds.
    pub place: Place,
    /// The remote's ref.
    pub to: String,
    /// What the remote had.
    pub old: Option<Oid>,
    /// What we have.
    pub new: Oid,
    /// What that means.
    pub status: Status,
}

/// How what we have stands to what the remote has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The remote does not have it.
    New,
    /// The remote has an older head.
    Updated,
    /// The remote has the same.
    UpToDate,
    /// The remote has a newer head; nothing is pushed.
    Behind,
    /// The remote has it in an archive of ours, and its own ref goes.
    Archived,
}

impl Status {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Updated => "updated",
            Self::UpToDate => "up-to-date",
            Self::Behind => "behind",
            Self::Archived => "archived",
        }
    }

    /// Returns whether something is to be pushed.
    pub fn moves(self) -> bool {
        matches!(self, Self::New | Self::Updated)
    }
}

/// What a push did.
#[derive(Clone, Debug, Default)]
pub struct Pushed {
    /// Every ref that was looked at, but for those that are left out.
    pub moved: Vec<Moved>,
    /// What the remote has in the place of a chain of ours, and is no such chain.
    pub rivals: Vec<Rival>,
    /// Refs of archived runs that the remote would not let go, each with why.
    pub stays: Vec<(String, String)>,
}

impl Pushed {
    /// Returns what was not handed over, because something that is no such chain lies in its place.
    pub fn left_out(&self) -> impl Iterator<Item = &Rival> {
        self.rivals.iter().filter(|rival| rival.instead.is_none())
    }
}

/// Pushes; what is left out of it is said.
///
/// What is named brings along the runs and threads that the remote has as they were before: our log, which goes whole, speaks of
/// them as they are now.
pub fn push(store: &Store, reach: &Reach, request: &Request) -> Result<Pushed, Error> {
    deliver(store, reach, request, Wanted::all(store, request)?)
}

/// Pushes our logs alone, which anchor the runs.
pub fn push_logs(store: &Store, reach: &Reach, request: &Request) -> Result<Pushed, Error> {
    let mut logs = Wanted::all(store, request)?;
    logs.retain(|wanted| wanted.place.kind == Kind::Log);
    deliver(store, reach, request, logs)
}

fn deliver(store: &Store, reach: &Reach, request: &Request, wanted: Vec<Wanted>) -> Result<Pushed, Error> {
    let url = remote::push_url(store, &request.remote)?;
    let there = Remotely { store, reach, url: &url, has: held(store, reach, &url, &request.space)? };
    if request.threads_only {
        outrun(store, &there)?;
    }
    let (mut pushed, mut diverged, mut renamed) = (Pushed::default(), Vec::new(), Vec::new());
    let (mut kept, mut batch) = (Kept::default(), store.batch());
    let named: BTreeSet<Place> = wanted.iter().map(|wanted| wanted.place.clone()).collect();
    let in_archives = archived::on_remote(store, &there.has)?;
    for wanted in wanted {
        let old = there.has.get(&wanted.place).copied();
        let new = wanted.united(store, old, &mut batch)?;
        let Wanted { place, asked, held, .. } = wanted;
        if old.is_none() && (held || in_archives.get(&place) == Some(&new)) {
            if !held {
                let to = place.below(request.space.folder());
                pushed.moved.push(Moved { place, to, old: Some(new), new, status: Status::UpToDate });
            }
            continue;
        }
        let (found, rival) = match there.look(&place, new, &mut kept) {
            // What nobody asked for goes along if it can, and holds nothing up.
            Ok((Found::Stands(Status::Updated), _)) if !asked => (Found::Stands(Status::Updated), None),
            _ if !asked => continue,
            looked => looked?,
        };
        pushed.rivals.extend(rival);
        match found {
            Found::Apart => {
                let apart = |theirs| Diverged { place, ours: new, theirs, known: store.contains(theirs) };
                diverged.extend(old.map(apart));
            }
            Found::Blocked => {}
            Found::Stands(status) => {
                let goes = held && old.is_some_and(|old| history::goes_on(store, old, new));
                let status = if goes { Status::Archived } else { status };
                if held && !goes {
                    continue;
                }
                pushed.moved.push(Moved { to: place.below(request.space.folder()), place, old, new, status });
            }
            Found::Beside(to, status) => {
                renamed.extend(LogName::parse(&place.name).map(|from| (from, to.clone())));
                let place = Place::of_log(&to);
                // It has both names after a crash, and goes under the one that is written.
                if !named.contains(&place) {
                    let old = there.has.get(&place).copied();
                    pushed.moved.push(Moved { to: place.below(request.space.folder()), place, old, new, status });
                }
            }
        }
    }
    if !diverged.is_empty() {
        return Err(Error::Diverged(diverged));
    }
    screened(store, request, &pushed.moved)?;
    for (from, to) in renamed.iter().filter(|_| !request.dry_run) {
        log::rename(store, from, to)?;
    }
    if !request.dry_run {
        kept.join(batch.keep()?);
        hand_over(store, reach, request, (&url, &pushed.moved))?;
    }
    archived::retire(store, reach, request, &mut pushed)?;
    Ok(pushed)
}

/// Refuses to hand over what has a secret in it, of what the remote does not have. What is in commits of the user's own is theirs to
/// push.
fn screened(store: &Store, request: &Request, moves: &[Moved]) -> Result<(), Error> {
    let moving = || moves.iter().filter(|moved| moved.status.moves());
    if moving().next().is_none() {
        return Ok(());
    }
    // What goes into an archive there was there before.
    let known = moves.iter().filter(|moved| moved.status != Status::UpToDate);
    let known = known.filter_map(|moved| moved.old).filter(|old| store.contains(*old)).map(|old| old.to_string());
    let mut range = Range { tips: moving().map(|moved| moved.new).collect(), known: known.collect() };
    let call = store.git().args(["for-each-ref", "--format=%(objectname)^{tree}"]);
    let own = call.args(["refs/heads", "refs/remotes", &format::bases()]).run()?;
    let own = String::from_utf8_lossy(&own).into_owned();
    range.known.extend(own.lines().map(str::to_owned));
    range.known.extend(work_tree::head(store)?.map(|(head, _)| format!("{head}^{{tree}}")));
    range.known.sort();
    range.known.dedup();
    match screen::new_objects(&|| store.git(), &range, &request.gate)?.into_iter().next() {
        Some((_, secret)) => Err(Error::Secret(secret)),
        None => Ok(()),
    }
}

/// Refuses to hand over the logs alone where they say of a run that the remote has that it is sealed, and it is not so there: whoever
/// fetches both could not tell that from a run that was shortened.
fn outrun(store: &Store, there: &Remotely<'_>) -> Result<(), Error> {
    for (name, tip) in refs::list_with_archived(store, RUN_REFS)? {
        let Some(place) = name.strip_prefix(REFS).and_then(Place::parse) else { continue };
        let Some(theirs) = there.has.get(&place).copied().filter(|theirs| *theirs != tip) else { continue };
        let is_sealed = chain::decode(store, tip).is_ok_and(|found| matches!(found.entry.event, Event::RunSealed(_)));
        let is_older = || store.contains(theirs) && history::goes_on(store, theirs, tip);
        if is_sealed && is_older() {
            return Err(Error::Outrun(place.name));
        }
    }
    Ok(())
}

/// Moves the remote's refs, and reads them back.
fn hand_over(store: &Store, reach: &Reach, request: &Request, (url, moves): (&str, &[Moved])) -> Result<(), Error> {
    let moving = || moves.iter().filter(|moved| moved.status.moves());
    let spec = |moved: &Moved| Spec {
        oid: moved.new,
        to: moved.to.clone(),
        instead_of: moved.old.filter(|_| !moved.place.kind.is_chain()),
    };
    let specs: Vec<Spec> = moving().map(spec).collect();
    if specs.is_empty() {
        return Ok(());
    }
    let (answers, said) = remote::push(store, reach, &request.remote.given, &specs)?;
    let declined: Vec<(String, String)> =
        answers.into_iter().filter(|answer| !answer.taken).map(|answer| (answer.to, answer.summary)).collect();
    if !declined.is_empty() {
        return Err(Error::Declined { refs: declined, said });
    }
    let has = held(store, reach, url, &request.space)?;
    for moved in moving() {
        let found = has.get(&moved.place).copied();
        if found != Some(moved.new) {
            return Err(Error::ReadBack { name: moved.to.clone(), pushed: moved.new, found });
        }
    }
    Ok(())
}

/// Returns what a remote has in its space; names that are none of ours are no concern of a push.
fn held(store: &Store, reach: &Reach, url: &str, space: &Space) -> Result<BTreeMap<Place, Oid>, Error> {
    let listed = remote::list(store, reach, url, &space.pattern())?;
    Ok(listed
        .into_iter()
        .filter_map(|(oid, name)| Some((Place::parse(name.strip_prefix(space.folder())?)?, oid)))
        .collect())
}

/// A chain that the remote has another continuation of.
#[derive(Clone, Debug)]
pub struct Diverged {
    /// What it holds.
    pub place: Place,
    /// Our head.
    pub ours: Oid,
    /// The remote's.
    pub theirs: Oid,
    /// Whether the remote's head is here.
    pub known: bool,
}

/// Why nothing, or not everything, was handed over.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing of that name here.
    #[error("there is no run or thread {0:?} here")]
    Unknown(String),
    /// Histories went apart; nothing was pushed.
    #[error("{}; nothing was pushed", sentence(.0))]
    Diverged(Vec<Diverged>),
    /// Something that is no chain of ours lies in the place of one on the remote, and it has no other name left.
    #[error("{} {:?} on the remote is not sound, and ours has no other name: {}", .0.place.kind.word(), .0.place.name, .0.why)]
    Blocked(Box<Rival>),
    /// Only threads were to be handed over, and our log says of a run that it is sealed, which it is not there.
    #[error(
        "the run {0:?} was sealed after it was pushed; the log that goes with threads says so, and the run itself has to go first"
    )]
    Outrun(String),
    /// The remote refused.
    #[error("the remote refused {}", .refs.iter().map(|(name, why)| format!("{name} {why}")).collect::<Vec<_>>().join(", "))]
    Declined {
        /// The refs, each with what git says of it.
        refs: Vec<(String, String)>,
        /// What the remote said.
        said: String,
    },
    /// The remote does not show what it took.
    #[error("{name} was pushed as {pushed}, but the remote shows {}", .found.map_or("nothing".into(), |oid| oid.to_string()))]
    ReadBack {
        /// The ref.
        name: String,
        /// What was pushed.
        pushed: Oid,
        /// What is there.
        found: Option<Oid>,
    },
    /// There is a secret in what would be handed over; nothing was.
    #[error(transparent)]
    Secret(Secret),
    /// git could not be asked what would be handed over.
    #[error(transparent)]
    Git(#[from] program::Error),
    /// It cannot be told where `HEAD` is.
    #[error(transparent)]
    Head(#[from] work_tree::Error),
    /// The remote could not be dealt with.
    #[error(transparent)]
    Remote(#[from] remote::Error),
    /// A log of ours could not make way for another clone's.
    #[error("the log of this clone could not make way for another's by the same key")]
    Log(#[from] log::Error),
    /// Our refs could not be read.
    #[error(transparent)]
    Ref(#[from] refs::Error),
    /// Our objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

fn sentence(diverged: &[Diverged]) -> String {
    let one = |d: &Diverged| {
        let (kind, name) = (d.place.kind.word(), &d.place.name);
        let theirs = if d.known { "which does not go on from ours" } else { "which is not here" };
        format!("{kind} {name:?} is at {} here and at {} on the remote, {theirs}", d.ours, d.theirs)
    };
    diverged.iter().map(one).collect::<Vec<_>>().join("; ")
}
