//! What folders take on the disk while a worker has them in its hands: it may nest them deeper than any path, take permissions away,
//! and move them while they are looked at.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, MemfdFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::worker::folder::KEPT;

/// Each file takes this much at least, in bytes: where nothing else of it does, its number does, of which a disk has only so many.
const LEAST: u64 = 4096;

/// The names of folders that were not looked at yet may take so much, in bytes, each with what it takes to keep one.
const PENDING: usize = 64 << 20;

/// So many folders above one that is looked at stay open; below that depth one gets back through `..`.
const OPEN: usize = 128;

/// A folder that is being looked at.
struct Level {
    dir: Option<OwnedFd>,
    /// The mode that it had, and gets again.
    mode: Option<Mode>,
    /// What it is known by when one comes back.
    id: (u64, u64),
    /// The folders in it that were not looked at yet.
    left: Vec<CString>,
}

impl Drop for Level {
    fn drop(&mut self) {
        if let (Some(dir), Some(mode)) = (&self.dir, self.mode) {
            let _ = rustix::fs::fchmod(dir, mode);
        }
    }
}

/// Returns what folders take, and whether all of it was seen, up to a size and a time.
pub(super) type Size = fn(&[PathBuf], u64, Instant) -> (u64, bool);

/// Returns what folders take, in bytes, and whether all of it was seen; links are not followed, nor is another disk gone to. It ends
/// once that is more than `most`, or at `until`. To be asked while nobody changes them.
pub(super) fn size(folders: &[PathBuf], most: u64, until: Instant) -> (u64, bool) {
    let key = RandomState::new();
    let walk = Walk::of(folders, (most, until), &key);
    (walk.sum, walk.is_whole)
}

/// Returns the same of folders that somebody may change meanwhile: all of it was seen only where it lay there at one moment.
///
/// Whoever is quick moves what has not been looked at to where that was done, and nothing is missing then. So all is looked at twice,
/// and where nothing has another time of change, it all was as it was seen between the two.
pub(super) fn size_in_motion(folders: &[PathBuf], most: u64, until: Instant) -> (u64, bool) {
    let key = RandomState::new();
    let first = Walk::of(folders, (most, until), &key);
    // What is too much, or was not seen whole, no second look makes any better.
    let is_whole = first.sum > most
        || first.is_whole && !first.is_fresh && {
            let second = Walk::of(folders, (most, until), &key);
            second.is_whole && second.times == first.times
        };
    (first.sum, is_whole)
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk<'a> {
    sum: u64,
    most: u64,
    until: Instant,
    /// What the names take that are kept for later, in bytes.
    pending: usize,
    /// Whether nothing was there that could not be looked at.
    is_whole: bool,
    seen: BTreeSet<(u64, u64)>,
    /// What all that was seen comes to with its times of change, by a key that nobody knows.
    times: u64,
    key: &'a RandomState,
    /// The time that a file got which was made just before.
    began: Option<(i64, i64)>,
    /// Whether something bears that time or a later one: changed once more, it might bear the same.
    is_fresh: bool,
}

impl<'a> Walk<'a> {
    /// Looks at some folders and all below them.
    fn of(folders: &[PathBuf], (most, until): (u64, Instant), key: &'a RandomState) -> Self {
        let began = now();
        let seen = BTreeSet::new();
        let mut walk =
            Self { sum: 0, most, until, pending: 0, is_whole: true, seen, times: 0, key, began, is_fresh: false };
        for folder in folders {
            let walked =
                open(CWD, folder).map_err(io::Error::from).and_then(|top| top.map_or(Ok(()), |top| walk.all(top)));
            walk.is_whole &= walked.is_ok();
        }
        walk
    }

    /// Looks at all below an open folder.
    fn all(&mut self, top: (OwnedFd, Option<Mode>)) -> io::Result<()> {
        let mut above: Vec<Level> = Vec::new();
        let mut here = self.enter(&mut above, top)?;
        while self.goes_on() {
            let dir = here.dir.as_ref().expect("where we are is open").as_fd();
            if let Some(name) = here.left.pop() {
                self.pending = self.pending.saturating_sub(name.count_bytes() + KEPT);
                let inner = match with_room(&mut above, || open(dir, name.as_c_str())) {
                    Ok(Some(inner)) => self.enter(&mut above, inner),
                    // Another's, or not where it was listed: it may have gone where it was not looked for.
                    Ok(None) => {
                        self.is_whole &= !is_gone(dir, &name);
                        continue;
                    }
                    Err(error) => Err(error.into()),
                };
                let Ok(inner) = inner else {
                    self.is_whole = false;
                    continue;
                };
                let mut outer = std::mem::replace(&mut here, inner);
                if above.len() >= OPEN && outer.mode.is_none() {
                    outer.dir = None;
                }
                above.push(outer);
            } else {
                let Some(outer) = self.back(dir, &mut above) else { break };
                here = outer;
            }
        }
        Ok(())
    }

    /// Whether more is to be looked at; where there is no time or room for it, not all was seen.
    fn goes_on(&mut self) -> bool {
        if self.sum > self.most {
            return false;
        }
        let has_room = self.pending <= PENDING && Instant::now() <= self.until;
        self.is_whole &= has_room;
        has_room
    }

    /// Goes back to the folder above, or where that was moved meanwhile to the nearest that is open; none where there is none.
    fn back(&mut self, dir: BorrowedFd<'_>, above: &mut Vec<Level>) -> Option<Level> {
        let mut outer = above.pop()?;
        if outer.dir.is_none() {
            let up = with_room(above, || rustix::fs::openat(dir, c"..", FLAGS, Mode::empty()));
            let is_outer = |up: &OwnedFd| rustix::fs::fstat(up).is_ok_and(|stat| id(&stat) == outer.id);
            outer.dir = up.ok().filter(is_outer);
        }
        while outer.dir.is_none() {
            self.is_whole &= outer.left.is_empty();
            outer = above.pop()?;
        }
        Some(outer)
    }

    /// Counts what is in a folder.
    fn enter(&mut self, above: &mut [Level], (dir, mode): (OwnedFd, Option<Mode>)) -> io::Result<Level> {
        let own = rustix::fs::fstat(&dir)?;
        self.note(&own);
        let mut left = Vec::new();
        let mut level = Level { dir: Some(dir), mode, id: id(&own), left: Vec::new() };
        let dir = level.dir.as_ref().expect("it is open");
        let mut entries = with_room(above, || Dir::read_from(dir));
        if matches!(entries, Err(Errno::ACCESS)) && level.mode.is_none() {
            // Its names may be read, and nothing else; one that is another's stays shut.
            let mode = Mode::from_raw_mode(own.st_mode);
            if rustix::fs::fchmod(dir, mode | Mode::XUSR) == Err(Errno::PERM) {
                return Ok(level);
            }
            level.mode = Some(mode);
            entries = with_room(above, || Dir::read_from(dir));
        }
        for entry in entries? {
            if !self.goes_on() {
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                self.is_whole = false;
                continue;
            };
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if !is_folder {
                self.note(&stat);
            }
            if is_folder || stat.st_nlink < 2 || self.seen.insert(id(&stat)) {
                self.sum = self.sum.saturating_add((stat.st_blocks.unsigned_abs() * 512).max(LEAST));
            }
            if is_folder && stat.st_dev == own.st_dev {
                self.pending += name.count_bytes() + KEPT;
                left.push(name.to_owned());
            }
        }
        level.left = left;
        Ok(level)
    }

    /// Notes when something was changed last; of a folder before what is in it is read.
    fn note(&mut self, stat: &Stat) {
        let (seconds, nanoseconds) = changed(stat);
        self.times = self.times.wrapping_add(self.key.hash_one((id(stat), seconds, nanoseconds)));
        // Some file systems count whole seconds.
        let latest = (seconds, if nanoseconds == 0 { i64::MAX } else { nanoseconds });
        self.is_fresh |= self.began.is_none_or(|began| latest >= began);
    }
}

/// Opens something; folders above are closed where no more may be open: one gets back without.
fn with_room<T>(above: &mut [Level], open: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        let opened = open();
        let is_full = matches!(opened, Err(Errno::MFILE | Errno::NFILE));
        let held = above.iter_mut().find(|level| is_full && level.dir.is_some() && level.mode.is_none());
        match held {
            Some(level) => level.dir = None,
            None => return opened,
        }
    }
}

/// Opens a folder, one that may not be read as well, with the mode that it is to have again then. None where there is none any more,
/// or it is another's.
fn open<P: Arg + Copy>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<Option<(OwnedFd, Option<Mode>)>> {
    match rustix::fs::openat(at, name, FLAGS, Mode::empty()) {
        Ok(dir) => Ok(Some((dir, None))),
        Err(Errno::ACCESS) => {
            let held = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::openat(at, name, held, Mode::empty())?;
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
            let path = format!("/proc/self/fd/{}", held.as_raw_fd());
            match rustix::fs::chmodat(CWD, &path, mode | Mode::RUSR | Mode::XUSR, AtFlags::empty()) {
                // One that is another's stays shut.
                Err(Errno::PERM) => return Ok(None),
                other => other?,
            }
            let opened = rustix::fs::openat(CWD, &path, FLAGS - OFlags::NOFOLLOW, Mode::empty());
            if opened.is_err() {
                let _ = rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty());
            }
            opened.map(|dir| Some((dir, Some(mode))))
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether what was listed in a folder is not there any more.
fn is_gone(dir: BorrowedFd<'_>, name: &CString) -> bool {
    rustix::fs::statat(dir, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).is_err()
}

fn id(stat: &Stat) -> (u64, u64) {
    #[allow(clippy::useless_conversion, reason = "the numbers are narrower on some machines")]
    (u64::from(stat.st_dev), u64::from(stat.st_ino))
}

/// Returns the time of change, in seconds and nanoseconds, which nobody but the kernel sets.
fn changed(stat: &Stat) -> (i64, i64) {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the numbers are others on some machines"
    )]
    (i64::from(stat.st_ctime), stat.st_ctime_nsec as i64)
}

/// Returns the time that the kernel gives to what is changed now: it has its clock in steps, and what follows can bear the same.
fn now() -> Option<(i64, i64)> {
    let file = rustix::fs::memfd_create(c"now", MemfdFlags::CLOEXEC).ok()?;
    rustix::fs::fstat(file).ok().map(|stat| changed(&stat))
}
