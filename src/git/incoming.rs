//! A folder for packs being received, so that a rejected pack leaves nothing behind.

use std::fs;
use std::io::{self, Seek as _, Write as _};

use tempfile::TempDir;

use super::fsck;
use super::keep_pack::KeepGuard;
use super::pack::UNFINISHED;
use super::program::{self, Git};
use super::store::Store;
use crate::model::digest::Oid;

/// The bytes before the objects of a pack; the last four are the number of objects.
const PACK_HEADER: usize = 12;

/// A folder inside the object database that git writes to instead. Removed when dropped.
///
/// `git prune` does not know this name, so it does not remove the folder while it fills. `doctor`
/// finds it if this process is killed.
pub(super) struct Incoming {
    folder: TempDir,
    store: Store,
}

impl Incoming {
    pub(super) fn new(store: &Store) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(store.objects_dir())?;
        fs::create_dir(folder.path().join("info"))?;
        fs::create_dir(folder.path().join("pack"))?;
        let line = [store.objects_dir().as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(folder.path().join("info/alternates"), line)?;
        Ok(Self { folder, store: store.clone() })
    }

    /// Makes a git command write its objects here.
    ///
    /// The refs of the alternate are those of the repository, so git need not ask for them again.
    pub(super) fn around(&self, call: Git) -> Git {
        call.env("GIT_OBJECT_DIRECTORY", self.folder.path()).config("core.alternateRefsCommand=true")
    }

    /// Moves the packs into the object database and keeps them until a ref reaches them.
    pub(super) fn release(self) -> io::Result<KeepGuard> {
        let mut guard = KeepGuard::default();
        for entry in fs::read_dir(self.folder.path().join("pack"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "pack") {
                guard.join(KeepGuard::adopt(&self.store, &path, "pack-")?);
            }
        }
        Ok(guard)
    }
}

/// Fetches the objects that `tip` reaches and `known` does not, and keeps them until a ref reaches
/// them.
///
/// `from` is a git command that sees the objects. Objects that the repository already has are
/// copied as well, because they may be unreachable. With `strict`, checks everything as a host
/// checks a push, except what `fetch.fsck.*` permits.
pub fn take_in(store: &Store, from: Git, tip: Oid, known: Option<Oid>, strict: bool) -> Result<KeepGuard, Error> {
    let mut pack = tempfile::tempfile().map_err(Error::Folder)?;
    let mut header = Vec::new();
    let revisions = format!("{tip}\n{}", known.map(|known| format!("^{known}\n")).unwrap_or_default());
    let call = from.args(["pack-objects", "--revs", "--stdout", "-q"]).input(revisions);
    call.stream(&mut |chunk| {
        header.extend(chunk.iter().take(PACK_HEADER - header.len().min(PACK_HEADER)));
        pack.write_all(chunk)
    })?;
    if header.get(8..PACK_HEADER) == Some(&[0; 4]) {
        return Ok(KeepGuard::default());
    }
    pack.rewind().map_err(Error::Folder)?;
    let incoming = Incoming::new(store).map_err(Error::Folder)?;
    let index_pack = incoming.around(store.git()).frugal().args(["index-pack", "--stdin"]);
    let unpack =
        if strict { index_pack.arg(format!("--strict{}", fsck::exceptions(&|| store.git())?)) } else { index_pack };
    match unpack.stdin(pack).run() {
        Ok(_) => incoming.release().map_err(Error::Folder),
        Err(program::Error::Failed { stderr, .. }) if strict => Err(Error::Refused(stderr)),
        Err(other) => Err(other.into()),
    }
}

errors! {
    /// Why objects were not fetched.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Refused(String): "git refuses the objects: {0}";
    Folder(#[source] io::Error): "cannot use a temporary folder";
    #[from] Git(program::Error);
}
