//! Finds folders of a tree that have the shape of a bare repository.
//!
//! In such a folder git takes it for the repository, and runs the programs that its configuration
//! names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::program::{self, Git};
use super::work_tree::paths;
use crate::model::digest::Oid;

/// The names that make the shape.
const SHAPE: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// The names of files and folders of a bare repository that name programs or lead to others.
const SETTINGS: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// Returns true if a change of a path can give a folder the shape.
pub fn may_complete(path: &Path) -> bool {
    !folders(path, &SHAPE).is_empty()
}

/// Returns a folder that has the shape in one tree and not in the tree before it.
pub fn find_new(git: &dyn Fn() -> Git, before: Oid, after: Oid) -> Result<Option<PathBuf>, program::Error> {
    let call = git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=d"]);
    let changed = call.args([before.to_string(), after.to_string()]).run()?;
    let folders: BTreeSet<PathBuf> = paths(&changed).flat_map(|path| folders(&path, &SHAPE)).collect();
    for folder in folders {
        if is_new(git, (before, after), &folder)? {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// Returns the file through which a changed path can run programs.
///
/// This is the configuration of a folder that the change gives the shape, or the path itself if it
/// is a setting or a hook of a folder that has the shape.
pub fn find_setting(git: &dyn Fn() -> Git, trees: (Oid, Oid), path: &Path) -> Result<Option<PathBuf>, program::Error> {
    for folder in folders(path, &SHAPE) {
        if is_new(git, trees, &folder)? {
            return Ok(Some(folder.join("config")));
        }
    }
    for folder in folders(path, &SETTINGS) {
        if has_shape(git(), trees.1, &folder)? {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

fn is_new(git: &dyn Fn() -> Git, (before, after): (Oid, Oid), folder: &Path) -> Result<bool, program::Error> {
    Ok(has_shape(git(), after, folder)? && !has_shape(git(), before, folder)?)
}

/// Returns the folders, but for the top, in which a path has one of the names.
fn folders(path: &Path, names: &[&str]) -> Vec<PathBuf> {
    let parents = path
        .ancestors()
        .filter(|part| {
            let name = part.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
        })
        .filter_map(Path::parent);
    parents.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned).collect()
}

/// Returns true if a folder of a tree has the shape. Some file systems ignore case.
fn has_shape(git: Git, tree: Oid, folder: &Path) -> Result<bool, program::Error> {
    let mut inside = OsString::from(folder);
    inside.push("/");
    let call = git.env("GIT_LITERAL_PATHSPECS", "1").args(["ls-tree", "-z", "--name-only", &tree.to_string()]);
    let listed = String::from_utf8_lossy(&call.arg(inside).run()?).into_owned();
    Ok(has_name("HEAD", &listed)
        && (has_name("objects", &listed) && has_name("refs", &listed) || has_name("commondir", &listed)))
}

fn has_name(name: &str, listed: &str) -> bool {
    listed.split('\0').any(|path| path.rsplit('/').next().unwrap_or_default().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_those_above_a_name_of_the_shape() {
        let cases: [(&str, &[&str]); 5] = [
            ("a/HEAD", &["a"]),
            ("a/refs/b/Objects/x", &["a/refs/b", "a"]),
            ("HEAD", &[]),
            ("a/header", &[]),
            ("a/commondir", &["a"]),
        ];
        for (path, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(folders(Path::new(path), &SHAPE), expected, "{path}");
        }
    }
}
