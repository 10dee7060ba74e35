//! Runs the commands of an attempt.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::furnish::worker_task;
use super::{Job, Verdict};
use crate::engine::mise;
use crate::model::entry::Exit;
use crate::model::limits::Exceeded;
use crate::model::name::FilePath;
use crate::process::agent::{self, Cause, Confined, Ended, Invocation, Stdin};
use crate::process::attendant::Attendant;
use crate::process::transcript::TranscriptWriter;

use crate::worktree::host::Host;
use crate::worktree::protect::Guard;
use crate::worktree::workspace::Workspace;

/// SIGHUP, SIGINT and SIGTERM. Engines that end a job send them to all of its processes.
const ENDS_A_JOB: [i32; 3] = [1, 2, 15];

/// The exit code of a shell whose command was ended by signal 0.
const SIGNAL: i32 = 128;

/// How long after such a signal to a command its driver may notice its own.
const NOTICE: Duration = Duration::from_millis(500);

/// How often to look for a login that an agent renewed by replacing its file.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// The variables that this program sets for every executor.
pub(in crate::engine) const OWN_VARIABLES: [&str; 7] =
    ["HANDOFF_RUN", "HANDOFF_ITEM", "HANDOFF_ATTEMPT", "HANDOFF_BASE", "HANDOFF_TASK", "HANDOFF_RESULT", "TMPDIR"];

/// A command of an attempt.
pub(super) struct Line<'a> {
    argv: &'a [String],
    stdin: Stdin,
    /// Variables besides those of the attempt.
    env: Option<&'a BTreeMap<String, OsString>>,
    /// The folder to start in, below the top.
    directory: Option<&'a FilePath>,
    /// The top, unless that is the attempt's worktree.
    top: Option<&'a Path>,
}

impl<'a> Line<'a> {
    /// Returns a command without input.
    pub(super) fn plain(argv: &'a [String]) -> Self {
        Self { argv, stdin: Stdin::Null, env: None, directory: None, top: None }
    }

    /// Returns a command that reads the task.
    pub(super) fn reading(argv: &'a [String], job: &Job) -> Self {
        Self { stdin: Stdin::Bytes(worker_task(job).into_bytes()), ..Self::plain(argv) }
    }

    /// Returns the command.
    pub(super) fn argv(&self) -> &[String] {
        self.argv
    }

    /// Returns the item's own command. The plan's variables are for it alone, not for its check.
    pub(super) fn item(job: &'a Job) -> Self {
        let command = &job.spec.command;
        let line = if command.reads_task { Self::reading(&command.argv, job) } else { Self::plain(&command.argv) };
        Self { env: Some(&command.env), directory: command.directory.as_ref(), top: job.spec.origin.here(), ..line }
    }
}

/// Runs the commands of one attempt, one after the other.
pub(super) struct Commands<'a> {
    pub(super) job: &'a Arc<Job>,
    pub(super) transcript: &'a mut TranscriptWriter,
    pub(super) cancel: &'a watch::Receiver<bool>,
    /// When the time of the attempt is up.
    pub(super) deadline: Instant,
    pub(super) host: &'a Arc<Host>,
    /// The protected and held-out files, if there are any.
    pub(super) guard: Option<&'a Guard>,
    /// True while the check before the work runs.
    pub(super) is_before: bool,
}

impl<'a> Commands<'a> {
    /// Starts the clock of the attempt.
    pub(super) fn begin(
        host: &'a Arc<Host>,
        job: &'a Arc<Job>,
        transcript: &'a mut TranscriptWriter,
        cancel: &'a watch::Receiver<bool>,
    ) -> Self {
        let deadline = Instant::now() + Duration::from_secs(job.spec.command.timeout);
        Self { job, transcript, cancel, deadline, host, guard: None, is_before: false }
    }

    /// Protects files while checks run.
    pub(super) fn guarded(self, guard: Option<&'a Guard>) -> Self {
        Self { guard, ..self }
    }

    /// Runs one command to its end.
    pub(super) async fn run(&mut self, workspace: &Workspace, line: Line<'_>) -> Result<Ended, agent::Error> {
        self.run_until(self.deadline, workspace, line).await
    }

    /// Runs one command to its end, and ends it at a deadline.
    pub(super) async fn run_until(
        &mut self,
        deadline: Instant,
        workspace: &Workspace,
        line: Line<'_>,
    ) -> Result<Ended, agent::Error> {
        let job = self.job;
        let top = line.top.map_or_else(|| workspace.tree(), Path::to_owned);
        let agent = workspace.agent_folders();
        let copies = agent.into_iter().flat_map(|agent| agent.shared.iter().chain([&agent.folder]).cloned());
        let writable: Vec<PathBuf> = [workspace.private()].into_iter().chain(copies).collect();
        let (readable, linked) = (vec![workspace.task()], workspace.linked().to_vec());
        let invocation = Invocation {
            argv: line.argv.to_vec(),
            tree: workspace.tree(),
            cwd: line.directory.map_or_else(|| top.clone(), |below| top.join(below.as_str())),
            attempt_dir: workspace.dir.clone(),
            env: environment(workspace, job, line.env),
            stdin: line.stdin,
            timeout: deadline.saturating_duration_since(Instant::now()),
            supervisor: job.handles.supervisor.as_ref().map(Attendant::start),
            folders: [workspace.tree()]
                .into_iter()
                .chain([workspace.private()])
                .chain(agent.map(|agent| agent.folder.clone()))
                .chain(workspace.written_caches())
                .collect(),
            confinement: job.confinement.as_ref().map(|by| {
                let (by, writable) = (by.clone(), writable.clone());
                let scratch = Some((workspace.tmp(), workspace.caches()));
                Confined { by, writable, readable, linked, scratch, frozen: false }
            }),
            limits: job.spec.limits,
            lease: job.spec.lease.clone(),
        };
        let started = Instant::now();
        let running = agent::run(&invocation, self.transcript, self.cancel.clone());
        let ended = returning_logins(workspace, running).await;
        let ended = self.unless_stopped(started, ended).await;
        if !ended.as_ref().is_ok_and(|ended| ended.is_clean) {
            workspace.doubt();
        }
        ended
    }
}

impl Commands<'_> {
    /// Returns the end of a command as cancelled if it did not succeed and the driver was stopped
    /// at the same time, because an engine that ends a job signals all of its processes.
    async fn unless_stopped(
        &self,
        started: Instant,
        ended: Result<Ended, agent::Error>,
    ) -> Result<Ended, agent::Error> {
        let by_signal = match &ended {
            Ok(Ended { cause: Cause::Exited, exit: Some(exit), .. }) if exit.code != Some(0) => ends_a_job(*exit),
            Err(agent::Error::Supervisor(status)) => status.signal().is_some_and(|signal| ENDS_A_JOB.contains(&signal)),
            _ => return ended,
        };
        let until = Instant::now() + if by_signal { NOTICE } else { Duration::ZERO };
        while !self.is_stopped() && Instant::now() < until {
            tokio::time::sleep(NOTICE / 50).await;
        }
        if !self.is_stopped() {
            return ended;
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let unknown = Ended { exit: None, cause: Cause::Cancelled, is_clean: false, duration_ms };
        Ok(ended.map_or(unknown, |ended| Ended { cause: Cause::Cancelled, ..ended }))
    }

    /// Returns true if the attempt was cancelled or the driver ends.
    fn is_stopped(&self) -> bool {
        *self.cancel.borrow() || self.host.stop.is_requested()
    }
}

/// Returns true if a command, or one that a shell started, was ended by a signal that ends a job.
fn ends_a_job(exit: Exit) -> bool {
    let signal = exit.signal.or_else(|| exit.code.and_then(|code| code.checked_sub(SIGNAL)));
    signal.is_some_and(|signal| ENDS_A_JOB.contains(&signal))
}

/// Waits for a command, and meanwhile gives back logins that it renewed.
async fn returning_logins<T>(workspace: &Workspace, running: impl Future<Output = T>) -> T {
    let mut ticks = tokio::time::interval(LOGIN_INTERVAL);
    tokio::pin!(running);
    loop {
        tokio::select! {
            biased;
            ended = &mut running => return ended,
            _ = ticks.tick(), if workspace.agent_folders().is_some() => {
                workspace.renew_logins();
            }
        }
    }
}

/// Returns the environment of a command.
fn environment(
    workspace: &Workspace,
    job: &Job,
    more: Option<&BTreeMap<String, OsString>>,
) -> BTreeMap<String, OsString> {
    let mut env = job.spec.env.clone();
    if workspace.is_for_check() && !job.has_own_home() {
        // The worker may have written to the folders that variables name.
        for (_, value) in env.iter_mut().filter(|(name, _)| *name != "PATH") {
            if let Some(moved) = job.handles.home.moved(Path::new(&*value), &workspace.home()) {
                *value = moved.into();
            }
        }
    }
    env.extend(more.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    let own: [OsString; 7] = [
        job.spec.run.as_str().into(),
        job.spec.item.as_str().into(),
        job.spec.attempt.to_string().into(),
        job.spec.first_commit().to_string().into(),
        workspace.task().into(),
        workspace.result().into(),
        workspace.tmp().into(),
    ];
    env.extend(OWN_VARIABLES.map(str::to_owned).into_iter().zip(own));
    for (name, folder) in workspace.agent_folders().into_iter().flat_map(|folders| &folders.variables) {
        env.insert(name.clone(), folder.into());
    }
    if let Some(trusted) = env.get_mut(mise::VARIABLE) {
        mise::add(trusted, &workspace.tree());
    }
    if job.has_own_home() || workspace.is_for_check() {
        env.insert("HOME".to_owned(), workspace.home().into());
    }
    if let Some(confinement) = &job.confinement {
        let caches = confinement.cache_variables(&workspace.home(), &workspace.tmp(), &env);
        let caches = caches.into_iter().filter(|(name, _)| !job.spec.command.set.contains(*name));
        env.extend(caches.map(|(name, value)| (name.to_owned(), value)));
    }
    env
}

/// Returns the verdict if a command did not succeed. `step` names the command in the reason, and
/// `seconds` is its time limit.
pub(super) fn judge(step: &str, ended: &Result<Ended, agent::Error>, seconds: u64) -> Result<(), Verdict> {
    let ended = ended.as_ref().map_err(|error| match error {
        agent::Error::Supervisor(status) if status.signal().is_some_and(|signal| ENDS_A_JOB.contains(&signal)) => {
            Verdict::Crashed(format!("{step}{error}"))
        }
        error => Verdict::from_error(step, error, Verdict::failed),
    })?;
    match (ended.cause, ended.exit) {
        (Cause::Cancelled, _) => Err(Verdict::Interrupted),
        (Cause::TimedOut, _) => Err(Verdict::failed(format!("{step}ran longer than {seconds} s"))),
        (Cause::Exceeded(exceeded @ Exceeded::Silence(_)), _) => Err(Verdict::Crashed(exceeded.to_string())),
        (Cause::Exceeded(exceeded), _) => Err(Verdict::failed(format!("{step}{exceeded}"))),
        (Cause::Left, _) => Err(Verdict::failed(format!("{step}left processes that could not be ended"))),
        (Cause::Exited, Some(Exit { code: Some(0), .. })) => Ok(()),
        (Cause::Exited, Some(Exit { code: Some(code), .. })) => {
            Err(Verdict::failed(format!("{step}exited with {code}")))
        }
        (Cause::Exited, Some(Exit { signal: Some(signal), .. })) => {
            Err(Verdict::failed(format!("{step}was ended by signal {signal}")))
        }
        (Cause::Exited, _) => Err(Verdict::failed(format!("{step}ended in an unknown way"))),
    }
}
