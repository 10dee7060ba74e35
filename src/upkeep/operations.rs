//! Maintenance operations.

use std::cell::OnceCell;
use std::path::Path;

use serde::Serialize;

use crate::engine::machine::{Machine, NoCache, host};
use crate::git::{keep_pack, store};
use crate::ledger::sign;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Item;
use crate::repository::{self, Repository, Trust};
use crate::run::query::Target;
use crate::run::query::target::{self, own_runs, unarchived_runs};
use crate::worktree::filters::Filters;
use crate::worktree::workspace;

use super::clean::{self, Piece, Request, What};
use super::disk;
use super::doctor::{self, Diagnosis, Patient, examine};
use super::protection;

/// The output of `clean --json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanAnswer {
    schema: &'static str,
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Removed or removable things.
    pub pieces: Vec<PieceShown>,
    /// The freed bytes.
    pub bytes: u64,
    /// Kept things, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<StayShown>,
    /// The folder of worktrees, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<WorktreesShown>,
    /// Messages about what happened.
    pub notes: Vec<String>,
}

/// Something that is kept on the disk.
#[derive(Clone, Debug, Serialize)]
pub struct StayShown {
    /// `live`, `pool`, `unsaved` or `unknown`.
    pub kind: &'static str,
    /// The folder.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The reason, in words.
    pub why: &'static str,
}

/// The folder of this repository's worktrees.
#[derive(Clone, Debug, Serialize)]
pub struct WorktreesShown {
    /// The folder.
    pub path: String,
    /// Its size at the end, in bytes.
    pub bytes: u64,
    /// The limit above which used worktrees are removed.
    pub cap: u64,
}

/// Something that can be removed.
#[derive(Clone, Debug, Serialize)]
pub struct PieceShown {
    /// `worktree`, `transcripts`, `salvage` or `pool`.
    pub kind: &'static str,
    /// The run; `None` for a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether it was removed.
    pub removed: bool,
    /// The item of a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The attempt of a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The folder of a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The ref of anything else.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl PieceShown {
    fn of(piece: Piece) -> Self {
        let Piece { run, bytes, removed, what } = piece;
        let run = Some(run);
        let shown = Self { kind: "", run, bytes, removed, item: None, attempt: None, path: None, reference: None };
        match what {
            What::Worktree { item, attempt, path } => Self {
                kind: "worktree",
                item: Some(item),
                attempt: Some(attempt),
                path: Some(path.display().to_string()),
                ..shown
            },
            What::Transcripts(reference) => Self { kind: "transcripts", reference: Some(reference), ..shown },
            What::Salvage(reference) => Self { kind: "salvage", reference: Some(reference), ..shown },
        }
    }

    /// Used worktrees of a dead driver.
    fn of_pool(path: &Path, bytes: u64) -> Self {
        let removed = !path.exists();
        let path = Some(path.display().to_string());
        Self { kind: "pool", run: None, bytes, removed, item: None, attempt: None, path, reference: None }
    }

    /// Returns the folder or ref.
    pub fn place(&self) -> &str {
        self.path.as_deref().or(self.reference.as_deref()).unwrap_or_default()
    }
}

impl StayShown {
    fn of(stay: &disk::Stay) -> Self {
        let path = stay.path.display().to_string();
        Self { kind: stay.kind.word(), path, bytes: stay.bytes, why: stay.kind.why() }
    }
}

impl Repository {
    /// Finds unfinished, missing and dangerous things; with `fix`, repairs those that are safe to
    /// repair.
    pub fn diagnose(&self, fix: bool) -> Result<Diagnosis, Error> {
        // A check must not create a key.
        let writer = self.own_fingerprint().map(|_| self.writer()).transpose()?;
        let key_file = match &self.config.signing_key {
            Some(key) if sign::literal(key).is_some() || is_public(key) => None,
            Some(key) => Some(self.below_top(Path::new(key))),
            None => Some(self.store.common_dir().join("handoff/signing_key")),
        };
        let (store, host) = (self.store.clone(), host(self)?);
        let (schemas, shapes, pipelines) = (self.schemas(), self.shapes(), self.pipelines().known);
        let unregistered = self.config.unregistered();
        let unprotected = protection::suggest(&self.store, &self.config);
        let options = self.options(&Trust::default(), &mut |_| ()).unwrap_or_default();
        let patient =
            Patient { store, writer, key_file, host, schemas, shapes, pipelines, unregistered, unprotected, options };
        Ok(Diagnosis::of(examine(&patient, fix)?))
    }

    /// Frees the disk space of some runs, or of all if none is named.
    pub fn clean(&self, named: &[String], request: Request) -> Result<CleanAnswer, Error> {
        let mut runs = Vec::new();
        for named in named {
            let target = Target::find(&self.store, named)?;
            if !target.is_own() {
                return Err(Error::Foreign(named.clone()));
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
            let (writer, host) = (self.writer()?, host(self)?);
            let machine = OnceCell::new();
            let filters = |item: &Item| {
                // Determined on first use, because it is slow and seldom needed.
                let machine: &Option<Machine> = machine.get_or_init(|| Machine::new(self, false).ok());
                machine.as_ref().map_or(Filters::Nowhere, |machine| machine.filters(item))
            };
            for run in &runs {
                match clean::clean(&writer, &host, run, request, &filters) {
                    Ok(cleaned) => {
                        pieces.extend(cleaned.pieces.into_iter().map(PieceShown::of));
                        notes.extend(cleaned.notes);
                    }
                    // An unreadable run does not prevent cleaning the others.
                    Err(clean::Error::Run(error)) if all => notes.push(format!("{run}: {error}")),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let (mut stays, mut worktrees) = (Vec::new(), None);
        // Without a folder for worktrees there are none.
        if let (true, Ok(host)) = (all, host(self)) {
            let survey = disk::survey(&host, &|run| runs.contains(run))?;
            if request.remove && !survey.dead.is_empty() {
                workspace::sweep(&host.settings.root).map_err(|e| clean::Error::Pool(host.settings.root.clone(), e))?;
            }
            pieces.extend(survey.dead.iter().map(|(path, bytes)| PieceShown::of_pool(path, *bytes)));
            stays.extend(survey.stays.iter().map(StayShown::of));
            worktrees = survey.root.filter(|_| survey.used > 0).map(|root| WorktreesShown {
                path: root.display().to_string(),
                bytes: crate::process::disk::size(&root, 0),
                cap: host.cap,
            });
        }
        let dry_run = !request.remove;
        let bytes = pieces.iter().filter(|piece| piece.removed || dry_run).map(|piece| piece.bytes).sum();
        Ok(CleanAnswer { schema: "git-handoff.clean/1", dry_run, pieces, bytes, stays, worktrees, notes })
    }

    /// Removes the keep marks of dead processes from packs; returns messages.
    fn forsaken(&self, remove: bool) -> Result<Vec<String>, Error> {
        let found = keep_pack::forsaken(&self.store).map_err(store::Error::Pack)?;
        let freed = found.iter().filter(|path| !remove || keep_pack::release(path)).count();
        let verb = if remove { "are" } else { "would be" };
        let note = format!("{freed} pack(s) that a dead process kept from git {verb} git's again");
        Ok((freed > 0).then_some(note).into_iter().collect())
    }
}

/// Returns true if the file is a public key, which anyone may read.
fn is_public(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|extension| extension == "pub")
}

/// An error during maintenance.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the run {0:?} was fetched; there is nothing of it to clean here")]
    Foreign(String),
    #[error("{0}")]
    Doctor(#[from] doctor::Error),
    #[error("{0}")]
    Clean(#[from] clean::Error),
    #[error("{0}")]
    Disk(#[from] disk::Error),
    #[error("{0}")]
    Target(#[from] target::Error),
    #[error("{0}")]
    NoCache(#[from] NoCache),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Repository(#[from] repository::Error),
}
