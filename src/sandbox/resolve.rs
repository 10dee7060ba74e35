//! Resolves paths and finds the links on them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most links to follow, as in the kernel.
const MOST_LINKS: usize = 40;

/// The most bytes of a path, as in the kernel. No folders are remembered for a longer path.
const LONGEST: usize = 4096;

/// The result of resolving a path.
pub(super) struct Led {
    /// The resolved path.
    pub(super) real: PathBuf,
    /// True if it exists.
    pub(super) is_there: bool,
    /// The first link on the path that a worker may have made.
    pub(super) planted: Option<PathBuf>,
}

/// The state after following some components of a path.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    real: PathBuf,
    is_there: bool,
    /// True if `real` does not exist, so that nothing below it does.
    is_missing: bool,
    /// True if the path leads nowhere.
    is_lost: bool,
    planted: Option<PathBuf>,
    /// How often a link was followed.
    followed: usize,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Walk {
    /// Follows a path. Workers may write in `worked`.
    pub(super) fn along(path: &Path, worked: &[PathBuf]) -> Self {
        let mut walk = Self::new();
        walk.follow(parts(path), worked);
        walk
    }

    fn new() -> Self {
        Self {
            real: PathBuf::from("/"),
            is_there: true,
            is_missing: false,
            is_lost: false,
            planted: None,
            followed: 0,
            links: BTreeMap::new(),
        }
    }

    /// Returns the links on the path with their targets.
    pub(super) fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links.iter().map(|(link, target)| (&**link, &**target))
    }

    /// Returns the resolved path, or `None` if the path leads nowhere.
    pub(super) fn end(&self) -> Option<Led> {
        (!self.is_lost).then(|| Led { real: self.real.clone(), is_there: self.is_there, planted: self.planted.clone() })
    }

    /// Follows further components, last first.
    fn follow(&mut self, mut left: Vec<OsString>, worked: &[PathBuf]) {
        while let Some(part) = left.pop().filter(|_| !self.is_lost) {
            if part == ".." {
                self.real.pop();
                self.is_missing = false;
                continue;
            }
            let next = self.real.join(&part);
            if self.is_missing {
                self.real = next;
                continue;
            }
            match fs::symlink_metadata(&next) {
                Ok(meta) if meta.is_symlink() => match fs::read_link(&next) {
                    Ok(target) if self.followed < MOST_LINKS => {
                        left.extend(parts(&target));
                        self.add_link(next, target, worked);
                    }
                    _ => self.is_lost = true,
                },
                Ok(_) => self.real = next,
                Err(_) => {
                    (self.is_there, self.is_missing) = (false, true);
                    self.real = next;
                }
            }
        }
    }

    fn add_link(&mut self, link: PathBuf, target: PathBuf, worked: &[PathBuf]) {
        self.followed += 1;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        if self.planted.is_none() && worked.iter().any(|worked| link.starts_with(worked) && link != *worked) {
            self.planted = Some(link.clone());
        }
        self.links.insert(link, target);
    }
}

/// The folders above paths that were followed, so that each is looked at once.
///
/// Only for the short time in which one map is made: workers may replace folders by links later. By
/// bytes, which are compared faster than components.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFolders(BTreeMap<OsString, Walk>);

impl KnownFolders {
    /// Follows a path from the nearest known folder on it. Nothing below a missing folder is
    /// looked at.
    pub(super) fn follow(&mut self, path: &Path, worked: &[PathBuf]) -> Walk {
        if path.as_os_str().len() > LONGEST {
            return Walk::along(path, worked);
        }
        let mut walk = Walk::new();
        let mut unknown = Vec::new();
        for folder in path.ancestors() {
            if let Some(known) = self.0.get(folder.as_os_str()) {
                walk = known.clone();
                break;
            }
            unknown.push(folder);
        }
        while let Some(folder) = unknown.pop() {
            let last = folder.components().next_back();
            walk.follow(last.map_or_else(Vec::new, |last| parts(last.as_ref())), worked);
            if !unknown.is_empty() {
                self.0.insert(folder.into(), walk.clone());
            }
        }
        walk
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes a folder with links of all kinds, and returns it and paths in it.
    fn folder() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(folder.path()).expect("it exists");
        fs::create_dir_all(top.join("a/b/c")).expect("folders are made");
        fs::write(top.join("a/file"), "x").expect("a file is written");
        let chain = (0..=MOST_LINKS).map(|n| (format!("chain{}", n + 1), format!("chain{n}")));
        let links = [
            ("a/up", ".."),
            ("a/in", "b/c"),
            ("absolute", "/"),
            ("dangling", "none/at/all"),
            ("loop", "loop"),
            ("chain0", "a"),
        ];
        let links = links.into_iter().map(|(link, target)| (link.to_owned(), target.to_owned())).chain(chain);
        for (link, target) in links {
            symlink(target, top.join(link)).expect("a link is made");
        }
        let paths = [
            "a/b/c",
            "a/b/none/c",
            "a/b/none/../c",
            "a/file/below",
            "a/file/../b",
            "a/in",
            "a/in/../c/d",
            "a/up/a/up/a/in/x",
            "absolute/etc/passwd",
            "dangling/x",
            "dangling/../x",
            "loop/x",
            "chain39/b",
            "chain40/b",
            "chain38/up/chain0/b",
            "chain39/up/a/b",
            "./a//b/.",
            "..",
            "../..",
            "",
        ];
        let paths = paths.iter().map(|path| top.join(path)).chain([PathBuf::from("/"), PathBuf::from("a/b")]).collect();
        (folder, paths)
    }

    #[test]
    fn known_folders_change_no_result() {
        let (folder, paths) = folder();
        let top = fs::canonicalize(folder.path()).expect("it exists");
        let mut forwards = KnownFolders::default();
        let mut backwards = KnownFolders::default();
        let worked = [top.join("a")];
        let mut lost = 0;
        for path in &paths {
            let walk = Walk::along(path, &worked);
            lost += usize::from(walk.is_lost);
            for _ in 0..2 {
                assert_eq!(state(&forwards.follow(path, &worked)), state(&walk), "{}", path.display());
            }
        }
        assert_eq!(lost, 4, "the loop, and each path with more than {MOST_LINKS} links");
        for path in paths.iter().rev() {
            let walk = Walk::along(path, &worked);
            assert_eq!(state(&backwards.follow(path, &worked)), state(&walk), "{}", path.display());
        }
    }

    fn state(walk: &Walk) -> String {
        format!("{walk:?}")
    }

    #[test]
    fn a_known_folder_is_not_looked_at_again_but_its_entries_are() {
        let (folder, _) = folder();
        let top = fs::canonicalize(folder.path()).expect("it exists");
        let mut known = KnownFolders::default();
        let end = |folders: &mut KnownFolders, path: &str| {
            let Led { real, is_there, .. } = folders.follow(&top.join(path), &[]).end().expect("it leads somewhere");
            (real, is_there)
        };
        assert_eq!(end(&mut known, "a/b/c"), (top.join("a/b/c"), true));
        assert_eq!(end(&mut known, "none/x"), (top.join("none/x"), false));
        fs::rename(top.join("a/b"), top.join("moved")).expect("the folder is moved");
        symlink("/", top.join("a/b")).expect("a link is made");
        fs::create_dir(top.join("none")).expect("a folder is made");
        fs::write(top.join("none/x"), "x").expect("a file is written");
        assert_eq!(end(&mut known, "a/b/new"), (top.join("a/b/new"), false));
        assert_eq!(end(&mut known, "none/x"), (top.join("none/x"), false));
        fs::write(top.join("a/late"), "x").expect("a file is written");
        assert_eq!(end(&mut known, "a/late"), (top.join("a/late"), true));
        let walk = Walk::along(&top.join("a/b/new"), &[]).end().expect("it leads somewhere");
        assert_eq!(walk.real, Path::new("/new"), "without known folders the link is followed");
    }
}
