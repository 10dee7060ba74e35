//! A temporary repository that borrows the objects of another. Commands there leave nothing behind,
//! run no hooks, and ignore the user's configuration.

use std::fs;
use std::io;
use std::ops::RangeInclusive;

use gix::bstr::{BStr, BString, ByteSlice as _};

use super::merge;
use super::program::{self, Git};
use super::quoted_path;
use super::scratch_repo::{self, ScratchRepo};
use super::store::{self, Store};
use crate::model::digest::Oid;

/// The file that lists where history was cut off.
const SHALLOW: &str = "shallow";

/// A temporary repository that borrows the objects of another.
pub struct BorrowedRepo {
    scratch: ScratchRepo,
}

/// Lines that one commit added to a file, as `git blame` reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// The commit, or `None` for uncommitted lines.
    pub commit: Option<Oid>,
    /// The path of the file in that commit.
    pub path: BString,
    /// The number of the first line in that commit's file.
    pub there: u64,
    /// The line numbers in the blamed file.
    pub lines: RangeInclusive<u64>,
    /// The later commit that changed these lines and that `blame.ignoreRevsFile` skips.
    pub passed: Option<Oid>,
}

impl BorrowedRepo {
    /// Creates one that borrows the objects of `store`.
    pub fn new(store: &Store) -> Result<Self, scratch_repo::Error> {
        let mut scratch = ScratchRepo::new(store.object_format())?;
        scratch.borrow_objects(store)?;
        match fs::copy(store.common_dir().join(SHALLOW), scratch.store().git_dir().join(SHALLOW)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(scratch_repo::Error::Folder(error)),
            _ => Ok(Self { scratch }),
        }
    }

    /// Returns the repository, in which objects can be written.
    pub fn store(&self) -> &Store {
        self.scratch.store()
    }

    /// Returns a git command that uses only git's own defaults.
    fn git(&self) -> Git {
        let git = self.store().git().env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1")
    }

    /// Returns the patch between two trees in the form of an item's patch, or `None` if it is
    /// larger than `most` bytes.
    pub fn patch(&self, old: Oid, new: Oid, most: usize) -> Result<Option<Vec<u8>>, program::Error> {
        let mut patch = Vec::new();
        let options = ["-p", "-r", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"];
        let call = self.git().env("GIT_ATTR_SOURCE", old.to_string()).arg("diff-tree").args(options);
        let call = call.args(["--no-renames", &old.to_string(), &new.to_string()]);
        let mut large = false;
        let streamed = call.stream(&mut |chunk| {
            large = patch.len() + chunk.len() > most;
            if large {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            patch.extend_from_slice(chunk);
            Ok(())
        });
        if large { Ok(None) } else { streamed.map(|()| Some(patch)) }
    }

    /// Returns the stable patch id of each patch, which ignores line numbers and white space.
    ///
    /// For input that is not a patch written by git, a label may be returned more than once or with
    /// a wrong id.
    pub fn patch_ids<'p>(
        &self,
        patches: impl IntoIterator<Item = (Oid, &'p [u8])>,
    ) -> Result<Vec<(Oid, String)>, program::Error> {
        let mut input = Vec::new();
        for (label, patch) in patches {
            input.extend_from_slice(format!("commit {label}\n").as_bytes());
            input.extend_from_slice(patch);
            input.push(b'\n');
        }
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let output = self.git().args(["patch-id", "--stable"]).input(input).run()?;
        let text = String::from_utf8_lossy(&output);
        Ok(text
            .lines()
            .filter_map(|line| {
                let (id, label) = line.split_once(' ')?;
                Some((label.parse().ok()?, id.to_owned()))
            })
            .collect())
    }

    /// Writes a commit of a tree, so that git can walk the history.
    pub fn commit(&self, tree: Oid, parent: Option<Oid>) -> Result<Oid, store::Error> {
        merge::bare_commit(self.store(), tree, parent)
    }

    /// Returns the origin of ranges of lines in a file of a commit, among the commits from `since`
    /// to it.
    pub fn blame(
        &self,
        since: Option<Oid>,
        tip: Oid,
        path: &BStr,
        lines: &[RangeInclusive<u64>],
    ) -> Result<Vec<Blamed>, program::Error> {
        let since = since.map(|since| format!("^{since}"));
        let revisions = since.into_iter().chain([tip.to_string()]).collect::<Vec<_>>();
        blame(self.git(), &[], &revisions, path, lines)
    }
}

/// Returns the origin of each line of a file, in a commit or in the work tree.
///
/// Skips and names the commits of the user's `blame.ignoreRevsFile`. Ignores replaced objects and
/// grafts.
pub fn lines(
    store: &Store,
    commit: Option<Oid>,
    path: &BStr,
    lines: Option<&RangeInclusive<u64>>,
) -> Result<Vec<Blamed>, program::Error> {
    let git = || {
        let git = store.git().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null");
        match store.work_dir() {
            Some(root) if commit.is_none() => git.work_tree(&root),
            // A relative path in the setting starts at the top of the work tree.
            Some(root) => git.in_dir(&root),
            None => git,
        }
    };
    let revisions: Vec<String> = commit.iter().map(Oid::to_string).collect();
    let ranges = lines.map_or(&[][..], std::slice::from_ref);
    let all = blame(git(), &[NONE_PASSED], &revisions, path, ranges)?;
    let set = match git().args(["config", "--get-all", IGNORED]).line() {
        Err(program::Error::Failed { code: Some(1), .. }) => return Ok(all),
        other => other?,
    };
    if set.is_empty() {
        return Ok(all);
    }
    Ok(passed_over(&all, blame(git(), &[], &revisions, path, ranges)?))
}

/// The setting that names files with commits for `git blame` to skip.
const IGNORED: &str = "blame.ignoreRevsFile";

/// Clears these lists, which an empty setting does not do.
const NONE_PASSED: &str = "--ignore-revs-file=";

/// Marks the lines whose origin differs if no commit is skipped, and names that commit.
fn passed_over(all: &[Blamed], over: Vec<Blamed>) -> Vec<Blamed> {
    let last = |line: u64| all.iter().find(|one| one.lines.contains(&line)).and_then(|one| one.commit);
    let mut found: Vec<Blamed> = Vec::new();
    for one in over {
        let first = found.len();
        for line in one.lines.clone() {
            let passed = last(line).filter(|last| Some(*last) != one.commit);
            if let Some(part) = found[first..].last_mut().filter(|part| part.passed == passed) {
                part.lines = *part.lines.start()..=line;
            } else {
                let there = one.there + (line - one.lines.start());
                found.push(Blamed { there, lines: line..=line, passed, ..one.clone() });
            }
        }
    }
    found
}

fn blame(
    git: Git,
    options: &[&str],
    revisions: &[String],
    path: &BStr,
    lines: &[RangeInclusive<u64>],
) -> Result<Vec<Blamed>, program::Error> {
    let some = lines.iter().map(|lines| format!("-L{},{}", lines.start(), lines.end()));
    let call = git.config("core.quotePath=true").args(["blame", "--incremental", "--no-textconv"]);
    let output = call.args(options).args(some).args(revisions).arg("--").arg(path.to_os_str_lossy()).run()?;
    let mut blamed = read(&output);
    blamed.sort_by_key(|one| *one.lines.start());
    Ok(blamed)
}

/// Parses the output of `git blame --incremental`: groups of lines that each end with the file
/// name.
fn read(output: &[u8]) -> Vec<Blamed> {
    let mut found = Vec::new();
    let mut group: Option<(Option<Oid>, u64, u64, u64)> = None;
    for line in output.lines() {
        if let Some(name) = line.strip_prefix(b"filename ") {
            if let Some((commit, there, here, count)) = group.take() {
                let lines = here..=here + count.saturating_sub(1);
                found.push(Blamed { commit, path: quoted_path::unquoted(name), there, lines, passed: None });
            }
        } else if group.is_none() {
            let mut words = line.to_str().unwrap_or_default().split(' ');
            let commit = words.next().unwrap_or_default();
            let mut number = || words.next().and_then(|word| word.parse().ok());
            if let (Some(there), Some(here), Some(count)) = (number(), number(), number()) {
                let committed = commit.bytes().any(|byte| byte != b'0');
                group = Some((commit.parse().ok().filter(|_| committed), there, here, count));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_commit_was_passed_over_for_are_told_apart() {
        let all = [
            blamed_on(repeated('1'), 1, 1..=2, None),
            blamed_on(repeated('2'), 3, 3..=3, None),
            blamed_on(repeated('1'), 4, 4..=4, None),
        ];
        let over = vec![blamed_on(repeated('1'), 7, 1..=4, None)];
        let expected = [
            blamed_on(repeated('1'), 7, 1..=2, None),
            blamed_on(repeated('1'), 9, 3..=3, repeated('2')),
            blamed_on(repeated('1'), 10, 4..=4, None),
        ];
        assert_eq!(passed_over(&all, over), expected);
    }

    fn blamed_on(commit: Option<Oid>, there: u64, lines: RangeInclusive<u64>, passed: Option<Oid>) -> Blamed {
        Blamed { commit, path: "f".into(), there, lines, passed }
    }

    fn repeated(digit: char) -> Option<Oid> {
        digit.to_string().repeat(40).parse().ok()
    }

    #[test]
    fn groups_of_lines_are_read() {
        let (one, none) = ("a1134369fe668301a94828ddbe731d5946ac8243", "0".repeat(40));
        let output = format!(
            "{one} 3 5 2\nauthor A\nsummary filename x\nfilename \"a\\303\\274\"\n{one} 9 1 1\nfilename b c\n{none} 2 2 1\nfilename d\n"
        );
        let blamed = |commit: &str, path: &str, there, lines| Blamed {
            commit: commit.parse().ok().filter(|_| commit == one),
            path: path.into(),
            there,
            lines,
            passed: None,
        };
        let expected = [blamed(one, "aü", 3, 5..=6), blamed(one, "b c", 9, 1..=1), blamed(&none, "d", 2, 2..=2)];
        assert_eq!(read(output.as_bytes()), expected);
    }
}
