//! Reads secrets that are not in the environment: from a command, or from a file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::attempt::{AttemptResult, Job, Verdict};
use super::shell_line;
use crate::model::claims::Reported;
use crate::process::redact::Redactor;
use crate::repository::config::{SecretEnv, SecretSource};
use crate::repository::{Environment, Repository};

/// The time limit of a secret's command, which may ask a person or a remote server.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The most bytes of a secret. Linux allows no more for one variable.
const MAX_SECRET: u64 = 128 << 10;

/// Secrets, each read once and kept while the driver lives.
pub(crate) struct Secrets {
    ambient: Arc<BTreeMap<String, OsString>>,
    environment: Arc<Environment>,
    top: PathBuf,
    known: Mutex<BTreeMap<SecretSource, OsString>>,
}

impl Secrets {
    /// Returns an empty cache.
    pub(crate) fn new(repository: &Repository) -> Self {
        let store = &repository.store;
        Self {
            ambient: repository.environment.variables.clone(),
            environment: Arc::new(repository.environment.clone()),
            top: store.work_dir().unwrap_or_else(|| store.git_dir()),
            known: Mutex::default(),
        }
    }

    /// Reads secrets that are not in the environment. A failed read is retried the next time.
    ///
    /// `env` is the environment of the attempt, which must contain each secret that comes from
    /// there.
    pub(super) fn values(
        &self,
        requests: &[SecretEnv],
        env: &BTreeMap<String, OsString>,
    ) -> Result<Vec<(String, OsString)>, String> {
        // The lock is held while a command runs, so that it runs only once.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = Vec::new();
        for SecretEnv { name, source, key } in requests {
            let failed = |why: String| format!("cannot read the secret {name} of `{key}`: {why}");
            let value = match (known.get(source), source) {
                (_, SecretSource::Environment) if env.get(name).is_some_and(|value| !value.is_empty()) => continue,
                (_, SecretSource::Environment) => {
                    let why = "it is not set in the environment of `git handoff run`, or set to nothing";
                    return Err(failed(why.to_owned()));
                }
                (Some(value), _) => value.clone(),
                (None, SecretSource::Command(line)) => self.run(line).map_err(failed)?,
                (None, SecretSource::File(file)) => {
                    let path = self.top.join(self.environment.expand(file.as_ref()));
                    let value = File::open(&path).and_then(|mut source_file| read(&mut source_file));
                    value.map_err(|error| failed(format!("cannot read {}: {error}", path.display())))?
                }
            };
            if value.is_empty() || value.as_encoded_bytes().contains(&0) {
                return Err(failed("it is empty, or not valid in an environment variable".to_owned()));
            }
            known.insert(source.clone(), value.clone());
            values.push((name.clone(), value));
        }
        Ok(values)
    }

    /// Returns the output of a command. An error never contains it.
    fn run(&self, line: &str) -> Result<OsString, String> {
        let mut out = shell_line::run(line, &self.top, &self.ambient, TIME_LIMIT)?;
        read(&mut out).map_err(|error| format!("cannot run its command: {error}"))
    }
}

/// Adds secrets to the environment of a job, or returns the reason why the attempt fails.
pub(super) async fn fetch(job: &mut Job) -> Result<(), String> {
    if job.spec.secrets.is_empty() {
        return Ok(());
    }
    let (secrets, requests, env) = (job.handles.secrets.clone(), job.spec.secrets.clone(), job.spec.env.clone());
    let fetched =
        tokio::task::spawn_blocking(move || secrets.values(&requests, &env)).await.map_err(|e| e.to_string())?;
    job.spec.env.extend(fetched?);
    Ok(())
}

impl Job {
    /// Returns the values of all secrets of the job.
    pub(super) fn secret_values(&self) -> Vec<Vec<u8>> {
        let values = self.spec.secrets.iter().filter_map(|secret| self.spec.env.get(&secret.name));
        values.map(|value| value.as_encoded_bytes().to_vec()).collect()
    }
}

impl AttemptResult {
    /// Removes values of secrets from all texts about the attempt. They can contain file names that
    /// a worker chose.
    pub(super) fn redact(&mut self, values: &[Vec<u8>]) {
        let reason = match &mut self.verdict {
            Verdict::Failed { reason, .. } | Verdict::Shortage(reason) | Verdict::Crashed(reason) => Some(reason),
            Verdict::Done | Verdict::Interrupted => None,
        };
        let claims = self.claims.iter_mut().flat_map(Reported::texts);
        let texts = reason.into_iter().chain(&mut self.red).chain(&mut self.summary).chain(claims);
        for text in texts.chain(&mut self.notes).chain(&mut self.excluded) {
            let (mut redactor, mut clean) = (Redactor::new(values), Vec::new());
            redactor.push(text.as_bytes(), &mut clean);
            redactor.finish(&mut clean);
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }
}

/// Reads a value, without its final line ending.
fn read(file: &mut File) -> io::Result<OsString> {
    let mut bytes = Vec::new();
    file.take(MAX_SECRET + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SECRET {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if bytes.ends_with(b"\n") {
        bytes.pop();
        bytes.pop_if(|last| *last == b'\r');
    }
    Ok(OsString::from_vec(bytes))
}
