//! The content of the folder of worktrees: size, and why something is kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::run_lock::{self, RunLock};
use crate::model::name::RunId;
use crate::process::disk;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, UNSAVED};

/// Something on the disk that is not removed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The reason.
    pub kind: Kind,
    /// The path.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// The reason why something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A worktree of a running driver.
    Live,
    /// Used worktrees that a running driver will reuse.
    Pool,
    /// Work that could not be saved and needs a person.
    Unsaved,
    /// A worktree of a run that is not in this repository.
    Stranger,
}

impl Kind {
    /// Returns the word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Pool => "pool",
            Self::Unsaved => "unsaved",
            Self::Stranger => "unknown",
        }
    }

    /// Returns a sentence for people.
    pub fn why(self) -> &'static str {
        match self {
            Self::Live => "its run is being driven",
            Self::Pool => "a driver that runs uses it again, and removes it when it ends",
            Self::Unsaved => "it holds work that could not be saved; --discard --force removes it",
            Self::Stranger => "this repository has no run of that name; remove the folder if you know it",
        }
    }
}

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
        let bytes = disk::size(&pool.path, 0);
        if pool.held {
            survey.stays.push(Stay { kind: Kind::Pool, path: pool.path, bytes });
        } else {
            survey.dead.push((pool.path, bytes));
        }
    }
    for dir in folders(&host.settings.root) {
        let Some(run) = dir.file_name().and_then(|name| RunId::decode(name.to_str()?)) else { continue };
        let held = known(&run) && is_held(host, &run);
        for path in folders(&dir) {
            let kind = match () {
                () if path.to_string_lossy().ends_with(UNSAVED) => Kind::Unsaved,
                () if held => Kind::Live,
                () if !known(&run) => Kind::Stranger,
                // It is removed and reported with its run.
                () => continue,
            };
            survey.stays.push(Stay { kind, bytes: disk::size(&path, 0), path });
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
