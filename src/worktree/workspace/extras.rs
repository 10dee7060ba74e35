//! Adds files to a worktree that no commit has, such as `.env` and `node_modules`.
//!
//! They come from the user's work tree and belong to no change: capture and salvage exclude their
//! paths, whatever a worker did to them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice as _};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Error;
use crate::git::ignored::ignored;
use crate::git::program::Git;
use crate::worktree::host::Host;

/// The file at the top of the work tree that lists ignored files to copy, with patterns as in
/// `.gitignore`.
const INCLUDE: &str = ".worktreeinclude";

/// The additional files of every worktree, with sorted paths relative to the top.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    from: PathBuf,
    copies: BTreeSet<BString>,
    links: BTreeSet<BString>,
    included: BTreeSet<BString>,
}

impl Extras {
    /// Finds them in the work tree and skips missing paths.
    pub(super) fn read(host: &Host) -> Result<Self, Error> {
        let Some(from) = host.store.work_dir() else {
            let given = [("copy", &host.settings.copy), ("link", &host.settings.link)];
            return match given.into_iter().find(|(_, patterns)| !patterns.is_empty()) {
                Some((name, _)) => Err(Error::NoWorkTree(name)),
                None => Ok(Self::default()),
            };
        };
        let copies = find(host, &from, &host.settings.copy)?;
        let links = find(host, &from, &host.settings.link)?;
        let included = included(host, &from)?;
        Ok(Self { from, copies, links, included })
    }

    /// Removes the paths that a base tracks, so that changes to them count.
    pub(super) fn without_tracked(mut self, index: &gix::index::State) -> Result<Self, Error> {
        let is_tracked = |path: &BString| {
            let below = [path.as_slice(), b"/"].concat();
            index.entry_by_path(path.as_bstr()).is_some() || index.prefixed_entries(below.as_bstr()).is_some()
        };
        if let Some(path) = self.copies.iter().chain(&self.links).find(|path| is_tracked(path)) {
            return Err(Error::Tracked(path.to_string()));
        }
        self.included.retain(|path| !is_tracked(path));
        Ok(self)
    }

    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Returns their paths, which are excluded from changes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &BStr> {
        self.copies.iter().chain(&self.links).chain(&self.included).map(|path| path.as_bstr())
    }

    /// Returns the paths that git may not ignore.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &BStr> {
        self.copies.iter().chain(&self.links).map(|path| path.as_bstr())
    }

    /// Adds them to a fresh worktree.
    pub(super) fn put(&self, tree: &Path) -> Result<(), Error> {
        for path in self.copies.iter().chain(&self.included) {
            let (from, to) = (self.from.join(path.to_path_lossy()), tree.join(path.to_path_lossy()));
            above(tree, path)?;
            let Some((folder, name)) = open_source(&self.from, path)? else { continue };
            copy(folder.as_fd(), name, &to).map_err(Error::at(&from))?;
        }
        for path in &self.links {
            let to = tree.join(path.to_path_lossy());
            above(tree, path)?;
            match std::os::unix::fs::symlink(self.from.join(path.to_path_lossy()), &to) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Tracked(path.to_string())),
                other => other.map_err(Error::at(&to))?,
            }
        }
        Ok(())
    }

    /// Returns the targets of the links.
    pub(super) fn linked(&self) -> Vec<PathBuf> {
        self.links.iter().map(|path| self.from.join(path.to_path_lossy())).collect()
    }
}

/// Returns the paths that the settings name or match.
fn find(host: &Host, from: &Path, patterns: &[String]) -> Result<BTreeSet<BString>, Error> {
    let plain = patterns.iter().filter(|text| !text.contains(['*', '?', '[']));
    let mut found: BTreeSet<BString> = plain
        .filter(|text| fs::symlink_metadata(from.join(text.as_str())).is_ok())
        .map(|text| text.as_str().into())
        .collect();
    let patterns: Vec<&String> = patterns.iter().filter(|text| text.contains(['*', '?', '['])).collect();
    let root = fs::canonicalize(&host.settings.root).unwrap_or_else(|_| host.settings.root.clone());
    let mut folders = if patterns.is_empty() { Vec::new() } else { vec![from.to_owned()] };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::at(&folder))? {
            let entry = entry.map_err(Error::at(&folder))?;
            let path = entry.path();
            if entry.file_name() == ".git" || root.starts_with(&path) {
                continue;
            }
            let relative = path.strip_prefix(from).expect("it lies there").as_os_str().as_bytes();
            let mode = gix::glob::wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
            if patterns.iter().any(|text| gix::glob::wildmatch(text.as_bytes().as_bstr(), relative.as_bstr(), mode)) {
                found.insert(relative.into());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

/// Returns the files that the include file lists and git ignores.
fn included(host: &Host, from: &Path) -> Result<BTreeSet<BString>, Error> {
    let file = from.join(INCLUDE);
    if !file.is_file() {
        return Ok(BTreeSet::new());
    }
    let exclude = format!("--exclude-from={}", file.display());
    let listed = Git::new(&host.store.git_dir())
        .work_tree(from)
        .args(["ls-files", "-z", "--others", "--ignored", &exclude])
        .run()
        .map_err(|error| Error::Included(Box::new(error)))?;
    let listed: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    ignored(|| Git::new(&host.store.git_dir()).work_tree(from), &listed)
        .map_err(|error| Error::Included(Box::new(error)))
}

/// Creates the parent folders of a path. Fails if one exists and is not a folder.
fn above(tree: &Path, path: &BString) -> Result<(), Error> {
    let mut at = tree.to_owned();
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    for part in &parts[..parts.len() - 1] {
        at.push(std::ffi::OsStr::from_bytes(part));
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(Error::Tracked(path.to_string())),
            Err(_) => fs::create_dir(&at).map_err(Error::at(&at))?,
        }
    }
    Ok(())
}

/// Opens the parent folder of a path in the work tree and returns it with the last component, or
/// `None` if it is gone.
///
/// Workers may be able to write in the work tree, and a link there would make us copy a file that
/// they cannot read.
fn open_source<'a>(from: &Path, path: &'a BString) -> Result<Option<(OwnedFd, &'a OsStr)>, Error> {
    let mut folder =
        rustix::fs::open(from, FOLDER - OFlags::NOFOLLOW, Mode::empty()).map_err(|e| Error::io(from, e.into()))?;
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let name = OsStr::from_bytes(parts.pop().unwrap_or_default());
    for part in parts {
        folder = match rustix::fs::openat(&folder, part, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(Error::Led(path.to_string())),
            Err(error) => return Err(Error::io(&from.join(path.to_path_lossy()), error.into())),
        };
    }
    Ok(Some((folder, name)))
}

/// The flags for opening a folder but no link.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Copies a file, a link as a link, or a folder. Keeps existing files. Shares content if the file
/// system can. Follows no link.
fn copy(at: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    let kind = match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        // It disappeared since.
        Err(Errno::NOENT) => return Ok(()),
        other => FileType::from_raw_mode(other?.st_mode),
    };
    match (kind, fs::symlink_metadata(to)) {
        (FileType::Directory, there) => match there {
            Err(_) => {
                fs::create_dir(to)?;
                copy_entries(at, name, to)
            }
            Ok(there) if there.is_dir() => copy_entries(at, name, to),
            Ok(_) => Ok(()),
        },
        (_, Ok(_)) => Ok(()),
        (FileType::Symlink, _) => {
            let target = rustix::fs::readlinkat(at, name, Vec::new())?;
            std::os::unix::fs::symlink(OsStr::from_bytes(target.as_bytes()), to)
        }
        (FileType::RegularFile, _) => copy_file(at, name, to),
        _ => Ok(()),
    }
}

fn copy_entries(at: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    let folder = rustix::fs::openat(at, name, FOLDER, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let child_name = OsStr::from_bytes(entry.file_name().to_bytes());
        // A repository in it would become one in the worktree.
        if child_name != "." && child_name != ".." && child_name != ".git" {
            copy(folder.as_fd(), child_name, &to.join(child_name))?;
        }
    }
    Ok(())
}

fn copy_file(at: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    // Do not wait for the other end of a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut from = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    let meta = from.metadata()?;
    if !meta.is_file() {
        return Ok(());
    }
    let mut made = File::options().write(true).create_new(true).open(to)?;
    io::copy(&mut from, &mut made)?;
    made.set_permissions(meta.permissions())
}
