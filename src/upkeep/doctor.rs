//! What is half-done, missing or dangerous in a repository, and the mending of what can be mended safely.

mod archives;
mod gone;
mod leftovers;
mod owners;
mod registered;
mod remotes;
mod repository;
mod runs;
mod settings;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{self, Unregistered};
use crate::engine::hold;
use crate::git::store::Store;
use crate::git::{program, refs, store};
use crate::ledger::chain::{self, Writer};
use crate::ledger::log;
use crate::model::catalog::Shape;
use crate::model::hints::Hint;
use crate::model::pipeline::Spec;
use crate::model::registered::Registered;
use crate::plan::schemas::Schemas;
use crate::run;
use crate::verify::{self, Options};
use crate::worker::{host::Host, workspace};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is to be done about it.
    Problem,
    /// Worth knowing.
    Note,
}

/// Everything that was found: what `doctor --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    schema: &'static str,
    /// In the order in which it was looked for.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Answers what was found.
    pub(super) fn of(findings: Vec<Finding>) -> Self {
        Self { schema: "git-handoff.doctor/1", findings }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable word for programs.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, and where.
    pub message: String,
    /// The command that mends it.
    pub hint: Option<Hint>,
    /// Whether it was mended now.
    pub fixed: bool,
}

impl Finding {
    fn problem(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Problem, message: message.into(), hint: None, fixed: false }
    }

    fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::problem(code, message) }
    }

    fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    fn fixed(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// Returns whether something remains to be done about it.
    pub fn needs_attention(&self) -> bool {
        self.severity == Severity::Problem && !self.fixed
    }
}

/// What the doctor looks at.
pub struct Patient {
    /// The repository.
    pub store: Store,
    /// Our key, if there is one yet; without it no run here is ours.
    pub writer: Option<Writer>,
    /// The file of the key, if it is one.
    pub key_file: Option<PathBuf>,
    /// Where worktrees are made.
    pub host: Host,
    /// The schemas of documents that are registered.
    pub schemas: Schemas,
    /// The shapes that are registered.
    pub shapes: Registered<String, Shape>,
    /// The pipelines that are registered.
    pub pipelines: Registered<String, Spec>,
    /// Settings of executors and subagents that nothing registers.
    pub unregistered: Vec<Unregistered>,
    /// Whom the repository's owner trusts; nobody where that cannot be read, which is a finding of its own.
    pub options: Options,
}

/// Looks at everything; with `fix`, mends what cannot lose anything.
///
/// One unreadable thing does not hide the others. Nothing is ever deleted but what dead processes left: lock files, and packs
/// and objects that they did not finish.
pub fn examine(patient: &Patient, fix: bool) -> Result<Vec<Finding>, Error> {
    let mut findings = repository::examine(patient, fix)?;
    findings.extend(registered::examine(patient));
    // A lock that was left would keep everything else from being mended.
    findings.extend(leftovers::examine(patient, fix)?);
    findings.extend(runs::examine(patient, fix)?);
    findings.extend(gone::examine(patient)?);
    findings.extend(archives::examine(patient)?);
    Ok(findings)
}

/// Restricts a file to its owner.
fn restrict(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// What can go wrong with looking or mending.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Git(#[from] program::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Denied(#[from] run::Denied),
    #[error(transparent)]
    Chain(#[from] chain::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Logs(#[from] verify::Error),
    #[error(transparent)]
    Hold(#[from] hold::Error),
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
}
