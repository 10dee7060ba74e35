//! Restores a finished attempt's folder to its initial state.
//!
//! The last worker is hostile, and its processes have ended. Entries as recorded stay, files that
//! differ in anything are removed and checked out again, and unknown entries are removed. The git
//! directory is always replaced. If that fails, the whole folder is removed.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gix::bstr::BString;
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::base::bytes_of;
use super::record::{self, Node, Recorded};
use super::{Base, Error, Index, Refs};
use crate::sandbox::folder::Folder;
use crate::sandbox::removal;
use crate::worktree::host::Host;

/// How long to wait for the file system's clock: many times its resolution.
const CLOCK: Duration = Duration::from_secs(1);

/// How often to check the clock meanwhile.
const PAUSE: Duration = Duration::from_micros(200);

/// The initial state of an attempt's folder.
#[derive(Debug)]
pub(super) struct Pristine {
    /// Its base.
    pub(super) base: Arc<Base>,
    /// Its entries.
    recorded: Recorded,
    /// The flags and extended attributes of every folder in it.
    attributes: Vec<u8>,
    /// Our index.
    index: Arc<Index>,
}

impl Pristine {
    /// Records a freshly filled folder, or returns `None` if later changes could be invisible.
    pub(super) fn record(folder: &Folder, base: &Arc<Base>, index: Index) -> io::Result<(Option<Self>, Arc<Index>)> {
        let fd = folder.as_fd();
        if !record::is_kept(fd) {
            return Ok((None, Arc::new(index)));
        }
        let recorded = Recorded::read(fd)?;
        let attributes = record::attributes(fd)?;
        let mut pristine = Self { base: Arc::clone(base), recorded, attributes, index: Arc::new(index) };
        pristine.stamp(fd)?;
        let own_index = Arc::clone(&pristine.index);
        Ok((Some(pristine), own_index))
    }

    /// Returns our index.
    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Restores the folder with these refs; `dir` is its path. If that fails, it must be removed.
    pub(super) fn restore(&mut self, host: &Host, folder: &Folder, dir: &Path, refs: &Refs) -> Result<(), Spoilt> {
        let tree = folder.folder(TREE)?;
        tree.remove(GIT)?;
        self.tree()?.nodes.remove(c".git");
        let mut found = Found { attributes: &self.attributes, broken: BTreeSet::new() };
        found.compare(folder.as_fd(), &mut self.recorded, true, &mut Vec::new())?;
        let broken = found.broken;
        // Only now paths are used.
        if !folder.is_at(dir) {
            return Err(Spoilt);
        }
        if !broken.is_empty() {
            self.index = Arc::new(self.base.checkout_again(host, &dir.join(TREE), &self.index, &broken)?);
        }
        write_git(&self.base, refs, &self.index, dir)?;
        let git = Recorded::read(tree.folder(GIT)?.as_fd())?;
        self.tree()?.nodes.insert(c".git".to_owned(), Node::Folder(git));
        self.recorded.refresh(folder.as_fd())?;
        self.stamp(folder.as_fd())?;
        Ok(())
    }

    /// Returns the initial entries of the worktree.
    fn tree(&mut self) -> Result<&mut Recorded, Spoilt> {
        match self.recorded.nodes.get_mut(c"tree") {
            Some(Node::Folder(tree)) => Ok(tree),
            _ => Err(Spoilt),
        }
    }

    /// Sets the stamp's time after that of everything else in the folder: later changes cannot have
    /// a recorded time.
    fn stamp(&mut self, folder: BorrowedFd<'_>) -> io::Result<()> {
        let newest = self.recorded.newest();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        };
        let mut patience = CLOCK;
        let status = loop {
            rustix::fs::utimensat(folder, STAMP, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            let status = record::read_status(folder, STAMP)?;
            if status.changed > newest {
                break status;
            }
            patience = patience.checked_sub(PAUSE).ok_or(io::ErrorKind::TimedOut)?;
            std::thread::sleep(PAUSE);
        };
        self.recorded.nodes.insert(STAMP.to_owned(), Node::File(Some(status)));
        let (seconds, nanoseconds) = status.changed;
        let since = Duration::new(u64::try_from(seconds).map_err(io::Error::other)?, nanoseconds);
        let written = SystemTime::UNIX_EPOCH + since;
        self.index = Arc::new(Index { written, ..Index::clone(&self.index) });
        Ok(())
    }
}

/// The file in an attempt's folder whose time is later than that of the checkout.
pub(super) const STAMP: &CStr = c"stamp";

/// The names of the worktree in that folder, and of the git directory in the worktree.
const TREE: &str = "tree";
const GIT: &str = ".git";

/// Writes the worker's git directory into an attempt's folder.
pub(super) fn write_git(base: &Base, refs: &Refs, index: &Index, dir: &Path) -> Result<(), Error> {
    let git_dir = dir.join(TREE).join(GIT);
    base.worker.write(&git_dir).map_err(Error::at(&git_dir))?;
    refs.write(&git_dir, base.commit).map_err(Error::at(&git_dir))?;
    fs::write(git_dir.join("index"), bytes_of(&index.state)?).map_err(Error::at(&git_dir))
}

/// The result of comparing a finished folder.
struct Found<'a> {
    /// The required flags and extended attributes of every folder.
    attributes: &'a [u8],
    /// The files to check out again, by path from the worktree; their places are empty.
    broken: BTreeSet<BString>,
}

impl Found<'_> {
    /// Compares a folder with its record and removes unknown or changed entries.
    fn compare(
        &mut self,
        dir: BorrowedFd<'_>,
        known: &mut Recorded,
        top: bool,
        path: &mut Vec<u8>,
    ) -> Result<(), Spoilt> {
        let status = record::look_at(dir)?;
        if !status.is_same_folder(&known.status) {
            return Err(Spoilt);
        }
        // We moved the attempt's folder itself and added files.
        if top || !status.has_same_entries(&known.status) {
            if record::attributes(dir)? != self.attributes || status.is_bloated(&known.status) {
                return Err(Spoilt);
            }
            for name in record::names(dir)? {
                let name = name?;
                if !known.nodes.contains_key(&name) {
                    removal::remove(dir, &name)?;
                }
            }
            known.stale = true;
        }
        for (name, node) in &mut known.nodes {
            let length = path.len();
            path.extend_from_slice(name.to_bytes());
            match node {
                Node::File(was) => {
                    let same = was.is_some_and(|was| record::read_status(dir, name).is_ok_and(|now| now == was));
                    if !same {
                        removal::remove(dir, name)?;
                        self.broken.insert(path.strip_prefix(b"tree/").ok_or(Spoilt)?.into());
                        *was = None;
                        known.stale = true;
                    }
                }
                Node::Folder(folder) => {
                    path.push(b'/');
                    self.compare(record::open(dir, name)?.as_fd(), folder, false, path)?;
                    known.stale |= folder.stale;
                }
            }
            path.truncate(length);
        }
        Ok(())
    }
}

/// The folder cannot be restored and must be removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spoilt;

impl From<io::Error> for Spoilt {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<Error> for Spoilt {
    fn from(_: Error) -> Self {
        Self
    }
}
