//! References from plans to pipelines, and their resolution.

use std::collections::BTreeMap;
use std::fmt;

use super::Spec;
use super::read::is_id;
use crate::model::digest::Digest;
use crate::model::entry::Product;
use crate::model::registered::Registered;

/// The value of `inputs.pipeline`: `<pack>.<name>`, or `<pack>.<name>@sha256:…` to pin the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'t> {
    /// The id.
    pub id: &'t str,
    /// The required digest, if any.
    pub pinned: Option<Digest>,
}

impl<'t> Reference<'t> {
    /// Parses a reference, or returns `None` if invalid.
    pub fn parse(text: &'t str) -> Option<Self> {
        let (id, pinned) = match text.split_once('@') {
            Some((id, digest)) => (id, Some(digest.parse().ok()?)),
            None => (text, None),
        };
        is_id(id).then_some(Self { id, pinned })
    }

    /// Returns true if a pipeline matches.
    pub fn names(&self, spec: &Spec) -> bool {
        self.id == spec.id && self.pinned.is_none_or(|pinned| pinned == spec.digest())
    }
}

/// The available pipelines.
#[derive(Clone, Debug, Default)]
pub struct Pipelines {
    /// Registered pipelines, by id.
    pub known: Registered<String, Spec>,
    /// Every pipeline ever added here, by digest.
    pub stored: Registered<Digest, Spec>,
    /// The pipelines of a run to extend, where names keep their meaning.
    pub sealed: BTreeMap<String, Product>,
}

impl Pipelines {
    /// Returns the reason why a reference cannot be used, if any.
    pub fn refusal(&self, text: &str) -> Option<Unusable> {
        if self.sealed.contains_key(text) { None } else { self.find(text).err() }
    }

    /// Resolves a reference.
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

errors! {
    /// The reason why a reference has no pipeline.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum Unusable = "unknown-pipeline";
    NoReference(String) "usage" 2:
        "{0:?} is no pipeline: it is named <pack>.<name>, or <pack>.<name>@sha256:<64 hex digits> for just these bytes";
    Unknown(String): "no pipeline {0:?} is registered here";
    OtherBytes { id: String, pinned: Digest, registered: Digest }:
        "the pipeline {id:?} is registered here as {registered}, and {pinned} is asked for, which was never added here";
    Unreadable(String, String): "the pipeline {0:?} {1}";
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pinned {
            Some(pinned) => write!(f, "{}@{pinned}", self.id),
            None => f.write_str(self.id),
        }
    }
}
