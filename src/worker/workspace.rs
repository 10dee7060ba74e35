//! The worktree of one attempt.
//!
//! `<root>/<run>/<item>.<attempt>/` holds `tree/` (where the worker runs), `tmp/` (its `TMPDIR`), `task.json`, `result.json`,
//! `transcript`, and our own copy of the `index` as it was after the checkout. Nothing here is synced: what a crash leaves
//! behind is thrown away, after [`Workspace::leftovers`] found it.

mod base;
mod git_dir;
pub(super) mod removal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) use base::Base;

use crate::model::digest::Oid;
use crate::model::name::{ItemId, RunId};
use crate::worker::site::Site;

/// The most that is read of a result file.
const MAX_RESULT: u64 = 1 << 20;

/// The folder of one attempt.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The commit that it was checked out at.
    pub base: Oid,
    /// The attempt's folder, without symbolic links in its path.
    pub dir: PathBuf,
    inputs: PathBuf,
    outputs: PathBuf,
}

/// The folder of an attempt whose conductor is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The item.
    pub item: ItemId,
    /// The attempt.
    pub attempt: u32,
    /// The attempt's folder.
    pub dir: PathBuf,
}

impl Workspace {
    /// Makes a worktree at `base` with a private git directory; runs no git process unless the repository's filters are one.
    ///
    /// A folder that is there already is refused. A failure leaves nothing.
    pub fn create(site: &Site, run: &RunId, item: &ItemId, attempt: u32, base: Oid) -> Result<Self, Error> {
        let prepared = site.base(base)?;
        let dir = run_dir(site, run);
        fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        let dir = fs::canonicalize(&dir).map_err(|e| Error::io(&dir, e))?;
        let workspace = Self::at(site, run, item, attempt, base, dir.join(format!("{}.{attempt}", item.encoded())));
        match fs::create_dir(&workspace.dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists(workspace.dir)),
            other => other.map_err(|e| Error::io(&workspace.dir, e))?,
        }
        if let Err(error) = workspace.fill(site, &prepared) {
            // The first failure is the one to tell; what could not be removed is found as a leftover.
            let _ = workspace.remove();
            return Err(error);
        }
        Ok(workspace)
    }

    /// Returns the attempt that a dead conductor left, to salvage from it or to remove it.
    pub fn reopen(site: &Site, run: &RunId, leftover: Leftover, base: Oid) -> Self {
        Self::at(site, run, &leftover.item, leftover.attempt, base, leftover.dir)
    }

    fn at(site: &Site, run: &RunId, item: &ItemId, attempt: u32, base: Oid, dir: PathBuf) -> Self {
        let tree = dir.join("tree");
        let (inputs, outputs) = (tree.join(&site.inputs), tree.join(&site.outputs));
        Self { run: run.clone(), item: item.clone(), attempt, base, dir, inputs, outputs }
    }

    fn fill(&self, site: &Site, base: &Base) -> Result<(), Error> {
        let tree = self.tree();
        fs::create_dir(&tree).map_err(Error::at(&tree))?;
        let index = base.checkout(site, &tree)?;
        for dir in [&self.inputs, &self.outputs, &self.tmp()] {
            fs::create_dir_all(dir).map_err(Error::at(dir))?;
        }
        let git_dir = tree.join(".git");
        base.worker.write(&git_dir).map_err(Error::at(&git_dir))?;
        fs::write(git_dir.join("index"), index.worker).map_err(Error::at(&git_dir))?;
        // After the checkout and before the worker: a file that changes later cannot have an earlier time than this one.
        fs::write(self.index(), index.ours).map_err(Error::at(&self.dir))
    }

    /// Returns the worktree: the worker's working directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Returns the folder that consumed bytes are put into.
    pub fn inputs(&self) -> &Path {
        &self.inputs
    }

    /// Returns the folder that outputs are taken from.
    pub fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// Returns the worker's private folder for temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Returns the file that tells the worker what to do; its path is also what survivors are recognised by.
    pub fn task(&self) -> PathBuf {
        task_file(&self.dir)
    }

    /// Returns the file that the worker may write its result to.
    pub fn result(&self) -> PathBuf {
        self.dir.join("result.json")
    }

    /// Returns the file that stdout and stderr go to.
    pub fn transcript(&self) -> PathBuf {
        self.dir.join("transcript")
    }

    /// Returns our index as it was after the checkout.
    pub(super) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// Reads what the worker wrote as its result: none where it wrote nothing, or something that is no small plain file.
    pub fn read_result(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = self.result();
        match open_regular(&path) {
            Ok(file) if file.metadata().is_ok_and(|meta| meta.len() <= MAX_RESULT) => {
                let mut bytes = Vec::new();
                io::Read::read_to_end(&mut io::Read::take(file, MAX_RESULT), &mut bytes).map_err(Error::at(&path))?;
                Ok(Some(bytes))
            }
            _ => Ok(None),
        }
    }

    /// Lists the attempts of a run that are on disk: those of a dead conductor, if the caller holds the run's lock.
    ///
    /// Before one is salvaged or removed, [`super::survivors::end`] must have ended what still runs in it.
    pub fn leftovers(site: &Site, run: &RunId) -> Result<Vec<Leftover>, Error> {
        let dir = run_dir(site, run);
        let dir = match fs::canonicalize(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(Error::at(&dir))?,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).map_err(Error::at(&dir))? {
            let entry = entry.map_err(Error::at(&dir))?;
            let name = entry.file_name();
            let parsed = name.to_str().and_then(|name| name.rsplit_once('.'));
            let parsed = parsed.and_then(|(item, attempt)| Some((ItemId::decode(item)?, attempt.parse().ok()?)));
            if let Some((item, attempt)) = parsed {
                found.push(Leftover { item, attempt, dir: entry.path() });
            }
        }
        found.sort_by(|a, b| (&a.item, a.attempt).cmp(&(&b.item, b.attempt)));
        Ok(found)
    }

    /// Removes the attempt's folder with everything in it, whatever modes it has; links are removed, never followed.
    ///
    /// A failure leaves a folder that can be removed again later. The run's folder goes with its last attempt.
    pub fn remove(self) -> Result<(), Error> {
        removal::remove(&self.dir).map_err(Error::at(&self.dir))?;
        if let Some(run) = self.dir.parent() {
            // Fails as long as other attempts of the run are there.
            let _ = fs::remove_dir(run);
        }
        Ok(())
    }
}

/// Returns the path of the task file of an attempt's folder.
pub(super) fn task_file(dir: &Path) -> PathBuf {
    dir.join("task.json")
}

/// Opens a plain file that a worker may have replaced by anything: a link is not followed and a pipe does not block.
pub(super) fn open_regular(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"))
}

fn run_dir(site: &Site, run: &RunId) -> PathBuf {
    site.root.join(run.encoded())
}

/// Why a worktree could not be made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base is no commit, or cannot be read.
    #[error("the base commit {0} could not be read")]
    Base(Oid, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The base tracks one of our folders.
    #[error("the base commit {0} tracks `{1}`, which every worktree needs for itself")]
    Reserved(Oid, String),
    /// The attempt's folder is there already.
    #[error("{} is there already, left by an earlier attempt", .0.display())]
    Exists(PathBuf),
    /// Files could not be written as the commit has them.
    #[error("the base commit could not be checked out")]
    Checkout(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Two paths of the commit are one file here.
    #[error("the base commit cannot be checked out here: {0} collides with another path")]
    Collision(String),
    /// A file operation failed.
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

impl Error {
    fn io(path: &Path, error: io::Error) -> Self {
        Self::Io(path.to_owned(), error)
    }

    /// Returns what makes an I/O error at `path` one of ours.
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
