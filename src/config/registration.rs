//! Files that are registered under a name, and where the setting stands that does so.

use std::path::{Path, PathBuf};

use super::{Config, Setting};
use crate::model::registered::RegisteredBy;

/// A file that is registered under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The file.
    pub path: PathBuf,
    /// The key of the setting, as git lists it.
    pub key: String,
    /// The file of the setting; none where it stands on a command line or in the environment.
    pub origin: Option<PathBuf>,
}

impl Registration {
    /// Returns what a setting registers.
    pub(super) fn of(setting: &Setting, path: PathBuf) -> Self {
        Self { path, key: setting.key.clone(), origin: setting.origin.clone() }
    }

    /// Returns the same for people.
    pub fn place(&self) -> RegisteredBy {
        let origin = self.origin.as_ref().map_or_else(|| "the command line".into(), |file| file.display().to_string());
        RegisteredBy { key: self.key.clone(), origin, file: self.path.display().to_string() }
    }
}

/// Returns where a setting stands, as messages have it behind its name; nothing of one that stands in no file.
pub(super) fn place(origin: Option<&Path>) -> String {
    origin.map(|file| format!(" in {}", file.display())).unwrap_or_default()
}

impl Config {
    /// Takes in a schema; one whose name nobody can ask for is in nobody's way.
    pub(super) fn set_schema(&mut self, name: &str, registration: Registration) {
        match name.parse() {
            Ok(schema) => drop(self.schemas.insert(schema, registration)),
            Err(_) => self.warnings.push(format!(
                "`{}`{} is ignored: it is not of a schema `id@version`",
                registration.key,
                place(registration.origin.as_deref())
            )),
        }
    }
}
