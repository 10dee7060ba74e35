//! Deletes runs: their refs, their copies in archives, their worktrees and locks.
//!
//! Logs are append-only and keep naming a deleted run; so do pushed, anchored and exported copies.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::engine::machine::host;
use crate::engine::run_lock::{self, RunLock};
use crate::git::{archives, history, private_files, refs};
use crate::ledger::{archive, chain, sign};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::place::Place;
use crate::repository::Repository;
use crate::run::query::{Target, target};
use crate::verify::Logs;
use crate::verify::deleted::{self, Deleted};
use crate::worktree::workspace::{self, Workspace};

use super::replaced;

/// Everything a repository has of a run. A deletion removes all of it except logs and fetched
/// copies.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Deletion {
    /// The run.
    pub run: RunId,
    /// Its refs.
    pub refs: Vec<String>,
    /// The archives that contained it and are rewritten without it; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<String>,
    /// The number of its worktrees.
    pub worktrees: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// The log that names it, which stays unchanged; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Copies fetched from remotes, which stay, each as `REMOTE/RUN`; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
    #[serde(skip)]
    tips: Vec<(String, Oid)>,
}

/// The output of `delete --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.delete/1")]
pub struct DeleteAnswer {
    /// The deleted runs, in the given order.
    pub runs: Vec<Deletion>,
}

impl Repository {
    /// Finds everything of our run that is here; changes nothing.
    pub fn deletion(&self, name: &str) -> Result<Deletion, AnyError> {
        let run = self.deletable(name)?;
        let (store, mut archives) = (&self.store, Vec::new());
        for (reference, tip) in refs::list(store, format::ARCHIVE_REFS)? {
            // An unreadable archive does not prevent the deletion of runs that are not in it.
            if archives::contents(store, tip).is_ok_and(|contents| contents.contains_key(&run)) {
                archives.push(reference);
            }
        }
        let (mut worktrees, mut bytes) = (0, 0);
        // Without a folder for worktrees there are none.
        for host in host(self).map(|host| host.all()).unwrap_or_default() {
            let left = [Workspace::leftovers(&host, &run), Workspace::unsaved(&host, &run)];
            let left = left.into_iter().collect::<Result<Vec<_>, _>>().map_err(Error::Workspace)?.concat();
            worktrees += left.len();
            bytes += left.iter().map(|left| left.bytes(&host)).sum::<u64>();
        }
        // A run with this id that diverges from ours is another run, not a copy.
        let own = refs::read(store, &format::run_ref(&run)).ok().flatten();
        let is_copy =
            |tip: Oid| own.is_none_or(|own| history::goes_on(store, own, tip) || history::goes_on(store, tip, own));
        let copies = refs::fetched_at(store, &Place::of_run(&run))?.into_iter().filter(|(_, tip)| is_copy(*tip));
        let copies = copies.map(|(reference, _)| Target { run: run.clone(), reference }.name()).collect();
        let tips = self.refs_of(&run)?;
        let refs = tips.iter().map(|(reference, _)| reference.clone()).collect();
        let log = Logs::read(store)?.recorded_runs(None).remove(&run);
        Ok(Deletion { run, refs, archives, worktrees, bytes, log, copies, tips })
    }

    /// Deletes runs. None of them may have a running driver.
    ///
    /// After an error, the deletion can be repeated.
    pub fn delete(&self, runs: Vec<Deletion>) -> Result<DeleteAnswer, AnyError> {
        for found in &runs {
            self.delete_one(found)?;
        }
        Ok(DeleteAnswer { runs })
    }

    fn delete_one(&self, found: &Deletion) -> Result<(), AnyError> {
        let (store, run) = (&self.store, &found.run);
        let common = store.common_dir();
        let _hold = RunLock::take(&common, run).map_err(Error::Hold)?;
        let writer = self.writer()?;
        for host in host(self).map(|host| host.all()).unwrap_or_default() {
            Workspace::remove_all(&host, run).map_err(Error::Workspace)?;
        }
        let base = replaced::base_of(store, run);
        let tip = refs::read(store, &format::run_ref(run)).ok().flatten();
        let record = match deleted::recorded(store, run) {
            // An interrupted deletion has recorded the last entry.
            Some(before) if tip.is_none() => before,
            _ => {
                let (by, at) = (writer.actor.clone(), self.environment.clock.now());
                let last = tip.and_then(|tip| chain::decode(store, tip).ok()).map(|last| last.hash);
                Deleted::signed(&writer.signer, by, run, at, last).map_err(Error::Sign)?
            }
        };
        let bytes = serde_json::to_vec(&record).map_err(io::Error::other).map_err(Error::Mark)?;
        private_files::put(store, private_files::DELETED, &run.encoded(), &bytes).map_err(Error::Mark)?;
        for reference in &found.archives {
            archive::remove(&writer, reference, run).map_err(Error::Archive)?;
        }
        let is_shared = base.is_some_and(|base| self.is_base_of_archived(base));
        replaced::forget_run(&writer, run, base.filter(|_| !is_shared))?;
        refs::delete_all(store, &found.tips)?;
        forget(&private_files::path(store, private_files::VERIFIED, &run.encoded())).map_err(Error::Mark)?;
        private_files::remove_folder(store, &private_files::checks_of(run)).map_err(Error::Mark)?;
        // Its summary has its goal.
        private_files::remove_folder(store, private_files::LISTS).map_err(Error::Mark)?;
        run_lock::forget(&common, run);
        Ok(())
    }

    /// Returns true if a remaining archived run has this base.
    fn is_base_of_archived(&self, base: Oid) -> bool {
        let runs = target::own_runs(&self.store).unwrap_or_default();
        runs.iter().any(|run| {
            refs::is_stored(&self.store, &format::run_ref(run)).is_ok_and(|stored| !stored)
                && replaced::base_of(&self.store, run) == Some(base)
        })
    }

    /// Returns our run with this name, including the remains of an interrupted deletion.
    fn deletable(&self, name: &str) -> Result<RunId, AnyError> {
        let refused = match Target::find(&self.store, name) {
            Ok(target) if target.is_own() => return Ok(target.run),
            Ok(target) => Error::Foreign { name: target.name(), reference: target.reference }.into(),
            Err(error) => error.into(),
        };
        match RunId::parse(name) {
            Ok(run) if !self.refs_of(&run)?.is_empty() => Ok(run),
            _ => Err(refused),
        }
    }

    /// Returns the existing refs of a run, with their targets.
    fn refs_of(&self, run: &RunId) -> Result<Vec<(String, Oid)>, AnyError> {
        let names = [
            format::run_ref(run),
            format::base_ref(run),
            format::stamps_ref(run),
            format::transcripts_ref(run),
            format::salvage_ref(run),
        ];
        let mut found = Vec::new();
        for name in names {
            if let Some(tip) = refs::read_stored(&self.store, &name)? {
                found.push((name, tip));
            }
        }
        Ok(found)
    }
}

fn forget(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

errors! {
    /// An error while deleting a run.
    #[derive(Debug, thiserror::Error)] pub enum Error = "delete";
    Foreign { name: String, reference: String } "not-ours":
        "the run {name:?} was fetched; only runs of this repository are deleted here";
    Sign(#[source] sign::Error): "the record of the deletion could not be signed";
    Mark(#[source] io::Error): "cannot record the deletion in the git directory";
    #[from "archive"] Archive(archive::Error);
    #[from "delete"] Hold(run_lock::Error), Workspace(workspace::Error);
}
