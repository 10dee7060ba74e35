//! Maintenance operations.

use std::cell::OnceCell;

use serde::Serialize;

use crate::engine::machine::{Machine, host};
use crate::git::{keep_pack, store};
use crate::model::any_error::AnyError;
use crate::model::plan::Item;
use crate::repository::{Repository, Trust};
use crate::run::query::target::{own_runs, unarchived_runs};
use crate::run::query::{self, Target};
use crate::worktree::filters::Filters;
use crate::worktree::workspace;

use super::clean::{self, Piece, Request};
use super::disk::{self, Stay};
use super::doctor::{Diagnosis, Patient, examine};

/// The output of `clean --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.clean/1", rename_all = "camelCase")]
pub struct CleanAnswer {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Removed or removable things.
    pub pieces: Vec<Piece>,
    /// The freed bytes, or those that a removal would free.
    pub bytes: u64,
    /// Kept things, with reasons; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<Stay>,
    /// The folder of worktrees, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<WorktreesShown>,
    /// Messages about what happened.
    pub notes: Vec<String>,
}

/// The folder of this repository's worktrees.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorktreesShown {
    /// The folder.
    pub path: String,
    /// Its size at the end, in bytes.
    pub bytes: u64,
    /// The limit above which used worktrees are removed.
    pub cap: u64,
}

impl Repository {
    /// Finds unfinished, missing and dangerous things; with `fix`, repairs those that are safe to
    /// repair.
    pub fn diagnose(&self, fix: bool) -> Result<Diagnosis, AnyError> {
        // A check must not create a key.
        let writer = self.own_fingerprint().map(|_| self.writer()).transpose()?;
        let options = self.options(&Trust::default(), &mut |_| ()).unwrap_or_default();
        let patient = Patient { repository: self, store: &self.store, writer, host: host(self)?, options };
        Ok(Diagnosis { findings: examine(&patient, fix)? })
    }

    /// Frees the disk space of some runs, or of all if none is named.
    pub fn clean(&self, names: &[String], request: Request) -> Result<CleanAnswer, AnyError> {
        let mut runs = Vec::new();
        for name in names {
            let target = Target::find(&self.store, name)?;
            if !target.is_own() {
                return Err(Error::Foreign(name.clone()).into());
            }
            runs.push(target.run);
        }
        let all = runs.is_empty();
        if all {
            // Archived runs have only what is asked for by name.
            let archived = request.transcripts || request.salvage;
            runs = if archived { own_runs(&self.store)? } else { unarchived_runs(&self.store)? };
        }
        let (mut pieces, mut notes) = (Vec::new(), self.forsaken(request.remove)?);
        if !runs.is_empty() {
            let (writer, hosts) = (self.writer()?, host(self)?.all());
            let machine = OnceCell::new();
            let filters = |item: &Item| {
                // Determined on first use, because it is slow and seldom needed.
                let machine: &Option<Machine> = machine.get_or_init(|| Machine::new(self, false).ok());
                machine.as_ref().map_or(Filters::Nowhere, |machine| machine.filters(item))
            };
            for run in &runs {
                match clean::clean(&writer, &hosts, run, request, &filters) {
                    Ok(cleaned) => {
                        pieces.extend(cleaned.pieces);
                        notes.extend(cleaned.notes);
                    }
                    // An unreadable run does not prevent cleaning the others.
                    Err(error) if all && error.is::<query::Error>() => notes.push(format!("{run}: {error}")),
                    Err(error) => return Err(error),
                }
            }
        }
        let (mut stays, mut worktrees) = (Vec::new(), None);
        // Without a folder for worktrees there are none.
        let hosts = if all { host(self).map(|host| host.all()).unwrap_or_default() } else { Vec::new() };
        for host in hosts {
            let survey = disk::survey(&host, &|run| runs.contains(run))?;
            if request.remove && !survey.dead.is_empty() {
                workspace::sweep(&host.settings.root).map_err(|e| clean::Error::Pool(host.settings.root.clone(), e))?;
            }
            pieces.extend(survey.dead.iter().map(|(path, bytes)| Piece::folder(path, *bytes)));
            stays.extend(survey.stays);
            let found = survey.root.filter(|_| survey.used > 0).map(|root| WorktreesShown {
                path: root.display().to_string(),
                bytes: crate::process::disk::size(&root, 0),
                cap: host.cap,
            });
            worktrees = worktrees.or(found);
        }
        let dry_run = !request.remove;
        let bytes = pieces.iter().filter(|piece| piece.removed || dry_run).map(|piece| piece.bytes).sum();
        Ok(CleanAnswer { dry_run, pieces, bytes, stays, worktrees, notes })
    }

    /// Removes the keep marks of dead processes from packs; returns messages.
    fn forsaken(&self, remove: bool) -> Result<Vec<String>, AnyError> {
        let found = keep_pack::forsaken(&self.store).map_err(store::Error::Pack)?;
        let freed = found.iter().filter(|path| !remove || keep_pack::release(path)).count();
        let verb = if remove { "are" } else { "would be" };
        let note = format!("{freed} pack(s) that a dead process kept from git {verb} git's again");
        Ok((freed > 0).then_some(note).into_iter().collect())
    }
}

errors! {
    /// An error during maintenance.
    #[derive(Debug, thiserror::Error)] pub enum Error = "not-ours";
    Foreign(String): "the run {0:?} was fetched; there is nothing of it to clean here";
}
