//! A problem of a plan, with a stable code.

use crate::model::hints::Hint;
use serde::Serialize;
use std::fmt;

use crate::model::json::JsonPath;
use crate::model::printable::{beginning, written_out};

/// The maximum length of names to compare, in bytes; the comparison is quadratic.
const MAX_COMPARED: usize = 256;

/// The maximum length of a path or message, in bytes.
const MAX_SAID: usize = 2048;

/// A problem with its place and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// The JSON path of the value (`items[3].needs.patch.from`); empty for the whole file.
    pub path: String,
    /// The item's id; absent if it is about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The line of the file, from 1; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The message.
    pub message: String,
    /// A suggestion, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
}

impl Problem {
    /// Creates a problem at a path, without a suggestion.
    pub fn new(code: Code, at: &JsonPath, message: impl Into<String>) -> Self {
        Self {
            code,
            path: shorten(&at.to_string()),
            item: None,
            line: None,
            message: shorten(&message.into()),
            hint: None,
        }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "{}: {}", self.code, self.message);
        }
        write!(f, "{} at {}", self.code, self.path)?;
        match (&self.item, self.line) {
            (Some(item), Some(line)) => write!(f, " (item {item:?}, line {line})")?,
            (None, Some(line)) => write!(f, " (line {line})")?,
            (_, None) => {}
        }
        write!(f, ": {}", self.message)
    }
}

/// Makes a text printable and truncates it.
fn shorten(text: &str) -> String {
    written_out(&beginning(text, MAX_SAID))
}

/// Returns the most similar name above a similarity of 0.8; of equal ones, the first.
pub fn nearest<'a>(target: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    if target.len() > MAX_COMPARED {
        return None;
    }
    for name in known.into_iter().filter(|name| name.len() <= MAX_COMPARED) {
        let likeness = strsim::jaro_winkler(target, name);
        if likeness > best.map_or(0.8, |(score, _)| score) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The stable codes of problems, never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All codes, in the documented order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the code in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// Not JSON, or JSON that readers interpret differently (lone surrogates, unsafe numbers).
    NotJson = "not-json",
    /// An object has a key twice.
    DuplicateKey = "duplicate-key",
    /// An unknown field.
    UnknownField = "unknown-field",
    /// A value of a wrong type or out of range.
    WrongType = "wrong-type",
    /// A missing field.
    MissingField = "missing-field",
    /// An invalid id.
    BadId = "bad-id",
    /// A duplicate id, ignoring case.
    DuplicateId = "duplicate-id",
    /// `depends_on` names a missing item.
    UnknownDependency = "unknown-dependency",
    /// `from` names a missing item.
    UnknownProducer = "unknown-producer",
    /// An item depends on itself.
    SelfDependency = "self-dependency",
    /// Items depend on each other.
    Cycle = "cycle",
    /// A selector of an unknown kind, without its fields, or impossible for its source.
    BadSelector = "bad-selector",
    /// A run or thread that a need names and that cannot be used.
    BadSource = "bad-source",
    /// The producer does not declare the product.
    UndeclaredProduct = "undeclared-product",
    /// Producer and consumer have different types.
    TypeMismatch = "type-mismatch",
    /// An unsafe or clashing input key or artifact path.
    BadInputKey = "bad-input-key",
    /// An item has a lock twice.
    DuplicateLock = "duplicate-lock",
    /// A pathspec cannot protect files.
    BadPathspec = "bad-pathspec",
    /// An unregistered executor.
    UnknownExecutor = "unknown-executor",
    /// An unregistered subagent.
    UnknownSubagent = "unknown-subagent",
    /// An unknown pattern, or a payload that it cannot read.
    BadPattern = "bad-pattern",
    /// An unregistered queue.
    UnknownQueue = "unknown-queue",
    /// An unregistered shape or schema.
    UnknownShape = "unknown-shape",
    /// An unregistered pipeline.
    UnknownPipeline = "unknown-pipeline",
    /// An invalid pipeline.
    BadPipeline = "bad-pipeline",
    /// A reserved key in `inputs`.
    ReservedKey = "reserved-key",
    /// An id beginning with `@`.
    ReservedId = "reserved-id",
    /// Inputs that violate their shape's JSON Schema, or an invalid schema.
    InputsSchema = "inputs-schema",
    /// A plan without items.
    NoItems = "no-items",
    /// More items than `handoff.maxItems` or the absolute limit.
    TooManyItems = "too-many-items",
    /// A plan above 32 MiB, or with so many small values that it needs too much memory.
    TooLarge = "too-large",
    /// The base tree tracks the inputs or outputs folder.
    ReservedPath = "reserved-path",
    /// An invalid rule.
    BadRule = "bad-rule",
    /// The base is not a commit in this repository.
    MissingBase = "missing-base",
    /// An unreadable artifact.
    MissingArtifact = "missing-artifact",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
