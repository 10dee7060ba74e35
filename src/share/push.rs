//! Hands runs and threads to a remote, with the repository logs that anchor them.
//!
//! Nothing is pushed unless everything that was asked for goes on from what the remote has; afterwards the remote is read
//! back, since only what it shows is handed over.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::porcelain::{self, Answer};
use crate::git::remote::{self, Reach, Remote, Spec};
use crate::git::store::{self, Kept, Store};
use crate::git::{history, program, refs, work_tree};
use crate::ledger::chain::Writer;
use crate::ledger::log;
use crate::model::credential::gate::{Gate, Secret};
use crate::model::digest::Oid;
use crate::model::entry::Subject;
use crate::model::log_name::LogName;
use crate::model::name::RunId;

use super::archived;
use super::diverged::{Diverged, How};
use super::outbound::{self, Outbound};
use super::rival::{Found, Remotely, Rival};
use super::screened::screened;
use super::wanted::{self, Wanted};
use super::{Kind, Place, Space};

/// Which runs and threads to hand over, with logs that tell of them.
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
    /// Threads and logs only, whatever else has one of the names.
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
    /// Runs and threads of ours that are left out, because the remote has another one under the name.
    pub others: Vec<Diverged>,
}

impl Pushed {
    /// Returns what was not handed over, because something that is no such chain lies in its place.
    pub fn left_out(&self) -> impl Iterator<Item = &Rival> {
        self.rivals.iter().filter(|rival| rival.instead.is_none())
    }

    /// Returns true if something that was to be handed over was not.
    pub fn is_partial(&self) -> bool {
        self.left_out().next().is_some() || !self.others.is_empty()
    }
}

/// Pushes; what is left out of it is said.
///
/// A log goes along that says of the runs and threads what `writer`, if there is one, knows of them, and of no others.
pub fn push(store: &Store, reach: &Reach, request: &Request, writer: Option<&Writer>) -> Result<Pushed, Error> {
    let here = wanted::here(store)?;
    let wanted = Wanted::all(store, request, &here)?;
    let all = request.asked == Asked::All && !request.threads_only;
    let named = (!all).then(|| wanted.iter().filter_map(|wanted| outbound::subject_of(&wanted.place)).collect());
    Delivery { store, reach, request, writer, here }.deliver(wanted, named)
}

/// Pushes logs alone, which anchor the runs of the names that were asked for.
pub fn push_logs(store: &Store, reach: &Reach, request: &Request, writer: Option<&Writer>) -> Result<Pushed, Error> {
    let names = request.asked.names();
    let runs = |names: &[String]| names.iter().filter_map(|name| RunId::parse(name).ok()).map(Subject::Run).collect();
    Delivery { store, reach, request, writer, here: wanted::here(store)? }.deliver(Vec::new(), names.map(runs))
}

/// One push, with what is here.
struct Delivery<'a> {
    store: &'a Store,
    reach: &'a Reach,
    request: &'a Request,
    writer: Option<&'a Writer>,
    here: BTreeMap<Place, Oid>,
}

impl Delivery<'_> {
    /// Hands over what is wanted, and logs that tell of what is handed over; without `handed`, of everything.
    fn deliver(self, wanted: Vec<Wanted>, mut handed: Option<BTreeSet<Subject>>) -> Result<Pushed, Error> {
        let Self { store, reach, request, writer, ref here } = self;
        let url = remote::push_url(store, &request.remote)?;
        let there = Remotely { store, reach, url: &url, has: held(store, reach, &url, &request.space)? };
        let in_archives = archived::on_remote(store, &there.has)?;
        let (mut kept, mut batch) = (Kept::default(), store.batch());
        let mut plan = Plan { folder: request.space.folder(), ..Plan::default() };
        let archived: BTreeSet<Place> = wanted.iter().filter(|one| one.held).map(|one| one.place.clone()).collect();
        for wanted in wanted {
            let old = there.has.get(&wanted.place).copied();
            let new = wanted.united(store, old, &mut batch)?;
            let Wanted { place, held, .. } = wanted;
            if old.is_none() && (held || in_archives.get(&place) == Some(&new)) {
                if !held {
                    plan.add(place, Some(new), new, Status::UpToDate);
                }
                continue;
            }
            plan.take(&there, (place, new, held), &mut kept)?;
        }
        if handed.is_none() && plan.leave_out_others(&archived) {
            // What the logs say of the other runs is told, and nothing of those that stay here.
            let rest = here.keys().filter(|place| plan.pushed.others.iter().all(|other| other.place != **place));
            handed = Some(rest.filter_map(outbound::subject_of).collect());
        }
        plan.refuse_apart()?;
        let mut shown = there.has.clone();
        in_archives.into_iter().for_each(|(place, tip)| _ = shown.entry(place).or_insert(tip));
        let outbound = Outbound { store, writer, handed, ours: here, there: &shown };
        let logs = outbound.logs(request.dry_run)?;
        plan.logs = logs.heads.iter().map(|(log, _)| Place::of_log(log)).collect();
        for (log, head) in &logs.heads {
            plan.take(&there, (Place::of_log(log), *head, false), &mut kept)?;
        }
        plan.refuse_apart()?;
        plan.pushed.moved.sort_by(|one, other| one.place.cmp(&other.place));
        screened(store, request, &plan.pushed.moved)?;
        for (from, to) in plan.renamed.iter().filter(|_| !request.dry_run) {
            log::rename(store, from, to)?;
        }
        let mut pushed = plan.pushed;
        if !request.dry_run {
            kept.join(batch.keep()?);
            hand_over(store, reach, request, (&url, &pushed.moved))?;
        }
        archived::retire(store, reach, request, &mut pushed)?;
        Ok(pushed)
    }
}

/// What a push is about to do.
#[derive(Default)]
struct Plan<'a> {
    /// The folder of refs on the remote.
    folder: &'a str,
    pushed: Pushed,
    diverged: Vec<Diverged>,
    /// Logs that make way for another's, each with its new name.
    renamed: Vec<(LogName, LogName)>,
    /// The places of the logs that go.
    logs: BTreeSet<Place>,
}

impl Plan<'_> {
    fn add(&mut self, place: Place, old: Option<Oid>, new: Oid, status: Status) {
        self.pushed.moved.push(Moved { to: place.below(self.folder), place, old, new, status });
    }

    /// Holds something of ours against what the remote has in its place. `held` says that it goes within an archive.
    fn take(
        &mut self,
        there: &Remotely<'_>,
        (place, new, held): (Place, Oid, bool),
        kept: &mut Kept,
    ) -> Result<(), Error> {
        let (store, old) = (there.store, there.has.get(&place).copied());
        let (found, rival) = there.look(&place, new, kept)?;
        self.pushed.rivals.extend(rival);
        match found {
            Found::Apart => {
                self.diverged.extend(old.map(|theirs| Diverged::of(store, place, new, theirs)));
            }
            Found::Blocked => {}
            Found::Stands(status) => {
                let goes = held && old.is_some_and(|old| history::goes_on(store, old, new));
                if !held || goes {
                    self.add(place, old, new, if goes { Status::Archived } else { status });
                }
            }
            Found::Beside(to, status) => {
                self.renamed.extend(LogName::parse(&place.name).map(|from| (from, to.clone())));
                let place = Place::of_log(&to);
                // It has both names after a crash, and goes under the one that is written.
                if !self.logs.contains(&place) {
                    let old = there.has.get(&place).copied();
                    self.add(place, old, new, status);
                }
            }
        }
        Ok(())
    }

    /// Leaves out what the remote has another run or thread for, and what belongs to it; returns whether there is any.
    ///
    /// Of one that lies in an archive of ours nothing can be left out: it is refused, with all else.
    fn leave_out_others(&mut self, archived: &BTreeSet<Place>) -> bool {
        let diverged = std::mem::take(&mut self.diverged);
        let is_other = |one: &Diverged| one.how == How::Another && !archived.contains(&one.place);
        let (others, refused) = diverged.into_iter().partition(is_other);
        (self.pushed.others, self.diverged) = (others, refused);
        // Transcripts and time stamps belong to the run.
        let others = &self.pushed.others;
        let stays = |place: &Place| !place.kind.is_chain() && others.iter().any(|other| other.place.name == place.name);
        self.pushed.moved.retain(|moved| !stays(&moved.place));
        !others.is_empty()
    }

    fn refuse_apart(&mut self) -> Result<(), Error> {
        let diverged = std::mem::take(&mut self.diverged);
        if diverged.is_empty() { Ok(()) } else { Err(Error::Diverged(diverged)) }
    }
}

/// Moves the remote's refs, and reads them back.
fn hand_over(store: &Store, reach: &Reach, request: &Request, (url, moves): (&str, &[Moved])) -> Result<(), Error> {
    let moving = || moves.iter().filter(|moved| moved.status.moves());
    let spec = |moved: &Moved| Spec {
        oid: moved.new,
        to: moved.to.clone(),
        instead_of: moved.old.filter(|_| !moved.place.kind.is_chain()),
        goes_first: moved.place.kind == Kind::Log,
    };
    let specs: Vec<Spec> = moving().map(spec).collect();
    if specs.is_empty() {
        return Ok(());
    }
    let (answers, said) = remote::push(store, reach, &request.remote.given, &specs)?;
    if answers.iter().any(|answer| !answer.taken) {
        return Err(Error::Declined { answers, said });
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

/// Why nothing, or not everything, was handed over.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing of that name here.
    #[error("there is no run or thread {0:?} here")]
    Unknown(String),
    /// Histories went apart; nothing was pushed.
    #[error("{}; nothing was pushed", Diverged::sentence(.0))]
    Diverged(Vec<Diverged>),
    /// Something that is no chain of ours lies in the place of one on the remote, and it has no other name left.
    #[error("{} {:?} on the remote is not sound, and ours has no other name: {}", .0.place.kind.word(), .0.place.name, .0.why)]
    Blocked(Box<Rival>),
    /// The remote refused.
    #[error("the remote refused {}", porcelain::refused(answers))]
    Declined {
        /// What became of each ref.
        answers: Vec<Answer>,
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
