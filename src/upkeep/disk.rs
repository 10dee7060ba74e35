//! What lies in the folder of worktrees, how much it takes, and why what stays does.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::hold::{self, Hold};
use crate::model::name::RunId;
use crate::worker::host::Host;
use crate::worker::workspace::{self, UNSAVED};

/// Something that is on the disk and is not to be removed, or not now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// Why something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A worktree of a run that is being driven.
    Live,
    /// The spent worktrees of a driver that lives, which it uses again.
    Pool,
    /// Work that could not be saved, for a person to look at.
    Unsaved,
    /// A worktree of a run that this repository does not know.
    Stranger,
}

impl Kind {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Pool => "pool",
            Self::Unsaved => "unsaved",
            Self::Stranger => "unknown",
        }
    }

    /// Says why it stays.
    pub fn why(self) -> &'static str {
        match self {
            Self::Live => "its run is being driven",
            Self::Pool => "a driver that runs uses it again, and removes it when it ends",
            Self::Unsaved => "it holds work that could not be saved; --discard --force removes it",
            Self::Stranger => "this repository has no run of that name; remove the folder if you know it",
        }
    }
}

/// What the folder of worktrees comes to.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The folder; none where there is none yet.
    pub root: Option<PathBuf>,
    /// How many bytes all of it takes.
    pub used: u64,
    /// What stays, by path.
    pub stays: Vec<Stay>,
    /// Pools whose driver is dead, which go.
    pub dead: Vec<(PathBuf, u64)>,
}

/// Looks at all that is in the folder of worktrees, of whatever run; `known` says which runs there are.
pub fn survey(host: &Host, known: &dyn Fn(&RunId) -> bool) -> Result<Survey, Error> {
    let mut survey = Survey { root: host.root.is_dir().then(|| host.root.clone()), ..Survey::default() };
    for pool in workspace::pools(&host.root).map_err(|e| Error(host.root.clone(), e))? {
        let bytes = workspace::size(&pool.path);
        if pool.held {
            survey.stays.push(Stay { kind: Kind::Pool, path: pool.path, bytes });
        } else {
            survey.dead.push((pool.path, bytes));
        }
    }
    for dir in folders(&host.root) {
        let Some(run) = dir.file_name().and_then(|name| RunId::decode(name.to_str()?)) else { continue };
        let held = known(&run) && is_held(host, &run);
        for path in folders(&dir) {
            let kind = match () {
                () if path.to_string_lossy().ends_with(UNSAVED) => Kind::Unsaved,
                () if held => Kind::Live,
                () if !known(&run) => Kind::Stranger,
                // It goes, and is told of where its run is cleaned.
                () => continue,
            };
            survey.stays.push(Stay { kind, bytes: workspace::size(&path), path });
        }
    }
    survey.stays.sort_by(|a, b| a.path.cmp(&b.path));
    survey.used = workspace::size(&host.root);
    Ok(survey)
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn is_held(host: &Host, run: &RunId) -> bool {
    matches!(Hold::take(&host.store.common_dir(), run), Err(hold::Error::Held { .. }))
}

/// The folder of worktrees could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("the worktrees in {} could not be looked at", .0.display())]
pub struct Error(PathBuf, #[source] std::io::Error);
