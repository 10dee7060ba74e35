//! Shows a worker its own control groups of version 1.
//!
//! A namespace of control groups makes `/proc/self/cgroup` relative to the groups of the process
//! that made it. Java ends with an error if the mounts begin somewhere else.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of all hierarchies.
pub(super) const FOLDER: &str = "/sys/fs/cgroup";

/// The type of a mount with control groups of version 1.
const VERSION_1: &str = "cgroup";

/// The content of [`FOLDER`] for a worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// The groups of this process, each with the place of its hierarchy.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
    /// Links to hierarchies with several controllers: place and target.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Groups {
    /// Returns those of this process, or `None` if the mounts begin at its groups or show no
    /// hierarchy of version 1.
    pub(super) fn own() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = own_mounts(&mounts, &groups)?;
        let places = fs::read_dir(FOLDER).ok()?.flatten().map(|entry| entry.path());
        let links = places.filter_map(|place| fs::read_link(&place).ok().map(|target| (place, target)));
        Some(Self { mounts, links: links.collect() })
    }
}

/// Returns the folder of each mounted hierarchy's own group with the hierarchy's place.
fn own_mounts(mounts: &str, groups: &str) -> Option<Vec<(PathBuf, PathBuf)>> {
    let mounted: Vec<Mounted<'_>> = mounts.lines().filter_map(Mounted::read).collect();
    let own: Vec<_> = mounted.iter().map(|mounted| (mounted.own(groups), mounted.place.to_owned())).collect();
    let is_old = mounted.iter().any(|mounted| mounted.kind == VERSION_1);
    (is_old && own.iter().any(|(group, place)| group != place)).then_some(own)
}

/// A line of `/proc/self/mountinfo` for a hierarchy.
struct Mounted<'a> {
    /// The group at which the mount begins.
    root: &'a str,
    place: &'a Path,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mounted<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (first, last) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(3);
        let (root, place) = (first.next()?, Path::new(first.next()?));
        let mut last = last.split(' ');
        let (kind, options) = (last.next()?, last.nth(1)?);
        let is_hierarchy = kind == VERSION_1 || kind == "cgroup2";
        (is_hierarchy && place.parent() == Some(Path::new(FOLDER))).then_some(Self { root, place, kind, options })
    }

    /// Returns the folder of the process's group, or the mount's own if that is not below it.
    fn own(&self, groups: &str) -> PathBuf {
        let mut groups = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let group = groups.find(|(controllers, _)| match self.kind {
            VERSION_1 => {
                !controllers.is_empty()
                    && controllers
                        .split(',')
                        .all(|controller| self.options.split(',').any(|option| option == controller))
            }
            _ => controllers.is_empty(),
        });
        let below = group.and_then(|(_, path)| Path::new(path).strip_prefix(self.root).ok());
        // A group outside of a namespace is named with `..`, which leads out of the hierarchy here.
        let found = below.filter(|below| below.components().all(|part| matches!(part, Component::Normal(_))));
        let found = found.map(|child| self.place.join(child));
        found.filter(|folder| folder.is_dir()).unwrap_or_else(|| self.place.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_begin_at_the_own_groups_stay_as_they_are() {
        let mount =
            |options: &str, root: &str| format!("1 2 0:3 {root} {FOLDER}/memory rw - cgroup cgroup {options}\n");
        // In a container, both are those of the container.
        assert_eq!(own_mounts(&mount("rw,memory", "/c"), "4:memory:/c\n"), None);
        assert_eq!(own_mounts(&mount("rw,memory", "/"), "4:memory:/\n"), None);
        // A group outside of the mount, and one that does not exist here.
        assert_eq!(own_mounts(&mount("rw,memory", "/c"), "4:memory:/other\n"), None);
        assert_eq!(own_mounts(&mount("rw,memory", "/"), "4:memory:/not/there\n"), None);
        assert_eq!(own_mounts(&mount("rw,memory", "/"), "4:memory:/../../../../usr\n"), None);
        // Version 2 alone.
        assert_eq!(own_mounts("1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/x\n"), None);
    }
}
