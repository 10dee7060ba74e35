//! Where settings come from: what a commit can change decides about nobody's trust.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::git::store::Store;

/// A path over more links than this leads nowhere, as it does for the system.
const MOST_LINKS: usize = 40;

/// The folders that commits write to: the work tree, and those of the repository's other worktrees.
pub(super) struct WorkTrees {
    roots: Vec<PathBuf>,
    git_dirs: Vec<PathBuf>,
}

/// Returns the work trees of a repository, links resolved.
pub fn work_trees(store: &Store) -> Vec<PathBuf> {
    WorkTrees::of(store).roots
}

impl WorkTrees {
    pub(super) fn of(store: &Store) -> Self {
        let common = store.common_dir();
        let linked = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.filter_map(|entry| {
            let git_file = std::fs::read_to_string(entry.path().join("gitdir")).ok()?;
            // It may be relative to the folder that it stands in.
            Some(entry.path().join(git_file.trim_end()).parent()?.to_owned())
        });
        let main = (common.file_name().is_some_and(|name| name == ".git")).then(|| common.parent()).flatten();
        let roots = store.work_dir().into_iter().chain(main.map(Path::to_owned)).chain(linked);
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let git_dirs = [store.git_dir(), common.clone()].map(real).to_vec();
        Self { roots: roots.map(real).collect(), git_dirs }
    }

    /// Whether a path leads into a work tree, or by a link that lies in one: a commit changes it like a file.
    pub(super) fn hold(&self, path: &Path) -> bool {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let parts = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
        let mut rest = parts(&path);
        let mut at = PathBuf::new();
        let mut links = 0;
        // Step by step, so that `at` never leads over a link and every link on the way is looked at where it lies.
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            at.push(part);
            let Ok(target) = at.read_link() else { continue };
            links += 1;
            if links > MOST_LINKS || self.are_above(&at) {
                return true;
            }
            at.pop();
            rest.extend(parts(&target));
        }
        self.are_above(&at)
    }

    fn are_above(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root)) && !self.git_dirs.iter().any(|dir| path.starts_with(dir))
    }
}

/// Whether a path leads into a work tree of the repository, as itself or by a link: what lies there is changed by a commit.
pub fn is_in_work_tree(store: &Store, path: &Path) -> bool {
    WorkTrees::of(store).hold(path)
}
