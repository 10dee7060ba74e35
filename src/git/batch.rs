//! Writes several objects so that all appear in the repository at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use gix::objs::tree::EntryKind;
use gix::objs::{Kind, Write as _};

use super::edit::Edit;
use super::keep_pack::{self, KeepGuard};
use super::pack::PackWriter;
use super::pack_merge;
use super::store::{Error, Store};
use crate::model::bounds;
use crate::model::digest::{Digest, HashingReader, Oid};
use crate::model::entry::Product;

/// Objects being written. None is visible before [`Batch::keep`]; dropping the batch discards them.
///
/// Also writes objects that the repository already has: an existing copy may be unreachable, and
/// the next prune would remove it. `git gc` drops duplicates of reachable objects.
pub struct Batch {
    store: Store,
    /// Reads the repository and the objects written so far; keeps small objects in memory.
    repo: gix::Repository,
    /// Receives large objects as they are written.
    pack: Option<PackWriter>,
}

impl Batch {
    pub(super) fn new(store: &Store) -> Self {
        Self { store: store.clone(), repo: store.local().with_object_memory(), pack: None }
    }

    /// Writes an object from its bytes without the header.
    pub fn write(&mut self, kind: Kind, bytes: &[u8]) -> Result<Oid, Error> {
        self.repo.objects.write_buf(kind, bytes).map(Oid).map_err(|e| Error::Name(Box::new(e)))
    }

    /// Writes a blob.
    pub fn write_blob(&mut self, bytes: &[u8]) -> Result<Oid, Error> {
        self.write(Kind::Blob, bytes)
    }

    /// Writes a blob, and returns its names.
    pub fn write_named(&mut self, bytes: &[u8]) -> Result<Product, Error> {
        let (sha256, size) = (Digest::compute(bytes), bytes.len() as u64);
        Ok(Product { sha256, oid: self.write_blob(bytes)?, size })
    }

    /// Writes a file as a blob in one pass without holding it in memory, and returns its names.
    pub fn write_file(&mut self, file: &mut File) -> Result<Product, Error> {
        let size = file.metadata().map_err(Error::Read)?.len();
        io::Seek::rewind(file).map_err(Error::Read)?;
        let mut reader = HashingReader::new(Read::by_ref(file).take(size));
        let streamed = self.pack()?.stream(size, &mut reader);
        let (digest, read) = reader.finish();
        // A full disk also ends the reading of the file early.
        if read != size && matches!(file.read(&mut [0]), Ok(0)) {
            return Err(Error::Read(io::Error::other("the file changed while it was read")));
        }
        Ok(Product { sha256: digest, oid: Oid(streamed.map_err(|e| Error::Object(Box::new(e)))?), size })
    }

    /// Writes a tree of exactly these blobs, by their encoded paths, and returns it. A name of
    /// the other object format is left out: it names no object here.
    ///
    /// Fails for more than [`bounds::FOLDERS`] folders, which an entry of others may name in few
    /// bytes.
    pub fn tree_of(&mut self, files: BTreeMap<String, Product>) -> Result<Oid, Error> {
        let folders = count_folders(files.keys());
        if folders > bounds::FOLDERS {
            return Err(Error::Folders(folders));
        }
        let here = files.into_iter().filter(|(_, bytes)| bytes.oid.0.kind() == self.store.hash_kind());
        let edits: Vec<_> = here.map(|(path, bytes)| (path, Edit::Blob(bytes.oid))).collect();
        self.edit_tree(None, &edits)
    }

    /// Applies edits in order to the tree `base` and returns the new tree.
    ///
    /// Paths use slashes and are already encoded. Removing a folder removes its contents.
    pub fn edit_tree(&mut self, base: Option<Oid>, edits: &[(String, Edit)]) -> Result<Oid, Error> {
        let mut blobs = Vec::with_capacity(edits.len());
        for (_, edit) in edits {
            blobs.push(match edit {
                Edit::Bytes(bytes) => Some(self.write_blob(bytes)?.0),
                Edit::Blob(oid) => Some(oid.0),
                Edit::Tree(_) | Edit::Remove => None,
            });
        }
        let root = match base {
            Some(oid) => self.store.tree(&self.repo, oid)?,
            None => gix::objs::Tree::empty(),
        };
        let mut editor = gix::objs::tree::Editor::new(root, &self.repo.objects, self.store.hash_kind());
        for ((path, edit), blob) in edits.iter().zip(blobs) {
            let segments = path.split('/');
            let edited = match (edit, blob) {
                (Edit::Tree(oid), _) => editor.upsert(segments, EntryKind::Tree, oid.0),
                (_, Some(blob)) => editor.upsert(segments, EntryKind::Blob, blob),
                (_, None) => editor.remove(segments),
            };
            edited.map_err(|e| Error::Tree(path.clone(), Box::new(e)))?;
        }
        let written = editor.write(|tree| {
            let mut bytes = Vec::new();
            gix::objs::WriteTo::write_to(tree, &mut bytes).map_err(Error::Read)?;
            if bytes.len() as u64 > bounds::TREE {
                return Err(Error::Folder(bytes.len()));
            }
            self.repo.objects.write_buf(Kind::Tree, &bytes).map_err(|e| Error::Name(Box::new(e)))
        })?;
        Ok(Oid(written))
    }

    /// Moves all objects into the repository, synced to disk if configured, and keeps them until a
    /// ref reaches them.
    pub fn keep(mut self) -> Result<KeepGuard, Error> {
        let memory = self.repo.objects.reset_object_memory().unwrap_or_default();
        if memory.is_empty() && self.pack.is_none() {
            return Ok(KeepGuard::default());
        }
        let mut objects: Vec<_> = memory.iter().collect();
        objects.sort_by_key(|(oid, _)| **oid);
        let pack = self.pack()?;
        for (oid, (kind, bytes)) in objects {
            pack.add(*oid, *kind, bytes).map_err(Error::Pack)?;
        }
        let finished = self.pack.take().expect("it was made above").finish().map_err(Error::Pack)?;
        // Merges earlier packs first. A failed merge is tried again next time.
        let _ = pack_merge::gather(&self.store);
        KeepGuard::install(&self.store, finished).map_err(Error::Pack)
    }

    fn pack(&mut self) -> Result<&mut PackWriter, Error> {
        if self.pack.is_none() {
            let begun =
                keep_pack::folder(&self.store).and_then(|folder| PackWriter::new(&folder, self.store.hash_kind()));
            self.pack = Some(begun.map_err(Error::Pack)?);
        }
        Ok(self.pack.as_mut().expect("it was made above"))
    }
}

/// Returns the number of folders of sorted paths.
fn count_folders<'a>(paths: impl Iterator<Item = &'a String>) -> usize {
    let mut before = "";
    let mut folders = 0;
    for path in paths {
        let common = before.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
        // The part that two paths share may end within a letter.
        folders += path.bytes().skip(common).filter(|byte| *byte == b'/').count();
        before = path;
    }
    folders
}
