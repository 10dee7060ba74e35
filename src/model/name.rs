//! Validated names as types.
//!
//! A name must be in NFC and is never normalised. In refs and tree paths it has one encoding; see
//! [`encode_segment`].

mod clash;
mod dot_git;
mod encoding;

pub use clash::{clashes, fold};
pub use dot_git::is_dot_git;
pub use encoding::{decode_segment, encode_segment};

use std::fmt;

use unicode_normalization::is_nfc;

use super::words::as_text;

/// The maximum length of an id or document name, in bytes.
pub const MAX_NAME: usize = 128;
/// The maximum length of an encoded segment, in bytes.
pub const MAX_ENCODED_SEGMENT: usize = 200;
/// The maximum length of an encoded path, in bytes.
pub const MAX_ENCODED_PATH: usize = 1024;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident checked by $check:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        as_text!($name);

        impl $name {
            /// Validates `name`.
            pub fn parse(name: &str) -> Result<Self, NameError> {
                $check(name)?;
                Ok(Self(name.to_owned()))
            }

            /// Returns the name as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::parse(name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(name: String) -> Result<Self, NameError> {
                $check(&name)?;
                Ok(Self(name))
            }
        }
    )*};
}

names! {
    /// The id of a run; contains no `/`, and does not begin with `@`.
    RunId checked by check_run_id;
    /// The id of a thread; same rules as for a run.
    ThreadId checked by check_run_id;
    /// The id of an item; may contain `/`, does not begin with `@`, and is encoded as one segment.
    ItemId checked by check_id;
    /// A file-like name: an input key, an output path, an artifact path or a document name.
    ///
    /// No segment is special to git or a file system.
    FilePath checked by check_path;
}

macro_rules! segments {
    ($($name:ident)*) => {$(
        impl $name {
            /// Returns the id encoded as one segment of a ref or tree path.
            pub fn encoded(&self) -> String {
                encode_segment(&self.0)
            }

            /// Decodes an id, or returns `None` unless it encodes to exactly `segment`.
            pub fn decode(segment: &str) -> Option<Self> {
                Self::parse(&decode_segment(segment)?).ok()
            }
        }
    )*};
}

segments!(RunId ThreadId ItemId);

impl FilePath {
    /// Validates a document's name: a file-like name within the length of an id.
    pub fn parse_document(name: &str) -> Result<Self, NameError> {
        if name.len() > MAX_NAME {
            return Err(NameError::TooLong);
        }
        Self::parse(name)
    }

    /// Returns the path with every segment encoded.
    pub fn encoded(&self) -> String {
        let segments: Vec<String> = self.0.split('/').map(encode_segment).collect();
        segments.join("/")
    }

    /// Decodes a path, or returns `None` unless it encodes to exactly `encoded`.
    pub fn decode(encoded: &str) -> Option<Self> {
        let segments: Option<Vec<String>> = encoded.split('/').map(decode_segment).collect();
        Self::parse(&segments?.join("/")).ok()
    }
}

fn check_run_id(name: &str) -> Result<(), NameError> {
    check_id(name)?;
    if name.contains('/') {
        return Err(NameError::Slash);
    }
    // Ids are arguments on command lines, also in hints.
    if name.starts_with('-') {
        return Err(NameError::Dash);
    }
    Ok(())
}

fn check_id(name: &str) -> Result<(), NameError> {
    if name.starts_with('@') {
        return Err(NameError::Reserved);
    }
    if name.len() > MAX_NAME {
        return Err(NameError::TooLong);
    }
    check_text(name)?;
    if encode_segment(name).len() > MAX_ENCODED_SEGMENT {
        return Err(NameError::EncodedTooLong);
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), NameError> {
    if path.len() > MAX_ENCODED_PATH {
        return Err(NameError::EncodedTooLong);
    }
    check_text(path)?;
    if path.contains('\\') {
        return Err(NameError::Backslash);
    }
    let mut length = 0;
    for segment in path.split('/') {
        if matches!(segment, "" | "." | "..") || is_dot_git(segment) {
            return Err(NameError::Segment(segment.to_owned()));
        }
        let encoded = encode_segment(segment).len();
        length += encoded + 1;
        if encoded > MAX_ENCODED_SEGMENT {
            return Err(NameError::EncodedTooLong);
        }
    }
    if length > MAX_ENCODED_PATH + 1 {
        return Err(NameError::EncodedTooLong);
    }
    Ok(())
}

/// Validates the rules for all names.
fn check_text(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control);
    }
    if name.trim() != name {
        return Err(NameError::Space);
    }
    if !is_nfc(name) {
        return Err(NameError::NotNormalized);
    }
    Ok(())
}

errors! {
    /// The reason why a name is invalid.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum NameError;
    Empty: "a name must not be empty";
    TooLong: "a name has at most {MAX_NAME} bytes";
    EncodedTooLong:
        "a name has at most {MAX_ENCODED_SEGMENT} bytes a segment and {MAX_ENCODED_PATH} in all once encoded, \
         where a byte outside [A-Za-z0-9_.-] counts three";
    NotNormalized: "a name must be in Unicode normalisation form C (NFC)";
    Control: "a name must not hold control characters";
    Space: "a name must not begin or end with space";
    Slash: "this name must not hold `/`";
    Backslash: "a path is written with `/` and must not hold `\\`";
    Reserved: "names that begin with `@` are reserved";
    Dash: "this name must not begin with `-`, as options do";
    Segment(String): "a path must not have the segment {0:?}: none may be empty, `.`, `..` or a spelling of `.git`";
}
