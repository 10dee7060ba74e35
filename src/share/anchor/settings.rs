//! The settings of anchors: `handoff.anchor.<name>.*`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::left_out::LeftOut;
use crate::verify::{Guarantee, LOCAL};

use super::kind;
use super::{Anchor, PATIENCE};

/// The maximum time limit of a request.
const MOST_PATIENCE: u64 = 600;

/// The settings of an anchor; unused ones are detected at the end.
pub(super) struct Settings<'a> {
    name: &'a str,
    values: BTreeMap<&'a str, &'a str>,
    /// The configured guarantee.
    pub(super) stated: Option<Guarantee>,
}

/// Parses an anchor's settings strictly, so that a misspelt one cannot weaken it.
///
/// The program of a kind that is not built in is looked for in the folders.
pub fn read(name: &str, settings: &BTreeMap<String, String>, folders: &[PathBuf]) -> Result<Anchor, SettingError> {
    if name.is_empty()
        || name == LOCAL
        || name.starts_with('-')
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    {
        return Err(SettingError::Name(name.to_owned()));
    }
    let values = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut reader = Settings { name, values, stated: None };
    let word = reader.required("type")?;
    let stated = reader.take("guarantee").map(|text| text.parse::<Guarantee>().map_err(|()| text));
    reader.stated =
        stated.transpose().map_err(|_| reader.bad("guarantee", "is none of detect, external, external-immutable"))?;
    let within = match reader.take("timeout") {
        None => PATIENCE,
        Some(seconds) => match seconds.parse() {
            Ok(seconds @ 1..=MOST_PATIENCE) => Duration::from_secs(seconds),
            _ => return Err(reader.bad("timeout", "is not between 1 and 600 seconds")),
        },
    };
    if kind::is_left_out(word) {
        return Err(SettingError::LeftOut { name: name.to_owned(), kind: word.to_owned(), source: LeftOut("anchors") });
    }
    let place = kind::read(word, &mut reader, folders)?
        .ok_or_else(|| SettingError::Kind { name: name.to_owned(), source: NoProgram(word.to_owned()) })?;
    if let Some(key) = reader.values.keys().next() {
        return Err(reader.bad(key, "is no setting of such an anchor"));
    }
    let (name, guarantee) = (name.to_owned(), reader.stated);
    Ok(Anchor { name, stated: guarantee, within, place, gave_up: OnceCell::new() })
}

impl<'a> Settings<'a> {
    /// Takes a setting by its lower-case name.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a str> {
        self.values.remove(key)
    }

    /// Takes a required, non-empty setting.
    pub(super) fn required(&mut self, key: &str) -> Result<&'a str, SettingError> {
        let value = self.take(key).filter(|value| !value.is_empty());
        value.ok_or_else(|| SettingError::Missing { name: self.name.to_owned(), key: key.to_owned() })
    }

    /// Creates the error for a setting.
    pub(super) fn bad(&self, key: &str, why: &'static str) -> SettingError {
        SettingError::Value { name: self.name.to_owned(), key: key.to_owned(), why }
    }
}

errors! {
    /// The reason why settings are invalid.
    #[derive(Debug, thiserror::Error)] pub enum SettingError = "bad-anchor";
    Name(String):
        "{0:?} is no name for an anchor: letters, digits, `-`, `_` and `.`, and not {LOCAL:?}, which is always there";
    Missing { name: String, key: String }: "the anchor {name:?} has no setting `handoff.anchor.{name}.{key}`";
    Value { name: String, key: String, why: &'static str }: "the setting `handoff.anchor.{name}.{key}` {why}";
    Kind { name: String, source: NoProgram }: "the setting `handoff.anchor.{name}.type` is no kind of anchor";
    LeftOut { name: String, kind: String, source: LeftOut } "left-out":
        "the anchor {name:?} of type {kind:?} cannot be used";
}

/// The reason why an unknown kind is none.
#[derive(Debug, thiserror::Error)]
#[error("there is no program git-handoff-anchor-{0} beside git-handoff or in PATH")]
pub struct NoProgram(String);

impl SettingError {
    /// Returns the key of the setting.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::Name(_) | Self::LeftOut { .. } => None,
            Self::Kind { name, .. } => Some(format!("handoff.anchor.{name}.type")),
            Self::Missing { name, key } | Self::Value { name, key, .. } => Some(format!("handoff.anchor.{name}.{key}")),
        }
    }
}
