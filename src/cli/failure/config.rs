//! What reading the configuration can fail of.

use std::path::Path;

use git_handoff::config::Error;
use git_handoff::model::quote::quoted;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::of("config", &error);
        match &error {
            Error::Value { key, .. } => failure.hint(look(key)),
            Error::Unknown { key, origin, nearest } => {
                failure.hint(instead(key, origin.as_deref(), nearest.as_deref()))
            }
            Error::Git(_) => failure,
        }
    }
}

/// Returns how one sees where a setting stands.
fn look(key: &str) -> String {
    format!("git config --show-origin --get-all {}", quoted(key))
}

/// Returns how a setting that is not known gets its right name, or goes, in the file that it stands in.
fn instead(key: &str, origin: Option<&Path>, nearest: Option<&str>) -> String {
    let Some(file) = origin else { return look(key) };
    let key = quoted(key);
    let config = format!("git config --file {}", quoted(&file.display().to_string()));
    match nearest {
        // One that lacks the name of what it is about can only be written anew.
        Some(name) if !name.contains('<') => {
            format!("{config} --add {} \"$({config} {key})\" && {config} --unset {key}", quoted(name))
        }
        _ => format!("{config} --unset-all {key}"),
    }
}
