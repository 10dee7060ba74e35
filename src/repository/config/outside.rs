//! Files that the user's configuration makes git or this program read or run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::listed::Setting;

/// git's settings that name a file or folder which need not exist; lower case.
const PLACES: [&str; 3] = ["core.attributesfile", "core.excludesfile", "core.hookspath"];

/// Our own settings that run programs outside the sandbox; lower case.
const RUN_OUTSIDE: [&str; 2] = ["secretenv", "versioncommand"];

/// The configuration files, and the values that may name other files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// The configuration files.
    pub files: BTreeSet<PathBuf>,
    /// Paths of files or folders that may not exist yet. A path beginning with `~/` is relative to
    /// the home directory.
    pub places: BTreeSet<PathBuf>,
    /// Values that may contain the path of a program.
    pub values: BTreeSet<String>,
}

impl Outside {
    /// Adds the file of a setting and the files that its value may name.
    ///
    /// Among the settings `handoff.*`, only `secretEnv` and `versionCommand` run programs outside
    /// the sandbox.
    pub(super) fn add(&mut self, setting: &Setting) {
        let Setting { origin, key, value } = setting;
        self.files.extend(origin.clone());
        let is_include = key == "include.path"
            || key.strip_prefix("includeif.").is_some_and(|rest| rest.rsplit('.').next() == Some("path"));
        if is_include && !value.starts_with('~') {
            // The path is relative to the file that contains it.
            self.places.extend(origin.as_deref().and_then(Path::parent).map(|folder| folder.join(value)));
        } else if is_include || PLACES.contains(&key.as_str()) {
            self.places.insert(value.into());
        } else if !key.starts_with("handoff.") || key.rsplit('.').next().is_some_and(|name| RUN_OUTSIDE.contains(&name))
        {
            self.values.insert(value.clone());
        }
    }
}
