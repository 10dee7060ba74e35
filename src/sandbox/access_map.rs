//! Maps paths to a worker's access.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::resolve::{KnownFolders, Led, Walk};

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
    /// The folders that were looked at while the map is made, or `None` for a finished map.
    folders: Option<KnownFolders>,
}

impl AccessMap {
    /// Begins a map in which everything is hidden. Workers may write in `worked`, paths without
    /// links. Until [`finish`](Self::finish), each folder is looked at once.
    pub(super) fn begin(worked: &[PathBuf]) -> Self {
        Self { worked: worked.to_vec(), folders: Some(KnownFolders::default()), ..Self::default() }
    }

    /// Finishes a map: from now on every folder is looked at again, because workers may replace
    /// folders by links.
    pub(super) fn finish(&mut self) {
        self.folders = None;
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
        let below = self.at_or_below(&real).filter(|(place, access)| **access != Access::Hidden && **place != real);
        let below: Vec<PathBuf> = below.map(|(place, _)| place.clone()).collect();
        self.remove(&below);
        Some(real)
    }

    /// Lowers the access to a path without links to at most `access`, and that of entries directly
    /// in it.
    pub(super) fn lower(&mut self, real: &Path, access: Access) {
        for (_, more) in self.places.iter_mut().filter(|(place, more)| {
            **more > access && (place.as_path() == real || place.parent() == Some(real) && !place.is_dir())
        }) {
            *more = access;
        }
        if self.access(real) > access {
            self.places.insert(real.to_owned(), access);
        }
    }

    /// Makes a path the attempt's own, and writable. Hidden entries below it do not exist there,
    /// entries with the access of their folder become part of it, and other entries stay.
    pub(super) fn make_own(&mut self, real: &Path) {
        let parts: Vec<PathBuf> = self
            .at_or_below(real)
            .filter(|(place, access)| {
                *place != real && place.ancestors().skip(1).find_map(|above| self.places.get(above)) == Some(*access)
            })
            .map(|(place, _)| place.clone())
            .collect();
        self.remove(&parts);
        self.places.insert(real.to_owned(), Access::Write);
        self.own.insert(real.to_owned());
        let moot: Vec<PathBuf> = self
            .at_or_below(real)
            .filter(|(place, access)| {
                **access == Access::Hidden
                    && place
                        .ancestors()
                        .skip(1)
                        .find(|path| self.places.get(*path).is_some_and(|own_access| *own_access != Access::Hidden))
                        == Some(real)
            })
            .map(|(place, _)| place.clone())
            .collect();
        self.remove(&moot);
    }

    /// Hides the direct subfolders of an own place in which something deeper is granted: nothing
    /// new can be created there.
    pub(super) fn close_around(&mut self, place: &Path) {
        let below = |path: &PathBuf| Some(path.strip_prefix(place).ok()?.components().next()?.as_os_str().to_owned());
        let below = self.at_or_below(place).filter_map(|(path, _)| below(path));
        let tops: BTreeSet<PathBuf> = below.map(|name| place.join(name)).collect();
        for top in tops {
            self.places.entry(top).or_insert(Access::Hidden);
        }
    }

    /// Returns true if no folder below a path is granted in part. What does not exist is no part of
    /// a folder that is only read, because no worker can make it.
    pub(super) fn keeps_nothing_below(&self, path: &Path) -> bool {
        let mut given = self.places_below(path).filter(|(_, access)| *access != Access::Hidden);
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
        let below = self.places_below(path).filter(move |(place, _)| *place != path);
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
        let below: Vec<PathBuf> = self.at_or_below(&real).map(|(place, _)| place.clone()).collect();
        self.remove(&below);
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
        self.differing(None, self.places.iter())
    }

    /// Returns those of [`places`](Self::places) that are a path or below it.
    pub(super) fn places_below(&self, path: &Path) -> impl Iterator<Item = (&Path, Access)> {
        let above = path.ancestors().skip(1).find_map(|above| self.places.get_key_value(above));
        self.differing(above, self.at_or_below(path))
    }

    /// Selects such places from sorted entries, which all lie below `above`.
    fn differing<'a>(
        &'a self,
        above: Option<(&'a PathBuf, &'a Access)>,
        places: impl Iterator<Item = (&'a PathBuf, &'a Access)>,
    ) -> impl Iterator<Item = (&'a Path, Access)> {
        // The entries above the last one, outermost first: those below an entry follow it.
        let mut above: Vec<(&PathBuf, &Access)> = above.into_iter().collect();
        let differs = move |(place, access): &(&'a PathBuf, &'a Access)| {
            while above.last().is_some_and(|(above, _)| !place.starts_with(above)) {
                above.pop();
            }
            let differs = match above.last() {
                // An own folder contains none of the machine's files.
                Some((above, _)) if self.own.contains(*above) => true,
                Some((_, more)) => more != access,
                None => **access != Access::Hidden,
            };
            above.push((place, access));
            differs
        };
        places.filter(differs).map(|(place, access)| (&**place, *access))
    }

    /// Returns the entries that are a path or below it.
    fn at_or_below(&self, path: &Path) -> impl Iterator<Item = (&PathBuf, &Access)> {
        let from = self.places.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.take_while(move |(place, _)| place.starts_with(path))
    }

    fn remove(&mut self, places: &[PathBuf]) {
        for place in places {
            self.places.remove(place);
        }
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
        let mut below = self.at_or_below(path).skip_while(|(place, _)| *place == path);
        let mut pinned = self.pinned.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        pinned.next().is_some_and(|link| link.starts_with(path))
            || below.any(|(place, less)| *less < access && counts(place))
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
        let walk = self.walk(path);
        self.links.extend(walk.links().map(|(link, target)| (link.to_owned(), target.to_owned())));
        walk.end()
    }

    /// Follows a path without recording its links.
    pub(super) fn walk(&mut self, path: &Path) -> Walk {
        match &mut self.folders {
            Some(folders) => folders.follow(path, &self.worked),
            None => Walk::along(path, &self.worked),
        }
    }

    /// Resolves a path of a finished map without recording its links, or returns `None` if it leads
    /// nowhere.
    pub(super) fn follow(&self, path: &Path) -> Option<Led> {
        Walk::along(path, &self.worked).end()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::policy::{ExecutorPolicy, More, Surroundings};
    use super::*;

    /// Returns maps with places in each other, beside each other, and with names that begin alike.
    fn maps() -> Vec<AccessMap> {
        let paths = ["/", "/a", "/a/b", "/a/b/c", "/a/b/d/e", "/a-b", "/a/b-c", "/a.b/c", "/b/a", "/b/a/c"];
        (1..200)
            .map(|seed| {
                let mut map = AccessMap::default();
                for (n, path) in paths.iter().enumerate() {
                    let access = match (seed / [1, 7, 49, 343][n % 4] + n * seed) % 5 {
                        0 => Access::Hidden,
                        1 | 2 => Access::Read,
                        3 => Access::Write,
                        _ => continue,
                    };
                    map.places.insert(path.into(), access);
                    if access == Access::Write && n % 2 == 0 {
                        map.own.insert(path.into());
                    }
                }
                map
            })
            .collect()
    }

    #[test]
    fn places_are_those_that_differ_from_the_place_above() {
        for map in maps() {
            let above = |place: &Path| match place.ancestors().skip(1).find_map(|it| map.places.get_key_value(it)) {
                Some((above, _)) if map.own.contains(above) => None,
                Some((_, access)) => Some(*access),
                None => Some(Access::Hidden),
            };
            let differing = map.places.iter().filter(|(place, access)| above(place) != Some(**access));
            let differing: Vec<(&Path, Access)> = differing.map(|(place, access)| (&**place, *access)).collect();
            assert_eq!(map.places().collect::<Vec<_>>(), differing, "{map:?}");
            for path in ["/", "/a", "/a/b", "/a/b/d", "/a/none", "/b", "/c"].map(Path::new) {
                let below: Vec<_> = differing.iter().copied().filter(|(place, _)| place.starts_with(path)).collect();
                assert_eq!(map.places_below(path).collect::<Vec<_>>(), below, "{} in {map:?}", path.display());
            }
        }
    }

    #[test]
    fn hiding_a_path_removes_only_entries_below_it() {
        let top = Path::new("/no-folder-of-this-name");
        for map in maps() {
            let mut map = AccessMap {
                places: map.places.iter().map(|(p, a)| (under(top, p), *a)).collect(),
                ..Default::default()
            };
            let mut expected = map.places.clone();
            expected.retain(|place, _| !place.starts_with(top.join("a")));
            expected.insert(top.join("a"), Access::Hidden);
            map.hide(&top.join("a"));
            assert_eq!(map.places, expected);
        }
    }

    fn under(top: &Path, path: &Path) -> PathBuf {
        top.join(path.strip_prefix("/").expect("it is absolute"))
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_map_was_made_is_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(folder.path()).expect("it exists");
        let shared = top.join("shared");
        fs::create_dir_all(shared.join("deep/in")).expect("folders are made");
        let around = Surroundings { worked: vec![shared.clone()], ..Surroundings::default() };
        let path = shared.join("deep/in/file");
        let more = More { readable: vec![path.clone(), shared.join("deep/in")], ..More::default() };
        let policy = ExecutorPolicy::new(&around, &more).expect("nothing is refused");
        fs::rename(shared.join("deep"), top.join("was")).expect("the folder is moved");
        symlink(top.join("was"), shared.join("deep")).expect("a link is made");
        for led in [policy.map.clone().resolve(&path), policy.map.follow(&path)] {
            let led = led.expect("it leads somewhere");
            assert_eq!((led.real, led.planted), (top.join("was/in/file"), Some(shared.join("deep"))));
        }
    }
}
