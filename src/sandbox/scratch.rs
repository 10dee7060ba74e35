//! Mounts the attempt's folders over others: caches under overlays, and private folders at `/tmp`
//! and `/var/tmp`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::access_map::{Access, AccessMap};
use super::overlay::Overlays;
use super::{Confinement, Word};

/// The folders that programs expect for temporary files.
pub(super) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The folders of one attempt that are mounted over others.
#[derive(Clone, Copy, Debug)]
pub struct Scratch<'a> {
    /// Becomes `/tmp` and `/var/tmp`.
    pub tmp: &'a Path,
    /// Contains the overlays' folders.
    pub caches: &'a Path,
}

/// The mounts of an attempt's folders.
#[derive(Debug, Default)]
pub(super) struct Over {
    /// Each place with the attempt's folder mounted there.
    pub(super) places: BTreeMap<PathBuf, PathBuf>,
    /// The places that another worker could have replaced during mounting.
    pub(super) mounted: Vec<Word>,
    pub(super) overlays: Option<Overlays>,
}

impl Over {
    /// Returns true if a path is below one of the places.
    pub(super) fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.places.contains_key(above))
    }
}

impl Confinement {
    /// Adds the attempt's folders to the map and to the Landlock rules. Fails if a worker replaced
    /// a mount point.
    pub(super) fn lay_over(
        &self,
        scratch: &Scratch<'_>,
        map: &mut AccessMap,
        given: &mut Vec<(Word, Access)>,
    ) -> Result<Over, String> {
        let overlays = self.reach.caches.overlays(scratch.caches)?;
        let mut over = Over::default();
        for overlay in overlays.iter().flat_map(|overlays| &overlays.0) {
            let [place, own] = [overlay.lower.path(), &overlay.on].map(|path| AsRef::<Path>::as_ref(path).to_owned());
            over.places.insert(place, own);
            over.mounted.push(overlay.lower.path().clone());
        }
        over.overlays = overlays;
        for place in TEMPORARY.map(Path::new) {
            if map.is_free(place) {
                over.places.insert(place.to_owned(), scratch.tmp.to_owned());
            }
        }
        for place in over.places.keys() {
            map.make_own(place);
            given.retain(|(path, _)| *path != Word::from(place));
            given.push((place.into(), Access::Write));
        }
        for place in TEMPORARY.map(Path::new).into_iter().filter(|place| over.places.contains_key(*place)) {
            map.close_around(place);
            stand(map, place, scratch.tmp).map_err(|(path, error)| {
                format!("{} cannot be mounted in {}: {error}", path.display(), place.display())
            })?;
        }
        Ok(over)
    }
}

/// Creates mount points in a private folder, and the links to them. bubblewrap looks them up by
/// name, and an earlier command of the attempt could have made links there.
fn stand(map: &AccessMap, place: &Path, own: &Path) -> Result<(), (PathBuf, io::Error)> {
    let name = |path: &Path| path.file_name().filter(|_| path.parent() == Some(place)).map(OsStr::to_owned);
    let mounted = map
        .places()
        .filter_map(|(path, _)| Some((path, name(path)?, if path.is_dir() { Kind::Folder } else { Kind::File })));
    let links = map.links().filter_map(|(link, target)| Some((link, name(link)?, Kind::Link(target))));
    for (path, mount_name, kind) in mounted.chain(links) {
        put(own, &mount_name, kind).map_err(|error| (path.to_owned(), error))?;
    }
    Ok(())
}

/// The kind of a mount point or link.
#[derive(Clone, Copy)]
enum Kind<'a> {
    Folder,
    File,
    Link(&'a Path),
}

/// Creates it, or checks that it exists with the same kind.
fn put(own: &Path, name: &OsStr, kind: Kind<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, own, flags, Mode::empty())?;
    let made = match kind {
        Kind::Folder => rustix::fs::mkdirat(&folder, name, Mode::RWXU),
        Kind::File => {
            let create_flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&folder, name, create_flags, Mode::RUSR | Mode::WUSR).map(drop)
        }
        Kind::Link(target) => rustix::fs::symlinkat(target, &folder, name),
    };
    if made != Err(Errno::EXIST) {
        return Ok(made?);
    }
    let there = FileType::from_raw_mode(rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
    let is_same = match kind {
        Kind::Folder => there == FileType::Directory,
        Kind::File => there == FileType::RegularFile,
        Kind::Link(target) => {
            let leads = rustix::fs::readlinkat(&folder, name, Vec::new());
            leads.is_ok_and(|leads| leads.to_bytes() == target.as_os_str().as_encoded_bytes())
        }
    };
    if is_same { Ok(()) } else { Err(io::Error::other("an earlier command of the attempt replaced it")) }
}
