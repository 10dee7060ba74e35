//! Shares a run through a remote, and joins a run that is shared.
//!
//! A private file in the git directory names the remote of each shared run, so that every command
//! records through it.

use crate::git::remote::{self, Remotes};
use crate::git::store::Store;
use crate::git::tip::{Copy, Move, Swap, Tip};
use crate::git::{history, passing, private_files, program, refs};
use crate::ledger::chain;
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};
use crate::model::role::Role;
use crate::repository::{Repository, Trust};
use crate::run::query::remote_read::{RemoteRead, RemoteState};
use crate::run::query::sharing::Sharing;
use crate::verify::{Chain, Revoked, check_continued, check_incoming};

use super::via::Via;
use super::{Denied, OpenRun};

impl Sharing {
    /// Replaces the record.
    pub fn keep(&self, store: &Store, run: &RunId) -> std::io::Result<()> {
        private_files::put(store, private_files::VIA, &run.encoded(), &format::canonical(self))
    }
}

impl Repository {
    /// Returns the remote for a word, for the refs of shared runs.
    pub fn tip(&self, remote: &str) -> Result<Tip, Error> {
        let found = Remotes::read(&self.store)?.find(remote)?;
        let to = remote::push_url(&self.store, &found)?;
        Ok(Tip::new(&self.store, self.reach(), found.given, to).idle(self.config.remote_timeout))
    }

    /// Reads the remote of a run that was pushed or is shared, for a command that changes it.
    /// Fails if what is here may not be continued.
    pub(super) fn read_to_change(&self, run: &RunId) -> Result<Option<RemoteRead>, Denied> {
        let read = self.read_remote_of(run).map_err(|why| Denied::Remote(Box::new(why)))?;
        let Some(read) = read else { return Ok(None) };
        expect_continuable(run, &read)?;
        self.note(read.in_words(run));
        Ok(Some(read))
    }

    /// Opens a run that is shared through a remote, or was pushed to it, for a command of a person.
    /// Entries go to the remote, so that drivers elsewhere learn of them.
    pub(super) fn follow_sharing(&self, mut open: OpenRun, read: Option<RemoteRead>) -> Result<OpenRun, Denied> {
        if open.state.sealed {
            return Ok(open);
        }
        let remote = match (read, Sharing::read(&self.store, open.id())) {
            (Some(read), _) if read.state == RemoteState::Missing && open.state.shared.is_none() => return Ok(open),
            (Some(read), _) => read.name,
            (None, _) if open.state.shared.is_none() => return Ok(open),
            (None, Some(sharing)) if self.offline => {
                let (run, remote) = (open.id().clone(), remote::without_password(&sharing.remote));
                return Err(Denied::Offline { run, remote });
            }
            (None, Some(sharing)) => sharing.remote,
            (None, None) => return Err(Denied::Shared(open.id().clone())),
        };
        let tip = self.tip(&remote).map_err(|why| Denied::Remote(Box::new(why)))?;
        let via = Via::new(tip, open.id(), None, self.config.via_interval);
        open.share_via(via)?;
        open.refresh()?;
        Ok(open)
    }

    /// Joins a run like [`Repository::join`], and tries again while the remote is busy.
    pub fn join_patiently(&self, run: &RunId, remote: &str) -> Result<Tip, Error> {
        passing::insist(
            || self.join(run, remote),
            |error: &Error| matches!(error, Error::Remote(why) if passing::is_passing(&in_words(why))),
        )
    }

    /// Makes the remote and this repository have the same entries of a run: fetches it, or pushes
    /// it if the remote does not have it. Records the remote.
    pub fn join(&self, run: &RunId, remote: &str) -> Result<Tip, Error> {
        let (tip, name) = (self.tip(remote)?, format::run_ref(run));
        let theirs = tip.list(&[&name])?.get(&name).copied();
        let ours = refs::read_stored(&self.store, &name)?;
        let head = match (theirs, ours) {
            (None, None) => return Err(Error::Nowhere { run: run.clone(), remote: remote.to_owned() }),
            (Some(theirs), None) => {
                self.receive(&tip, run, None, theirs)?;
                theirs
            }
            (Some(theirs), Some(ours)) if theirs == ours => ours,
            (Some(theirs), Some(ours)) => {
                let guard = tip.fetch(&[theirs])?;
                if history::goes_on(&self.store, ours, theirs) {
                    self.receive(&tip, run, Some(ours), theirs)?;
                    theirs
                } else if history::goes_on(&self.store, theirs, ours) {
                    publish(&tip, run, remote, &[Move { name, old: Some(theirs), new: Some(ours) }])?;
                    ours
                } else {
                    drop(guard);
                    return Err(Error::Other { run: run.clone(), remote: remote.to_owned(), theirs, ours });
                }
            }
            (None, Some(ours)) => {
                self.expect_shared_there(run, remote, ours)?;
                let base = self.entry_zero(run, ours)?.1;
                let moves = [(name, ours), (format::base_ref(run), base)];
                let listed = tip.list(&[&moves[1].0])?;
                let moves = moves.map(|(reference, new)| Move {
                    old: listed.get(&reference).copied(),
                    name: reference,
                    new: Some(new),
                });
                let changed: Vec<Move> = moves.into_iter().filter(|one| one.old != one.new).collect();
                publish(&tip, run, remote, &changed)?;
                ours
            }
        };
        let (first, base) = self.entry_zero(run, head)?;
        if !self.store.contains(base) {
            let guard = tip.fetch(&[base]).map_err(|error| {
                if !in_words(&error).contains("not our ref") {
                    return error.into();
                }
                Error::NoBase { run: run.clone(), remote: remote.to_owned(), base, source: Box::new(error) }
            })?;
            refs::create(&self.store, &format::base_ref(run), base)?;
            drop(guard);
        }
        self.complete_base(&tip, base)?;
        let driver =
            Sharing::read(&self.store, run).filter(|known| known.first == first).and_then(|known| known.driver);
        Sharing { remote: remote.to_owned(), first, driver }.keep(&self.store, run).map_err(Error::Record)?;
        Ok(tip)
    }

    /// Checks that the entries of others up to `theirs` may follow ours; returns the first fault.
    pub(super) fn check_following(&self, run: &RunId, ours: Oid, theirs: Oid) -> Result<(), String> {
        let trusted = self.options(&Trust::default(), &mut |_| ()).map_err(|error| in_words(&error))?;
        check_continued(&self.store, run, Some(ours), theirs, self.now(), &trusted.revoked)
    }

    /// Moves our refs of shared runs to fetched heads that continue them. Returns these runs.
    ///
    /// Otherwise `verify` would compare an old copy with the logs of those who drove the run on.
    pub fn follow_fetched(&self, heads: impl Iterator<Item = (RunId, Oid)>) -> Result<Vec<RunId>, Error> {
        let mut followed = Vec::new();
        for (run, theirs) in heads {
            let name = format::run_ref(&run);
            let Some(ours) = refs::read_stored(&self.store, &name)? else { continue };
            let is_behind = ours != theirs && history::goes_on(&self.store, ours, theirs);
            if !is_behind || !is_shared(&self.store, &name, theirs)? {
                continue;
            }
            // The fetched copy tells what is wrong with entries that may not follow ours.
            if self.check_following(&run, ours, theirs).is_err() {
                continue;
            }
            match refs::advance(&self.store, &name, ours, theirs) {
                Ok(()) => followed.push(run),
                // A driver of this repository moved it.
                Err(refs::Error::LostRace(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(followed)
    }

    /// Returns the runs of this repository that a fetched head has with other entries.
    pub fn driven_twice(&self, heads: impl Iterator<Item = (RunId, Oid)>) -> Result<Vec<RunId>, Error> {
        let mut twice = Vec::new();
        for (run, theirs) in heads {
            let Some(ours) = refs::read_stored(&self.store, &format::run_ref(&run))? else { continue };
            let is_apart = ours != theirs
                && !history::goes_on(&self.store, ours, theirs)
                && !history::goes_on(&self.store, theirs, ours);
            if is_apart
                && history::first(&self.store, ours).is_some()
                && history::first(&self.store, ours) == history::first(&self.store, theirs)
            {
                twice.push(run);
            }
        }
        Ok(twice)
    }

    /// Fails if the run is driven through another remote. It is published again only where it was.
    fn expect_shared_there(&self, run: &RunId, remote: &str, ours: Oid) -> Result<(), Error> {
        let known = Sharing::read(&self.store, run).map(|sharing| sharing.remote);
        if known.as_deref() == Some(remote) || !is_shared(&self.store, &format::run_ref(run), ours)? {
            return Ok(());
        }
        Err(Error::Elsewhere { run: run.clone(), remote: remote.to_owned(), known })
    }

    /// Fetches the logs of the keys that may approve or write documents, and records what they say
    /// about a shared run. Returns true if anything was recorded.
    ///
    /// A log that cannot be read is left out; its key can publish another.
    pub fn hear(&self, open: &mut OpenRun) -> Result<bool, Error> {
        let Some(via) = open.via() else { return Ok(false) };
        let own = open.writer().signer.fingerprint();
        let keys: Vec<String> = open
            .state
            .keys
            .iter()
            .filter(|(key, roles)| *key != own && (roles.contains(&Role::Approve) || roles.contains(&Role::Document)))
            .map(|(key, _)| key.to_owned())
            .collect();
        if keys.is_empty() {
            return Ok(false);
        }
        self.fetch_logs(via.tip(), &keys)?;
        let outcomes = self.accept_statements_on(open).map_err(Error::Statements)?;
        Ok(outcomes.iter().any(|outcome| outcome.refused.is_none()))
    }

    /// Fetches the logs of some keys. A log that cannot be read is left out.
    pub(super) fn fetch_logs(&self, tip: &Tip, keys: &[String]) -> Result<(), Error> {
        let folder = format::fetched_refs(&Remotes::read(&self.store)?.find(tip.remote())?.name);
        let read = tip.read(
            &keys
                .iter()
                .map(|key| {
                    let theirs = format::log_ref(key);
                    let ours = theirs.replacen(format::REFS, &folder, 1);
                    Copy { theirs: theirs + "*", ours: ours + "*" }
                })
                .collect::<Vec<_>>(),
        )?;
        for (name, value) in &read.changed {
            let place = Place::fetched_of(name, Kind::Log).and_then(|place| LogName::parse(&place.name));
            let (Some(head), Some(log)) = (value, place) else { continue };
            let known = refs::read_stored(&self.store, name)?;
            if check_incoming(&self.store, Chain::Log(&log), known, *head).is_ok() {
                refs::set(&self.store, name, *head)?;
            }
        }
        drop(read.guard);
        Ok(())
    }

    /// Fetches the files of the base that a partial clone lacks, because worktrees are made without
    /// a remote.
    fn complete_base(&self, tip: &Tip, base: Oid) -> Result<(), Error> {
        if !history::is_partial(&self.store) {
            return Ok(());
        }
        let list = ["rev-list", "--objects", "--missing=print", "--no-walk", &base.to_string()].map(str::to_owned);
        let listed = self.store.git().env("GIT_NO_LAZY_FETCH", "1").args(list).run()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let missing: Vec<Oid> = text.lines().filter_map(|line| line.strip_prefix('?')?.parse().ok()).collect();
        if !missing.is_empty() {
            // They stay as long as the base does, which a ref keeps.
            let _kept = tip.fetch_blobs(&missing)?;
        }
        Ok(())
    }

    /// Fetches a run, and moves our ref to its head if its entries may follow ours.
    fn receive(&self, tip: &Tip, run: &RunId, known: Option<Oid>, theirs: Oid) -> Result<(), Error> {
        let guard = tip.fetch(&[theirs])?;
        let checked = match known {
            Some(ours) => self.check_following(run, ours, theirs),
            // A run that is joined may have entries of a revoked key that has no role any more.
            None => check_continued(&self.store, run, None, theirs, self.now(), &Revoked::new()),
        };
        checked.map_err(|why| Error::Unsound { run: run.clone(), remote: tip.remote().to_owned(), why })?;
        let name = format::run_ref(run);
        match known {
            None => refs::begin(&self.store, &name, theirs)?,
            Some(ours) => refs::advance(&self.store, &name, ours, theirs)?,
        }
        drop(guard);
        Ok(())
    }

    /// Returns the leaf hash of entry 0 of a chain, and the base that it names.
    fn entry_zero(&self, run: &RunId, head: Oid) -> Result<(Digest, Oid), Error> {
        let first = history::since(&self.store, head, None)?.pop();
        let decoded = chain::decode(&self.store, first.unwrap_or(head))?;
        match &decoded.entry.event {
            Event::RunSubmitted(e) => Ok((decoded.hash, e.base)),
            _ => Err(Error::NotARun(run.clone())),
        }
    }
}

/// Fails if the remote of a run could not be read, or has entries that do not follow ours.
pub(crate) fn expect_continuable(run: &RunId, read: &RemoteRead) -> Result<(), Denied> {
    let (run, remote) = (run.clone(), read.remote.clone());
    match read.state {
        RemoteState::Current(_) | RemoteState::Missing => Ok(()),
        RemoteState::Unread => {
            let why = read.failure.clone().unwrap_or_default();
            Err(Denied::Unread { run, remote, why, as_of: read.read_at })
        }
        RemoteState::Twice { ours, theirs } => Err(Denied::Twice { run, remote, ours, theirs }),
        RemoteState::Other { ours, theirs } => {
            Err(Denied::Remote(Box::new(Error::Other { run, remote, theirs, ours })))
        }
    }
}

/// Returns true if a chain says that its run is driven through a remote.
fn is_shared(store: &Store, name: &str, head: Oid) -> Result<bool, Error> {
    let (_, links) = chain::read_at(store, name, head)?;
    Ok(links.iter().any(|link| matches!(link.entry.event, Event::RunShared(_))))
}

/// Pushes the first entries of a run, or those that the remote lacks.
fn publish(tip: &Tip, run: &RunId, remote: &str, moves: &[Move]) -> Result<(), Error> {
    let why = match tip.swap(moves)? {
        Swap::Won => return Ok(()),
        Swap::Lost => "another process moved it meanwhile".to_owned(),
        Swap::Locked(why) | Swap::Refused(why) | Swap::Unknown(why) => why,
    };
    Err(Error::NotTaken { run: run.clone(), remote: remote.to_owned(), why })
}

errors! {
    /// Failures to share a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Nowhere { run: RunId, remote: String } "unknown-run":
        "neither this repository nor {remote} has the run {:?}" [run.as_str()];
    Other { run: RunId, remote: String, theirs: Oid, ours: Oid } "diverged":
        "{remote} has another run {:?}: its head is {theirs}, ours is {ours}" [run.as_str()];
    Elsewhere { run: RunId, remote: String, known: Option<String> } "not-shared-there":
        "the run {:?} is shared through another remote{}, and {remote} does not have it"
        [run.as_str(), known.as_ref().map(|known| format!(", {known}")).unwrap_or_default()];
    Unsound { run: RunId, remote: String, why: String } "not-continuable":
        "the run {:?} of {remote} cannot be driven here: {why}" [run.as_str()];
    NotTaken { run: RunId, remote: String, why: String } "push-refused":
        "{remote} does not take the run {:?}: {why}" [run.as_str()];
    NoBase { run: RunId, remote: String, base: Oid, source: Box<remote::Error> } "no-base":
        "{remote} does not have the commit {base}, on which the run {:?} is based" [run.as_str()];
    NotARun(RunId) "not-a-run": "the ref of the run {0:?} holds something else";
    Record(#[source] std::io::Error) "io": "cannot record the remote of the run";
    Statements(#[source] AnyError): "{0}";
    #[from] Git(program::Error), Remote(remote::Error), Ref(refs::Error), Store(crate::git::store::Error),
        Chain(chain::Error);
}
