//! The working tree as it stands, as a tree object: byte for byte as on disk.
//!
//! git reads the files with an index and a git directory of ours, without filters, line-end conversions and attributes, so that
//! what comes back elsewhere is what lay here, whatever is configured there. The user's index is only read.

use std::collections::BTreeSet;
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
}

/// Saves the working tree into the repository: tracked and untracked files as they stand, staged or not, ignored ones by name.
///
/// What a host would refuse is refused here, before anything is in the repository. Empty folders are nothing to git. The objects
/// are kept until a ref reaches them.
pub fn save(store: &Store, limit: u64, gate: &Gate) -> Result<(Worktree, Kept), Error> {
    let quarantine = Quarantine::new(store)?;
    let snapshot = Snapshot::take(store, &quarantine)?;
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
    Ok((Worktree { tree: snapshot.tree, ignored }, kept))
}

impl<'q> Snapshot<'q> {
    /// Takes it. Nothing outside the quarantine is written.
    pub fn take(store: &Store, quarantine: &'q Quarantine) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let listing = Listing::read(&|| store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0"), &root)?;
        let mut snapshot = Self { quarantine, root, listing, tree: store.empty_tree() };
        snapshot.configure(store).map_err(|e| Error::Io(quarantine.dir().to_owned(), e))?;
        // Without the times and marks of the user's index, every file is read.
        let staged = snapshot.listing.lines();
        if !staged.is_empty() {
            snapshot.git().args(["update-index", "-z", "--index-info"]).input(staged.clone()).run()?;
        }
        let left_out: Vec<&[u8]> = snapshot.listing.left_out().iter().map(Vec::as_slice).collect();
        if !left_out.is_empty() {
            let call = snapshot.git().args(["update-index", "-z", "--skip-worktree", "--stdin"]);
            call.input(left_out.join(&0)).run()?;
        }
        snapshot.git().args(["add", "--all", "--", ":/"]).run().map_err(|error| match error {
            program::Error::Failed { said, .. } => Error::Refused(said),
            other => other.into(),
        })?;
        let links = |listed: &[u8]| -> BTreeSet<Vec<u8>> {
            let links = records(listed).filter(|record| record.starts_with(b"160000 "));
            links.filter_map(|record| Some(record.split(|b| *b == b'\t').nth(1)?.to_vec())).collect()
        };
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

/// Splits what git lists with `-z`.
pub(super) fn records(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// Why a working tree was not saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("there is no work tree")]
    Bare,
    /// It holds what git cannot keep.
    #[error("the working tree cannot be saved: {0}")]
    Refused(String),
    /// It holds another repository.
    #[error("{} is a nested git repository, which no checkpoint can hold", .0.display())]
    Nested(PathBuf),
    /// It holds a file that is too large.
    #[error("{file} has more than {limit} bytes, the most that is taken", file = .0.display(), limit = .1)]
    TooLarge(PathBuf, u64),
    /// Even folders of ignored files are too many to name.
    #[error("more than {MOST_IGNORED} files and folders are ignored")]
    TooManyIgnored,
    /// It holds a file with a secret in it.
    #[error(transparent)]
    Secret(Secret),
    /// A host would not take it, or it could not be stored.
    #[error(transparent)]
    Quarantine(#[from] quarantine::Error),
    /// A file of ours could not be written.
    #[error("{} could not be written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// An object could not be written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// git failed.
    #[error(transparent)]
    Git(#[from] program::Error),
}
