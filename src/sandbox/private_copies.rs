//! Folders and files of the user of which each attempt gets a private copy, such as an agent's
//! settings.
//!
//! Programs run what lies there at their next start: a hook, a server, a script. So no worker
//! reaches the user's own folder; only the files of a login in it are shared with the worker.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::access_map::{Access, AccessMap};
use super::policy::{More, Surroundings, by_no_planted_link};
use super::resolve::Led;
use super::{Confinement, Refused};
use crate::model::confinement::Home;

/// A folder or file of the user of which each attempt gets a private copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateCopy {
    /// Its usual place below a home directory. Empty if it lies elsewhere.
    pub below: PathBuf,
    /// The user's folder or file.
    pub from: PathBuf,
    /// The parts that are copied, or `None` for everything.
    pub parts: Option<BTreeSet<PathBuf>>,
    /// The files in it that the worker shares with the user.
    pub logins: Vec<PathBuf>,
    /// The files in it that are copied, and whose new bytes go back unless they could run
    /// something.
    pub checked: Vec<PathBuf>,
    /// The variable that moves it, and the path below the folder that this names.
    pub moved: Option<(String, PathBuf)>,
}

/// Returns the private copies of an executor's workers. Fails for a path that cannot be one.
pub(super) fn check(map: &mut AccessMap, more: &More) -> Result<Vec<PrivateCopy>, Refused> {
    for copy in &more.private {
        if copy.below.as_os_str().is_empty() {
            return Err(Refused::PrivateElsewhere(copy.from.clone()));
        }
        if more.home == Home::Real && copy.moved.is_none() {
            return Err(Refused::PrivateFixed(copy.from.clone()));
        }
        by_no_planted_link(map, &copy.from)?;
    }
    Ok(more.private.clone())
}

/// Hides the user's own folders: those of the copies and those of all known agents, unless a
/// setting names one.
pub(super) fn hide(map: &mut AccessMap, around: &Surroundings, more: &More) {
    let configured: Vec<&PathBuf> = more.readable.iter().chain(&more.writable).collect();
    let real: BTreeSet<PathBuf> = configured.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let configured = |path: &PathBuf| {
        configured.contains(&path) || !real.is_empty() && fs::canonicalize(path).is_ok_and(|path| real.contains(&path))
    };
    let agents = around.agents.iter().filter(|folder| !configured(folder));
    for folder in more.private.iter().map(|copy| &copy.from).chain(agents) {
        let is_reached = map.resolve(folder).is_some_and(|led| led.is_there && map.access(&led.real) != Access::Hidden);
        if is_reached {
            map.set(folder, Access::Hidden);
        }
    }
}

impl Confinement {
    /// Returns the folders and files of which each attempt gets a private copy.
    pub fn private_copies(&self) -> &[PrivateCopy] {
        &self.reach.private
    }

    /// Returns true if a file of the user may be copied for workers: one in the folder of a copy,
    /// or one that a link there leads to and that holds no other secret.
    pub fn may_copy(&self, copy: &PrivateCopy, path: &Path) -> bool {
        let own = fs::canonicalize(&copy.from).unwrap_or_else(|_| copy.from.clone());
        let reach = &self.reach;
        let Some(Led { real, is_there: true, planted: None }) = reach.map.follow(path) else { return false };
        let is_own = real.starts_with(own);
        let is_shut = || {
            reach.map.hidden_by(&real).is_some_and(|place| !reach.homes_and_trees.iter().any(|folder| folder == place))
        };
        is_own || !reach.secrets.iter().any(|secret| real.starts_with(secret)) && !is_shut()
    }
}
