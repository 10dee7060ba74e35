//! Reads trees: files, folders and submodules by path.

use gix::objs::{CommitRef, Kind, TreeRefIter};

use super::bounded_read;
use super::store::{Batch, Edit, Error, Store, most};
use crate::model::digest::Oid;

/// Returns the regular files in a tree with their names, and skips other entries.
pub fn files(store: &Store, tree: Oid) -> Result<Vec<(String, Oid)>, Error> {
    let (kind, bytes) = store.read(tree)?;
    if kind != Kind::Tree {
        return Err(Error::Kind(tree, kind));
    }
    let entries = TreeRefIter::from_bytes(&bytes, store.hash_kind()).map_while(Result::ok);
    let files = entries.filter(|entry| entry.mode.is_blob());
    let with_names = files
        .filter_map(|entry| Some((std::str::from_utf8(entry.filename).ok()?.to_owned(), Oid(entry.oid.to_owned()))));
    Ok(with_names.collect())
}

/// Returns the regular files of a tree and of all its folders, by path.
pub fn files_below(store: &Store, tree: Oid) -> Result<Vec<(String, Oid)>, Error> {
    let repo = store.local();
    let (mut files, mut folders) = (Vec::new(), vec![(String::new(), tree)]);
    while let Some((folder, oid)) = folders.pop() {
        for entry in store.tree(&repo, oid)?.entries {
            let Ok(name) = std::str::from_utf8(&entry.filename) else { continue };
            if entry.mode.is_tree() {
                folders.push((format!("{folder}{name}/"), Oid(entry.oid)));
            } else if entry.mode.is_blob() {
                files.push((format!("{folder}{name}"), Oid(entry.oid)));
            }
        }
    }
    Ok(files)
}

/// Writes a tree with the regular files of another one in it, in the same folders.
pub fn with_files_of(store: &Store, base: Option<Oid>, other: Oid, batch: &mut Batch) -> Result<Oid, Error> {
    let files = files_below(store, other)?;
    let edits: Vec<(String, Edit)> = files.into_iter().map(|(path, blob)| (path, Edit::Blob(blob))).collect();
    batch.edit_tree(base, &edits)
}

impl Store {
    pub(super) fn tree(&self, repo: &gix::Repository, oid: Oid) -> Result<gix::objs::Tree, Error> {
        let object = bounded_read::read(repo, oid, most)?.ok_or(Error::Missing(oid))?;
        let tree = gix::objs::TreeRef::from_bytes(&object.bytes, self.hash_kind())
            .map_err(|e| Error::Find(oid, Box::new(e)))?;
        Ok(tree.into())
    }

    /// Returns the blob at a path of a tree.
    pub fn blob_at(&self, tree: Oid, path: &str) -> Result<Option<Oid>, Error> {
        let repo = self.local();
        let mut at = tree;
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let decoded = self.tree(&repo, at)?;
            let Some(entry) = decoded.entries.iter().find(|entry| entry.filename == segment) else {
                return Ok(None);
            };
            let last = segments.peek().is_none();
            if last == entry.mode.is_tree() {
                return Ok(None);
            }
            at = Oid(entry.oid);
        }
        Ok(Some(at))
    }

    /// Returns true if a tree has a submodule at a path.
    pub fn has_commit_at(&self, tree: Oid, path: &str) -> Result<bool, Error> {
        let (folder, name) = path.rsplit_once('/').map_or((None, path), |(folder, name)| (Some(folder), name));
        let repo = self.local();
        let mut at = tree;
        for segment in folder.into_iter().flat_map(|folder| folder.split('/')) {
            let decoded = self.tree(&repo, at)?;
            let Some(entry) = decoded.entries.iter().find(|entry| entry.filename == segment && entry.mode.is_tree())
            else {
                return Ok(false);
            };
            at = Oid(entry.oid);
        }
        Ok(self.tree(&repo, at)?.entries.iter().any(|entry| entry.filename == name && entry.mode.is_commit()))
    }

    /// Returns true if a tree has a folder at a path.
    pub fn has_tree_at(&self, tree: Oid, path: &str) -> Result<bool, Error> {
        Ok(self.tree_at(tree, path)?.is_some())
    }

    /// Returns the folder at a path of a tree.
    pub fn tree_at(&self, tree: Oid, path: &str) -> Result<Option<Oid>, Error> {
        let repo = self.local();
        let mut at = tree;
        for segment in path.split('/') {
            let decoded = self.tree(&repo, at)?;
            let Some(entry) = decoded.entries.iter().find(|entry| entry.filename == segment && entry.mode.is_tree())
            else {
                return Ok(None);
            };
            at = Oid(entry.oid);
        }
        Ok(Some(at))
    }

    /// Returns the tree and the parents of any commit.
    pub fn commit(&self, commit: Oid) -> Result<(Oid, Vec<Oid>), Error> {
        let (kind, bytes) = self.read(commit)?;
        if kind != Kind::Commit {
            return Err(Error::Kind(commit, kind));
        }
        let read = CommitRef::from_bytes(&bytes, self.hash_kind()).map_err(|e| Error::Find(commit, Box::new(e)))?;
        Ok((Oid(read.tree()), read.parents().map(Oid).collect()))
    }

    /// Returns the total size of a tree's files that exist here, in bytes.
    pub fn tree_size(&self, tree: Oid) -> Result<u64, Error> {
        let repo = self.local();
        let mut total = 0;
        let mut trees = vec![tree];
        while let Some(folder) = trees.pop() {
            for entry in self.tree(&repo, folder)?.entries {
                if entry.mode.is_tree() {
                    trees.push(Oid(entry.oid));
                } else if !entry.mode.is_commit() {
                    let header =
                        repo.try_find_header(entry.oid).map_err(|e| Error::Find(Oid(entry.oid), Box::new(e)))?;
                    total += header.map_or(0, |header| header.size());
                }
            }
        }
        Ok(total)
    }
}
