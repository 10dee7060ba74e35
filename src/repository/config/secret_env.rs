//! Environment variables with secret values, and their sources.

use serde::{Deserialize, Serialize};

use super::kind::{Kind, Read};
use super::{Error, Setting};

/// An environment variable with a secret value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretEnv {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: SecretSource,
    /// The key of the setting, as git lists it.
    pub key: String,
}

/// The source of a secret. The value itself never stands in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// The environment of the driver.
    Environment,
    /// The output of a shell command.
    Command(String),
    /// The content of a file.
    File(String),
}

impl SecretEnv {
    /// Returns true if the value is the driver's own variable of this name.
    pub fn is_from_environment(&self, name: &str) -> bool {
        self.source == SecretSource::Environment && self.name == name
    }
}

/// Names of variables, or one name and where its value comes from.
pub(super) struct Secrets;

impl Kind for Secrets {
    fn describe(&self) -> String {
        "`NAME`, several of them, `NAME=!command` or `NAME=@file`; each setting adds some".into()
    }
}

impl Read<Vec<SecretEnv>> for Secrets {
    fn read(&self, setting: &Setting) -> Result<Vec<SecretEnv>, Error> {
        let secret = |name: &str, source| SecretEnv { name: name.to_owned(), source, key: setting.key.clone() };
        let Some((name, from)) = setting.value.split_once('=') else {
            let names = setting.value.split_whitespace();
            return Ok(names.map(|name| secret(name, SecretSource::Environment)).collect());
        };
        let name = name.trim();
        let from = from.trim_start();
        let source = match (from.strip_prefix('!'), from.strip_prefix('@')) {
            (Some(line), _) if !line.trim().is_empty() => SecretSource::Command(line.to_owned()),
            (_, Some(file)) if !file.is_empty() => SecretSource::File(file.to_owned()),
            _ => {
                // The rest may be the secret itself, so it is never shown.
                let value = if is_variable_name(name) { format!("{name}=...") } else { "...".to_owned() };
                let redacted = Setting { origin: setting.origin.clone(), key: setting.key.clone(), value };
                return Err(Error::bad(
                    &redacted,
                    "is none of `NAME`, `NAME=!command` and `NAME=@file`; a secret itself does not belong into a configuration",
                ));
            }
        };
        if !is_variable_name(name) {
            let redacted =
                Setting { origin: setting.origin.clone(), key: setting.key.clone(), value: "...".to_owned() };
            return Err(Error::bad(&redacted, "does not begin with the name of a variable"));
        }
        Ok(vec![secret(name, source)])
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
