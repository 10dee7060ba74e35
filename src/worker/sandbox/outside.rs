//! What runs outside with all rights: our own programs, bubblewrap, whatever is looked up in `PATH`, and what the configuration
//! names.
//!
//! Nobody inside may write any of it, whatever the home directory and `writable` say: who replaces a program runs as soon as somebody
//! starts it.

use std::fs;
use std::path::Path;

use super::map::{Access, Led, Map};
use super::programs::MOST_PROGRAMS;
use super::reach::Surroundings;

/// Takes away from what may be written all that runs outside: the last word on a map.
pub(super) fn keep(map: &mut Map, around: &Surroundings) {
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

/// Keeps what a path leads to from being written, and the links on the way to it from being replaced; where nothing is there, nothing
/// can be put there.
fn shut(map: &mut Map, path: &Path) {
    let mut way = Map::default();
    let Some(Led { real, is_there, .. }) = way.resolve(path) else { return };
    for (link, _) in way.links().filter(|(link, _)| map.access(link) == Access::Write).collect::<Vec<_>>() {
        map.pin(link);
    }
    map.lower(&real, if is_there { Access::Read } else { Access::Hidden });
}
