//! Rules that say which files are protected.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum number of rules with exceptions for one attempt.
pub const MOST_EXCEPTIONS: usize = 64;

/// The maximum total size of the pathspecs for one attempt, each with one byte more.
pub const MOST_BYTES: usize = 128 << 10;

/// Returns true if rules are within the limits for one attempt.
pub fn are_bounded<'r>(rules: impl IntoIterator<Item = &'r ProtectRule>) -> bool {
    let (mut exceptions, mut bytes) = (0, 0);
    for rule in rules {
        exceptions += usize::from(rule.pathspec().is_none());
        bytes += rule.pathspecs().map(|pathspec| pathspec.len() + 1).sum::<usize>();
    }
    exceptions <= MOST_EXCEPTIONS && bytes <= MOST_BYTES
}

/// Describes the limits of rules.
pub fn limits_in_words() -> String {
    format!("more than {MOST_EXCEPTIONS} rules with exceptions, or pathspecs of more than {MOST_BYTES} bytes")
}

/// A rule that protects files. A file is protected if one of the rules for its attempt protects it.
///
/// In order, pathspecs come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ProtectRule {
    /// Protects the files that a pathspec selects.
    Pathspec(String),
    /// Protects every file except those that one of the pathspecs selects.
    Except {
        /// The pathspecs, at least one.
        except: BTreeSet<String>,
    },
}

impl ProtectRule {
    /// Returns the pathspec of a rule that protects what it selects.
    pub fn pathspec(&self) -> Option<&String> {
        match self {
            Self::Pathspec(pathspec) => Some(pathspec),
            Self::Except { .. } => None,
        }
    }

    /// Returns the pathspecs of the rule.
    pub fn pathspecs(&self) -> impl Iterator<Item = &String> {
        let (one, exceptions) = match self {
            Self::Pathspec(pathspec) => (Some(pathspec), None),
            Self::Except { except } => (None, Some(except)),
        };
        one.into_iter().chain(exceptions.into_iter().flatten())
    }

    /// Adds a pathspec to the exceptions that some rules of one place have.
    pub fn add_exception(rules: &mut Vec<Self>, pathspec: String) {
        for rule in &mut *rules {
            if let Self::Except { except } = rule {
                except.insert(pathspec);
                return;
            }
        }
        rules.push(Self::Except { except: BTreeSet::from([pathspec]) });
    }
}

impl fmt::Display for ProtectRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pathspec(pathspec) => write!(f, "the pathspec {pathspec:?}"),
            Self::Except { except } => {
                let names: Vec<String> = except.iter().map(|pathspec| format!("{pathspec:?}")).collect();
                write!(f, "the rule of everything except {}", names.join(", "))
            }
        }
    }
}
