//! One thing that is wrong with a plan, and the stable code it is known by.

use crate::model::hints::Hint;
use serde::Serialize;
use std::fmt;

use crate::model::json::JsonPath;
use crate::model::printable::{beginning, written_out};

/// The longest names that are compared for likeness, in bytes; the comparison is quadratic.
const MAX_COMPARED: usize = 256;

/// The longest path or message, in bytes; whatever stands in a document, what is said of it stays short.
const MAX_SAID: usize = 2048;

/// Says what is wrong, where, and where possible what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The stable code; programs branch on it.
    pub code: Code,
    /// The JSON path of the offending value (`items[3].needs.patch.from`); empty for the whole file.
    pub path: String,
    /// The id of the item of the plan that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence for people.
    pub message: String,
    /// What to try, where one thing is likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
}

impl Problem {
    /// Names a problem at `at`, without a hint.
    pub fn new(code: Code, at: &JsonPath, message: impl Into<String>) -> Self {
        Self { code, path: said(&at.to_string()), item: None, line: None, message: said(&message.into()), hint: None }
    }

    /// Adds what to try.
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

/// Returns a text as it is said to people: printable, and cut where it is longer than anybody reads.
fn said(text: &str) -> String {
    written_out(&beginning(text, MAX_SAID))
}

/// Returns the name that is most like a wanted one, if it is more like it than 0.8; of several, the first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    if wanted.len() > MAX_COMPARED {
        return None;
    }
    for name in known.into_iter().filter(|name| name.len() <= MAX_COMPARED) {
        let likeness = strsim::jaro_winkler(wanted, name);
        if likeness > best.map_or(0.8, |(score, _)| score) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The stable codes of problems; fixed, never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code, in the order in which they are documented.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as it is written in answers.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// Not JSON, or JSON whose meaning depends on the reader (lone surrogates, unsafe numbers).
    NotJson = "not-json",
    /// An object holds the same key twice.
    DuplicateKey = "duplicate-key",
    /// A field that a plan does not have.
    UnknownField = "unknown-field",
    /// A value of another type, or out of its range.
    WrongType = "wrong-type",
    /// A field that must be there is not.
    MissingField = "missing-field",
    /// An id that is no valid name.
    BadId = "bad-id",
    /// An id that another item has, letter case aside.
    DuplicateId = "duplicate-id",
    /// `depends_on` names no item.
    UnknownDependency = "unknown-dependency",
    /// `from` names no item.
    UnknownProducer = "unknown-producer",
    /// An item that waits for itself.
    SelfDependency = "self-dependency",
    /// Items that wait for one another.
    Cycle = "cycle",
    /// A selector of an unknown kind, without its fields, or not possible for its source.
    BadSelector = "bad-selector",
    /// A run or a thread that a need names, and that is not to be taken from.
    BadSource = "bad-source",
    /// A product that its producer does not declare.
    UndeclaredProduct = "undeclared-product",
    /// The producer makes one type, the consumer takes another.
    TypeMismatch = "type-mismatch",
    /// An input key or artifact path that is no safe file name, or that clashes with another.
    BadInputKey = "bad-input-key",
    /// A lock key twice in one item.
    DuplicateLock = "duplicate-lock",
    /// An executor that is not registered here.
    UnknownExecutor = "unknown-executor",
    /// A subagent that is not registered here.
    UnknownSubagent = "unknown-subagent",
    /// A pattern that there is not, or a payload that its pattern cannot read.
    BadPattern = "bad-pattern",
    /// A queue that is not registered here.
    UnknownQueue = "unknown-queue",
    /// A shape, or the schema of a document, that is not registered here.
    UnknownShape = "unknown-shape",
    /// A pipeline that is not registered here.
    UnknownPipeline = "unknown-pipeline",
    /// A pipeline that is not one.
    BadPipeline = "bad-pipeline",
    /// A key in `inputs` that only the tool sets.
    ReservedKey = "reserved-key",
    /// An id that begins with `@`.
    ReservedId = "reserved-id",
    /// Inputs that their shape's JSON Schema refuses, or a schema that is none.
    InputsSchema = "inputs-schema",
    /// A plan without items.
    NoItems = "no-items",
    /// A plan of more items than `handoff.maxItems`, or than are read at all.
    TooManyItems = "too-many-items",
    /// A plan of more than 32 MiB, or JSON of so many small values that they would take far more memory than its bytes.
    TooLarge = "too-large",
    /// The base tree tracks what an attempt would put its inputs or outputs over.
    ReservedPath = "reserved-path",
    /// A rule that is not one.
    BadRule = "bad-rule",
    /// A base that is no commit here.
    MissingBase = "missing-base",
    /// A file of an artifact that cannot be read.
    MissingArtifact = "missing-artifact",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
