//! Maps paths to a worker's access.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The most links to follow, as in the kernel.
const MOST_LINKS: usize = 40;

/// The access to a file, or to everything in a folder.
///
/// In increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Access {
    /// None: the path is hidden.
    Hidden,
    /// Read and run.
    Read,
    /// Everything.
    Write,
}

/// The access to each path: the nearest entry above a path decides, and a path without one is
/// hidden.
///
/// Paths are resolved; the links that lead to them are kept as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessMap {
    places: BTreeMap<PathBuf, Access>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// Links that must not be replaced.
    pinned: BTreeSet<PathBuf>,
    /// Places of the attempt's own folders, which cover the machine's.
    own: BTreeSet<PathBuf>,
    /// The folders that workers may write: links in them are not trusted.
    worked: Vec<PathBuf>,
}

/// The result of resolving a path.
pub(super) struct Led {
    /// The resolved path.
    pub(super) real: PathBuf,
    /// True if it exists.
    pub(super) is_there: bool,
    /// The first link on the path that a worker may have made.
    pub(super) planted: Option<PathBuf>,
}

impl AccessMap {
    /// Creates a map in which everything is hidden. Workers may write in `worked`, paths without
    /// links.
    pub(super) fn among(worked: &[PathBuf]) -> Self {
        Self { worked: worked.to_vec(), ..Self::default() }
    }

    /// Sets the access to a path and returns its resolved path, or `None` if it does not exist or
    /// leads through a link that a worker may have made.
    ///
    /// A hidden path need not exist yet.
    pub(super) fn set(&mut self, path: &Path, access: Access) -> Option<PathBuf> {
        let Led { real, is_there, planted } = self.resolve(path)?;
        if (!is_there || planted.is_some()) && access != Access::Hidden {
            return None;
        }
        self.places.insert(real.clone(), access);
        Some(real)
    }

    /// Makes everything in a path writable that is not hidden. Returns the resolved path, or `None`
    /// if it does not exist.
    pub(super) fn give_whole(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.set(path, Access::Write)?;
        self.places.retain(|place, access| *access == Access::Hidden || !place.starts_with(&real) || *place == real);
        Some(real)
    }

    /// Lowers the access to a path without links to at most `access`, and that of entries directly
    /// in it.
    pub(super) fn lower(&mut self, real: &Path, access: Access) {
        let is_in = |place: &Path| place == real || place.parent() == Some(real) && !place.is_dir();
        for (_, more) in self.places.iter_mut().filter(|(place, more)| **more > access && is_in(place)) {
            *more = access;
        }
        if self.access(real) > access {
            self.places.insert(real.to_owned(), access);
        }
    }

    /// Makes a path the attempt's own, and writable. Hidden entries below it do not exist there,
    /// entries with the access of their folder become part of it, and other entries stay.
    pub(super) fn make_own(&mut self, real: &Path) {
        let above = |place: &Path| place.ancestors().skip(1).find_map(|above| self.places.get(above));
        let is_part = |(place, access): &(&PathBuf, &Access)| {
            *place != real && place.starts_with(real) && above(place) == Some(*access)
        };
        let parts: BTreeSet<PathBuf> = self.places.iter().filter(is_part).map(|(place, _)| place.clone()).collect();
        self.places.retain(|place, _| !parts.contains(place));
        self.places.insert(real.to_owned(), Access::Write);
        self.own.insert(real.to_owned());
        let gives = |path: &&Path| self.places.get(*path).is_some_and(|access| *access != Access::Hidden);
        let is_moot = |(place, access): &(&PathBuf, &Access)| {
            **access == Access::Hidden && place.starts_with(real) && place.ancestors().skip(1).find(gives) == Some(real)
        };
        let moot: Vec<PathBuf> = self.places.iter().filter(is_moot).map(|(place, _)| place.clone()).collect();
        for place in moot {
            self.places.remove(&place);
        }
    }

    /// Hides the direct subfolders of an own place in which something deeper is granted: nothing
    /// new can be created there.
    pub(super) fn close_around(&mut self, place: &Path) {
        let below = |path: &PathBuf| Some(path.strip_prefix(place).ok()?.components().next()?.as_os_str().to_owned());
        let tops: BTreeSet<PathBuf> = self.places.keys().filter_map(below).map(|name| place.join(name)).collect();
        for top in tops {
            self.places.entry(top).or_insert(Access::Hidden);
        }
    }

    /// Returns true if no folder below a path is granted in part. What does not exist is no part of
    /// a folder that is only read, because no worker can make it.
    pub(super) fn keeps_nothing_below(&self, path: &Path) -> bool {
        let mut given = self.places().filter(|(place, access)| place.starts_with(path) && *access != Access::Hidden);
        given.all(|(place, access)| {
            !self.has_part_below(place, access, |below| access != Access::Read || below.exists())
        })
    }

    /// Returns true if an attempt's own folder can become this one, which is hidden: nothing below
    /// it is granted in part, which Landlock could not tell from the rest.
    pub(super) fn is_free(&self, place: &Path) -> bool {
        let is_hidden = self.access(place) == Access::Hidden && self.hidden_by(place).is_none();
        is_hidden && self.keeps_nothing_below(place) && fs::canonicalize(place).is_ok_and(|real| real == place)
    }

    /// Returns the hidden paths below a path, without those inside other hidden ones.
    pub(super) fn hidden_below(&self, path: &Path) -> impl Iterator<Item = &Path> {
        let below = self.places().filter(move |(place, _)| *place != path && place.starts_with(path));
        below.filter(|(_, access)| *access == Access::Hidden).map(|(place, _)| place)
    }

    /// Makes everything read-only.
    pub(super) fn freeze(&mut self) {
        self.places.values_mut().for_each(|access| *access = (*access).min(Access::Read));
    }

    /// Protects a link from replacement: nothing new can be created in its folder.
    pub(super) fn pin(&mut self, link: &Path) {
        self.pinned.insert(link.to_owned());
    }

    /// Hides a path and everything below it.
    pub(super) fn hide(&mut self, path: &Path) {
        let real = self.resolve(path).map_or_else(|| path.to_owned(), |led| led.real);
        self.places.retain(|place, _| !place.starts_with(&real));
        self.places.insert(real, Access::Hidden);
    }

    /// Returns the access to a path without links.
    pub(super) fn access(&self, path: &Path) -> Access {
        path.ancestors().find_map(|above| self.places.get(above)).copied().unwrap_or(Access::Hidden)
    }

    /// Returns the entry that hides a path, or `None`.
    pub(super) fn hidden_by(&self, path: &Path) -> Option<&Path> {
        let (place, access) = path.ancestors().find_map(|above| self.places.get_key_value(above))?;
        (*access == Access::Hidden).then_some(place)
    }

    /// Returns every place whose access differs from the place above, parents first, or that
    /// exposes the machine's files within an own place.
    pub(super) fn places(&self) -> impl Iterator<Item = (&Path, Access)> {
        let above = |place: &Path| match place.ancestors().skip(1).find_map(|above| self.places.get_key_value(above)) {
            // An own folder contains none of the machine's files.
            Some((above, _)) if self.own.contains(above) => None,
            Some((_, access)) => Some(*access),
            None => Some(Access::Hidden),
        };
        self.places
            .iter()
            .filter(move |(place, access)| above(place) != Some(**access))
            .map(|(place, access)| (&**place, *access))
    }

    /// Returns the links on paths with their targets.
    pub(super) fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links.iter().map(|(link, target)| (&**link, &**target))
    }

    /// Returns true if some path below has less access.
    fn allows_less_below(&self, path: &Path, access: Access) -> bool {
        self.has_part_below(path, access, |_| true)
    }

    /// Returns true if a link below a path is pinned, or a path below it that counts allows less.
    fn has_part_below(&self, path: &Path, access: Access, counts: impl Fn(&Path) -> bool) -> bool {
        let below = self.places.range(path.to_owned()..).skip_while(|(place, _)| *place == path);
        let mut pinned = self.pinned.range(path.to_owned()..);
        pinned.next().is_some_and(|link| link.starts_with(path))
            || below
                .take_while(|(place, _)| place.starts_with(path))
                .any(|(place, less)| *less < access && counts(place))
    }

    /// Returns the entries for a layer that can only grant: a folder with less access somewhere
    /// below is replaced by its current entries. New files in such a folder are hidden.
    pub(super) fn given(&self) -> Vec<(PathBuf, Access)> {
        let mut given = Vec::new();
        for (place, access) in self.places().filter(|(_, access)| *access != Access::Hidden) {
            self.give(place, access, &mut given);
        }
        given
    }

    /// Adds a place, or the parts of it that may be granted.
    pub(super) fn give(&self, place: &Path, access: Access, given: &mut Vec<(PathBuf, Access)>) {
        if !self.allows_less_below(place, access) {
            given.push((place.to_owned(), access));
            return;
        }
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            // An entry with another access than its folder is in `places` and added by `given`. A
            // link needs no rule: its target has its own.
            let is_apart = self.places.get(&path).is_some_and(|own| *own != access);
            if !is_apart && entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.give(&path, access, given);
            }
        }
    }

    /// Resolves a path and records each link, or returns `None` if it leads nowhere.
    pub(super) fn resolve(&mut self, path: &Path) -> Option<Led> {
        let mut real = PathBuf::from("/");
        let mut left: Vec<OsString> = parts(path);
        let mut links = 0;
        let mut is_there = true;
        // True if `real` does not exist, so that nothing below it does.
        let mut is_missing = false;
        let mut planted = None;
        while let Some(part) = left.pop() {
            if part == ".." {
                real.pop();
                is_missing = false;
                continue;
            }
            let next = real.join(&part);
            if is_missing {
                real = next;
                continue;
            }
            match fs::symlink_metadata(&next) {
                Ok(meta) if meta.is_symlink() => {
                    let target = fs::read_link(&next).ok()?;
                    links += 1;
                    if links > MOST_LINKS {
                        return None;
                    }
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                    if planted.is_none() && self.worked.iter().any(|worked| next.starts_with(worked) && next != *worked)
                    {
                        planted = Some(next.clone());
                    }
                    self.links.insert(next, target);
                }
                Ok(_) => real = next,
                Err(_) => {
                    (is_there, is_missing) = (false, true);
                    real = next;
                }
            }
        }
        Some(Led { real, is_there, planted })
    }
}

/// Returns the components of a path, last first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}
