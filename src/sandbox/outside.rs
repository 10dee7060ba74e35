//! Protects programs that run unconfined: ours, bubblewrap, everything on `PATH`, and those in the
//! configuration.
//!
//! Workers may never write to them, whatever the home directory and `writable` permit: a replaced
//! program would run with the user's rights.

use std::fs;
use std::path::Path;

use super::access_map::{Access, AccessMap};
use super::policy::Surroundings;
use super::programs::MOST_PROGRAMS;
use super::resolve::Led;

/// Makes everything that runs unconfined read-only: the last step of a map.
pub(super) fn keep(map: &mut AccessMap, around: &Surroundings) {
    if map.places().all(|(_, access)| access != Access::Write) {
        return;
    }
    for folder in around.path.iter().map(|folder| &**folder).chain(around.programs.iter().filter_map(|it| it.parent()))
    {
        shut(map, folder);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_PROGRAMS);
        for link in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            shut(map, &link.path());
        }
    }
    for path in around.programs.iter().chain(&around.outside) {
        shut(map, path);
    }
}

/// Protects a path's target from writing and the links on the path from replacement. Nothing can be
/// created at a missing path.
fn shut(map: &mut AccessMap, path: &Path) {
    let walk = map.walk(path);
    let Some(Led { real, is_there, .. }) = walk.end() else { return };
    for (link, _) in walk.links().filter(|(link, _)| map.access(link) == Access::Write).collect::<Vec<_>>() {
        map.pin(link);
    }
    map.lower(&real, if is_there { Access::Read } else { Access::Hidden });
}
