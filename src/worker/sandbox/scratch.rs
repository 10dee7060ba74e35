//! What an attempt gets under names of its own: caches under overlays, and private folders at `/tmp` and `/var/tmp`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::map::{Access, Map};
use super::overlay::{Overlay, Overlays};
use super::{Confinement, Word};

/// The folders that programs take for granted as a place for temporary files.
pub(super) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The folders of one attempt that are laid over others.
#[derive(Clone, Copy, Debug)]
pub struct Scratch<'a> {
    /// Becomes `/tmp` and `/var/tmp`.
    pub tmp: &'a Path,
    /// Holds what overlays need.
    pub caches: &'a Path,
}

/// What lies over what.
#[derive(Debug, Default)]
pub(super) struct Over {
    /// Each place, and the folder of the attempt's that is mounted there.
    pub(super) places: BTreeMap<PathBuf, PathBuf>,
    pub(super) overlays: Option<Overlays>,
}

impl Over {
    /// Returns whether a path lies below one of the places.
    pub(super) fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.places.contains_key(above))
    }
}

impl Confinement {
    /// Lays the attempt's folders over the places they are for, in the map and in what Landlock gives; fails where a worker has put
    /// something else into the place of a mount.
    pub(super) fn lay_over(
        &self,
        scratch: &Scratch<'_>,
        map: &mut Map,
        given: &mut Vec<(Word, Access)>,
    ) -> Result<Over, String> {
        let mut over = Over::default();
        if let Some((entered, lowers)) = self.reach.caches.overlays() {
            let all = lowers.into_iter().map(|(n, lower)| {
                Overlay::of(scratch.caches, n, lower)
                    .map_err(|error| format!("{} is not what it was when the run began: {error}", lower.display()))
            });
            over.overlays = Some(Overlays { entered, all: all.collect::<Result<_, _>>()? });
            over.places.extend(self.reach.caches.over(scratch.caches).map(|(place, own)| (place.to_owned(), own)));
        }
        for place in TEMPORARY.map(Path::new) {
            let is_free = map.access(place) == Access::Hidden && map.hidden_by(place).is_none();
            if is_free && fs::canonicalize(place).is_ok_and(|real| real == place) {
                over.places.insert(place.to_owned(), scratch.tmp.to_owned());
            }
        }
        for place in over.places.keys() {
            map.make_own(place);
            given.retain(|(path, _)| *path != Word::from(place));
            given.push((place.into(), Access::Write));
        }
        for place in TEMPORARY.map(Path::new).into_iter().filter(|place| over.places.contains_key(*place)) {
            stand(map, place, scratch.tmp)
                .map_err(|(path, error)| format!("{} cannot be mounted in {}: {error}", path.display(), place.display()))?;
        }
        Ok(over)
    }
}

/// Makes what mounts below a private folder need: folders on the way to each, and the links that lead to them. Whoever mounts looks
/// the way up by names, and an earlier command of the attempt could have put links there.
fn stand(map: &Map, place: &Path, own: &Path) -> Result<(), (PathBuf, io::Error)> {
    let top = || rustix::fs::openat(CWD, own, FOLDER, Mode::empty());
    let is_ours = |path: &Path| path.strip_prefix(place).ok().filter(|below| !below.as_os_str().is_empty()).is_some();
    let lies_right_in = |path: &Path| path.ancestors().skip(1).find(|above| map.is_said(above)) == Some(place);
    let mounted = map.places().filter(|(path, access)| *access != Access::Hidden && is_ours(path));
    for (path, _) in mounted.filter(|(path, _)| lies_right_in(path)) {
        let below = path.strip_prefix(place).expect("it was found below");
        let made = top().map_err(io::Error::from).and_then(|top| mount_point(top, below, !path.is_dir()));
        made.map_err(|error| (path.to_owned(), error))?;
    }
    for (link, target) in map.links().filter(|(link, _)| is_ours(link) && lies_right_in(link)) {
        let below = link.strip_prefix(place).expect("it was found below");
        let made = top().map_err(io::Error::from).and_then(|top| put_link(top, below, target));
        made.map_err(|error| (link.to_owned(), error))?;
    }
    Ok(())
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes a folder, or a file, to mount something on.
fn mount_point(top: OwnedFd, below: &Path, is_file: bool) -> io::Result<()> {
    if !is_file {
        return walk(top, below).map(drop);
    }
    let (folder, name) = parent(top, below)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        Err(Errno::EXIST) => {
            let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if is_plain { Ok(()) } else { Err(io::Error::other("something else lies there")) }
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes a link, or sees that it is there.
fn put_link(top: OwnedFd, below: &Path, target: &Path) -> io::Result<()> {
    let (folder, name) = parent(top, below)?;
    match rustix::fs::symlinkat(target, &folder, name) {
        Err(Errno::EXIST) => {
            let there = rustix::fs::readlinkat(&folder, name, Vec::new())?;
            let is_same = there.to_bytes() == target.as_os_str().as_encoded_bytes();
            if is_same { Ok(()) } else { Err(io::Error::other("something else lies there")) }
        }
        other => Ok(other?),
    }
}

/// Opens the folder that a path lies in, and makes it.
fn parent(top: OwnedFd, below: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((walk(top, below.parent().unwrap_or(Path::new("")))?, name))
}

/// Opens a folder, makes what is missing on the way, and follows no link.
fn walk(mut at: OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    for part in below.components() {
        let Component::Normal(name) = part else { continue };
        match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = rustix::fs::openat(&at, name, FOLDER, Mode::empty())?;
    }
    Ok(at)
}
