//! Has the values of secrets that are not in our environment: from a command, or from a file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::attempt::{Finished, Job, Verdict};
use crate::config::{SecretEnv, SecretSource};
use crate::repository::{Environment, Repository};
use crate::worker::redact::Redactor;

/// How long a command may take: it may ask a person, or a server far away.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most bytes of a secret: what an environment holds of one variable.
const LONGEST: u64 = 128 << 10;

/// Values of secrets, each had once for as long as the driver lives.
pub struct Secrets {
    ambient: Arc<BTreeMap<String, OsString>>,
    environment: Arc<Environment>,
    top: PathBuf,
    known: Mutex<BTreeMap<SecretSource, OsString>>,
}

impl Secrets {
    /// Returns one that knows of none yet.
    pub fn of(repository: &Repository) -> Self {
        let store = &repository.store;
        Self {
            ambient: repository.environment.variables.clone(),
            environment: Arc::new(repository.environment.clone()),
            top: store.work_dir().unwrap_or_else(|| store.git_dir()),
            known: Mutex::default(),
        }
    }

    /// Returns the values of those that are not in our environment. What fails is tried again the next time.
    ///
    /// `env` is what the attempt is given besides: a secret that is handed through from our environment has to be set there.
    pub(super) fn values(
        &self,
        wanted: &[SecretEnv],
        env: &BTreeMap<String, OsString>,
    ) -> Result<Vec<(String, OsString)>, Error> {
        // Held while a command runs, so that it runs once.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = Vec::new();
        for SecretEnv { name, source, key } in wanted {
            let failed = |why: Why| Error { key: key.clone(), name: name.clone(), why };
            let value = match (known.get(source), source) {
                (_, SecretSource::Environment) if env.get(name).is_some_and(|value| !value.is_empty()) => continue,
                (_, SecretSource::Environment) => return Err(failed(Why::Unset)),
                (Some(value), _) => value.clone(),
                (None, SecretSource::Command(line)) => self.run(line).map_err(failed)?,
                (None, SecretSource::File(file)) => {
                    let path = self.top.join(self.environment.expand(file.as_ref()));
                    read(&mut File::open(&path).map_err(|e| failed(Why::File(path.clone(), e)))?)
                        .map_err(|e| failed(Why::File(path, e)))?
                }
            };
            if value.is_empty() || value.as_encoded_bytes().contains(&0) {
                return Err(failed(Why::Empty));
            }
            known.insert(source.clone(), value.clone());
            values.push((name.clone(), value));
        }
        Ok(values)
    }

    fn run(&self, line: &str) -> Result<OsString, Why> {
        // A file, so that a child that stays behind with a pipe open does not hold us up.
        let mut out = tempfile::tempfile().map_err(Why::Start)?;
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.top).env_clear().envs(self.ambient.iter());
        command.stdin(Stdio::null()).stdout(out.try_clone().map_err(Why::Start)?).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().map_err(Why::Start)?;
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait().map_err(Why::Start)? {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
                    let killed =
                        group.map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
                    if killed.is_none_or(|killed| killed.is_err()) {
                        child.kill().map_err(Why::Start)?;
                    }
                    child.wait().map_err(Why::Start)?;
                    return Err(Why::TimedOut);
                }
            }
        };
        if !status.success() {
            return Err(Why::Failed(status));
        }
        out.rewind().and_then(|()| read(&mut out)).map_err(Why::Start)
    }
}

/// Puts the secrets of a job that are not in our environment into its own; an error is the reason that it fails for.
pub(super) async fn fetch(job: &mut Job) -> Result<(), String> {
    let settings = &job.command.settings;
    if settings.secret_env.is_empty() {
        return Ok(());
    }
    let (secrets, wanted, env) = (job.secrets.clone(), settings.secret_env.clone(), job.env.clone());
    let fetched =
        tokio::task::spawn_blocking(move || secrets.values(&wanted, &env)).await.map_err(|e| e.to_string())?;
    job.env.extend(fetched.map_err(|e| e.to_string())?);
    Ok(())
}

impl Job {
    /// Returns the values of the variables that are secrets.
    pub(super) fn secret_values(&self) -> Vec<Vec<u8>> {
        let values = self.command.settings.secret_env.iter().filter_map(|secret| self.env.get(&secret.name));
        values.map(|value| value.as_encoded_bytes().to_vec()).collect()
    }
}

impl Finished {
    /// Takes values of secrets out of what is told of the attempt: names that a worker chose stand in it.
    pub(super) fn redact(&mut self, values: &[Vec<u8>]) {
        let reason = match &mut self.verdict {
            Verdict::Failed { reason, .. } | Verdict::NoSpace(reason) => Some(reason),
            Verdict::Done | Verdict::Interrupted => None,
        };
        for text in reason.into_iter().chain(&mut self.red).chain(&mut self.summary).chain(&mut self.notes) {
            let (mut redactor, mut clean) = (Redactor::new(values), Vec::new());
            redactor.push(text.as_bytes(), &mut clean);
            redactor.finish(&mut clean);
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }
}

/// Reads a value, without its last line end.
fn read(file: &mut File) -> io::Result<OsString> {
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if bytes.ends_with(b"\n") {
        bytes.pop();
        bytes.pop_if(|last| *last == b'\r');
    }
    Ok(OsString::from_vec(bytes))
}

/// A secret could not be had; what a command printed is never said.
#[derive(Debug, thiserror::Error)]
#[error("the secret {name} of `{key}` could not be had: {why}")]
pub(super) struct Error {
    key: String,
    name: String,
    why: Why,
}

/// Why not.
#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("it is not set in the environment of `git handoff run`, or set to nothing")]
    Unset,
    #[error("its command could not be run: {0}")]
    Start(io::Error),
    #[error("its command failed ({0})")]
    Failed(std::process::ExitStatus),
    #[error("its command took longer than {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("{file} could not be read: {1}", file = .0.display())]
    File(PathBuf, io::Error),
    #[error("it is empty, or no text that an environment can hold")]
    Empty,
}
