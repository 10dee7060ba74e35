//! Repeats the check of an ended attempt in a fresh worktree.

use std::sync::Arc;

use tokio::sync::watch;

use super::check::CANNOT_RUN;
use super::step::{Commands, Line, judge};
use super::{Job, Verdict, prepare, protect, remove};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Exit;
use crate::model::last_lines::last_lines;
use crate::process::agent::{Cause, Ended};
use crate::worktree::host::Host;
use crate::worktree::product::{self, Recorded};
use crate::worktree::workspace::Workspace;

/// The result of a repeated check.
pub(in crate::engine) enum Repeated {
    /// It ended; `failed` says how, if it did not pass.
    Ended { failed: Option<String>, output: String },
    /// It could not be repeated.
    Cannot(String),
    /// The caller cancelled it.
    Interrupted,
}

/// Where the setup runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetupIn {
    /// In the base with the products.
    Product,
    /// In the base.
    Base,
}

/// Why a check was not repeated.
enum Failed {
    Setup(Verdict),
    Other(Verdict),
}

/// Runs the setup and the check of a job in a fresh worktree of its base with the recorded
/// products, and removes the worktree.
///
/// A setup that applies a consumed patch fails where the product already has these changes. Then it
/// runs in another worktree of the base, which gets the products afterwards.
pub(in crate::engine) async fn repeat(
    host: &Arc<Host>,
    job: Arc<Job>,
    recorded: &Recorded,
    consumes_patch: bool,
    cancel: &watch::Receiver<bool>,
) -> Repeated {
    let mut repeated = in_worktree(host, &job, recorded, SetupIn::Product, cancel).await;
    if consumes_patch && matches!(repeated, Err(Failed::Setup(Verdict::Failed { .. }))) {
        repeated = in_worktree(host, &job, recorded, SetupIn::Base, cancel).await;
    }
    job.handles.lives.end(&job.spec.item);
    repeated.unwrap_or_else(|(Failed::Setup(verdict) | Failed::Other(verdict))| match verdict.reason() {
        Some(why) => Repeated::Cannot(why.to_owned()),
        None => Repeated::Interrupted,
    })
}

/// Repeats the check once, in a worktree of its own.
async fn in_worktree(
    host: &Arc<Host>,
    job: &Arc<Job>,
    recorded: &Recorded,
    place: SetupIn,
    cancel: &watch::Receiver<bool>,
) -> Result<Repeated, Failed> {
    let (workspace, mut transcript, _, guard) = prepare(host, job).map_err(Failed::Other)?;
    let mut commands = Commands::begin(host, job, &mut transcript, cancel).guarded(guard.as_ref());
    let repeated = match set_up(&workspace, &mut commands, recorded, place).await {
        Ok(()) => check(&workspace, commands, recorded.patch).await.map_err(Failed::Other),
        Err(failed) => Err(failed),
    };
    match (repeated, remove(workspace)) {
        (Ok(_), Some(note)) => Ok(Repeated::Cannot(note)),
        (repeated, _) => repeated,
    }
}

/// Runs the setup, if there is one, and writes the products. They are written again after a setup,
/// which may have changed their files.
async fn set_up(
    workspace: &Workspace,
    commands: &mut Commands<'_>,
    recorded: &Recorded,
    place: SetupIn,
) -> Result<(), Failed> {
    let host = commands.host;
    let write = || product::write(host, workspace, recorded).map_err(|error| Failed::Other(Verdict::from(error)));
    let command = &commands.job.spec.command;
    let Some(setup) = &command.setup else { return write() };
    if place == SetupIn::Product {
        write()?;
        if let Some(guard) = commands.guard {
            // The setup runs with the reference state of the protected files as well.
            guard.settle(host, workspace).map_err(|error| Failed::Other(protect::failed(&error)))?;
        }
    }
    commands.transcript.follow();
    let ended = commands.run(workspace, Line::plain(setup)).await;
    let output = last_lines(&commands.transcript.followed());
    let judged = judge("the setup ", &ended, command.timeout);
    judged.map_err(|verdict| Failed::Setup(verdict.with_output(&output)))?;
    write()
}

/// Runs the check while the protected files have their reference state.
async fn check(
    workspace: &Workspace,
    mut commands: Commands<'_>,
    patch: Option<(Oid, Digest)>,
) -> Result<Repeated, Verdict> {
    let job = commands.job;
    let Some(verify) = &job.spec.command.verify else { return Err(Verdict::failed("there is no check")) };
    let enforced = commands.guard.map(|guard| guard.enforce_fresh(commands.host, workspace, patch)).transpose();
    // The worktree is removed in this state.
    let _enforced = enforced.map_err(|error| protect::failed(&error))?;
    commands.transcript.follow();
    let ended = commands.run(workspace, Line::reading(verify, job)).await;
    let output = last_lines(&commands.transcript.followed());
    if let Ok(Ended { cause: Cause::Exited, exit: Some(Exit { code: Some(code), .. }), .. }) = &ended
        && CANNOT_RUN.contains(code)
    {
        let why = format!("the check exited with {code}: a program that it needs is missing here or cannot run");
        return Err(Verdict::failed(why).with_output(&output));
    }
    match (judge("the check ", &ended, job.spec.command.timeout), &ended) {
        (Ok(()), _) => Ok(Repeated::Ended { failed: None, output }),
        (Err(Verdict::Failed { reason, .. }), Ok(_)) => Ok(Repeated::Ended { failed: Some(reason), output }),
        // A command that could not be started has judged nothing.
        (Err(verdict), _) => Err(verdict),
    }
}
