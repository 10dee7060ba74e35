//! Refuses repositories of git-annex, whose files are links or pointers to contents beside git.

use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode;

use super::Error;
use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;

/// The name of git-annex's branch.
const BRANCH: &str = "git-annex";

/// The part of a link's target that leads to contents of git-annex.
const OBJECTS: &[u8] = b".git/annex/objects/";

/// Fails if git-annex is set up in a repository, or keeps contents of a commit's files: a worker
/// would change links and pointers in the place of files.
pub(crate) fn refuse(store: &Store, commit: Oid) -> Result<(), Error> {
    let found = if store.local().config_snapshot().string("annex.uuid").is_some() {
        Some("the setting annex.uuid".to_owned())
    } else if let Some(branch) = branch(store)? {
        Some(format!("the branch {branch}"))
    } else {
        link(store, commit).map(|path| format!("the link {path} in {commit}"))
    };
    found.map_or(Ok(()), |found| Err(Error::Annex(found)))
}

/// Returns the full name of a branch of git-annex, of this repository or a remote, if any.
fn branch(store: &Store) -> Result<Option<String>, Error> {
    let mut all = Vec::new();
    for prefix in ["refs/heads/", "refs/remotes/"] {
        all.extend(refs::list(store, prefix).map_err(|e| Error::Refs(Box::new(e)))?);
    }
    Ok(all.into_iter().map(|(name, _)| name).find(|name| name.rsplit('/').next() == Some(BRANCH)))
}

/// Returns the path of a link of a commit to a content of git-annex, if any.
fn link(store: &Store, commit: Oid) -> Option<String> {
    let repo = store.unbounded().ok()?;
    let tree = repo.find_commit(commit.0).ok()?.tree_id().ok()?;
    let (index, _) = repo.index_from_tree(&tree).ok()?.into_parts();
    let found = index.entries().iter().find(|entry| {
        entry.mode == Mode::SYMLINK && store.read_blob(Oid(entry.id)).is_ok_and(|target| target.contains_str(OBJECTS))
    });
    found.map(|entry| entry.path(&index).to_string())
}
