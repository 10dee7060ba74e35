//! Origins of settings. A file that a commit can change must not decide whom to trust.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::git::file_facts::canonical_or_same;
use crate::git::store::Store;

/// The number of symbolic links after which a path counts as unresolvable, as on Linux.
const MOST_LINKS: usize = 40;

/// The work tree, and the repository's other worktrees: the folders that commits change.
pub(super) struct WorkTrees {
    roots: Vec<PathBuf>,
    git_dirs: Vec<PathBuf>,
}

/// Returns the work trees of a repository, links resolved.
pub fn work_trees(store: &Store) -> Vec<PathBuf> {
    WorkTrees::find(store).roots
}

impl WorkTrees {
    pub(super) fn find(store: &Store) -> Self {
        let common = store.common_dir();
        let linked = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.filter_map(|entry| {
            let git_file = std::fs::read_to_string(entry.path().join("gitdir")).ok()?;
            // The path may be relative to the folder of the file.
            Some(entry.path().join(git_file.trim_end()).parent()?.to_owned())
        });
        let main = (common.file_name().is_some_and(|name| name == ".git")).then(|| common.parent()).flatten();
        let roots = store.work_dir().into_iter().chain(main.map(Path::to_owned)).chain(linked);
        let git_dirs = [store.git_dir(), common.clone()].map(canonical_or_same).to_vec();
        Self { roots: roots.map(canonical_or_same).collect(), git_dirs }
    }

    /// Returns true if a path lies in a work tree, or passes through a symbolic link that does.
    pub(super) fn hold(&self, path: &Path) -> bool {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut rest = reversed_parts(&path);
        let mut at = PathBuf::new();
        let mut links = 0;
        // Resolves one component at a time, so that every link on the way is checked where it lies.
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
            rest.extend(reversed_parts(&target));
        }
        self.are_above(&at)
    }

    fn are_above(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root)) && !self.git_dirs.iter().any(|dir| path.starts_with(dir))
    }
}

fn reversed_parts(path: &Path) -> Vec<std::ffi::OsString> {
    path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>()
}

/// Returns true if a path lies in a work tree of the repository, or passes through a symbolic link
/// that does.
pub fn is_in_work_tree(store: &Store, path: &Path) -> bool {
    WorkTrees::find(store).hold(path)
}
