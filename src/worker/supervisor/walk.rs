//! What folders take on the disk while a worker has them in its hands: it may nest them deeper than any path, take permissions away,
//! and move them while they are looked at.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

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

/// Returns what folders take, in bytes; links are not followed, nor is another disk gone to. It ends once that is more than `most`.
pub(super) fn size(folders: &[PathBuf], most: u64) -> u64 {
    let mut walk = Walk { sum: 0, most, seen: BTreeSet::new() };
    for folder in folders {
        if let Ok(dir) = rustix::fs::openat(CWD, folder, FLAGS, Mode::empty()) {
            // What changes under us is looked at the next time.
            let _ = walk.all((dir, None));
        }
    }
    walk.sum
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk {
    sum: u64,
    most: u64,
    seen: BTreeSet<(u64, u64)>,
}

impl Walk {
    /// Looks at all below an open folder.
    fn all(&mut self, top: (OwnedFd, Option<Mode>)) -> io::Result<()> {
        let mut above: Vec<Level> = Vec::new();
        let mut here = self.enter(top)?;
        loop {
            if self.sum > self.most {
                return Ok(());
            }
            let dir = here.dir.as_ref().expect("where we are is open").as_fd();
            if let Some(name) = here.left.pop() {
                let Some(inner) = open(dir, &name)? else { continue };
                let inner = self.enter(inner)?;
                let mut outer = std::mem::replace(&mut here, inner);
                if above.len() >= OPEN && outer.mode.is_none() {
                    outer.dir = None;
                }
                above.push(outer);
            } else {
                let Some(mut outer) = above.pop() else { return Ok(()) };
                if outer.dir.is_none() {
                    let up = rustix::fs::openat(dir, c"..", FLAGS, Mode::empty())?;
                    if id(&rustix::fs::fstat(&up)?) != outer.id {
                        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
                    }
                    outer.dir = Some(up);
                }
                here = outer;
            }
        }
    }

    /// Counts what is in a folder.
    fn enter(&mut self, (dir, mode): (OwnedFd, Option<Mode>)) -> io::Result<Level> {
        let own = rustix::fs::fstat(&dir)?;
        let mut left = Vec::new();
        let mut level = Level { dir: Some(dir), mode, id: id(&own), left: Vec::new() };
        let dir = level.dir.as_ref().expect("it is open");
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_folder || stat.st_nlink < 2 || self.seen.insert(id(&stat)) {
                self.sum = self.sum.saturating_add(stat.st_blocks.unsigned_abs() * 512);
            }
            if is_folder && stat.st_dev == own.st_dev {
                left.push(name.to_owned());
            }
        }
        level.left = left;
        Ok(level)
    }
}

/// Opens a folder, one that may not be read as well, with the mode that it is to have again then. None where nothing is there any more.
fn open(at: BorrowedFd<'_>, name: &CString) -> io::Result<Option<(OwnedFd, Option<Mode>)>> {
    use rustix::io::Errno;
    match rustix::fs::openat(at, name, FLAGS, Mode::empty()) {
        Ok(dir) => Ok(Some((dir, None))),
        Err(Errno::ACCESS) => {
            let held = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(held) = rustix::fs::openat(at, name, held, Mode::empty()) else { return Ok(None) };
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
            let path = format!("/proc/self/fd/{}", held.as_raw_fd());
            // One that is another's stays shut.
            if rustix::fs::chmodat(CWD, &path, mode | Mode::RUSR | Mode::XUSR, AtFlags::empty()).is_err() {
                return Ok(None);
            }
            let opened = rustix::fs::openat(CWD, &path, FLAGS - OFlags::NOFOLLOW, Mode::empty());
            Ok(opened.ok().map(|dir| (dir, Some(mode))))
        }
        Err(_) => Ok(None),
    }
}

fn id(stat: &Stat) -> (u64, u64) {
    #[allow(clippy::useless_conversion, reason = "the numbers are narrower on some machines")]
    (u64::from(stat.st_dev), u64::from(stat.st_ino))
}
