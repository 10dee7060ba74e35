//! Resolves a path step by step: every symbolic link on it, and its end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most links to follow, as in the operating system.
const MOST_LINKS: usize = 40;

/// Returns every symbolic link on a path and the place where it ends, even if nothing exists there.
///
/// Only the last component of each result can be a link: as long as these and the folders above
/// them do not change, the path leads to the same place. After too many links the path ends
/// nowhere.
pub(super) fn places(path: &Path) -> Vec<PathBuf> {
    let (mut places, mut at, mut left) = (Vec::new(), PathBuf::new(), names(path));
    while let Some(name) = left.pop_front() {
        match Path::new(&name).components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => at.push(&name),
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(_)) => {
                let place = at.join(&name);
                let Ok(target) = fs::read_link(&place) else {
                    at = place;
                    continue;
                };
                places.push(place);
                if places.len() > MOST_LINKS {
                    return places;
                }
                for part in names(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
            Some(Component::CurDir) | None => {}
        }
    }
    places.push(at);
    places
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_named_and_where_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/deep")).unwrap();
        symlink("real", top.join("a")).unwrap();
        symlink("../other", top.join("real/deep/up")).unwrap();
        symlink(top.join("a/deep"), top.join("b")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let list_places = |path: &str| -> Vec<String> {
            places(&top.join(path))
                .into_iter()
                .filter_map(|place| Some(place.strip_prefix(&top).ok()?.to_str()?.to_owned()))
                .collect()
        };
        assert_eq!(list_places("a/x"), ["a", "real/x"]);
        assert_eq!(list_places("b/up/x"), ["b", "a", "real/deep/up", "real/other/x"]);
        assert_eq!(list_places("real/deep/../none/x"), ["real/none/x"]);
        assert!(list_places("loop/x").iter().all(|place| place == "loop"));
    }
}
