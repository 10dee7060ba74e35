//! Files that say up to which commit a run or a thread was verified, and by which version and key.
//!
//! They lie with the signing key in `handoff` in the git directory, so neither a commit nor a
//! remote can plant one.

use serde::{Deserialize, Serialize};

use crate::git::private_files;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format;
use crate::verify::Mark;

/// The most bytes of a valid mark.
const LARGEST: u64 = 64 << 10;

/// The file format of a mark.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The version that verified. Other versions may check more, so they ignore the mark.
    tool: String,
    key: String,
    commit: Oid,
}

/// Returns the mark of a run or thread, or `None` if this version left none.
pub(crate) fn read(store: &Store, folder: &str, name: &str) -> Option<Mark> {
    let path = private_files::path(store, folder, name);
    let mark: Kept = serde_json::from_slice(&private_files::read(&path, LARGEST).ok()?).ok()?;
    (mark.tool == format::TOOL).then_some(Mark { commit: mark.commit, key: mark.key })
}

/// Replaces the mark of a run or thread.
pub(crate) fn keep(store: &Store, folder: &str, name: &str, mark: Mark) -> std::io::Result<()> {
    let record = Kept { tool: format::TOOL.to_owned(), key: mark.key, commit: mark.commit };
    private_files::put(store, folder, name, &format::canonical(&record))
}
