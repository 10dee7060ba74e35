//! Protected files: the pathspecs of an attempt, and the changes that its product makes to them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::words::words;

/// The start of the reason of an item whose product changes a protected file.
pub const PROTECTED_CHANGED: &str = "protected-changed: ";

/// The most changes that an entry lists. An attempt with more fails.
pub const MOST_CHANGES: usize = 1000;

/// A change of a product to a protected file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProtectedChange {
    /// The path from the top of the repository, as git writes it with `core.quotePath=false`:
    /// quoted only if it is not UTF-8 or contains a control character, a quote or a backslash.
    pub path: String,
    /// The kind of change.
    pub change: ChangeKind,
}

/// Deserialises changes that are sorted by the bytes of their paths, each path once.
pub(crate) fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ProtectedChange>, D::Error> {
    let changes = Vec::<ProtectedChange>::deserialize(deserializer)?;
    if changes.is_sorted_by(|one, next| one.path < next.path) {
        Ok(changes)
    } else {
        Err(D::Error::custom("the changes of protected files are not sorted by path, each path once"))
    }
}

words! {
    as_str
    /// The kind of a change to a protected file, compared with the reference state.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum ChangeKind {
        /// The product adds the file.
        Added = "added",
        /// The product changes its content or its permission to run.
        Modified = "modified",
        /// The product removes the file.
        Deleted = "deleted",
        /// The product replaces it with another type, such as a symbolic link.
        Type = "type",
    }
}

/// The effect of a change to a protected file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnProtectedChange {
    /// The item is red.
    #[default]
    Red,
    /// The attempt fails.
    Fail,
    /// The change is recorded and shown, without another effect.
    Allow,
    /// A check that passes with the protected files in their reference state decides: the item is
    /// green then, and the change is recorded and shown. Otherwise the item is red.
    Judge,
}

/// Says whose settings allowed changes: those of the driver with this key or name.
pub fn allowed_in_words(whose: &str) -> String {
    format!("allowed by {whose}'s settings")
}

/// Describes changes that a check judged, which `judge` lets pass.
pub fn judged_in_words(count: usize) -> String {
    let files = if count == 1 { "file" } else { "files" };
    format!("{count} protected {files} changed, judged as in the base")
}

/// Where the check of an attempt runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum VerifyIn {
    /// In the worktree that the worker left.
    #[default]
    Worktree,
    /// In a fresh worktree of the base with the worker's patch.
    Fresh,
}

impl VerifyIn {
    /// Returns true for the worker's own worktree.
    pub fn is_worktree(&self) -> bool {
        *self == Self::Worktree
    }
}

/// Formats the changes for a reason: the first few, and the number of others.
pub fn in_words(changes: &[ProtectedChange]) -> String {
    const SHOWN: usize = 5;
    let listed = changes.iter().take(SHOWN).map(|change| format!("{} {}", change.path, change.change.as_str()));
    let listed = listed.collect::<Vec<_>>().join(", ");
    match changes.len().saturating_sub(SHOWN) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Returns true for a pathspec that excludes files, which would remove another's protection.
fn excludes(pathspec: &str) -> bool {
    let short = pathspec.strip_prefix(':').filter(|rest| !rest.starts_with('('));
    magic_words(pathspec).any(|word| word == "exclude")
        || short.is_some_and(|rest| {
            rest.chars().take_while(|c| c.is_ascii_punctuation() && *c != ':').any(|c| matches!(c, '!' | '^'))
        })
}

/// Returns the path of a pathspec, without its magic.
fn path_of(pathspec: &str) -> &str {
    if let Some((_, path)) = pathspec.strip_prefix(":(").and_then(|rest| rest.split_once(')')) {
        return path;
    }
    let Some(rest) = pathspec.strip_prefix(':') else { return pathspec };
    let path = rest.trim_start_matches(['!', '^', '/']);
    path.strip_prefix(':').unwrap_or(path)
}

/// Returns the words of a pathspec's long magic, such as `glob` in `:(glob)**/x`.
fn magic_words(pathspec: &str) -> impl Iterator<Item = &str> {
    let magic = pathspec.strip_prefix(":(").and_then(|rest| rest.split_once(')')).map(|(magic, _)| magic);
    magic.into_iter().flat_map(|magic| magic.split(',')).map(str::trim)
}

/// Returns why a pathspec cannot protect files, or `None` if it can.
///
/// git reads the rest as `git ls-files -- <pathspec>` does. Attributes are refused, because a
/// worker can change them.
pub fn pathspec_fault(pathspec: &str) -> Option<&'static str> {
    let path = path_of(pathspec);
    if pathspec.is_empty() {
        Some("is empty")
    } else if pathspec.contains('\0') {
        Some("contains a NUL character")
    } else if magic_words(pathspec).any(|word| word.starts_with("attr")) {
        Some("selects by attributes, which a worker can change")
    } else if magic_words(pathspec).any(|word| word.starts_with("prefix")) {
        Some("has a prefix, which is for git's own use")
    } else if excludes(pathspec) {
        Some("excludes files; protect what it leaves, or protect everything except some files")
    } else if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        Some("leads out of the repository; name a path from its top")
    } else {
        None
    }
}
