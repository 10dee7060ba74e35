//! The claims of a worker and a driver about an attempt, in the entries of its dispatch and end.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::digest::Digest;
use super::driver::MAX_TEXT;
use super::usage::Usage;

/// The claims of a worker and a driver about an attempt. No verifier judges them: any JSON object
/// that is not empty is valid. A field that is unknown or has another form than here is kept as it
/// is, in `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// At a dispatch: the name of the driver's host, of at most [`MAX_TEXT`] bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// At a dispatch: the job of an engine that started the driver, as short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// At a dispatch: the digest of the worktree's branches, if it had refs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branches: Option<Digest>,
    /// The model that the worker used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many of its actions were denied for lack of a permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_denials: Option<u64>,
    /// Its own account of its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Paths that it left behind and the patch omits, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// All other fields.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let of = &mut fields;
        Ok(Self {
            host: take_short(of, "host"),
            job: take_short(of, "job"),
            branches: take(of, "branches"),
            model: take(of, "model"),
            session: take(of, "session"),
            permission_denials: take(of, "permissionDenials"),
            summary: take(of, "summary"),
            excluded: take(of, "excluded"),
            others: fields,
        })
    }
}

impl Claims {
    /// Returns these claims for an entry, or `None` if they say nothing.
    pub fn stated(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Returns true for a claim that is absent, and for an empty one, which an entry must not have: as
/// it is not written, the entry that has it is not in its form.
#[expect(clippy::ref_option, reason = "serde calls it so")]
pub(super) fn says_nothing<T: Default + PartialEq>(claim: &Option<T>) -> bool {
    claim.as_ref().is_none_or(|claim| *claim == T::default())
}

/// A worker's claims about itself, in its result file or its output. Nothing verifies them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(extend("minProperties" = 1)))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reported {
    /// The model that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The tokens and the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How many of its actions were denied for lack of a permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_denials: Option<u64>,
}

impl Reported {
    /// Returns those of an entry, or `None` if it has none of them.
    pub fn new(claims: Option<&Claims>, usage: Option<Usage>) -> Option<Self> {
        let reported = Self {
            model: claims.and_then(|claims| claims.model.clone()),
            session: claims.and_then(|claims| claims.session.clone()),
            usage,
            permission_denials: claims.and_then(|claims| claims.permission_denials),
        };
        (reported != Self::default()).then_some(reported)
    }

    /// Returns those beside the use, as an entry has them.
    pub fn claims(&self) -> Claims {
        Claims {
            model: self.model.clone(),
            session: self.session.clone(),
            permission_denials: self.permission_denials,
            ..Claims::default()
        }
    }

    /// Returns all texts.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.model.iter_mut().chain(&mut self.session)
    }
}

/// Takes a field if it has this form and is written back as it is.
pub(super) fn take<T>(fields: &mut Map<String, Value>, name: &str) -> T
where
    T: DeserializeOwned + Serialize + Default + PartialEq,
{
    take_if(fields, name, |read| *read != T::default())
}

/// Takes a text that is short enough for a line of a table.
fn take_short(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    take_if(fields, name, |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() <= MAX_TEXT))
}

fn take_if<T>(fields: &mut Map<String, Value>, name: &str, fits: impl FnOnce(&T) -> bool) -> T
where
    T: DeserializeOwned + Default,
{
    let Some(read) = fields.get(name).and_then(|value| T::deserialize(value).ok()).filter(fits) else {
        return T::default();
    };
    fields.remove(name);
    read
}
