//! Files that git or this program reads or runs because the user's configuration says so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::listed::Setting;

/// The settings of git that name a file or a folder which need not be there yet, in lower case.
const PLACES: [&str; 3] = ["core.attributesfile", "core.excludesfile", "core.hookspath"];

/// The files that the configuration consists of, and the values that may name others.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The files in which settings stand.
    pub files: BTreeSet<PathBuf>,
    /// Paths that are files or folders by their settings, whether they are there or not. One that is not absolute lies below
    /// the home directory if it begins with `~/`.
    pub places: BTreeSet<PathBuf>,
    /// Values that may have the path of a program in them.
    pub values: BTreeSet<String>,
}

impl Outside {
    /// Adds what a setting is read from, and what its value may name.
    ///
    /// Only `secretEnv`, among our own settings, runs anything outside of the sandbox.
    pub(super) fn add(&mut self, setting: &Setting) {
        let Setting { origin, key, value } = setting;
        self.files.extend(origin.clone());
        let is_include = key == "include.path"
            || key.strip_prefix("includeif.").is_some_and(|rest| rest.rsplit('.').next() == Some("path"));
        if is_include && !value.starts_with('~') {
            // git reads it beside the file that names it.
            self.places.extend(origin.as_deref().and_then(Path::parent).map(|folder| folder.join(value)));
        } else if is_include || PLACES.contains(&key.as_str()) {
            self.places.insert(value.into());
        } else if !key.starts_with("handoff.") || key.rsplit('.').next() == Some("secretenv") {
            self.values.insert(value.clone());
        }
    }
}
