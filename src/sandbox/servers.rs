//! Hides the addresses of running tool servers. A worker with the address and token of one, such as
//! the user's Gradle daemon, could run code unconfined.

use std::fs;
use std::path::{Path, PathBuf};

use super::access_map::{Access, AccessMap};
use super::policy::{Surroundings, reaches};
use super::resolve::Led;
use super::tools::TOOLS;

/// Hides the files in which servers publish their addresses, in home directories and at variables'
/// paths. No setting reveals them.
///
/// A missing path is not reserved where workers may write: that would block new files beside it.
pub(super) fn hide(map: &mut AccessMap, around: &Surroundings, homes: &[PathBuf]) {
    for server in &TOOLS.servers {
        let usual = homes.iter().map(|home| home.join(server.path));
        let moved = server.moved(|name| around.variable(name)).chain(around.moved(server.path));
        for place in usual.chain(moved).flat_map(|path| expand(&path)) {
            let Some(Led { real, is_there, .. }) = map.walk(&place).end() else { continue };
            if reaches(map, &real) && (is_there || map.access(&real) != Access::Write) {
                map.hide(&real);
            }
        }
    }
}

/// Returns the usual places without `*`.
pub(super) fn below_home() -> impl Iterator<Item = PathBuf> {
    TOOLS.servers.iter().filter(|server| !server.path.contains('*')).map(|server| server.path.into())
}

/// Returns true if the registry of Gradle's daemons is hidden in a writable folder, so that Gradle
/// needs another one.
pub(super) fn hides_gradles(map: &AccessMap, home: &Path) -> bool {
    let registry = home.join(".gradle/daemon");
    map.access(&registry) == Access::Hidden && registry.parent().is_some_and(|above| map.access(above) == Access::Write)
}

/// Returns the paths that match a path with `*` components, or the path itself if it has none.
fn expand(path: &Path) -> Vec<PathBuf> {
    path.components().fold(vec![PathBuf::new()], |found, part| match part.as_os_str() {
        any if any == "*" => found
            .into_iter()
            .flat_map(|folder| {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries.map(|entry| entry.path()).collect::<Vec<_>>()
            })
            .collect(),
        name => found.into_iter().map(|folder| folder.join(name)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_each_name_that_is_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for path in ["a/x/server", "a/y", "b/x"] {
            fs::create_dir_all(folder.path().join(path)).expect("folders are made");
        }
        let found = |pattern: &str| -> Vec<PathBuf> {
            let mut found = expand(&folder.path().join(pattern));
            found.sort();
            found.iter().map(|path| path.strip_prefix(folder.path()).expect("it lies there").to_owned()).collect()
        };
        assert_eq!(found("*/*/server"), to_paths(&["a/x/server", "a/y/server", "b/x/server"]));
        assert_eq!(found("a/z/server"), to_paths(&["a/z/server"]));
        assert_eq!(found("none/*/server"), to_paths(&[]));
    }

    fn to_paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }
}
