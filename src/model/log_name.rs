//! The name of a repository log.

use std::fmt;

use base64ct::{Base64Unpadded, Encoding as _};

use super::digest::Digest;
use super::format;
use super::name::decode_segment;
use super::words::written_as_text;

/// The number of hex digits of an entry's hash in a log's name.
const DIGITS: usize = 12;

/// Returns true for a fingerprint as printed by `ssh-keygen -l`: `SHA256:` and the unpadded base64
/// of 32 bytes.
pub fn is_fingerprint(text: &str) -> bool {
    let letters = text.strip_prefix("SHA256:").filter(|letters| letters.len() == 43);
    letters.is_some_and(|letters| Base64Unpadded::decode_vec(letters).is_ok_and(|bytes| bytes.len() == 32))
}

/// The name of a repository log: its key, and an entry if the key has several logs.
///
/// The first log has the name of the key alone. Any other is named after its first entry that
/// differs from the log whose name it would have had, so that a name stays with its log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName {
    key: String,
    entry: Option<String>,
}

written_as_text!(LogName);

impl LogName {
    /// The first log of a key.
    pub fn from_fingerprint(fingerprint: &str) -> Self {
        Self { key: fingerprint.to_owned(), entry: None }
    }

    /// A further log of a key, with the first differing entry.
    pub fn with_entry(fingerprint: &str, entry: Digest) -> Self {
        Self { key: fingerprint.to_owned(), entry: Some(entry.hex()[..DIGITS].to_owned()) }
    }

    /// Parses `SHA256:<43 letters of base64>` with or without `.<12 hex digits>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (key, entry) = match text.split_once('.') {
            Some((key, entry)) => (key, Some(entry)),
            None => (text, None),
        };
        let is_key = key.strip_prefix("SHA256:").is_some_and(|rest| {
            rest.len() == 43 && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
        });
        let is_entry = entry.is_none_or(|entry| {
            entry.len() == DIGITS && entry.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
        });
        (is_key && is_entry).then(|| Self { key: key.to_owned(), entry: entry.map(str::to_owned) })
    }

    /// Parses the last segment of a ref.
    pub fn decode(segment: &str) -> Option<Self> {
        Self::parse(&decode_segment(segment)?)
    }

    /// Returns the fingerprint of the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns true if it is named after an entry.
    pub fn is_further(&self) -> bool {
        self.entry.is_some()
    }

    /// Returns true if a log with these entries can have this name.
    pub fn fits(&self, mut entries: impl Iterator<Item = Digest>) -> bool {
        self.entry.as_ref().is_none_or(|prefix| entries.any(|entry| entry.hex().starts_with(prefix.as_str())))
    }

    /// Returns `refs/handoff/archives/<name>`: archives have the same names.
    pub fn archive_reference(&self) -> String {
        format::archive_ref(&self.to_string())
    }

    /// Returns `refs/handoff/logs/<name>`.
    pub fn reference(&self) -> String {
        format::log_ref(&self.to_string())
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "{}.{entry}", self.key),
            None => f.write_str(&self.key),
        }
    }
}
