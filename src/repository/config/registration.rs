//! Files that a setting registers under a name.

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
    /// The file that contains the setting, or `None` for the command line and the environment.
    pub origin: Option<PathBuf>,
}

impl Registration {
    pub(super) fn from_setting(setting: &Setting, path: PathBuf) -> Self {
        Self { path, key: setting.key.clone(), origin: setting.origin.clone() }
    }

    /// Describes the registration for messages.
    pub fn place(&self) -> RegisteredBy {
        let origin = self.origin.as_ref().map_or_else(|| "the command line".into(), |file| file.display().to_string());
        RegisteredBy { key: self.key.clone(), origin, file: self.path.display().to_string() }
    }
}

/// Formats the file of a setting for messages, or returns an empty string.
pub(super) fn place(origin: Option<&Path>) -> String {
    origin.map(|file| format!(" in {}", file.display())).unwrap_or_default()
}

impl Config {
    /// Registers a schema, or warns if its name is not `id@N`.
    pub(super) fn set_schema(&mut self, name: &str, registration: Registration) {
        match name.parse() {
            Ok(schema) => drop(self.schemas.insert(schema, registration)),
            Err(error) => self.warnings.push(format!(
                "`{}`{} is ignored: {error}",
                registration.key,
                place(registration.origin.as_deref())
            )),
        }
    }
}
