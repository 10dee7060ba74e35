//! The content of the folder of worktrees: size, and why something is kept.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::run_lock::{self, RunLock};
use crate::model::name::RunId;
use crate::process::disk;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, UNSAVED};

/// Something on the disk that is not removed now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Stay {
    /// `live`, `pool`, `unsaved` or `unknown`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["live", "pool", "unsaved", "unknown"])))]
    pub kind: &'static str,
    /// The folder.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The reason, in words.
    pub why: &'static str,
}

impl Stay {
    fn measure(path: &Path, (kind, why): (&'static str, &'static str)) -> Self {
        Self { kind, path: path.display().to_string(), bytes: disk::size(path, 0), why }
    }
}

/// Why something stays: the kind, and a sentence for people.
const LIVE: (&str, &str) = ("live", "its run is being driven");
const POOL: (&str, &str) = ("pool", "a driver that runs uses it again, and removes it when it ends");
const KEPT: (&str, &str) = ("unsaved", "it holds work that could not be saved; --discard --force removes it");
const UNKNOWN: (&str, &str) = ("unknown", "this repository has no run of that name; remove the folder if you know it");

/// The content of the folder of worktrees.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The folder, or `None` if it does not exist.
    pub root: Option<PathBuf>,
    /// The total size in bytes.
    pub used: u64,
    /// Kept things, by path.
    pub stays: Vec<Stay>,
    /// Pools of dead drivers, which are removed.
    pub dead: Vec<(PathBuf, u64)>,
}

/// Reads the whole folder of worktrees; `known` lists the runs of this repository.
pub fn survey(host: &Host, known: &dyn Fn(&RunId) -> bool) -> Result<Survey, Error> {
    let mut survey =
        Survey { root: host.settings.root.is_dir().then(|| host.settings.root.clone()), ..Survey::default() };
    for pool in workspace::pools(&host.settings.root).map_err(|e| Error(host.settings.root.clone(), e))? {
        if pool.is_locked {
            survey.stays.push(Stay::measure(&pool.path, POOL));
        } else {
            let bytes = disk::size(&pool.path, 0);
            survey.dead.push((pool.path, bytes));
        }
    }
    for dir in folders(&host.settings.root) {
        let Some(run) = dir.file_name().and_then(|name| RunId::decode(name.to_str()?)) else { continue };
        let is_live = known(&run) && is_held(host, &run);
        for path in folders(&dir) {
            let why = match () {
                () if path.to_string_lossy().ends_with(UNSAVED) => KEPT,
                () if is_live => LIVE,
                () if !known(&run) => UNKNOWN,
                // It is removed and reported with its run.
                () => continue,
            };
            survey.stays.push(Stay::measure(&path, why));
        }
    }
    survey.stays.sort_by(|a, b| a.path.cmp(&b.path));
    survey.used = disk::size(&host.settings.root, 0);
    Ok(survey)
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn is_held(host: &Host, run: &RunId) -> bool {
    matches!(RunLock::take(&host.store.common_dir(), run), Err(run_lock::Error::Held { .. }))
}

/// The folder of worktrees cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the worktrees in {} could not be looked at", .0.display())]
pub struct Error(PathBuf, #[source] std::io::Error);
