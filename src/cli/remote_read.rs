//! Reads the remote of a run that was pushed or is shared, before a command shows the run.

use std::time::{Duration, Instant};

use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::model::time::Moment;
use git_handoff::repository::Repository;
use git_handoff::run::query::Target;
use git_handoff::run::query::remote_read::{RemoteRead, RemoteState};
use git_handoff::run::query::times::between;

use super::{Failure, Output, table};

/// How often a command that follows a run reads the remote.
const INTERVAL: Duration = Duration::from_secs(3);

/// The option not to read the remote.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Offline {
    /// Do not read the remote that the run was pushed to or is shared through
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Reads the remote of a run of this repository, and reports what it showed.
pub(crate) fn read(
    target: &Target,
    repository: &Repository,
    output: &mut Output,
) -> Result<Option<RemoteRead>, Failure> {
    if !target.is_own() {
        return Ok(None);
    }
    let read = repository.read_remote_of(&target.run)?;
    if let Some(read) = &read {
        report(target, read, output);
    }
    Ok(read)
}

fn report(target: &Target, read: &RemoteRead, output: &mut Output) {
    let words = read.in_words(&target.run);
    match read.state {
        RemoteState::Current(_) | RemoteState::Missing => output.note(&words),
        RemoteState::Unread => output.warn(&words),
        RemoteState::Twice { .. } => {
            output.warn(&words);
            output.hint(&hints::keep_one(&target.run, &read.remote));
        }
        RemoteState::Other { .. } => {
            output.warn(&words);
            output.hint(&hints::rename_and_delete(&target.run));
        }
    }
}

/// Returns a line with the age of what is shown, or `None` if the remote was read now.
pub(crate) fn age(read: Option<&RemoteRead>, now: Moment) -> Option<String> {
    let read = read.filter(|read| read.failure.is_some())?;
    Some(match read.stale_since() {
        Some(at) => {
            let ago = table::duration(between(at, now));
            format!("as of {}, {ago} ago: {} could not be read", table::minute(at), read.remote)
        }
        None => format!("of unknown age: {} could not be read", read.remote),
    })
}

/// Reads the remote again and again while a run is followed.
pub(crate) struct Rereading<'a> {
    run: RunId,
    repository: &'a Repository,
    /// The last reading, or `None` if there is no remote.
    pub(crate) last: Option<RemoteRead>,
    at: Instant,
}

impl<'a> Rereading<'a> {
    /// Continues after a first reading.
    pub(crate) fn after(first: Option<RemoteRead>, run: RunId, repository: &'a Repository) -> Self {
        Self { run, repository, last: first, at: Instant::now() }
    }

    /// Reads the remote again if it is time. Returns true if a failure began or ended.
    pub(crate) fn turn(&mut self) -> bool {
        if self.last.is_none() || self.at.elapsed() < INTERVAL {
            return false;
        }
        let Ok(Some(read)) = self.repository.read_remote_of(&self.run) else { return false };
        self.at = Instant::now();
        let is_changed = has_failed(self.last.as_ref()) != has_failed(Some(&read));
        self.last = Some(read);
        is_changed
    }

    /// Returns the age of what is shown, if the remote could not be read.
    pub(crate) fn age(&self) -> Option<String> {
        age(self.last.as_ref(), self.repository.environment.clock.now())
    }
}

fn has_failed(read: Option<&RemoteRead>) -> bool {
    read.is_some_and(|read| read.failure.is_some())
}
