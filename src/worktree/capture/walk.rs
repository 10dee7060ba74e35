//! Walks a worktree that a worker changed, before git sees it.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::Entry;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::objs::compute_stream_hash;
use rustix::fs::OFlags;

use super::excluded;
use super::repositories::is_repository;
use super::traps::{is_attributes, is_folder, is_strange, traps};
pub(crate) use super::walked::Walked;
use super::{Error, tree};
use crate::git::store::object_oid;
use crate::model::digest::Oid;
use crate::model::name::is_dot_git;
use crate::sandbox::folder::{Room, open_regular};
use crate::worktree::host::Host;
use crate::worktree::workspace::record;
use crate::worktree::workspace::{Base, Workspace};

/// The most bytes of a file that is rehashed because it is as new as the index.
const REHASH_BELOW: u64 = 1 << 20;

/// Walks the worktree without following links and compares file status with our index.
///
/// Skips the worker's `.git`, `inputs/`, `outputs/` and the folders of submodules.
pub(crate) fn walk(workspace: &Workspace, host: &Host, base: &Base) -> Result<Walked, Error> {
    let tree = workspace.tree();
    if !workspace.is_in_place() {
        return Err(Error::refused("the item replaced its own worktree"));
    }
    match fs::symlink_metadata(&tree) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(Error::refused("the item replaced its own worktree")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(Error::refused("the item deleted its own worktree"));
        }
        Err(e) => return Err(Error::Io(tree, e)),
    }
    let known = workspace.index();
    let index = Arc::clone(known.map_or(base.index(), |known| &known.state));
    let ours = [b".git", host.settings.inputs.as_bytes(), host.settings.outputs.as_bytes()];
    let walker = Walker {
        written: known.map(|known| seconds(known.written)),
        exclude: &host.exclude,
        ours: ours.into_iter().chain(base.extras.paths().map(|path| path.as_bytes())).collect(),
        ..Walker::new(&index, &tree, host)
    };
    let mut found = walker.walk()?;
    let folders = [workspace.inputs(), workspace.outputs()].map(|folder| tree::relative(workspace, folder));
    for folder in folders.into_iter().filter(|folder| is_folder(&tree, folder)) {
        found.traps.extend(traps(&tree, folder.into())?);
    }
    found.index = Some(index);
    Ok(found)
}

/// Walks the files of a submodule in the same way, except its `.git`. `written` is the time of its
/// index, or `None` if its files are to be read.
pub(super) fn walk_submodule(
    host: &Host,
    dir: &Path,
    index: &Arc<State>,
    written: Option<SystemTime>,
) -> Result<Walked, Error> {
    let (ours, written) = (BTreeSet::from([&b".git"[..]]), written.map(seconds));
    let mut found = Walker { written, ours, ..Walker::new(index, dir, host) }.walk()?;
    found.index = Some(Arc::clone(index));
    Ok(found)
}

/// Returns a time as an index has it.
fn seconds(time: SystemTime) -> (i64, i64) {
    let time = filetime::FileTime::from_system_time(time);
    (time.unix_seconds(), i64::from(time.nanoseconds()))
}

struct Walker<'a> {
    index: &'a State,
    /// The time of the index, if it describes this worktree: later changes have later times.
    written: Option<(i64, i64)>,
    /// The most bytes of a product.
    limit: u64,
    tree: &'a Path,
    /// The untracked paths that the patch omits.
    exclude: &'a [String],
    /// The paths to skip.
    ours: BTreeSet<&'a [u8]>,
    /// The folders to visit.
    folders: Vec<BString>,
    /// The index entries of tracked files that exist.
    visited: BTreeSet<usize>,
    /// The memory for untracked paths, including ignored ones.
    room: Room,
    found: Walked,
}

impl<'a> Walker<'a> {
    /// Creates a walk that skips nothing and reads every tracked file.
    fn new(index: &'a State, tree: &'a Path, host: &Host) -> Self {
        Self {
            index,
            written: None,
            limit: host.settings.max_product,
            tree,
            exclude: &[],
            ours: BTreeSet::new(),
            folders: Vec::new(),
            visited: BTreeSet::new(),
            room: Room::new(),
            found: Walked::default(),
        }
    }

    /// Visits everything.
    fn walk(mut self) -> Result<Walked, Error> {
        self.folders.push(BString::default());
        while let Some(folder) = self.folders.pop() {
            self.folder(&folder)?;
        }
        self.miss();
        self.found.changed |= !self.found.gone.is_empty() || !self.found.traps.paths().is_empty();
        self.found.attributes.extend(self.found.gone.iter().filter(|path| is_attributes(path)).cloned());
        Ok(self.found)
    }

    /// Visits a folder.
    fn folder(&mut self, folder: &BString) -> Result<(), Error> {
        let dir = self.tree.join(OsStr::from_bytes(folder));
        let Some(handle) = self.open(&dir, folder)? else { return Ok(()) };
        if !folder.is_empty() && !self.has_tracked(folder) && is_repository(handle.as_fd()) {
            self.found.repository(folder);
            return Ok(());
        }
        for name in record::names(handle.as_fd()).map_err(Error::at(&dir))? {
            let name = name.map_err(Error::at(&dir))?;
            self.listed(&handle, folder, &name)?;
        }
        Ok(())
    }

    /// Returns true if the base has files below a folder.
    fn has_tracked(&self, folder: &BString) -> bool {
        self.index.prefixed_entries_range(below(folder, b"").as_bstr()).is_some()
    }

    /// Visits an entry of a folder.
    fn listed(&mut self, handle: &OwnedFd, folder: &BString, name: &CString) -> Result<(), Error> {
        let relative = below(folder, name.to_bytes());
        if self.ours.contains(relative.as_slice()) {
            return Ok(());
        }
        if name.to_bytes() == b".git" && !folder.is_empty() && is_repository(handle.as_fd()) {
            self.found.repository(folder);
            return Ok(());
        }
        if is_dot_git(&name.to_bytes().to_str_lossy()) {
            self.found.nested.push(if folder.is_empty() { relative } else { folder.clone() });
            self.found.changed = true;
            return Ok(());
        }
        let path = self.tree.join(OsStr::from_bytes(&relative));
        match fs::symlink_metadata(&path) {
            Ok(meta) => self.entry(&path, relative, &meta),
            Err(e) if e.kind() == io::ErrorKind::InvalidFilename => {
                Err(Error::refused(format!("the path of {} is too long", display_path(&relative))))
            }
            Err(e) => Err(Error::Io(path, e)),
        }
    }

    /// Opens a folder, or returns `None` if the worker made it unreadable.
    fn open(&mut self, dir: &Path, folder: &BString) -> Result<Option<OwnedFd>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let error = match rustix::fs::open(dir, flags, rustix::fs::Mode::empty()) {
            Ok(handle) => return Ok(Some(handle)),
            Err(error) => io::Error::from(error),
        };
        match error.kind() {
            io::ErrorKind::PermissionDenied if !folder.is_empty() => {
                self.found.closed.push(folder.clone());
                self.found.changed = true;
                Ok(None)
            }
            io::ErrorKind::PermissionDenied => Err(Error::refused("the item made its own worktree unreadable")),
            io::ErrorKind::InvalidFilename => {
                Err(Error::refused(format!("the item nested folders too deeply, in {}", display_path(folder))))
            }
            _ => Err(Error::Io(dir.to_owned(), error)),
        }
    }

    /// Finds tracked files that are missing.
    fn miss(&mut self) {
        let all = self.index.entries().iter().enumerate();
        let entries = all.filter(|(at, _)| !self.visited.contains(at)).map(|(_, entry)| entry);
        // Files excluded by the sparse checkout never existed.
        let files = entries.filter(|entry| !(entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE)));
        self.found.gone = files.map(|entry| entry.path(self.index).to_owned()).collect();
    }

    fn entry(&mut self, path: &Path, relative: BString, meta: &fs::Metadata) -> Result<(), Error> {
        let kind = meta.file_type();
        let at = self.index.entry_index_by_path(relative.as_bstr()).ok();
        let tracked = at.map(|at| &self.index.entries()[at]);
        if tracked.is_some_and(|entry| entry.mode == Mode::COMMIT) {
            return Ok(());
        }
        if tracked.is_none() {
            self.room.take(relative.len())?;
            if excluded::matches(self.exclude, &relative) && !(kind.is_dir() && self.has_tracked(&relative)) {
                self.found.excluded.add(relative, kind.is_dir());
                return Ok(());
            }
        }
        if kind.is_dir() {
            self.folders.push(relative);
            return Ok(());
        }
        let strange = is_strange(kind);
        if strange {
            self.found.traps.strange(&relative);
        }
        match tracked {
            Some(_) if strange => {
                self.found.changed = true;
                self.found.odd.push(relative);
            }
            // git ignores entries that it cannot track.
            None if strange => {}
            Some(entry) => {
                self.visited.extend(at);
                let on_disk = gix::index::fs::Metadata::from_path_no_follow(path).map_err(Error::at(path))?;
                if !self.unchanged(path, entry, &on_disk) {
                    self.changed(relative, on_disk.len());
                }
            }
            None => self.changed(relative, meta.len()),
        }
        Ok(())
    }

    fn changed(&mut self, path: BString, size: u64) {
        self.found.changed = true;
        self.found.traps.file(&path, size);
        if is_attributes(&path) {
            self.found.attributes.push(path.clone());
        }
        if size > self.limit {
            self.found.large.push(path.clone());
        }
        self.found.sizes.push((size, path));
    }

    /// Returns true if a tracked file is certainly unchanged.
    fn unchanged(&self, path: &Path, entry: &Entry, meta: &gix::index::fs::Metadata) -> bool {
        let mode = match (meta.is_symlink(), meta.is_executable()) {
            (true, _) => Mode::SYMLINK,
            (false, true) => Mode::FILE_EXECUTABLE,
            (false, false) => Mode::FILE,
        };
        let Some(written) = self.written else {
            return mode == entry.mode && meta.len() <= self.limit && is_same_content(path, entry, meta);
        };
        let Ok(stat) = Stat::from_fs(meta) else { return false };
        if mode != entry.mode || stat != entry.stat {
            return false;
        }
        let changed = (i64::from(stat.ctime.secs), i64::from(stat.ctime.nsecs));
        // A file as new as the index may have changed just afterwards with the same time.
        changed < written || meta.len() <= REHASH_BELOW && is_same_content(path, entry, meta)
    }
}

/// Returns the path of an entry in a folder.
pub(super) fn below(folder: &BString, name: &[u8]) -> BString {
    // With exact capacity, because many are held.
    let mut path = BString::new(Vec::with_capacity(folder.len() + 1 + name.len()));
    path.extend_from_slice(folder);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Returns true if a file has the content of an index entry. Reads it in pieces.
fn is_same_content(path: &Path, entry: &Entry, meta: &gix::index::fs::Metadata) -> bool {
    let (hash, blob, go_on) = (entry.id.kind(), gix::objs::Kind::Blob, AtomicBool::new(false));
    let hash = if meta.is_symlink() {
        let target = fs::read_link(path).ok();
        target.and_then(|target| object_oid(hash, blob, target.as_os_str().as_bytes()).ok())
    } else {
        let discard = &mut gix::progress::Discard;
        let file = open_regular(path).ok();
        file.and_then(|mut file| compute_stream_hash(hash, blob, &mut file, meta.len(), discard, &go_on).ok().map(Oid))
    };
    hash.is_some_and(|oid| oid.0 == entry.id)
}

/// Quotes a path for messages and replaces invalid text.
pub(crate) fn display_path(path: &[u8]) -> String {
    format!("{:?}", BStr::new(path).to_str_lossy())
}
