//! Saves the working tree as a tree object, byte for byte as on disk.
//!
//! git reads the files with a temporary index and git directory, without filters, line-end
//! conversion and attributes, so that the same bytes can be restored anywhere. The user's index is
//! only read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::git::listing::Listing;
use crate::git::program::{self, Git};
use crate::git::quarantine::{self, Quarantine};
use crate::git::secret_scan::{self, Range};
use crate::git::store::{self, KeepGuard, Store};
use crate::model::credential::gate::{Gate, Secret};
use crate::model::digest::Oid;
use crate::model::entry::{Ignored, Worktree};

use super::{path_of, submodules};

/// The maximum number of ignored files to list; above it, whole ignored folders are named.
const MOST_IGNORED: usize = 1000;

/// Attributes for every file; `info/attributes` has the highest precedence in every version.
const ATTRIBUTES: &str = "* -text !eol -ident !filter !working-tree-encoding\n";

/// git settings about the file system and ignored files.
const SETTINGS: [&str; 6] =
    ["filemode", "symlinks", "ignorecase", "precomposeunicode", "excludesFile", "bigFileThreshold"];

/// A snapshot of the working tree, with its objects in a quarantine.
pub struct Snapshot<'q> {
    quarantine: &'q Quarantine,
    root: PathBuf,
    /// The user's index.
    pub listing: Listing,
    /// The tree.
    pub tree: Oid,
    /// Nested worktrees of this repository, relative to the top. They are not part of the tree.
    linked: Vec<Vec<u8>>,
    /// Untracked files above the limit, relative to the top. They are not part of the tree.
    too_large: Vec<Vec<u8>>,
    /// Untracked repositories, relative to the top, of a snapshot that is compared and not saved.
    /// They are not part of the tree.
    pub nested: Vec<Vec<u8>>,
}

/// A saved working tree.
pub struct Saved {
    /// The record for a checkpoint.
    pub worktree: Worktree,
    /// Keeps its objects until a ref reaches them.
    pub guard: KeepGuard,
    /// Nested worktrees that it does not include.
    pub linked: Vec<PathBuf>,
    /// Untracked files above the limit, which it names only.
    pub too_large: Vec<PathBuf>,
}

/// Saves the working tree: tracked and untracked files as they are, staged or not; ignored files by
/// name only.
///
/// Refuses what a host would refuse, before anything is stored. Leaves out empty folders, nested
/// worktrees of the repository, and untracked files above the limit, which it names.
pub fn save(store: &Store, limit: u64, gate: &Gate) -> Result<Saved, Error> {
    let quarantine = Quarantine::new(store)?;
    let snapshot = Snapshot::take(store, &quarantine, Some(limit))?;
    snapshot.check_submodules(store)?;
    snapshot.check_sizes(store, limit)?;
    snapshot.check_secrets(store, gate)?;
    let ignored = snapshot.ignored()?;
    let guard = if snapshot.tree == store.empty_tree() {
        // git has the empty tree built in, but other tools need the object.
        let mut batch = store.batch();
        batch.write(gix::objs::Kind::Tree, b"")?;
        batch.keep()?
    } else {
        // Objects that HEAD reaches are kept by it.
        let known = store.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).line();
        quarantine.promote(snapshot.tree, known.ok().and_then(|tree| tree.parse().ok()))?
    };
    let (linked, too_large) = (to_paths(&snapshot.linked), to_paths(&snapshot.too_large));
    Ok(Saved { worktree: Worktree { tree: snapshot.tree, ignored }, guard, linked, too_large })
}

fn to_paths(names: &[Vec<u8>]) -> Vec<PathBuf> {
    names.iter().map(|path| path_of(path)).collect()
}

impl<'q> Snapshot<'q> {
    /// Takes a snapshot, without untracked files above the limit. Writes only to the quarantine.
    ///
    /// Without a limit, nothing is saved, and untracked repositories are left out; with one, they
    /// are an error.
    pub fn take(store: &Store, quarantine: &'q Quarantine, limit: Option<u64>) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let linked = linked(store, &root)?;
        let listing = Listing::read(&|| store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0"), &root)?;
        let (tree, too_large, nested) = (store.empty_tree(), Vec::new(), Vec::new());
        let mut snapshot = Self { quarantine, root, listing, tree, linked, too_large, nested };
        snapshot.configure(store).map_err(|e| Error::Io(quarantine.dir().to_owned(), e))?;
        // Without the stat data and flags of the user's index, every file is read.
        let staged = snapshot.listing.lines();
        if !staged.is_empty() {
            snapshot.git().args(["update-index", "-z", "--index-info"]).input(staged.clone()).run()?;
        }
        let absent: Vec<&[u8]> = snapshot.listing.left_out().iter().map(Vec::as_slice).collect();
        if !absent.is_empty() {
            let call = snapshot.git().args(["update-index", "-z", "--skip-worktree", "--stdin"]);
            call.input(absent.join(&0)).run()?;
        }
        let untracked = snapshot.git().args(["ls-files", "-z", "--others", "--exclude-standard"]).run()?;
        if let Some(limit) = limit {
            snapshot.too_large = snapshot.above(limit, &untracked);
        } else {
            // git lists a repository as its folder.
            let folders = records(&untracked).filter_map(|path| path.strip_suffix(b"/"));
            snapshot.nested = folders.map(<[u8]>::to_vec).collect();
        }
        let outside = snapshot.linked.iter().chain(&snapshot.too_large).chain(&snapshot.nested);
        let input = outside.fold(b":/\0".to_vec(), |paths, path| [paths, left_out(path)].concat());
        let add = snapshot.git().args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"]);
        add.input(input).run().map_err(|error| match error {
            program::Error::Failed { stderr, .. } => Error::Refused(stderr),
            other => other.into(),
        })?;
        let now = snapshot.git().args(["ls-files", "-z", "--stage"]).run()?;
        if let Some(link) = links(&now).difference(&links(&staged)).next() {
            return Err(Error::Nested(path_of(link)));
        }
        let written = snapshot.git().arg("write-tree").line()?;
        snapshot.tree = written.parse().map_err(|_| Error::Refused(format!("git wrote the tree {written:?}")))?;
        Ok(snapshot)
    }

    /// Returns the top of the working tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the quarantine folder, which also has the index.
    pub fn folder(&self) -> &Path {
        self.quarantine.dir()
    }

    /// Returns the path of a temporary file beside the index.
    pub fn place(&self, name: &str) -> PathBuf {
        self.quarantine.dir().join(name)
    }

    /// Returns a git command for the working tree, with our configuration only.
    pub fn git(&self) -> Git {
        Git::new(self.quarantine.dir())
            .work_tree(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    fn configure(&self, store: &Store) -> io::Result<()> {
        let dir = self.quarantine.dir();
        let mut config = File::options().append(true).open(dir.join("config"))?;
        writeln!(config, "[core]\n\tbare = false\n\tautocrlf = false\n\tsafecrlf = false")?;
        let repo = store.local();
        let snapshot = repo.config_snapshot();
        for name in SETTINGS {
            if let Some(value) = snapshot.string(format!("core.{name}").as_str()) {
                let escaped = value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                writeln!(config, "\t{name} = \"{escaped}\"")?;
            }
        }
        fs::write(dir.join("info/attributes"), ATTRIBUTES)?;
        match fs::copy(store.common_dir().join("info/exclude"), dir.join("info/exclude")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns those of the listed files that are above a limit.
    fn above(&self, limit: u64, listed: &[u8]) -> Vec<Vec<u8>> {
        records(listed)
            .filter(|path| {
                let found = fs::symlink_metadata(self.root.join(path_of(path)));
                found.is_ok_and(|found| found.is_file() && found.len() > limit)
            })
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// Refuses files above a limit, unless HEAD has the same.
    fn check_sizes(&self, store: &Store, limit: u64) -> Result<(), Error> {
        let listed = self.git().args(["ls-tree", "-r", "-l", "-z", &self.tree.to_string()]).run()?;
        for record in records(&listed) {
            let mut parts = record.splitn(2, |b| *b == b'\t');
            let (about, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let size =
                String::from_utf8_lossy(about).split_whitespace().nth(3).and_then(|size| size.parse::<u64>().ok());
            if size.is_some_and(|size| size > limit) && !is_at_head(store, about, path)? {
                return Err(Error::TooLarge(path_of(path), limit));
            }
        }
        Ok(())
    }

    /// Refuses files with secrets, unless HEAD has the same content.
    fn check_secrets(&self, store: &Store, gate: &Gate) -> Result<(), Error> {
        let head = store.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).line().ok();
        let range = Range { tips: vec![self.tree], known: head.into_iter().collect() };
        match secret_scan::new_objects(&|| self.git(), &range, gate)?.into_iter().next() {
            Some((_, secret)) => Err(Error::Secret(secret)),
            None => Ok(()),
        }
    }

    /// Refuses changes inside submodules, because the tree only names their commits.
    fn check_submodules(&self, store: &Store) -> Result<(), Error> {
        let staged = self.git().args(["ls-files", "-z", "--stage"]).run()?;
        let paths: Vec<OsString> = links(&staged).iter().map(|path| literal(path)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        // Only these paths are named, so that no filter of the repository runs.
        let user = store.git().work_tree(&self.root).env("GIT_OPTIONAL_LOCKS", "0");
        let args =
            ["status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none", "--no-renames"];
        let listed = user.args(args).arg("--").args(paths).run()?;
        // `1 XY S<commit><modified><untracked> mH mI mW hH hI path`; of unmerged paths two fields
        // more.
        let changed = records(&listed).filter_map(|record| {
            let fields = if record.starts_with(b"u ") { 11 } else { 9 };
            let fields: Vec<&[u8]> = record.splitn(fields, |byte| *byte == b' ').collect();
            let state = fields.get(2).filter(|state| state.starts_with(b"S"))?;
            Some((fields.last()?.to_vec(), state.get(2) == Some(&b'M') || state.get(3) == Some(&b'U')))
        });
        let (dirty, moved): (Vec<_>, Vec<_>) = changed.partition(|(_, is_dirty)| *is_dirty);
        if !dirty.is_empty() {
            return Err(Error::Submodules(dirty.iter().map(|(path, _)| path_of(path)).collect()));
        }
        self.check_commits(submodules::links(&staged, &moved.into_iter().map(|(path, _)| path).collect::<Vec<_>>()))
    }

    /// Refuses commits of submodules that no remote-tracking branch of the submodule contains: the
    /// tree has only their names.
    fn check_commits(&self, moved: Vec<(PathBuf, Oid)>) -> Result<(), Error> {
        for (path, commit) in moved {
            let git_dir = self.root.join(&path).join(".git");
            if !git_dir.exists() {
                continue;
            }
            let args = ["for-each-ref", "--count=1", "--contains"];
            let found = Git::new(&git_dir).args(args).arg(commit.to_string()).arg("refs/remotes").run()?;
            if found.is_empty() {
                return Err(Error::Unpublished(path, commit));
            }
        }
        Ok(())
    }

    /// Lists ignored files and untracked ones above the limit. Their sizes and hashes are not
    /// recorded, because their content is often private.
    fn ignored(&self) -> Result<Vec<Ignored>, Error> {
        let list = |more: &[&str]| {
            let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
            self.git().args(args).args(more).run()
        };
        let mut listed = list(&[])?;
        if records(&listed).count() > MOST_IGNORED {
            listed = list(&["--directory"])?;
        }
        let mut ignored: Vec<Ignored> = records(&listed).map(|record| Ignored { path: to_text(record) }).collect();
        if ignored.len() > MOST_IGNORED {
            return Err(Error::TooManyIgnored);
        }
        ignored.extend(self.too_large.iter().map(|name| Ignored { path: to_text(name) }));
        ignored.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ignored)
    }
}

fn to_text(record: &[u8]) -> String {
    String::from_utf8_lossy(record).into_owned()
}

/// Returns the worktrees of the repository that are nested in one of them, relative to its top.
///
/// Agent tools create theirs below the checkout. Ignores those whose folder is gone.
fn linked(store: &Store, root: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let listed = store.git().args(["worktree", "list", "--porcelain", "-z"]).run()?;
    let top = fs::canonicalize(root).map_err(|e| Error::Read(root.to_owned(), e))?;
    let paths = records(&listed).filter_map(|record| record.strip_prefix(b"worktree "));
    let below = paths.filter_map(|path| {
        let path = fs::canonicalize(path_of(path)).ok()?;
        let path = path.strip_prefix(&top).ok().filter(|path| !path.as_os_str().is_empty())?;
        Some(path.as_os_str().as_encoded_bytes().to_vec())
    });
    Ok(below.collect())
}

/// Returns true if HEAD has the blob that `about` describes, as `git ls-tree` does, at this path.
fn is_at_head(store: &Store, about: &[u8], path: &[u8]) -> Result<bool, program::Error> {
    let mut spec = OsString::from("HEAD:");
    spec.push(path_of(path));
    let call = store.git().args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(spec);
    match call.line() {
        Ok(oid) => Ok(String::from_utf8_lossy(about).split_whitespace().nth(2) == Some(&oid)),
        Err(program::Error::Failed { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Returns the submodules in the output of `git ls-files --stage`.
fn links(listed: &[u8]) -> BTreeSet<Vec<u8>> {
    let links = records(listed).filter(|record| record.starts_with(b"160000 "));
    links.filter_map(|record| Some(record.splitn(2, |b| *b == b'\t').nth(1)?.to_vec())).collect()
}

/// Returns a pathspec that matches exactly one path.
fn literal(path: &[u8]) -> OsString {
    let mut spec = OsString::from(":(top,literal)");
    spec.push(path_of(path));
    spec
}

/// Returns pathspecs that exclude a folder, for git's standard input.
///
/// They are escaped patterns, because `git add` refuses an ignored literal path.
fn left_out(path: &[u8]) -> Vec<u8> {
    let pattern: Vec<u8> =
        path.iter()
            .enumerate()
            .flat_map(|(at, &byte)| {
                if at == 0 || matches!(byte, b'*' | b'?' | b'[' | b'\\') { vec![b'\\', byte] } else { vec![byte] }
            })
            .collect();
    let magic = b":(top,exclude,glob)";
    [&magic[..], &pattern, b"\0", magic, &pattern, b"/**\0"].concat()
}

/// Splits the output of `-z`.
pub(super) fn records(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

errors! {
    /// An error while saving a working tree.
    #[derive(Debug, thiserror::Error)] pub enum Error = "worktree";
    Bare: "there is no work tree";
    Refused(String): "the working tree cannot be saved: {0}";
    Nested(PathBuf): "{} is a nested git repository, which no checkpoint can hold" [.0.display()];
    Submodules(Vec<PathBuf>):
        "the submodule{} {} {} uncommitted or new files, which no checkpoint holds; commit or stash them there"
        [if .0.len() == 1 { "" } else { "s" }, .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "), if .0.len() == 1 { "has" } else { "have" }];
    Unpublished(PathBuf, Oid):
        "the submodule {path} is at the commit {commit}, which no remote-tracking branch of it contains, and a \
         checkpoint holds only its name; push it there" [path = .0.display(), commit = .1];
    TooLarge(PathBuf, u64):
        "{file} has more than {limit} bytes, the most that is taken" [file = .0.display(), limit = .1];
    TooManyIgnored: "more than {MOST_IGNORED} files and folders are ignored";
    Read(PathBuf, #[source] io::Error): "cannot read {}" [.0.display()];
    Io(PathBuf, #[source] io::Error): "{} could not be written" [.0.display()];
    #[from "worktree"] Quarantine(quarantine::Error), Store(store::Error), Git(program::Error), Secret(Secret);
}
