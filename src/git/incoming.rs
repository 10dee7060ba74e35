//! A place for packs that are still coming in, so that one that is refused leaves nothing behind.

use std::fs;
use std::io;

use tempfile::TempDir;

use super::program::Git;
use super::store::Store;

/// A folder inside the object database that git fetches into instead; removed when dropped.
///
/// Its name is one that `git prune` knows, should we be killed.
pub(super) struct Incoming {
    folder: TempDir,
    store: Store,
}

impl Incoming {
    pub(super) fn new(store: &Store) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tmp_objdir-handoff-").tempdir_in(store.objects_dir())?;
        fs::create_dir(folder.path().join("info"))?;
        fs::create_dir(folder.path().join("pack"))?;
        let line = [store.objects_dir().as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(folder.path().join("info/alternates"), line)?;
        Ok(Self { folder, store: store.clone() })
    }

    /// Has git write its objects here.
    pub(super) fn around(&self, call: Git) -> Git {
        call.env("GIT_OBJECT_DIRECTORY", self.folder.path())
    }

    /// Takes the packs over into the object database, each index last: it is what makes a pack be seen.
    pub(super) fn release(self) -> io::Result<()> {
        let to = self.store.objects_dir().join("pack");
        fs::create_dir_all(&to)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.path().join("pack"))? {
            files.push(entry?.path());
        }
        files.sort_by_key(|path| path.extension().is_some_and(|extension| extension == "idx"));
        for path in files {
            let name = path.file_name().expect("it was listed by name");
            if name.as_encoded_bytes().starts_with(b"pack-") && path.extension().is_none_or(|e| e != "keep") {
                fs::rename(&path, to.join(name))?;
            }
        }
        Ok(())
    }
}
