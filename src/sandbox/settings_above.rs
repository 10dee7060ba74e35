//! Finds settings files that tools read from every folder above the worktree and in granted
//! folders.
//!
//! Most tools fail on a file that exists but cannot be opened. So workers may read those without
//! credentials. Below bubblewrap a file exists only if its folder is granted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Confinement;
use super::access_map::{Access, AccessMap};
use super::resolve::Led;
use super::settings::{Strictness, read_harmless};
use super::tools::{TOOLS, is_named};

/// The state that determines which settings files are visible but unreadable.
pub(super) struct Hidden<'a> {
    pub(super) map: &'a AccessMap,
    /// The settings files of the home directory, by their usual places.
    pub(super) settings: &'a [(&'static str, PathBuf)],
    pub(super) below_bubblewrap: bool,
}

impl Confinement {
    /// Returns the state that determines which settings files are visible but unreadable.
    pub(super) fn hidden<'a>(&'a self, map: &'a AccessMap) -> Hidden<'a> {
        Hidden { map, settings: self.reach.caches.settings(), below_bubblewrap: self.bwrap.is_some() }
    }
}

impl Hidden<'_> {
    /// Returns the additional files that workers in a worktree may read.
    pub(super) fn readable(&self, tree: &Path) -> BTreeSet<PathBuf> {
        let settings = self.real(self.settings.iter().map(|(_, path)| path.clone()));
        let above = self.real(self.above(tree).into_iter());
        let of_tools = settings
            .iter()
            .filter(|file| above.contains(*file) || self.is_given(file.parent()))
            .filter(|file| read_harmless(file, Strictness::Words).is_some());
        let others = above.difference(&settings).filter(|file| is_harmless(file));
        of_tools.chain(others).cloned().collect()
    }

    /// Returns the files above the folder of all worktrees that workers must not read, because they
    /// may contain a credential.
    pub(super) fn secret_files(&self, trees: &Path) -> BTreeSet<PathBuf> {
        self.real(self.above(trees).into_iter()).into_iter().filter(|file| !is_harmless(file)).collect()
    }

    /// Returns the visible files above a folder that tools look for.
    fn above(&self, folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for above in folder.ancestors().skip(1) {
            let deep = TOOLS.above.iter().filter(|name| name.contains('/')).map(|name| above.join(name));
            found.extend(deep.filter(|path| !self.below_bubblewrap || self.is_given(path.parent())));
            if self.below_bubblewrap && !self.is_given(Some(above)) {
                continue;
            }
            let names = fs::read_dir(above).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let known = names.filter(|name| TOOLS.above.iter().any(|pattern| is_named(name, pattern)));
            found.extend(known.map(|name| above.join(name)));
        }
        found
    }

    /// Returns true if anything in a folder is granted.
    fn is_given(&self, folder: Option<&Path>) -> bool {
        let real = folder.and_then(|folder| fs::canonicalize(folder).ok());
        real.is_some_and(|real| self.map.access(&real) != Access::Hidden)
    }

    /// Returns the real paths of files that are not granted yet. Skips links that a worker may have
    /// made.
    fn real(&self, paths: impl Iterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
        let real = paths.filter_map(|path| match self.map.follow(&path)? {
            Led { real, is_there: true, planted: None } if real.is_file() => Some(real),
            _ => None,
        });
        real.filter(|real| self.map.access(real) == Access::Hidden).collect()
    }
}

/// Returns true if a file contains no credential. In a file meant for credentials, every suspicious
/// word counts.
fn is_harmless(file: &Path) -> bool {
    let holds_secrets = TOOLS.secrets.iter().chain(&TOOLS.settings).any(|secret| file.ends_with(secret));
    let strictness = if holds_secrets { Strictness::Words } else { Strictness::Shapes };
    read_harmless(file, strictness).is_some()
}
