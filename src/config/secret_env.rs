//! Environment variables whose values are secrets, and where these come from.

use super::kind::{Kind, Read};
use super::{Error, Setting};

/// One such variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEnv {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: SecretSource,
    /// The key of the setting, as git lists it.
    pub key: String,
}

/// Where the value of a secret comes from. The value itself never stands in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// The environment of the driver.
    Environment,
    /// What a command line prints, run by `sh -c`.
    Command(String),
    /// What a file holds.
    File(String),
}

impl SecretEnv {
    /// Returns whether it is a variable of the driver's environment that is handed through.
    pub fn is_from_environment(&self, name: &str) -> bool {
        self.source == SecretSource::Environment && self.name == name
    }
}

/// Names of variables, or one name and where its value comes from.
pub(super) struct Secrets;

impl Kind for Secrets {
    fn says(&self) -> String {
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
        let is_name = |name: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !name.is_empty() && name.bytes().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        let from = from.trim_start();
        let source = match (from.strip_prefix('!'), from.strip_prefix('@')) {
            (Some(line), _) if !line.trim().is_empty() => SecretSource::Command(line.to_owned()),
            (_, Some(file)) if !file.is_empty() => SecretSource::File(file.to_owned()),
            _ => {
                // What stands behind it may be the secret, and is never repeated.
                let shown = if is_name(name) { format!("{name}=...") } else { "...".to_owned() };
                let shown = Setting { origin: setting.origin.clone(), key: setting.key.clone(), value: shown };
                return Err(Error::bad(
                    &shown,
                    "is none of `NAME`, `NAME=!command` and `NAME=@file`; a secret itself does not belong into a configuration",
                ));
            }
        };
        if !is_name(name) {
            let shown = Setting { origin: setting.origin.clone(), key: setting.key.clone(), value: "...".to_owned() };
            return Err(Error::bad(&shown, "does not begin with the name of a variable"));
        }
        Ok(vec![secret(name, source)])
    }
}
