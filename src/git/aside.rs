//! A throw-away repository that borrows the objects of another: what is computed there leaves nothing behind, reaches nobody, and
//! comes out the same whatever anybody configured.

use std::fs;
use std::io;
use std::ops::RangeInclusive;

use gix::bstr::{BStr, BString, ByteSlice as _};

use super::merge;
use super::program::{self, Git};
use super::quoted_path;
use super::scratch::{self, Scratch};
use super::store::{self, Store};
use crate::model::digest::Oid;

/// The file that says where history was cut off.
const SHALLOW: &str = "shallow";

/// A throw-away repository beside another.
pub struct Aside {
    scratch: Scratch,
}

/// Lines that one commit brought into a file, as blame tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// The commit; none for lines that are not committed yet.
    pub commit: Option<Oid>,
    /// The file, as the commit calls it.
    pub path: BString,
    /// The number of the first line there.
    pub there: u64,
    /// The numbers of the lines in the file that was asked about.
    pub lines: RangeInclusive<u64>,
}

impl Aside {
    /// Makes one beside a repository.
    pub fn new(store: &Store) -> Result<Self, scratch::Error> {
        let mut scratch = Scratch::new(store.object_format())?;
        scratch.borrow_objects(store)?;
        match fs::copy(store.common_dir().join(SHALLOW), scratch.store().git_dir().join(SHALLOW)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(scratch::Error::Folder(error)),
            _ => Ok(Self { scratch }),
        }
    }

    /// Returns the repository, in which objects can be written.
    pub fn store(&self) -> &Store {
        self.scratch.store()
    }

    /// Returns a call of git that knows no settings but git's own.
    fn git(&self) -> Git {
        let git = self.store().git().env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1")
    }

    /// Returns the patch from one tree to another as the patches of items are written; none where it has more bytes than `most`.
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

    /// Returns the paths in which two trees differ.
    pub fn paths(&self, old: Oid, new: Oid) -> Result<Vec<BString>, program::Error> {
        let call = self.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
        let listed = call.args([old.to_string(), new.to_string()]).run()?;
        Ok(listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(BString::from).collect())
    }

    /// Returns the stable patch id of each patch, which knows neither line numbers nor white space.
    ///
    /// A label may come back more than once, and with an id that is not its own, where a patch is none that git wrote.
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
        let told = self.git().args(["patch-id", "--stable"]).input(input).run()?;
        let told = String::from_utf8_lossy(&told);
        let id = |line: &str| {
            let (id, label) = line.split_once(' ')?;
            Some((label.parse().ok()?, id.to_owned()))
        };
        Ok(told.lines().filter_map(id).collect())
    }

    /// Writes a commit of a tree, for git to walk along.
    pub fn commit(&self, tree: Oid, parent: Option<Oid>) -> Result<Oid, store::Error> {
        merge::bare_commit(self.store(), tree, parent)
    }

    /// Returns who brought some stretches of lines of a file of a commit, of all commits that lead from `since` to it.
    pub fn blame(
        &self,
        (since, tip): (Option<Oid>, Oid),
        path: &BStr,
        lines: &[RangeInclusive<u64>],
    ) -> Result<Vec<Blamed>, program::Error> {
        let since = since.map(|since| format!("^{since}"));
        let revisions = since.into_iter().chain([tip.to_string()]).collect::<Vec<_>>();
        blame(self.git(), &revisions, path, lines)
    }
}

/// Returns who brought the lines of a file: of a commit, or as they stand in the work tree.
///
/// Nothing that is tracked has a say: no list of commits to pass over, no replaced object, no graft.
pub fn lines(
    store: &Store,
    commit: Option<Oid>,
    path: &BStr,
    lines: Option<&RangeInclusive<u64>>,
) -> Result<Vec<Blamed>, program::Error> {
    let git = store.git().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null");
    let git = match store.work_dir() {
        Some(root) if commit.is_none() => git.work_tree(&root),
        _ => git,
    };
    let revisions: Vec<String> = commit.iter().map(Oid::to_string).collect();
    blame(git, &revisions, path, lines.map_or(&[], std::slice::from_ref))
}

fn blame(
    git: Git,
    revisions: &[String],
    path: &BStr,
    lines: &[RangeInclusive<u64>],
) -> Result<Vec<Blamed>, program::Error> {
    let options = ["--incremental", "--no-textconv", "--ignore-revs-file="];
    let some = lines.iter().map(|lines| format!("-L{},{}", lines.start(), lines.end()));
    let call = git.config("core.quotePath=true").arg("blame").args(options).args(some).args(revisions);
    let told = call.arg("--").arg(path.to_os_str_lossy()).run()?;
    let mut blamed = read(&told);
    blamed.sort_by_key(|one| *one.lines.start());
    Ok(blamed)
}

/// Reads what `git blame --incremental` prints: groups of lines, each of which ends with the name of the file.
fn read(told: &[u8]) -> Vec<Blamed> {
    let mut found = Vec::new();
    let mut group: Option<(Option<Oid>, u64, u64, u64)> = None;
    for line in told.lines() {
        if let Some(name) = line.strip_prefix(b"filename ") {
            if let Some((commit, there, here, count)) = group.take() {
                let lines = here..=here + count.saturating_sub(1);
                found.push(Blamed { commit, path: quoted_path::unquoted(name), there, lines });
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
    fn groups_of_lines_are_read() {
        let (one, none) = ("a1134369fe668301a94828ddbe731d5946ac8243", "0".repeat(40));
        let told = format!(
            "{one} 3 5 2\nauthor A\nsummary filename x\nfilename \"a\\303\\274\"\n{one} 9 1 1\nfilename b c\n{none} 2 2 1\nfilename d\n"
        );
        let blamed = |commit: &str, path: &str, there, lines| Blamed {
            commit: commit.parse().ok().filter(|_| commit == one),
            path: path.into(),
            there,
            lines,
        };
        let wanted = [blamed(one, "aü", 3, 5..=6), blamed(one, "b c", 9, 1..=1), blamed(&none, "d", 2, 2..=2)];
        assert_eq!(read(told.as_bytes()), wanted);
    }
}
