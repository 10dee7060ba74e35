//! The result of fetching one ref.

use serde::Serialize;

/// The result of fetching a ref.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "status", content = "reason")]
pub enum Status {
    /// Not here before.
    New,
    /// Fast-forwarded.
    Updated,
    /// Unchanged.
    UpToDate,
    /// Not a fast-forward; the earlier object is kept.
    Rewritten,
    /// Not an object that this kind of ref may have; rejected.
    Unfit(#[serde(skip)] &'static str),
    /// Invalid objects or entries, or written by an unauthorized key, with the reason. The earlier
    /// object is kept.
    Unsound(String),
}

impl Status {
    /// Returns the word, as in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Updated => "updated",
            Self::UpToDate => "up-to-date",
            Self::Rewritten => "rewritten",
            Self::Unfit(_) => "unfit",
            Self::Unsound(_) => "unsound",
        }
    }

    /// Returns the reason why the remote's object was rejected.
    pub(super) fn refusal(&self) -> Option<String> {
        match self {
            Self::New | Self::Updated | Self::UpToDate => None,
            Self::Rewritten => Some("it does not continue what was fetched before".to_owned()),
            Self::Unfit(what) => Some(format!("it is {what}")),
            Self::Unsound(why) => Some(why.clone()),
        }
    }

    /// Returns true if the remote's object was rejected.
    pub fn is_refused(&self) -> bool {
        self.refusal().is_some()
    }
}
