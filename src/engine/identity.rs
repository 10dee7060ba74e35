//! The identity of a driver of a shared run: a random id, its host, and the job that started it.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::ledger::sign;
use crate::model::driver::{DriverId, MAX_TEXT};

/// The variables of engines that start drivers: a word for the engine, the variable with the job,
/// and those with its part, such as the task of an array.
const ENGINES: [(&str, &str, &[&str]); 6] = [
    ("slurm", "SLURM_ARRAY_JOB_ID", &["SLURM_ARRAY_TASK_ID"]),
    ("slurm", "SLURM_JOB_ID", &[]),
    ("hq", "HQ_JOB_ID", &["HQ_TASK_ID"]),
    ("github", "GITHUB_RUN_ID", &["GITHUB_RUN_ATTEMPT", "GITHUB_JOB"]),
    ("gitlab", "CI_JOB_ID", &[]),
    ("kubernetes", "KUBERNETES_SERVICE_HOST", &["JOB_COMPLETION_INDEX"]),
];

/// A driver, as it names itself in entries.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) id: DriverId,
    pub(super) host: Option<String>,
    pub(super) job: Option<String>,
}

impl Identity {
    /// Chooses an id, and reads host and job from the system and the environment.
    pub(super) fn new(environment: &BTreeMap<String, OsString>) -> Self {
        let id = DriverId::parse(&sign::nonce()).expect("a nonce has 32 hex digits");
        let node = variable(environment, "SLURMD_NODENAME");
        let host = node.or_else(|| rustix::system::uname().nodename().to_str().ok().map(str::to_owned));
        Self { id, host: host.as_deref().map(cut), job: job(environment).as_deref().map(cut) }
    }
}

/// Returns the job that an engine's variables name, such as `slurm 123/4`.
fn job(environment: &BTreeMap<String, OsString>) -> Option<String> {
    let (engine, name, parts) = ENGINES.into_iter().find(|(_, name, _)| variable(environment, name).is_some())?;
    let first = if engine == "kubernetes" { "HOSTNAME" } else { name };
    let words = [first]
        .into_iter()
        .chain(parts.iter().copied())
        .filter_map(|variable_name| variable(environment, variable_name));
    Some(format!("{engine} {}", words.collect::<Vec<_>>().join("/")))
}

fn variable(environment: &BTreeMap<String, OsString>, name: &str) -> Option<String> {
    let value = environment.get(name)?.to_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// Shortens a text to what an entry can hold.
fn cut(text: &str) -> String {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_engine() {
        let of = |pairs: &[(&str, &str)]| {
            job(&pairs.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("SLURM_JOB_ID", "7")]).as_deref(), Some("slurm 7"));
        let array = [("SLURM_JOB_ID", "9"), ("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "2")];
        assert_eq!(of(&array).as_deref(), Some("slurm 7/2"));
        assert_eq!(of(&[("HQ_JOB_ID", "1"), ("HQ_TASK_ID", "5")]).as_deref(), Some("hq 1/5"));
        let pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("HOSTNAME", "drive-0-x"), ("JOB_COMPLETION_INDEX", "0")];
        assert_eq!(of(&pod).as_deref(), Some("kubernetes drive-0-x/0"));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(cut(&"ä".repeat(200)).len(), 254);
        assert_eq!(cut("short"), "short");
    }
}
