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
use super::seen::{self, Changed, Seen};

/// What the process needs in order to mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::worker) enum Entered {
    /// A mount namespace.
    Mounts,
    /// A user namespace and a mount namespace.
    User,
}

impl Entered {
    /// Both ways, the cheaper one first.
    pub(super) const ALL: [Self; 2] = [Self::Mounts, Self::User];

    /// Returns the word that stands for it on a command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::User => "user",
        }
    }

    /// Reads what [`Entered::word`] returns.
    pub(super) fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.word() == word)
    }
}

/// One overlay: `lower` is read, `upper` is written.
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
    /// The caches in it.
    pub(super) parts: Vec<Part>,
}

/// A cache in an overlay that may lie over a folder around it.
///
/// Another worker may be able to put a link in the cache's place. bubblewrap would follow it, so it is given a folder of the
/// attempt's own, on which the cache is mounted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Part {
    /// Where the user has it.
    pub(super) place: Word,
    /// Its path below what the overlay lies over.
    pub(super) below: Word,
    /// The folder of the attempt's own.
    pub(super) at: Word,
}

impl Overlay {
    /// Describes the overlay number `n` of an attempt whose folder for caches is `scratch`.
    pub(super) fn of(scratch: &Path, n: usize, lower: &Path) -> io::Result<Self> {
        let [upper, work, on] = folders(scratch, n).map(|folder| Word::from(&folder));
        Ok(Self { lower: Seen::at(lower)?, upper, work, on, parts: Vec::new() })
    }
}

/// Returns the folders of the overlay number `n`: upper, work, and where it is mounted.
pub(in crate::worker) fn folders(scratch: &Path, n: usize) -> [PathBuf; 3] {
    [UPPER, "work", "on"].map(|kind| scratch.join(kind).join(n.to_string()))
}

/// The name of the folder of the folders on which caches are mounted.
pub(super) const AT: &str = "at";

/// The name of the folder of all upper folders.
pub(in crate::worker) const UPPER: &str = "upper";

/// All overlays of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Overlays {
    pub(super) entered: Entered,
    /// The folder in which each cache has one. It is in memory, and there while the overlays are.
    pub(super) at: Word,
    pub(super) all: Vec<Overlay>,
}

impl Overlays {
    /// Moves this process, which must have one thread, into its namespaces and mounts the overlays there.
    pub(in crate::worker) fn enter(&self) -> Result<(), Error> {
        const KIND: &CStr = c"tmpfs";
        enter(self.entered).map_err(Error::Namespace)?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        let mounted = ours(&self.at).and_then(|at| rustix::mount::mount(KIND, way(&at), KIND, flags, c"mode=0700"));
        mounted.map_err(Error::Memory)?;
        self.all.iter().try_for_each(Overlay::mount)
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
        rustix::mount::mount(KIND, way(&on), KIND, flags, &*options).map_err(failed)?;
        self.parts.iter().try_for_each(|part| part.mount(ours(&self.on)?))
    }
}

impl Part {
    /// Mounts it on the folder of the attempt's own; `top` is the overlay.
    fn mount(&self, top: OwnedFd) -> Result<(), Error> {
        let cache = seen::folder_below(top, self.below.as_ref()).map_err(|_| Changed(self.place.clone()))?;
        let at = AsRef::<Path>::as_ref(&self.at);
        let made = rustix::fs::mkdirat(CWD, at, Mode::RWXU).and_then(|()| ours(&self.at));
        made.and_then(|at| rustix::mount::mount_bind(way(&cache), way(&at)))
            .map_err(|error| Error::Mount(AsRef::<Path>::as_ref(&self.place).to_owned(), error))
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

/// Moves this process into namespaces of its own.
fn enter(entered: Entered) -> rustix::io::Result<()> {
    let namespaces = match entered {
        Entered::Mounts => UnshareFlags::NEWNS,
        Entered::User => UnshareFlags::NEWNS | UnshareFlags::NEWUSER,
    };
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(namespaces)?;
    if entered == Entered::User {
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
    let entered = Entered::read(arguments.next()?.to_str()?)?;
    let scratch = PathBuf::from(arguments.next()?);
    enter(entered).ok()?;
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
    #[error("cannot mount a folder in memory")]
    Memory(#[source] rustix::io::Errno),
    #[error("cannot mount an overlay over {}", .0.display())]
    Mount(PathBuf, #[source] rustix::io::Errno),
}
