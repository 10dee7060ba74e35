//! Files outside of every sandbox that git or this program reads or runs by the user's configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::Outside;
use crate::worker::sandbox::named_in;

use super::ground;

/// Files that git reads in the folder of its own files in the home directory if no setting names others.
const USUAL: [&str; 2] = ["attributes", "ignore"];

/// Returns the files that the configuration consists of, the files and folders that it names by absolute paths or below the home
/// directory, and those that git reads in `own`, the folder of its files there.
///
/// A worker that could write one of them would have the next git command run whatever it likes.
pub(super) fn configured(outside: &Outside, home: Option<&Path>, own: Option<&Path>) -> BTreeSet<PathBuf> {
    // A path that is relative stays so, and is left out below.
    let place = |path: &PathBuf| ground::place(path, Path::new(""), home);
    // A value has a program behind a `!`, or a name before a `:`.
    let values = outside.values.iter().map(|value| value.replace(['!', ':'], " "));
    let named = values.flat_map(|value| named_in(&value, home));
    let usual = own.into_iter().flat_map(|own| USUAL.map(|name| own.join(name)));
    let mut found: BTreeSet<PathBuf> =
        outside.files.iter().chain(&outside.places).map(place).chain(named).chain(usual).collect();
    found.retain(|path| path.is_absolute());
    found
}
