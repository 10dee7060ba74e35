//! Products from other runs and from threads.
//!
//! The run seals the bytes with evidence of their origin at submit, so that verification needs
//! nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::entry::Product;
use super::name::{FilePath, ItemId, NameError, RunId, ThreadId, decode_segment, encode_segment};
use super::plan::{ProductKey, Selector};
use super::thread::{CheckpointId, PACKET, STATE};

/// The word for the latest checkpoint at submit.
pub const LATEST: &str = "latest";

/// The origin of a product outside the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Elsewhere {
    /// An item of another run.
    Item {
        /// The remote, for a fetched run.
        remote: Option<FilePath>,
        /// The run.
        run: RunId,
        /// The item.
        item: ItemId,
    },
    /// A checkpoint of a thread.
    Checkpoint {
        /// The remote, for a fetched thread.
        remote: Option<FilePath>,
        /// The thread.
        thread: ThreadId,
        /// The checkpoint, or `None` for the latest.
        at: Option<CheckpointId>,
    },
}

impl Elsewhere {
    /// Parses an item of `[<remote>/]<run>`.
    pub fn item(place: &str, item: &str) -> Result<Self, NameError> {
        let (remote, run) = split_remote(place)?;
        Ok(Self::Item { remote, run: RunId::parse(run)?, item: ItemId::parse(item)? })
    }

    /// Parses a checkpoint of `[<remote>/]<thread>`, or returns `None` if its name is invalid.
    pub fn checkpoint(place: &str, at: &str) -> Result<Option<Self>, NameError> {
        let (remote, thread) = split_remote(place)?;
        let thread = ThreadId::parse(thread)?;
        let at = match at {
            LATEST => None,
            id => match id.parse() {
                Ok(id) => Some(id),
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Self::Checkpoint { remote, thread, at }))
    }

    /// Returns the need's field (`run` or `thread`) with its value, and the value of `from`.
    pub fn fields(&self) -> (&'static str, String, String) {
        match self {
            Self::Item { item, .. } => ("run", self.place(), item.to_string()),
            Self::Checkpoint { at, .. } => {
                ("thread", self.place(), at.as_ref().map_or_else(|| LATEST.to_owned(), ToString::to_string))
            }
        }
    }

    /// Returns the displayed name: `[<remote>/]<name>`.
    pub fn place(&self) -> String {
        let (remote, name) = match self {
            Self::Item { remote, run, .. } => (remote, run.as_str()),
            Self::Checkpoint { remote, thread, .. } => (remote, thread.as_str()),
        };
        remote.as_ref().map_or_else(|| name.to_owned(), |remote| format!("{remote}/{name}"))
    }

    /// Returns true if the origin can have such a product: a checkpoint has a state and a packet,
    /// as outputs. A document's schema could not be proven.
    pub fn can_have(&self, select: &Selector) -> bool {
        match (self, select) {
            (Self::Item { .. }, Selector::Document { schema, .. }) => schema.is_none(),
            (Self::Item { .. }, _) => true,
            (Self::Checkpoint { .. }, Selector::Output { path }) => [STATE, PACKET].contains(&path.as_str()),
            (Self::Checkpoint { .. }, _) => false,
        }
    }

    /// Returns the name of the product in entry 0.
    pub fn import(&self, select: &Selector) -> String {
        format!("{self}:{}", select.product_key())
    }
}

/// Splits off the remote; the name after it has no slash.
fn split_remote(place: &str) -> Result<(Option<FilePath>, &str), NameError> {
    match place.rsplit_once('/') {
        Some((remote, name)) => Ok((Some(FilePath::parse(remote)?), name)),
        None => Ok((None, place)),
    }
}

/// `@run/[<remote>/]<run>/<item>` or `@thread/[<remote>/]<thread>/<checkpoint>`, each part encoded
/// as one segment. No item id of the run can be equal.
impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, _, from) = self.fields();
        let (remote, name) = match self {
            Self::Item { remote, run, .. } => (remote, run.encoded()),
            Self::Checkpoint { remote, thread, .. } => (remote, thread.encoded()),
        };
        write!(f, "@{word}/")?;
        if let Some(remote) = remote {
            write!(f, "{}/", encode_segment(remote.as_str()))?;
        }
        write!(f, "{name}/{}", encode_segment(&from))
    }
}

impl FromStr for Elsewhere {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Reserved;
        let (word, rest) = text.split_once('/').ok_or_else(refused)?;
        let parts: Option<Vec<String>> = rest.split('/').map(decode_segment).collect();
        let parts = parts.ok_or_else(refused)?;
        let (place, from) = match parts.as_slice() {
            [name, from] => (name.clone(), from),
            [remote, name, from] => (format!("{remote}/{name}"), from),
            _ => return Err(refused()),
        };
        let read = match word {
            "@run" => Self::item(&place, from)?,
            "@thread" => Self::checkpoint(&place, from)?.ok_or_else(refused)?,
            _ => return Err(refused()),
        };
        // Only the canonical form is valid.
        if read.to_string() == text { Ok(read) } else { Err(refused()) }
    }
}

/// A product from outside the run, as in entry 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// The product.
    pub product: Product,
    /// The [`Evidence`](super::evidence::Evidence) of its origin.
    pub evidence: Product,
}

/// Returns the product of a checkpoint with this key.
pub fn of_checkpoint(key: &ProductKey) -> Option<&'static str> {
    let path = key.output()?.as_str();
    [STATE, PACKET].into_iter().find(|known| *known == path)
}
