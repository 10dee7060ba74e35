//! The refs of a shared run on a remote: read by prefix, and moved by compare-and-swap.
//!
//! The remote's answer is judged by the line of each ref in git's porcelain output. A line that
//! says that the ref is up to date is never a success: another process may have put the same commit
//! there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::history;
use super::incoming::Incoming;
use super::porcelain;
use super::program::{self, Git};
use super::pushing::PUSH;
use super::quarantine::Quarantine;
use super::remote::{Error, FETCH, Reach, receiving, transport};
use super::store::{KeepGuard, Store};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::printable;

/// The size of a blob that a partial clone does not fetch with the chain.
const SMALL: &str = "64k";

/// git's reasons, in lower case, for a ref that another process moved first.
const LOST: [&str; 9] = [
    "stale info",
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "cannot lock ref",
    "failed to lock",
    "incorrect old value",
    "atomic push failed",
    "atomic transaction failed",
];

/// A remote that holds the refs of a shared run.
#[derive(Clone)]
pub struct Tip {
    store: Store,
    reach: Reach,
    /// The remote to fetch from.
    from: String,
    /// The URL to push to.
    to: String,
    /// The folder of the objects to push, instead of the repository's.
    objects: Option<PathBuf>,
}

/// A ref to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The ref on the remote.
    pub name: String,
    /// The value that it must have, or `None` if it must not exist.
    pub old: Option<Oid>,
    /// The new value, or `None` to delete it.
    pub new: Option<Oid>,
}

/// The result of a push for the ref that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The remote has the new value.
    Won,
    /// Another process moved a ref first.
    Lost,
    /// A lock file at the remote is in the way, with git's words. Another process moves the ref, or
    /// was killed while it did.
    Locked(String),
    /// The remote refused the new value, with its words.
    Refused(String),
    /// The outcome is unknown: only reading the remote can tell.
    Unknown(String),
}

/// The refs of a remote below some prefixes, as far as they differ from our copies.
pub struct Read {
    /// The changed refs, by our name for them; `None` for a ref that is gone.
    pub changed: BTreeMap<String, Option<Oid>>,
    /// Keeps the fetched objects until a ref reaches them.
    pub guard: KeepGuard,
}

/// A ref, or all refs that begin like a name that ends with `*`, with our name for it.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The ref on the remote.
    pub theirs: String,
    /// Our copy.
    pub ours: String,
}

impl Copy {
    fn refspec(&self) -> String {
        format!("+{}:{}", self.theirs, self.ours)
    }
}

impl Tip {
    /// Uses a remote, named for fetches as `from` and for pushes as `to`.
    pub fn new(store: &Store, reach: Reach, from: String, to: String) -> Self {
        Self { store: store.clone(), reach, from, to, objects: None }
    }

    /// Limits each call of git to some time.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.reach.within = Some(time);
        self
    }

    /// Limits the time of each call of git without any progress.
    #[must_use]
    pub fn idle(mut self, time: Duration) -> Self {
        self.reach.idle = Some(time);
        self
    }

    /// Returns the remote as it is named for fetches.
    pub fn remote(&self) -> &str {
        &self.from
    }

    /// Lists these refs of the remote and fetches their objects, in one call. Moves no ref.
    ///
    /// The remote sends only refs below these prefixes. It must have each ref that is named alone.
    pub fn read(&self, copies: &[Copy]) -> Result<Read, Error> {
        let quarantine = Incoming::new(&self.store).map_err(Error::Quarantine)?;
        let options = FETCH.iter().filter(|option| !matches!(**option, "--quiet" | "--no-prune"));
        let call = quarantine.around(self.receiving()).arg("fetch").args(options);
        let call = call.args(["--porcelain", "--dry-run", "--prune", "--refmap=", "--", &self.from]);
        let out = call.args(copies.iter().map(Copy::refspec)).run();
        let out = out.map_err(|error| Error::from_failure(&self.from, error, &self.reach))?;
        let changed = porcelain::fetched(&String::from_utf8_lossy(&out));
        let guard = quarantine.release().map_err(Error::Quarantine)?;
        Ok(Read { changed, guard })
    }

    /// Fetches chains by the ids of their heads. Moves no ref.
    pub fn fetch(&self, oids: &[Oid]) -> Result<KeepGuard, Error> {
        let quarantine = Incoming::new(&self.store).map_err(Error::Quarantine)?;
        let lines = oids.iter().fold(String::new(), |lines, oid| lines + &format!("{oid}\n"));
        let call = quarantine.around(self.receiving()).arg("fetch").args(FETCH);
        let call = call.args(["--stdin", "--", &self.from]).input(lines);
        call.run().map_err(|error| Error::from_failure(&self.from, error, &self.reach))?;
        quarantine.release().map_err(Error::Quarantine)
    }

    /// Fetches a tree into a quarantine, without its files if the remote can leave them out.
    ///
    /// The quarantine must not be stored in the repository: it may refer to missing files.
    pub fn fetch_tree(&self, quarantine: &Quarantine, tree: Oid) -> Result<(), Error> {
        let mut call = receiving(&self.store, &self.reach).config("fetch.negotiationAlgorithm=noop");
        // A filter on the command line would be recorded and make the repository a partial clone. A
        // key with an equals sign cannot be set for one call.
        if !self.from.contains('=') {
            call = call.config(format!("remote.{}.promisor=true", self.from));
            call = call.config(format!("remote.{}.partialCloneFilter=blob:none", self.from));
        }
        let call = call.env("GIT_OBJECT_DIRECTORY", quarantine.store().objects_dir()).arg("fetch").args(FETCH);
        let call = call.args(["--", &self.from, &tree.to_string()]);
        call.run().map(drop).map_err(|error| Error::from_failure(&self.from, error, &self.reach))
    }

    /// Moves one ref to an object of a quarantine.
    pub fn swap_from(&self, quarantine: &Quarantine, one: &Move) -> Result<Swap, Error> {
        let tip = Self { objects: Some(quarantine.store().objects_dir()), ..self.clone() };
        tip.swap(std::slice::from_ref(one))
    }

    /// Fetches blobs by id.
    pub fn fetch_blobs(&self, oids: &[Oid]) -> Result<KeepGuard, Error> {
        super::remote::fetch(&self.store, &self.reach, &self.from, oids, super::remote::Depth::Only)
    }

    /// Returns a git command that receives small blobs even in a partial clone: those that the
    /// entries of a run are read with.
    fn receiving(&self) -> Git {
        let call = receiving(&self.store, &self.reach);
        if history::is_partial(&self.store) {
            call.config(format!("remote.{}.partialCloneFilter=blob:limit={SMALL}", self.from))
        } else {
            call
        }
    }

    /// Returns the value of each of these refs that the remote has.
    pub fn list(&self, names: &[&str]) -> Result<BTreeMap<String, Oid>, Error> {
        let listed = super::remote::list_any(&self.store, &self.reach, &self.from, names)?;
        Ok(listed.into_iter().map(|(oid, name)| (name, oid)).collect())
    }

    /// Moves refs, all or none, and judges the answer by the first of them.
    ///
    /// A remote without atomic pushes gets the others before the first, so that the first one
    /// decides, but logs after it, so that no log names a seal that lost the race.
    pub fn swap(&self, moves: &[Move]) -> Result<Swap, Error> {
        let is_alone = moves.len() == 1;
        if let Some(answer) = self.push(moves, !is_alone)? {
            return Ok(answer);
        }
        let (decides, others) = moves.split_first().expect("a push moves a ref");
        let (after, before): (Vec<_>, Vec<_>) = others.iter().partition(|one| one.name.starts_with(format::LOG_REFS));
        for one in before {
            match self.push(std::slice::from_ref(one), false)? {
                Some(Swap::Won) => {}
                answer => return Ok(answer.unwrap_or(Swap::Lost)),
            }
        }
        let answer = self.push(std::slice::from_ref(decides), false)?.unwrap_or(Swap::Lost);
        if answer == Swap::Won {
            for one in after {
                // Without its log entry, the seal is anchored by the next `push` of the run.
                self.push(std::slice::from_ref(one), false)?;
            }
        }
        Ok(answer)
    }

    /// Pushes refs in one call, or returns `None` if it had to be atomic and the remote has no
    /// atomic pushes.
    fn push(&self, moves: &[Move], atomic: bool) -> Result<Option<Swap>, Error> {
        let mut call = transport(&self.store, &self.reach);
        if let Some(objects) = &self.objects {
            call = call.env("GIT_OBJECT_DIRECTORY", objects);
        }
        call = call.args(PUSH);
        if atomic {
            call = call.arg("--atomic");
        }
        call = call.args(moves.iter().map(|one| {
            format!("--force-with-lease={}:{}", one.name, one.old.map(|old| old.to_string()).unwrap_or_default())
        }));
        let mut out = Vec::new();
        let result = call
            .arg("--")
            .arg(&self.to)
            .args(
                moves
                    .iter()
                    .map(|one| format!("{}:{}", one.new.map(|new| new.to_string()).unwrap_or_default(), one.name)),
            )
            .stream(&mut |chunk| {
                out.extend_from_slice(chunk);
                Ok(())
            });
        let message = match &result {
            Err(program::Error::Spawn(_)) => {
                return Err(Error::from_failure(&self.to, result.expect_err("it failed"), &self.reach));
            }
            Err(error) if atomic && porcelain::is_not_atomic(&error.to_string()) => return Ok(None),
            Err(error) => printable::lines(&error.to_string()),
            Ok(()) => String::new(),
        };
        // Without the call, which stands before git's first line.
        let words = match &result {
            Err(program::Error::Failed { stderr, .. }) => printable::lines(stderr),
            _ => String::new(),
        };
        let answers = porcelain::pushed_lines(&String::from_utf8_lossy(&out));
        let decides = moves.first().expect("a push moves a ref");
        let Some((flag, summary)) = answers.get(&decides.name) else { return Ok(Some(Swap::Unknown(message))) };
        Ok(Some(match flag {
            ' ' | '*' | '+' | '-' => Swap::Won,
            '=' => Swap::Unknown("the remote says that it is up to date".to_owned()),
            _ if is_lost(summary) => locked(&words).map_or(Swap::Lost, Swap::Locked),
            _ => Swap::Refused(refusal(summary, &words)),
        }))
    }
}

/// Returns true if git's summary says that another process moved a ref first.
fn is_lost(summary: &str) -> bool {
    let summary = summary.to_ascii_lowercase();
    LOST.iter().any(|words| summary.contains(words))
}

/// Returns git's line about the lock file that is in the way at the remote, if any.
fn locked(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    let line = lines.find(|line| porcelain::find_lock(line).is_some())?;
    Some(line.strip_prefix("error: ").unwrap_or(line).trim_end_matches('.').to_owned())
}

/// Returns the summary of a refused ref with the remote's own lines.
fn refusal(summary: &str, stderr: &str) -> String {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { summary.to_owned() } else { format!("{summary}: {}", lines.join(" ")) }
}
