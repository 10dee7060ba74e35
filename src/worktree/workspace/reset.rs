//! Restores a finished attempt's folder to its initial state.
//!
//! The last worker is hostile, and its processes have ended. Entries as recorded stay, entries that
//! differ in anything are removed and written again, and unknown entries are removed. If that
//! fails, the whole folder is removed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gix::bstr::{BString, ByteSlice as _};
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

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
    /// Its refs.
    refs: Refs,
    /// Its entries.
    recorded: Recorded,
    /// The flags and extended attributes of every folder in it.
    attributes: Vec<u8>,
    /// Our index.
    index: Arc<Index>,
}

impl Pristine {
    /// Records a freshly filled folder, or returns `None` if later changes could be invisible.
    pub(super) fn of(
        folder: &Folder,
        base: &Arc<Base>,
        refs: &Refs,
        index: Index,
    ) -> io::Result<(Option<Self>, Arc<Index>)> {
        let fd = folder.as_fd();
        if !record::is_kept(fd) {
            return Ok((None, Arc::new(index)));
        }
        let recorded = Recorded::read(fd)?;
        let attributes = record::attributes(fd)?;
        let unstamped = Arc::new(index);
        let (base, refs) = (Arc::clone(base), refs.clone());
        let mut pristine = Self { base, refs, recorded, attributes, index: unstamped };
        pristine.stamp(fd)?;
        let index = Arc::clone(&pristine.index);
        Ok((Some(pristine), index))
    }

    /// Returns our index.
    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Returns the initial entries of the worktree.
    pub(super) fn tree(&self) -> Option<&Recorded> {
        match self.recorded.nodes.get(c"tree") {
            Some(Node::Folder(tree)) => Some(tree),
            _ => None,
        }
    }

    /// Restores the folder; `dir` is its path. Fails if it had other refs or cannot be restored;
    /// then it must be removed.
    pub(super) fn restore(&mut self, host: &Host, folder: &Folder, dir: &Path, refs: &Refs) -> Result<(), Spoilt> {
        if self.refs != *refs {
            return Err(Spoilt);
        }
        let mut found = Found { attributes: &self.attributes, broken: Vec::new() };
        found.compare(folder.as_fd(), &mut self.recorded, true, &mut Vec::new())?;
        let broken = found.broken;
        // Only the new checkout uses a path.
        if !folder.is_at(dir) {
            return Err(Spoilt);
        }
        self.mend(host, folder, dir, &broken)?;
        self.recorded.refresh(folder.as_fd())?;
        self.stamp(folder.as_fd())?;
        Ok(())
    }

    /// Writes the broken entries again.
    fn mend(&mut self, host: &Host, folder: &Folder, dir: &Path, broken: &[Vec<u8>]) -> Result<(), Spoilt> {
        let mut tracked = BTreeSet::new();
        let mut ours = BTreeSet::new();
        for path in broken {
            match path.strip_prefix(b"tree/") {
                Some(inner) if !inner.starts_with(b".git/") => tracked.insert(BString::from(inner)),
                _ => ours.insert(path.as_slice()),
            };
        }
        if !tracked.is_empty() {
            let index = self.base.checkout_again(host, &dir.join("tree"), &self.index, &tracked)?;
            self.index = Arc::new(index);
            for path in [&b"index"[..], b"tree/.git/index"] {
                if ours.insert(path) {
                    let (at, name) = parent(folder, path)?;
                    removal::remove(at.as_fd(), name).map_err(|_| Spoilt)?;
                }
            }
        }
        for path in ours {
            let (at, name) = parent(folder, path)?;
            let bytes = match path {
                b"index" => Cow::Borrowed(self.index.bytes.as_slice()),
                b"tree/.git/index" => Cow::Borrowed(self.index.for_worker()),
                _ => {
                    let inner = path.strip_prefix(b"tree/.git/").and_then(|inner| inner.to_str().ok()).ok_or(Spoilt)?;
                    let of_refs = || self.refs.files(self.base.commit).find(|(name, _)| *name == inner);
                    match self.base.worker.file(inner) {
                        Some(bytes) => Cow::Borrowed(bytes),
                        None => of_refs().ok_or(Spoilt)?.1,
                    }
                }
            };
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file =
                rustix::fs::openat(at.as_fd(), name, flags, Mode::from_raw_mode(0o666)).map_err(io::Error::from)?;
            std::fs::File::from(file).write_all(&bytes)?;
            self.forget(path)?;
        }
        Ok(())
    }

    /// Marks a rewritten file for another look.
    fn forget(&mut self, path: &[u8]) -> Result<(), Spoilt> {
        let mut at = &mut self.recorded;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            at.stale = true;
            let name = CString::new(part).map_err(|_| Spoilt)?;
            match (at.nodes.get_mut(&name), parts.peek()) {
                (Some(Node::Folder(folder)), Some(_)) => at = folder,
                (Some(Node::File(seen)), None) => {
                    *seen = None;
                    return Ok(());
                }
                _ => return Err(Spoilt),
            }
        }
        Err(Spoilt)
    }

    /// Sets our index's time after that of everything else in the folder: later changes cannot have
    /// a recorded time.
    fn stamp(&mut self, folder: BorrowedFd<'_>) -> io::Result<()> {
        let newest = self.recorded.newest();
        let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: now() };
        let mut patience = CLOCK;
        let seen = loop {
            rustix::fs::utimensat(folder, INDEX, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            let seen = record::read_status(folder, &INDEX.to_owned())?;
            if seen.changed > newest {
                break seen;
            }
            patience = patience.checked_sub(PAUSE).ok_or(io::ErrorKind::TimedOut)?;
            std::thread::sleep(PAUSE);
        };
        self.recorded.nodes.insert(INDEX.to_owned(), Node::File(Some(seen)));
        let (seconds, nanoseconds) = seen.changed;
        let since = Duration::new(u64::try_from(seconds).map_err(io::Error::other)?, nanoseconds);
        self.index = Arc::new(self.index.written_at(SystemTime::UNIX_EPOCH + since));
        Ok(())
    }
}

/// The name of our index in an attempt's folder.
const INDEX: &CStr = c"index";

/// The result of comparing a finished folder.
struct Found<'a> {
    /// The required flags and extended attributes of every folder.
    attributes: &'a [u8],
    /// The files to write again, by path from the attempt's folder; their places are empty.
    broken: Vec<Vec<u8>>,
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
        let seen = record::look_at(dir)?;
        if !seen.is_same_folder(&known.seen) {
            return Err(Spoilt);
        }
        // We moved the attempt's folder itself and added files.
        if top || !seen.has_same_entries(&known.seen) {
            if record::attributes(dir)? != self.attributes || seen.is_bloated(&known.seen) {
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
                    let same = was.is_some_and(|was| record::read_status(dir, name).is_ok_and(|seen| seen == was));
                    if !same {
                        removal::remove(dir, name)?;
                        self.broken.push(path.clone());
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

/// Opens the parent folder of one of our paths and returns it with the last component.
fn parent<'a>(folder: &Folder, path: &'a [u8]) -> Result<(Folder, &'a str), Spoilt> {
    let path = path.to_str().map_err(|_| Spoilt)?;
    match path.rsplit_once('/') {
        Some((above, name)) => Ok((folder.folder(above)?, name)),
        None => Ok((folder.again()?, path)),
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
