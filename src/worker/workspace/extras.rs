//! What a worktree holds besides the base: files of the work tree that no commit has, such as `.env` and `node_modules`.
//!
//! They come from where the repository's own user works, and are no part of any change: capture and salvage leave them out by
//! their paths, whatever a worker made of them.

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
use crate::git::program::{self, Git};
use crate::worker::host::Host;

/// The file at the top of the work tree that says which ignored files are copied: patterns as in git's ignore files.
const INCLUDE: &str = ".worktreeinclude";

/// What is put into every worktree; paths are relative to the top, and in order.
#[derive(Debug, Default)]
pub(in crate::worker) struct Extras {
    from: PathBuf,
    copies: BTreeSet<BString>,
    links: BTreeSet<BString>,
    included: BTreeSet<BString>,
}

impl Extras {
    /// Finds them in the work tree. What a path names and is not there is no extra.
    pub(super) fn read(host: &Host) -> Result<Self, Error> {
        let Some(from) = host.store.work_dir() else {
            let given = [("copy", &host.copy), ("link", &host.link)];
            return match given.into_iter().find(|(_, patterns)| !patterns.is_empty()) {
                Some((name, _)) => Err(Error::NoWorkTree(name)),
                None => Ok(Self::default()),
            };
        };
        let copies = find(host, &from, &host.copy)?;
        let links = find(host, &from, &host.link)?;
        let included = included(host, &from)?;
        Ok(Self { from, copies, links, included })
    }

    /// Returns it for a base: what the base tracks is not taken from elsewhere, or a change to it would not count.
    pub(super) fn beside(mut self, index: &gix::index::State) -> Result<Self, Error> {
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

    /// Returns the paths of all of them, for none of which a change counts.
    pub(in crate::worker) fn paths(&self) -> impl Iterator<Item = &BStr> {
        self.copies.iter().chain(&self.links).chain(&self.included).map(|path| path.as_bstr())
    }

    /// Returns the paths that git may not know to be ignored.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &BStr> {
        self.copies.iter().chain(&self.links).map(|path| path.as_bstr())
    }

    /// Puts them into a worktree that was just checked out.
    pub(super) fn put(&self, tree: &Path) -> Result<(), Error> {
        for path in self.copies.iter().chain(&self.included) {
            let (from, to) = (self.from.join(path.to_path_lossy()), tree.join(path.to_path_lossy()));
            above(tree, path)?;
            let Some((folder, name)) = held(&self.from, path)? else { continue };
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

    /// Returns what the links lead to.
    pub(super) fn linked(&self) -> Vec<PathBuf> {
        self.links.iter().map(|path| self.from.join(path.to_path_lossy())).collect()
    }
}

/// Returns the paths that the settings name or match.
fn find(host: &Host, from: &Path, patterns: &[String]) -> Result<BTreeSet<BString>, Error> {
    let is_pattern = |text: &&String| text.contains(['*', '?', '[']);
    let plain = patterns.iter().filter(|text| !is_pattern(text));
    let mut found: BTreeSet<BString> = plain
        .filter(|text| fs::symlink_metadata(from.join(text.as_str())).is_ok())
        .map(|text| text.as_str().into())
        .collect();
    let patterns: Vec<&String> = patterns.iter().filter(is_pattern).collect();
    let root = fs::canonicalize(&host.root).unwrap_or_else(|_| host.root.clone());
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

/// Returns the files that the include file names and that git ignores.
fn included(host: &Host, from: &Path) -> Result<BTreeSet<BString>, Error> {
    let file = from.join(INCLUDE);
    if !file.is_file() {
        return Ok(BTreeSet::new());
    }
    let failed = |error| Error::Included(Box::new(error));
    let git = || Git::new(&host.store.git_dir()).work_tree(from);
    let exclude = format!("--exclude-from={}", file.display());
    let named = git().args(["ls-files", "-z", "--others", "--ignored", &exclude]).run().map_err(failed)?;
    if named.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ignored = match git().args(["check-ignore", "-z", "--stdin"]).input(named).run() {
        // None of them.
        Err(program::Error::Failed { code: Some(1), .. }) => Vec::new(),
        other => other.map_err(failed)?,
    };
    Ok(ignored.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(BString::from).collect())
}

/// Makes the folders that a path lies in; nothing but folders may be there already.
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

/// Opens the folder that a path of the work tree lies in, and returns what it is called there; none where it is gone.
///
/// Some of the work tree may be a worker's to write, and a link there would have us copy what that one may not read.
fn held<'a>(from: &Path, path: &'a BString) -> Result<Option<(OwnedFd, &'a OsStr)>, Error> {
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

/// How a folder is opened, and no link to one.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Copies a file, a link as a link, or a folder; what is there already stays. Where the file system can, nothing but the name of a
/// file's content is copied. Whatever is put in its place meanwhile, no link is followed.
fn copy(at: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    let kind = match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        // It went away since it was found.
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
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        // A repository in it would be one in the worktree.
        if name != "." && name != ".." && name != ".git" {
            copy(folder.as_fd(), name, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy_file(at: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    // Nobody makes us wait for the other end of a pipe.
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
