//! The entries that a proof shows, each parsed by itself.

use crate::git::codec::{self, Decoded};
use crate::model::digest::Digest;
use crate::model::entry::{Entry, Event, RunSealed, RunSubmitted};
use crate::model::format::{self, leaf_hash};
use crate::model::proof::Leaf;
use crate::verify::reader;

/// An entry with its signed commit.
pub(super) struct SignedCommit(pub(super) Result<(Box<Decoded>, Result<String, String>), String>);

impl SignedCommit {
    pub(super) fn read(commit: &str) -> Self {
        Self(codec::decode(commit.as_bytes()).map_err(|e| e.to_string()).map(|decoded| {
            let signer = reader::signer(&decoded);
            (Box::new(decoded), signer)
        }))
    }

    pub(super) fn decoded(&self) -> Option<&Decoded> {
        self.0.as_ref().ok().map(|(decoded, _)| &**decoded)
    }

    pub(super) fn entry(&self) -> Option<&Entry> {
        self.decoded().map(|decoded| &decoded.entry)
    }

    pub(super) fn hashed(&self) -> Option<(&Entry, Digest)> {
        self.decoded().map(|decoded| (&decoded.entry, decoded.hash))
    }

    /// Returns the key that signed the entry, if the signature is valid.
    pub(super) fn signer(&self) -> Option<&str> {
        self.0.as_ref().ok()?.1.as_deref().ok()
    }

    pub(super) fn submitted(&self) -> Option<&RunSubmitted> {
        match self.entry().map(|entry| &entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }

    pub(super) fn sealed(&self) -> Option<&RunSealed> {
        match self.entry().map(|entry| &entry.event) {
            Some(Event::RunSealed(e)) => Some(e),
            _ => None,
        }
    }
}

/// An entry without its commit.
pub(super) struct JsonEntry<'p> {
    pub(super) entry: Entry,
    pub(super) hash: Digest,
    pub(super) leaf: &'p Leaf,
}

impl<'p> JsonEntry<'p> {
    pub(super) fn read(leaf: &'p Leaf) -> Result<Self, String> {
        let bytes = format::entry_text(&leaf.entry);
        let entry = Entry::parse(&bytes).map_err(|e| e.to_string())?;
        Ok(Self { entry, hash: leaf_hash(&bytes), leaf })
    }
}
