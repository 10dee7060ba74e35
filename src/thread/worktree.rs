//! The working tree as it stands, as a tree object: byte for byte as on disk.
//!
//! git reads the files with an index and a git directory of ours, without filters, line-end conversions and attributes, so that
//! what comes back elsewhere is what lay here, whatever is configured there. The user's index is only read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::git::listing::Listing;
use crate::git::program::{self, Git};
use crate::git::quarantine::{self, Quarantine};
use crate::git::screen::{self, Range};
use crate::git::store::{self, Kept, Store};
use crate::model::credential::gate::{Gate, Secret};
use crate::model::digest::Oid;
use crate::model::entry::{Ignored, Worktree};

use super::path_of;

/// More ignored files than this are not listed one by one: folders that are ignored as a whole are named instead.
const MOST_IGNORED: usize = 1000;

/// What git takes every file for, whatever attributes the files give one another: this place outranks theirs, in every version.
const ATTRIBUTES: &str = "* -text !eol -ident !filter !working-tree-encoding\n";

/// Settings that say what the file system can hold and what is ignored.
const SETTINGS: [&str; 6] =
    ["filemode", "symlinks", "ignorecase", "precomposeunicode", "excludesFile", "bigFileThreshold"];

/// A look at the working tree, whose objects are in a quarantine.
pub struct Snapshot<'q> {
    quarantine: &'q Quarantine,
    root: PathBuf,
    /// The user's index.
    pub listing: Listing,
    /// The tree.
    pub tree: Oid,
    /// The worktrees of this repository below the working tree, by their paths from its top. They are no part of the tree.
    linked: Vec<Vec<u8>>,
}

/// A working tree that was saved.
pub struct Saved {
    /// What a checkpoint records of it.
    pub worktree: Worktree,
    /// Keeps its objects until a ref reaches them.
    pub kept: Kept,
    /// The worktrees of this repository that it does not hold, by their paths.
    pub left_out: Vec<PathBuf>,
}

/// Saves the working tree into the repository: tracked and untracked files as they stand, staged or not, ignored ones by name.
///
/// What a host would refuse is refused here, before anything is in the repository. Empty folders are nothing to git. The objects
/// are kept until a ref reaches them. Other worktrees of the repository that lie below are left out.
pub fn save(store: &Store, limit: u64, gate: &Gate) -> Result<Saved, Error> {
    let quarantine = Quarantine::new(store)?;
    let snapshot = Snapshot::take(store, &quarantine)?;
    snapshot.check_submodules(store)?;
    snapshot.check_sizes(limit)?;
    snapshot.check_secrets(store, gate)?;
    let ignored = snapshot.ignored()?;
    let kept = if snapshot.tree == store.empty_tree() {
        // git knows it without an object, but not everybody does.
        let mut batch = store.batch();
        batch.write(gix::objs::Kind::Tree, b"")?;
        batch.keep()?
    } else {
        // What HEAD reaches stays without us.
        let known = store.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).line();
        quarantine.promote(snapshot.tree, known.ok().and_then(|tree| tree.parse().ok()))?
    };
    let left_out = snapshot.linked.iter().map(|path| path_of(path)).collect();
    Ok(Saved { worktree: Worktree { tree: snapshot.tree, ignored }, kept, left_out })
}

impl<'q> Snapshot<'q> {
    /// Takes it. Nothing outside the quarantine is written.
    pub fn take(store: &Store, quarantine: &'q Quarantine) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let linked = linked(store, &root)?;
        let listing = Listing::read(&|| store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0"), &root)?;
        let mut snapshot = Self { quarantine, root, listing, tree: store.empty_tree(), linked };
        snapshot.configure(store).map_err(|e| Error::Io(quarantine.dir().to_owned(), e))?;
        // Without the times and marks of the user's index, every file is read.
        let staged = snapshot.listing.lines();
        if !staged.is_empty() {
            snapshot.git().args(["update-index", "-z", "--index-info"]).input(staged.clone()).run()?;
        }
        let absent: Vec<&[u8]> = snapshot.listing.left_out().iter().map(Vec::as_slice).collect();
        if !absent.is_empty() {
            let call = snapshot.git().args(["update-index", "-z", "--skip-worktree", "--stdin"]);
            call.input(absent.join(&0)).run()?;
        }
        let input = snapshot.linked.iter().fold(b":/\0".to_vec(), |paths, path| [paths, left_out(path)].concat());
        let add = snapshot.git().args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"]);
        add.input(input).run().map_err(|error| match error {
            program::Error::Failed { said, .. } => Error::Refused(said),
            other => other.into(),
        })?;
        let now = snapshot.git().args(["ls-files", "-z", "--stage"]).run()?;
        if let Some(nested) = links(&now).difference(&links(&staged)).next() {
            return Err(Error::Nested(path_of(nested)));
        }
        let tree = snapshot.git().arg("write-tree").line()?;
        snapshot.tree = tree.parse().map_err(|_| Error::Refused(format!("git wrote the tree {tree:?}")))?;
        Ok(snapshot)
    }

    /// Returns the root of the working tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the quarantine, which also holds the index.
    pub fn folder(&self) -> &Path {
        self.quarantine.dir()
    }

    /// Returns the path of a file of ours beside the index.
    pub fn place(&self, name: &str) -> PathBuf {
        self.quarantine.dir().join(name)
    }

    /// Returns a call of git that sees the working tree as it is, and no configuration but ours.
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

    fn check_sizes(&self, limit: u64) -> Result<(), Error> {
        let listed = self.git().args(["ls-tree", "-r", "-l", "-z", &self.tree.to_string()]).run()?;
        for record in records(&listed) {
            let mut parts = record.splitn(2, |b| *b == b'\t');
            let (about, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let size =
                String::from_utf8_lossy(about).split_whitespace().nth(3).and_then(|size| size.parse::<u64>().ok());
            if size.is_some_and(|size| size > limit) {
                return Err(Error::TooLarge(path_of(path), limit));
            }
        }
        Ok(())
    }

    /// Refuses files with secrets in them, as far as HEAD does not have the same.
    fn check_secrets(&self, store: &Store, gate: &Gate) -> Result<(), Error> {
        let head = store.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).line().ok();
        let range = Range { tips: vec![self.tree], known: head.into_iter().collect() };
        match screen::new_objects(&|| self.git(), &range, gate)?.into_iter().next() {
            Some((_, secret)) => Err(Error::Secret(secret)),
            None => Ok(()),
        }
    }

    /// Refuses changes to the files of submodules: the tree names a commit of each, and nothing else.
    fn check_submodules(&self, store: &Store) -> Result<(), Error> {
        let staged = self.git().args(["ls-files", "-z", "--stage"]).run()?;
        let paths: Vec<OsString> = links(&staged).iter().map(|path| literal(path)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        // No other path is named, so that no filter of the repository's runs.
        let user = store.git().work_tree(&self.root).env("GIT_OPTIONAL_LOCKS", "0");
        let args =
            ["status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none", "--no-renames"];
        let listed = user.args(args).arg("--").args(paths).run()?;
        // `1 XY S<commit><modified><untracked> mH mI mW hH hI path`; of unmerged paths two fields more.
        let changed = records(&listed).filter_map(|record| {
            let fields = if record.starts_with(b"u ") { 11 } else { 9 };
            let fields: Vec<&[u8]> = record.splitn(fields, |byte| *byte == b' ').collect();
            let state = fields.get(2).filter(|state| state.starts_with(b"S"))?;
            (state.get(2) == Some(&b'M') || state.get(3) == Some(&b'U'))
                .then(|| fields.last().map(|path| path_of(path)))?
        });
        let changed: Vec<PathBuf> = changed.collect();
        if changed.is_empty() { Ok(()) } else { Err(Error::Submodules(changed)) }
    }

    /// Lists what git ignores. Of such files nothing is told that their content could be guessed by: what nobody committed is
    /// often kept from others for a reason.
    fn ignored(&self) -> Result<Vec<Ignored>, Error> {
        let list = |more: &[&str]| {
            let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
            self.git().args(args).args(more).run()
        };
        let mut listed = list(&[])?;
        if records(&listed).count() > MOST_IGNORED {
            listed = list(&["--directory"])?;
        }
        let path = |record: &[u8]| String::from_utf8_lossy(record).into_owned();
        let mut ignored: Vec<Ignored> =
            records(&listed).map(|record| Ignored { path: path(record), sha256: None }).collect();
        if ignored.len() > MOST_IGNORED {
            return Err(Error::TooManyIgnored);
        }
        ignored.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ignored)
    }
}

/// Returns the worktrees of the repository that lie below the top of one of them, by their paths from there.
///
/// Tools for agents make theirs below the checkout. One whose folder is gone is none.
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

/// Returns the paths of submodules among what `git ls-files --stage` lists.
fn links(listed: &[u8]) -> BTreeSet<Vec<u8>> {
    let links = records(listed).filter(|record| record.starts_with(b"160000 "));
    links.filter_map(|record| Some(record.splitn(2, |b| *b == b'\t').nth(1)?.to_vec())).collect()
}

/// Returns the pathspec of a path and nothing else.
fn literal(path: &[u8]) -> OsString {
    let mut spec = OsString::from(":(top,literal)");
    spec.push(path_of(path));
    spec
}

/// Returns the pathspecs by which git leaves a folder out, as its standard input takes them.
///
/// They are patterns that begin with an escape: a literal path that is ignored as well, `git add` refuses.
fn left_out(path: &[u8]) -> Vec<u8> {
    let is_special = |at: usize, byte: u8| at == 0 || matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let escaped = |(at, &byte): (usize, &u8)| if is_special(at, byte) { vec![b'\\', byte] } else { vec![byte] };
    let pattern: Vec<u8> = path.iter().enumerate().flat_map(escaped).collect();
    let magic = b":(top,exclude,glob)";
    [&magic[..], &pattern, b"\0", magic, &pattern, b"/**\0"].concat()
}

/// Splits what git lists with `-z`.
pub(super) fn records(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// Why a working tree was not saved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no work tree")]
    Bare,
    #[error("the working tree cannot be saved: {0}")]
    Refused(String),
    #[error("{} is a nested git repository, which no checkpoint can hold", .0.display())]
    Nested(PathBuf),
    #[error(
        "the submodule{} {} {} uncommitted or new files, which no checkpoint holds; commit or stash them there",
        if .0.len() == 1 { "" } else { "s" },
        .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        if .0.len() == 1 { "has" } else { "have" }
    )]
    Submodules(Vec<PathBuf>),
    #[error("{file} has more than {limit} bytes, the most that is taken", file = .0.display(), limit = .1)]
    TooLarge(PathBuf, u64),
    #[error("more than {MOST_IGNORED} files and folders are ignored")]
    TooManyIgnored,
    #[error(transparent)]
    Secret(Secret),
    #[error(transparent)]
    Quarantine(#[from] quarantine::Error),
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} could not be written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Git(#[from] program::Error),
}
