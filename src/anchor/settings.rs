//! Anchors as the configuration describes them: `handoff.anchor.<name>.*`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::share::Space;
use crate::verify::{Guarantee, LOCAL};

use super::credentials::Named;
use super::git::GitPlace;
use super::rfc3161::Authority;
use super::s3::{self, S3Place};
use super::{Anchor, PATIENCE, Place};

/// The longest that one question may take.
const MOST_PATIENCE: u64 = 600;

/// The settings of one anchor; whoever reads them all can tell what is left over.
struct Settings<'a> {
    name: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

/// Reads one anchor's settings, strictly: a misspelt one must not make an anchor weaker than it was meant to be.
pub fn read(name: &str, settings: &BTreeMap<String, String>) -> Result<Anchor, SettingError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name == LOCAL || name.starts_with('-') || !name.chars().all(plain) {
        return Err(SettingError::Name(name.to_owned()));
    }
    let values = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut settings = Settings { name, values };
    let kind = settings.required("type")?;
    let stated = settings.take("guarantee").map(|word| word.parse::<Guarantee>().map_err(|()| word));
    let stated =
        stated.transpose().map_err(|_| settings.bad("guarantee", "is none of detect, external, external-immutable"))?;
    let within = match settings.take("timeout") {
        None => PATIENCE,
        Some(seconds) => match seconds.parse() {
            Ok(seconds @ 1..=MOST_PATIENCE) => Duration::from_secs(seconds),
            _ => return Err(settings.bad("timeout", "is not between 1 and 600 seconds")),
        },
    };
    let place = match kind {
        "git" => Place::Git(Box::new(settings.git()?)),
        "s3" => Place::S3(settings.s3()?),
        "rfc3161" if stated.is_some() => {
            return Err(settings.bad("guarantee", "says nothing: a time stamp changes no claim"));
        }
        "rfc3161" => Place::Rfc3161(settings.rfc3161()?),
        _ => return Err(settings.bad("type", "is no kind of anchor")),
    };
    match settings.values.keys().next() {
        Some(key) => Err(settings.bad(key, "is no setting of such an anchor")),
        None => Ok(Anchor { name: name.to_owned(), stated, within, place, gave_up: OnceCell::new() }),
    }
}

impl<'a> Settings<'a> {
    fn take(&mut self, key: &str) -> Option<&'a str> {
        self.values.remove(key)
    }

    fn required(&mut self, key: &str) -> Result<&'a str, SettingError> {
        let value = self.take(key).filter(|value| !value.is_empty());
        value.ok_or_else(|| SettingError::Missing { name: self.name.to_owned(), key: key.to_owned() })
    }

    fn bad(&self, key: &str, why: &'static str) -> SettingError {
        SettingError::Value { name: self.name.to_owned(), key: key.to_owned(), why }
    }

    fn git(&mut self) -> Result<GitPlace, SettingError> {
        let url = self.required("url")?.to_owned();
        let space = Space::new(self.take("branches"))
            .ok_or_else(|| self.bad("branches", "cannot begin the name of a branch"))?;
        Ok(GitPlace::new(url, space))
    }

    fn s3(&mut self) -> Result<S3Place, SettingError> {
        let bucket = self.required("bucket")?.to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let prefix = self.take("prefix").unwrap_or(s3::PREFIX).to_owned();
        if !prefix.chars().all(plain) || prefix.starts_with('/') || prefix.contains("//") {
            return Err(self.bad("prefix", "is not made of letters, digits, `-`, `_`, `.` and `/`"));
        }
        let endpoint = self.take("endpoint").map(str::to_owned);
        if endpoint.as_deref().is_some_and(|url| !safe(url)) {
            return Err(self.bad(
                "endpoint",
                "is neither an https:// URL nor one of this machine: answers could be changed on the way",
            ));
        }
        let retention_days = match self.take("retentiondays").map(str::parse) {
            None => s3::RETENTION_DAYS,
            Some(Ok(days @ 1..=36_500)) => days,
            Some(_) => return Err(self.bad("retentionDays", "is not between 1 and 36500")),
        };
        let named =
            Named { file: self.take("credentials").map(Into::into), profile: self.take("profile").map(str::to_owned) };
        let region = self.take("region").map(str::to_owned);
        Ok(S3Place { bucket, prefix, endpoint, region, named, retention_days })
    }

    fn rfc3161(&mut self) -> Result<Authority, SettingError> {
        let url = self.required("url")?.to_owned();
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(self.bad("url", "is no URL of HTTP"));
        }
        Ok(Authority { url, ca: self.required("ca")?.into() })
    }
}

/// Returns whether what a URL answers cannot be changed on the way.
fn safe(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return url.starts_with("https://") };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = |rest: &str| rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    ["localhost", "127.0.0.1", "[::1]"].into_iter().any(|own| host.strip_prefix(own).is_some_and(port))
}

/// Why an anchor's settings make no sense.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// Its name cannot stand on a command line.
    #[error(
        "{0:?} is no name for an anchor: letters, digits, `-`, `_` and `.`, and not {LOCAL:?}, which is always there"
    )]
    Name(String),
    /// A setting is not there.
    #[error("the anchor {name:?} has no setting `handoff.anchor.{name}.{key}`")]
    Missing {
        /// The anchor.
        name: String,
        /// The setting.
        key: String,
    },
    /// A setting makes no sense.
    #[error("the setting `handoff.anchor.{name}.{key}` {why}")]
    Value {
        /// The anchor.
        name: String,
        /// The setting.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl SettingError {
    /// Returns the setting that it is about, for whoever wants to look at it.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::Name(_) => None,
            Self::Missing { name, key } | Self::Value { name, key, .. } => Some(format!("handoff.anchor.{name}.{key}")),
        }
    }
}
