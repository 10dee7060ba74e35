//! Mounts overlays: a worker reads the user's caches and writes into its own attempt's folders.
//!
//! The child that becomes bubblewrap creates the mounts in its own mount namespace. Users other
//! than root also get a user namespace, in which they keep their user id. The mounts end with the
//! last process in the namespace.
//!
//! The mount option `userxattr` means that the kernel needs no privilege and follows neither
//! redirects nor metadata-only copies that a worker could leave in the upper folder.

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
use super::mount_identity::{Changed, MountIdentity};

/// One overlay over a cache: `lower` is read, `upper` is written.
///
/// Another worker might replace the cache with a link that bubblewrap would follow, so the overlay
/// is mounted on a folder of the attempt, which bubblewrap gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Overlay {
    /// The user's folder, identified when the attempt was prepared.
    pub(super) lower: MountIdentity,
    /// The folder for writes.
    pub(super) upper: Word,
    /// An empty folder for the kernel, on the file system of `upper`.
    pub(super) work: Word,
    /// The mount point.
    pub(super) on: Word,
}

impl Overlay {
    /// Describes overlay number `n` of an attempt with the cache folder `scratch`.
    pub(super) fn new(scratch: &Path, n: usize, lower: &Path) -> io::Result<Self> {
        let [upper, work, on] = folders(scratch, n).map(|folder| Word::from(&folder));
        Ok(Self { lower: MountIdentity::at(lower)?, upper, work, on })
    }
}

/// Returns the folders of overlay number `n`: upper, work and mount point.
pub(crate) fn folders(scratch: &Path, n: usize) -> [PathBuf; 3] {
    [UPPER, "work", "on"].map(|kind| scratch.join(kind).join(n.to_string()))
}

/// The name of the folder of all upper folders.
pub(crate) const UPPER: &str = "upper";

/// All overlays of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Overlays(pub(super) Vec<Overlay>);

impl Overlays {
    /// Moves this process, which must have one thread, into its namespaces and mounts the overlays.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        enter().map_err(Error::Namespace)?;
        self.0.iter().try_for_each(Overlay::mount)
    }
}

impl Overlay {
    /// Mounts it in this process's namespace. The kernel rejects handles opened in another one.
    fn mount(&self) -> Result<(), Error> {
        const KIND: &CStr = c"overlay";
        let failed = |error| Error::Mount(AsRef::<Path>::as_ref(self.lower.path()).to_owned(), error);
        let lower = self.lower.open()?;
        let (upper, work, on) =
            (ours(&self.upper).map_err(failed)?, ours(&self.work).map_err(failed)?, ours(&self.on).map_err(failed)?);
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

/// Returns a path to an open file.
fn way(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// Moves this process into a mount namespace, and into a user namespace unless it is root.
pub(super) fn enter() -> rustix::io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        unshare(UnshareFlags::NEWNS)?;
    } else {
        unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUSER)?;
        // The files below belong to root while the process is not dumpable.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &format!("{0} {0} 1", user.as_raw()))?;
        write(c"/proc/self/gid_map", &format!("{0} {0} 1", group.as_raw()))?;
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    // Mounts here stay private; unmounts on the machine propagate here.
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

/// Mounts the overlays in the arguments to test them. Returns their folder and the numbers of those
/// that work.
///
/// The process must end afterwards, because it changed namespaces.
pub(super) fn try_out(arguments: &mut impl Iterator<Item = OsString>) -> Option<(PathBuf, Vec<usize>)> {
    let scratch = PathBuf::from(arguments.next()?);
    enter().ok()?;
    let works = |(n, lower): (usize, OsString)| {
        let overlay = Overlay::new(&scratch, n, Path::new(&lower)).ok()?;
        for folder in folders(&scratch, n) {
            fs::create_dir_all(folder).ok()?;
        }
        overlay.mount().ok()?;
        // Some file systems accept the mount but no files.
        let file = AsRef::<Path>::as_ref(&overlay.on).join(".git-handoff");
        fs::write(&file, "x").and_then(|()| fs::remove_file(&file)).ok()?;
        Some(n)
    };
    let working = arguments.enumerate().filter_map(works).collect();
    Some((scratch, working))
}

errors! {
    /// Why the overlays could not be mounted.
    #[derive(Debug, thiserror::Error)] pub(crate) enum Error;
    Namespace(#[source] rustix::io::Errno): "cannot enter a mount namespace";
    Mount(PathBuf, #[source] rustix::io::Errno): "cannot mount an overlay over {}" [.0.display()];
    #[from] Changed(Changed);
}
