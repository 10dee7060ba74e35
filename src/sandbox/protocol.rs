//! The message to the processes between the driver and a command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::access_map::Access;
use super::mount_identity::MountIdentity;
use super::overlay::Overlays;
use super::shared_memory::SharedMemory;
use crate::model::confinement::Network;
use crate::model::limits::Limits;

/// The message to the processes between the driver and a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Instructions {
    /// Its confinement, or `None`.
    pub(crate) layers: Option<Outer>,
    /// Its settings.
    pub(crate) starting: ExecSetup,
    /// The folders whose disk usage is measured.
    pub(crate) folders: Vec<Word>,
    /// The sign of life of its driver, without which the command ends, if it needs one.
    pub(crate) lease: Option<Lease>,
}

/// A file that a driver writes when the remote of a shared run accepts something from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lease {
    /// The file: the time since boot in milliseconds.
    pub(crate) file: Word,
    /// How long the file may stay as it is, in milliseconds.
    pub(crate) millis: u64,
}

/// The environment, the working directory and the limits of a command alone.
///
/// The processes between driver and command have more rights and must not load libraries that the
/// command's environment or folder names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecSetup {
    /// The whole environment.
    pub(crate) env: BTreeMap<String, Word>,
    /// The working directory.
    pub(crate) folder: Word,
    /// Its limits.
    pub(crate) limits: Limits,
}

/// The outer layer, and the message for the process that applies the inner ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outer {
    /// bubblewrap and its arguments up to the command.
    pub(crate) words: Option<Vec<Word>>,
    /// The overlays to mount before bubblewrap starts.
    pub(crate) overlays: Option<Overlays>,
    /// The shared memory to mount without bubblewrap.
    pub(crate) shared: Option<SharedMemory>,
    pub(crate) inner: Inner,
    /// The reason not to start: a path was replaced.
    pub(crate) refused: Option<String>,
}

/// The inner layers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Inner {
    /// The required version of Landlock.
    pub(crate) landlock: Option<u32>,
    pub(crate) given: Vec<(Word, Access)>,
    /// The files expected at their mounts.
    #[serde(rename = "held")]
    pub(crate) identities: Vec<MountIdentity>,
    /// The expected mount points of the attempt's own folders.
    pub(crate) mounted: Vec<Word>,
    pub(crate) seccomp: bool,
    pub(crate) network: Network,
}

impl Inner {
    /// Returns true if Landlock is one of the layers.
    pub(crate) fn is_by_landlock(&self) -> bool {
        self.landlock.is_some()
    }
}

/// A path or argument, serialised as text with one character for each byte: most bytes are ASCII,
/// and a list of numbers would take longer to parse than everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word(OsString);

impl<T: Into<OsString>> From<T> for Word {
    fn from(word: T) -> Self {
        Self(word.into())
    }
}

impl AsRef<OsStr> for Word {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

impl AsRef<Path> for Word {
    fn as_ref(&self) -> &Path {
        self.0.as_ref()
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self
            .0
            .to_str()
            .filter(|text| text.is_ascii())
            .map_or_else(|| Cow::Owned(self.0.as_bytes().iter().copied().map(char::from).collect()), Cow::Borrowed);
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = if text.is_ascii() {
            text.into_bytes()
        } else {
            text.chars().map(u8::try_from).collect::<Result<_, _>>().map_err(de::Error::custom)?
        };
        Ok(Self(OsString::from_vec(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_said_whatever_its_bytes_are() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        for bytes in [&b""[..], b"/usr/bin", b"a \"quoted\"\nline", "\u{e9}\u{20ac}".as_bytes(), &all] {
            let word = Word::from(OsStr::from_bytes(bytes));
            let text = serde_json::to_string(&word).expect("a text serialises");
            let read: Word = serde_json::from_str(&text).expect("it is read");
            assert_eq!(read, word, "{text}");
        }
        assert_eq!(serde_json::to_string(&Word::from("/usr/bin")).expect("a text serialises"), r#""/usr/bin""#);
        assert!(serde_json::from_str::<Word>("\"\u{20ac}\"").is_err(), "no byte has this letter");
    }
}
