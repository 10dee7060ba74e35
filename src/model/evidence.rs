//! Evidence of what comes from other runs and from threads, in one form.
//!
//! It is complete by itself: a verifier needs neither the other run nor the thread.

use serde_json::{Value, json};

use super::bounds;
use super::format;
use super::json;
use super::proof::Proof;

/// The limit of evidence, in entries: those of a proof, and the rest of it.
const HEAVY: usize = 4;

/// Evidence that a run seals with what comes from elsewhere.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// A proof of an item of a sealed run.
    Proof(Box<Proof>),
    /// The bytes of signed commits in order: all of a run, or that of one checkpoint.
    Commits(Vec<String>),
}

impl Evidence {
    /// Returns the bytes.
    pub fn canonical(&self) -> Vec<u8> {
        match self {
            Self::Proof(proof) => format::canonical(proof),
            Self::Commits(commits) => format::canonical(&json!({ "commits": commits })),
        }
    }

    /// Parses the bytes, or returns `None` unless in written form and within the limits.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !bounds::are_light(bytes, HEAVY) {
            return None;
        }
        // The canonical form begins with the first key, and a proof has no such field.
        let evidence = if bytes.starts_with(br#"{"commits":"#) {
            let Value::Object(mut fields) = json::lenient(bytes).ok()? else { return None };
            Self::Commits(serde_json::from_value(fields.remove("commits")?).ok()?)
        } else {
            Self::Proof(Box::new(Proof::parse(bytes).ok()?))
        };
        (evidence.canonical() == bytes).then_some(evidence)
    }

    /// Returns the proof, if it is one.
    pub fn proof(self) -> Option<Proof> {
        match self {
            Self::Proof(proof) => Some(*proof),
            Self::Commits(_) => None,
        }
    }

    /// Returns the commits, if it is commits.
    pub fn commits(self) -> Option<Vec<String>> {
        match self {
            Self::Proof(_) => None,
            Self::Commits(commits) => Some(commits),
        }
    }
}
