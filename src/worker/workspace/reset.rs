//! Making a spent attempt's folder what it was before the attempt.
//!
//! The last worker is hostile, and gone. What is as it was recorded stays; whatever differs in anything is removed and made
//! anew; whatever is not known is removed. Where that does not come out even, all of it is thrown away instead.

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
use crate::worker::folder::Folder;
use crate::worker::host::Host;
use crate::worker::removal;

/// How long the clock of a file system is waited for: many times what one step of it takes.
const CLOCK: Duration = Duration::from_secs(1);

/// How often it is looked at meanwhile.
const PAUSE: Duration = Duration::from_micros(200);

/// An attempt's folder as it was before anything ran in it.
#[derive(Debug)]
pub(super) struct Pristine {
    /// What it is a checkout of.
    pub(super) base: Arc<Base>,
    /// The refs that it has.
    refs: Refs,
    /// All that is in it.
    recorded: Recorded,
    /// What every folder in it has of flags and extended attributes.
    attributes: Vec<u8>,
    /// Our index.
    index: Arc<Index>,
}

impl Pristine {
    /// Records a folder that was just filled; none where a change in it would not be seen afterwards.
    pub(super) fn of(
        folder: &Folder,
        (base, refs): (&Arc<Base>, &Refs),
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

    /// Returns what the worktree was like.
    pub(super) fn tree(&self) -> Option<&Recorded> {
        match self.recorded.nodes.get(c"tree") {
            Some(Node::Folder(tree)) => Some(tree),
            _ => None,
        }
    }

    /// Makes the folder what it was; `dir` is its path. Fails if it had other refs, or cannot be
    /// restored; then it has to be removed.
    pub(super) fn restore(&mut self, host: &Host, folder: &Folder, dir: &Path, refs: &Refs) -> Result<(), Spoilt> {
        if self.refs != *refs {
            return Err(Spoilt);
        }
        let mut found = Found { attributes: &self.attributes, broken: Vec::new() };
        found.compare(folder.as_fd(), &mut self.recorded, true, &mut Vec::new())?;
        let broken = found.broken;
        // Only what is checked out anew is reached by a path.
        if !folder.is_at(dir) {
            return Err(Spoilt);
        }
        self.mend(host, folder, dir, &broken)?;
        self.recorded.refresh(folder.as_fd())?;
        self.stamp(folder.as_fd())?;
        Ok(())
    }

    /// Makes what is broken anew.
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

    /// Has a file that was written anew be looked at again.
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

    /// Gives our index a time that is later than that of everything else in the folder: what changes afterwards cannot have
    /// the time that was recorded.
    fn stamp(&mut self, folder: BorrowedFd<'_>) -> io::Result<()> {
        let newest = self.recorded.newest();
        let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: now() };
        let mut patience = CLOCK;
        let seen = loop {
            rustix::fs::utimensat(folder, INDEX, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            let seen = record::look(folder, &INDEX.to_owned())?;
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

/// What a look at a spent folder finds.
struct Found<'a> {
    /// What every folder must have of flags and extended attributes.
    attributes: &'a [u8],
    /// The files that are to be made anew, by their paths from the attempt's folder; nothing is in their places any more.
    broken: Vec<Vec<u8>>,
}

impl Found<'_> {
    /// Holds a folder against what is known of it, and removes what is not known or not as it was.
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
        // The attempt's folder itself we moved, and put things into.
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
                    let same = was.is_some_and(|was| record::look(dir, name).is_ok_and(|seen| seen == was));
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

/// Opens the folder that a path of ours lies in, and returns the last part of the path.
fn parent<'a>(folder: &Folder, path: &'a [u8]) -> Result<(Folder, &'a str), Spoilt> {
    let path = path.to_str().map_err(|_| Spoilt)?;
    match path.rsplit_once('/') {
        Some((above, name)) => Ok((folder.folder(above)?, name)),
        None => Ok((folder.again()?, path)),
    }
}

/// A folder that cannot be made what it was: it goes as a whole.
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
