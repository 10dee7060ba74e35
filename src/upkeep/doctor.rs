//! Checks of a repository for unfinished, missing and dangerous things, and safe repairs.

mod agents;
mod archives;
mod gone;
mod leftovers;
mod owners;
mod protection;
mod registered;
mod remotes;
mod repository;
mod runs;
mod settings;

use serde::Serialize;

use crate::engine::run_lock;
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::hints::Hint;
use crate::repository::Repository;
use crate::verify::Options;
use crate::worktree::host::Host;
use crate::worktree::workspace;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It needs action.
    Problem,
    /// Information.
    Note,
}

/// The output of `doctor --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.doctor/1")]
pub struct Diagnosis {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Finding {
    /// A stable word for programs.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The finding and its place, in words.
    pub message: String,
    /// The command that repairs it.
    pub hint: Option<Hint>,
    /// Whether it was repaired now.
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

    /// Returns true if an unrepaired problem remains.
    pub fn needs_attention(&self) -> bool {
        self.severity == Severity::Problem && !self.fixed
    }
}

/// The repository that is checked.
pub(super) struct Patient<'r> {
    pub(super) repository: &'r Repository,
    pub(super) store: &'r Store,
    /// Our key, if any; without one no run is ours.
    pub(super) writer: Option<Writer>,
    /// The folder of worktrees.
    pub(super) host: Host,
    /// The configured trust; empty if it cannot be read, which is a finding of its own.
    pub(super) options: Options,
}

/// Runs all checks; with `fix`, makes the safe repairs.
///
/// One unreadable thing does not hide the others. Repairs delete only the remains of dead
/// processes: lock files, and unfinished packs and objects.
pub(super) fn examine(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let mut findings = repository::examine(patient, fix)?;
    findings.extend(registered::examine(patient));
    findings.extend(protection::examine(patient));
    findings.extend(protection::unmatched(patient));
    findings.extend(agents::examine(patient));
    // A stale lock would prevent every other repair.
    findings.extend(leftovers::examine(patient, fix)?);
    findings.extend(runs::examine(patient, fix)?);
    findings.extend(gone::examine(patient)?);
    findings.extend(archives::examine(patient)?);
    Ok(findings)
}

errors! {
    /// An error during a check or repair.
    #[derive(Debug, thiserror::Error)] pub enum Error = "doctor";
    #[from "doctor"] Log(log::Error), Hold(run_lock::Error), Workspace(workspace::Error);
}
