//! Which files a worker reaches: a map from paths to what may be done there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// So many links lead from one path to another at most, as the kernel has it.
const MOST_LINKS: usize = 40;

/// What may be done with a file, or with all below a folder.
///
/// Each allows more than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::worker) enum Access {
    /// Nothing: it is not there.
    Hidden,
    /// It may be read and run.
    Read,
    /// Everything.
    Write,
}

/// What may be done where: what stands nearest above a path decides, and what nothing stands above is hidden.
///
/// Paths are those that the system resolves names to; what a path leads through is kept beside them.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Map {
    places: BTreeMap<PathBuf, Access>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// Links that may not be replaced.
    pinned: BTreeSet<PathBuf>,
    /// Places at which something of the attempt's own lies, and not what the machine has there.
    own: BTreeSet<PathBuf>,
    /// The folders that workers may write: whatever link lies there leads nobody to anything.
    worked: Vec<PathBuf>,
}

/// Where a path leads to.
pub(super) struct Led {
    /// The path that the system resolves it to.
    pub(super) real: PathBuf,
    /// Whether anything is there.
    pub(super) is_there: bool,
    /// The first link on the way that a worker may have put there.
    pub(super) planted: Option<PathBuf>,
}

impl Map {
    /// Makes one in which nothing may be done; workers may write what is `worked`, paths that lead through no links.
    pub(super) fn among(worked: &[PathBuf]) -> Self {
        Self { worked: worked.to_vec(), ..Self::default() }
    }

    /// Says what may be done at a path, whatever was said of it before; returns where it leads to, none where nothing is there, or
    /// where only a link leads that a worker may have put there.
    ///
    /// What is hidden need not be there yet.
    pub(super) fn set(&mut self, path: &Path, access: Access) -> Option<PathBuf> {
        let Led { real, is_there, planted } = self.resolve(path)?;
        if (!is_there || planted.is_some()) && access != Access::Hidden {
            return None;
        }
        self.places.insert(real.clone(), access);
        Some(real)
    }

    /// Says that all of a path may be written that is not hidden; returns where it leads to, none where nothing is there.
    pub(super) fn give_whole(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.set(path, Access::Write)?;
        self.places.retain(|place, access| *access == Access::Hidden || !place.starts_with(&real) || *place == real);
        Some(real)
    }

    /// Says that no more may be done at a path that leads through no links than `access`, nor with the files right in it that have a
    /// word of their own.
    pub(super) fn lower(&mut self, real: &Path, access: Access) {
        let is_in = |place: &Path| place == real || place.parent() == Some(real) && !place.is_dir();
        for (_, more) in self.places.iter_mut().filter(|(place, more)| **more > access && is_in(place)) {
            *more = access;
        }
        if self.access(real) > access {
            self.places.insert(real.to_owned(), access);
        }
    }

    /// Says that what lies at a path is the attempt's own: all of it may be written. What is hidden below it is not there, and what
    /// has the same access as the folder around it is a part of it; what else is given below it stays.
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

    /// Hides the folders right in a place of the attempt's own in which something deeper is given: nothing new can be made there.
    pub(super) fn close_around(&mut self, place: &Path) {
        let below = |path: &PathBuf| Some(path.strip_prefix(place).ok()?.components().next()?.as_os_str().to_owned());
        let tops: BTreeSet<PathBuf> = self.places.keys().filter_map(below).map(|name| place.join(name)).collect();
        for top in tops {
            self.places.entry(top).or_insert(Access::Hidden);
        }
    }

    /// Returns true if no folder is given below a path of which a part is kept.
    pub(super) fn keeps_nothing_below(&self, path: &Path) -> bool {
        let mut given = self.places().filter(|(place, access)| place.starts_with(path) && *access != Access::Hidden);
        given.all(|(place, access)| !self.allows_less_below(place, access))
    }

    /// Returns what is hidden below a path, but for what is hidden with a folder around it.
    pub(super) fn hidden_below(&self, path: &Path) -> impl Iterator<Item = &Path> {
        let below = self.places().filter(move |(place, _)| *place != path && place.starts_with(path));
        below.filter(|(_, access)| *access == Access::Hidden).map(|(place, _)| place)
    }

    /// Says that nothing may be written any more.
    pub(super) fn freeze(&mut self) {
        self.places.values_mut().for_each(|access| *access = (*access).min(Access::Read));
    }

    /// Says that a link may not be replaced: nothing new can be made directly in its folder.
    pub(super) fn pin(&mut self, link: &Path) {
        self.pinned.insert(link.to_owned());
    }

    /// Says that a path and all below it is hidden, whatever was said of any of it before.
    pub(super) fn hide(&mut self, path: &Path) {
        let real = self.resolve(path).map_or_else(|| path.to_owned(), |led| led.real);
        self.places.retain(|place, _| !place.starts_with(&real));
        self.places.insert(real, Access::Hidden);
    }

    /// Returns what may be done at a path, which leads through no links.
    pub(super) fn access(&self, path: &Path) -> Access {
        path.ancestors().find_map(|above| self.places.get(above)).copied().unwrap_or(Access::Hidden)
    }

    /// Returns the place by whose own word a path is hidden; none where nobody said anything, or it is not.
    pub(super) fn hidden_by(&self, path: &Path) -> Option<&Path> {
        let (place, access) = path.ancestors().find_map(|above| self.places.get_key_value(above))?;
        (*access == Access::Hidden).then_some(place)
    }

    /// Returns every place where something else holds than above it, those above before those below: another access, or files of the
    /// machine's where those above are the attempt's own.
    pub(super) fn places(&self) -> impl Iterator<Item = (&Path, Access)> {
        let above = |place: &Path| match place.ancestors().skip(1).find_map(|above| self.places.get_key_value(above)) {
            // The attempt's own folders have nothing of the machine's.
            Some((above, _)) if self.own.contains(above) => None,
            Some((_, access)) => Some(*access),
            None => Some(Access::Hidden),
        };
        self.places
            .iter()
            .filter(move |(place, access)| above(place) != Some(**access))
            .map(|(place, access)| (&**place, *access))
    }

    /// Returns the links that paths lead through, with where each points.
    pub(super) fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links.iter().map(|(link, target)| (&**link, &**target))
    }

    /// Returns whether less may be done somewhere below a path.
    fn allows_less_below(&self, path: &Path, access: Access) -> bool {
        let below = self.places.range(path.to_owned()..).skip_while(|(place, _)| *place == path);
        let mut pinned = self.pinned.range(path.to_owned()..);
        pinned.next().is_some_and(|link| link.starts_with(path))
            || below.take_while(|(place, _)| place.starts_with(path)).any(|(_, less)| *less < access)
    }

    /// Returns the places for a layer that can give and cannot take away: folders in which less may be done somewhere become their
    /// entries, as they are now. What comes into such a folder later is hidden, whatever it is called.
    pub(super) fn given(&self) -> Vec<(PathBuf, Access)> {
        let mut given = Vec::new();
        for (place, access) in self.places().filter(|(_, access)| *access != Access::Hidden) {
            self.give(place, access, &mut given);
        }
        given
    }

    /// Adds a place, or what of it may be given.
    pub(super) fn give(&self, place: &Path, access: Access, given: &mut Vec<(PathBuf, Access)>) {
        if !self.allows_less_below(place, access) {
            given.push((place.to_owned(), access));
            return;
        }
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            // A place with another access than its folder is one of `places`, and added by `given`. One with the same
            // access is not. A link needs no rule: the place that it leads to has its own.
            let is_apart = self.places.get(&path).is_some_and(|own| *own != access);
            if !is_apart && entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.give(&path, access, given);
            }
        }
    }

    /// Follows a path, noting each link that it leads through; none where it leads nowhere.
    pub(super) fn resolve(&mut self, path: &Path) -> Option<Led> {
        let mut real = PathBuf::from("/");
        let mut left: Vec<OsString> = parts(path);
        let mut links = 0;
        let mut is_there = true;
        let mut planted = None;
        while let Some(part) = left.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
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
                    is_there = false;
                    real = next;
                }
            }
        }
        Some(Led { real, is_there, planted })
    }
}

/// Returns the parts of a path, the last one first.
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
