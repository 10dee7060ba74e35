//! Overlay mounts: a worker reads the user's caches and writes to folders of its own attempt.
//!
//! The mounts are made by the child that becomes bubblewrap, in a mount namespace of its own. Root needs no more than that; others
//! also get a user namespace, in which they keep their own number. The mounts end with the last process in the namespace.
//!
//! The file system is asked for `userxattr`: the kernel then needs no privilege, and follows neither redirects nor metadata-only copies
//! that a worker could have left in the upper folder.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::DumpableBehavior;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::Word;
use super::seen::{Changed, Seen};

/// One overlay over a cache: `lower` is read, `upper` is written.
///
/// Another worker may be able to put a link in the cache's place, which bubblewrap would follow: so
/// it is mounted on a folder of the attempt's own, and bubblewrap is given that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Overlay {
    /// The user's folder, as it was when the attempt was prepared.
    pub(super) lower: Seen,
    /// Receives what is written.
    pub(super) upper: Word,
    /// An empty folder for the kernel, on the file system of `upper`.
    pub(super) work: Word,
    /// Where the overlay is mounted.
    pub(super) on: Word,
}

impl Overlay {
    /// Describes the overlay number `n` of an attempt whose folder for caches is `scratch`.
    pub(super) fn of(scratch: &Path, n: usize, lower: &Path) -> io::Result<Self> {
        let [upper, work, on] = folders(scratch, n).map(|folder| Word::from(&folder));
        Ok(Self { lower: Seen::at(lower)?, upper, work, on })
    }
}

/// Returns the folders of the overlay number `n`: upper, work, and where it is mounted.
pub(in crate::worker) fn folders(scratch: &Path, n: usize) -> [PathBuf; 3] {
    [UPPER, "work", "on"].map(|kind| scratch.join(kind).join(n.to_string()))
}

/// The name of the folder of all upper folders.
pub(in crate::worker) const UPPER: &str = "upper";

/// All overlays of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Overlays(pub(super) Vec<Overlay>);

impl Overlays {
    /// Moves this process, which must have one thread, into its namespaces and mounts the overlays there.
    pub(in crate::worker) fn enter(&self) -> Result<(), Error> {
        enter().map_err(Error::Namespace)?;
        self.0.iter().try_for_each(Overlay::mount)
    }
}

impl Overlay {
    /// Mounts it in the namespace of this process. The kernel takes no handle that was opened in another one.
    fn mount(&self) -> Result<(), Error> {
        const KIND: &CStr = c"overlay";
        let failed = |error| Error::Mount(AsRef::<Path>::as_ref(self.lower.path()).to_owned(), error);
        let lower = self.lower.open()?;
        let ours = |path: &Word| ours(path).map_err(failed);
        let (upper, work, on) = (ours(&self.upper)?, ours(&self.work)?, ours(&self.on)?);
        let options = format!("lowerdir={},upperdir={},workdir={},userxattr", way(&lower), way(&upper), way(&work));
        let options = CString::new(options).expect("numbers hold no zero byte");
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        rustix::mount::mount(KIND, way(&on), KIND, flags, &*options).map_err(failed)
    }
}

/// Opens a folder of the attempt's own.
fn ours(path: &Word) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, AsRef::<Path>::as_ref(path), flags, Mode::empty())
}

/// Returns a path that leads to what a handle has open.
fn way(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// Moves this process into namespaces of its own: a mount namespace, and a user namespace unless it
/// is root.
fn enter() -> rustix::io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        unshare(UnshareFlags::NEWNS)?;
    } else {
        unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUSER)?;
        // The files below belong to root as long as nobody may look into this process.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &format!("{0} {0} 1", user.as_raw()))?;
        write(c"/proc/self/gid_map", &format!("{0} {0} 1", group.as_raw()))?;
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    // What is mounted here stays here; what the machine unmounts goes here as well.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

#[expect(deprecated, reason = "it is safe for these namespaces: no open file of this process is affected")]
fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(namespaces)
}

fn write(path: &CStr, text: &str) -> rustix::io::Result<()> {
    let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

/// Mounts overlays as the arguments say, to find out which of them work; returns their folder, and their numbers.
///
/// The process is thrown away afterwards: it is in other namespaces by then.
pub(super) fn try_out(arguments: &mut impl Iterator<Item = OsString>) -> Option<(PathBuf, Vec<usize>)> {
    let scratch = PathBuf::from(arguments.next()?);
    enter().ok()?;
    let works = |(n, lower): (usize, OsString)| {
        let overlay = Overlay::of(&scratch, n, Path::new(&lower)).ok()?;
        for folder in folders(&scratch, n) {
            fs::create_dir_all(folder).ok()?;
        }
        overlay.mount().ok()?;
        // Some file systems take the mount and no file.
        let file = AsRef::<Path>::as_ref(&overlay.on).join(".git-handoff");
        fs::write(&file, "x").and_then(|()| fs::remove_file(&file)).ok()?;
        Some(n)
    };
    let working = arguments.enumerate().filter_map(works).collect();
    Some((scratch, working))
}

/// Why the overlays could not be mounted.
#[derive(Debug, thiserror::Error)]
pub(in crate::worker) enum Error {
    #[error(transparent)]
    Changed(#[from] Changed),
    #[error("cannot enter a mount namespace")]
    Namespace(#[source] rustix::io::Errno),
    #[error("cannot mount an overlay over {}", .0.display())]
    Mount(PathBuf, #[source] rustix::io::Errno),
}
