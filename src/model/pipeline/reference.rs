//! How plans name pipelines, and which of those that are registered is meant.

use std::collections::BTreeMap;
use std::fmt;

use super::Spec;
use super::read::is_id;
use crate::model::digest::Digest;
use crate::model::registered::Registered;

/// What a plan says in `inputs.pipeline`: `<pack>.<name>`, or `<pack>.<name>@sha256:…` for just these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'t> {
    /// The id.
    pub id: &'t str,
    /// The digest of the bytes, where only those will do.
    pub pinned: Option<Digest>,
}

impl<'t> Reference<'t> {
    /// Reads a reference; none of a text that cannot be one.
    pub fn parse(text: &'t str) -> Option<Self> {
        let (id, pinned) = match text.split_once('@') {
            Some((id, digest)) => (id, Some(digest.parse().ok()?)),
            None => (text, None),
        };
        is_id(id).then_some(Self { id, pinned })
    }

    /// Returns whether a pipeline may be what is meant.
    pub fn names(&self, spec: &Spec) -> bool {
        self.id == spec.id && self.pinned.is_none_or(|pinned| pinned == spec.digest())
    }
}

/// The pipelines that can be had here.
#[derive(Clone, Debug, Default)]
pub struct Pipelines {
    /// Those that are registered, by their ids.
    pub known: Registered<String, Spec>,
    /// All that were ever added here, by their digests.
    pub stored: Registered<Digest, Spec>,
    /// What a run has that is to be extended: there each name goes on meaning what it meant.
    pub sealed: BTreeMap<String, Digest>,
}

impl Pipelines {
    /// Returns why no item can name it so; nothing where one can.
    pub fn refusal(&self, text: &str) -> Option<Unusable> {
        if self.sealed.contains_key(text) { None } else { self.find(text).err() }
    }

    /// Finds what a reference names.
    pub fn find(&self, text: &str) -> Result<&Spec, Unusable> {
        let reference = Reference::parse(text).ok_or_else(|| Unusable::NoReference(text.to_owned()))?;
        let registered = self.known.get(&reference.id.to_owned());
        let Some(pinned) = reference.pinned else {
            let found = registered.ok_or_else(|| Unusable::Unknown(text.to_owned()))?;
            return found.map_err(|why| Unusable::Unreadable(text.to_owned(), why.to_string()));
        };
        if let Some(Ok(spec)) = registered
            && spec.digest() == pinned
        {
            return Ok(spec);
        }
        if let Some(Ok(spec)) = self.stored.get(&pinned)
            && spec.id == reference.id
        {
            return Ok(spec);
        }
        Err(match registered {
            Some(Ok(spec)) => Unusable::OtherBytes { id: reference.id.to_owned(), pinned, registered: spec.digest() },
            Some(Err(why)) => Unusable::Unreadable(reference.id.to_owned(), why.to_string()),
            None => Unusable::Unknown(text.to_owned()),
        })
    }
}

/// Why there is no pipeline of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unusable {
    #[error(
        "{0:?} is no pipeline: it is named <pack>.<name>, or <pack>.<name>@sha256:<64 hex digits> for just these bytes"
    )]
    NoReference(String),
    #[error("no pipeline {0:?} is registered here")]
    Unknown(String),
    #[error(
        "the pipeline {id:?} is registered here as {registered}, and {pinned} is asked for, which was never added here"
    )]
    OtherBytes { id: String, pinned: Digest, registered: Digest },
    #[error("the pipeline {0:?} {1}")]
    Unreadable(String, String),
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pinned {
            Some(pinned) => write!(f, "{}@{pinned}", self.id),
            None => f.write_str(self.id),
        }
    }
}
