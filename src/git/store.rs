//! The object database: the only reader of objects, and the start of batches of new ones.
//!
//! gix neither syncs new objects nor freshens existing ones; both are done here (see
//! `docs/design/writes.md`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use gix::objs::Write as _;
use gix::odb::store::init::Slots;

use super::archives;
pub use super::batch::Batch;
use super::bounded_read::{self, Whole};
use super::discover;
pub use super::edit::{Durability, Edit};
use super::folder::absolute;
use super::keep_pack;
pub use super::keep_pack::KeepGuard;
use super::midx;
use super::packed;
use super::program::{self, Git};
use crate::model::bounds;
use crate::model::digest::{Digest, Hasher, Oid};
use crate::model::entry::Product;
use crate::model::event::Unnamed;

/// Blobs above this size are streamed, not held in memory.
const STREAM_ABOVE: u64 = 4 << 20;

/// The slots for packs of an open gix repository. gix uses a new slot for each pack; after all
/// slots were used once, it can lose a pack that appears while another disappears.
const SLOTS: Slots = Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 2048 };

/// The number of packs written before the repository is reopened, well before the slots run out.
const RENEW_AFTER: usize = 1000;

/// How often to retry a write that failed because of a concurrent `git gc`.
const GC_RETRIES: usize = 8;

/// An open repository for reading and writing objects and refs. Cheap to clone and shareable
/// between threads.
#[derive(Clone)]
pub struct Store {
    repo: gix::ThreadSafeRepository,
    durability: Durability,
    /// Facts that every write needs, looked up once.
    pub(super) known: Arc<Known>,
}

/// Facts that do not change while a repository is open.
pub(super) struct Known {
    git_dir: PathBuf,
    common_dir: PathBuf,
    objects_dir: PathBuf,
    hash: gix::hash::Kind,
    /// The number of packs written before the last reopening, and the reopened repository.
    renewed: Mutex<(usize, Option<gix::ThreadSafeRepository>)>,
    /// Held while packs are merged.
    gathering: Mutex<()>,
    /// The cache of archives.
    pub(super) archives: Mutex<archives::Known>,
    /// The file of packed refs that was last checked and found valid.
    pub(super) packed: Mutex<Option<packed::Seen>>,
}

/// The file in a git directory that marks it as that of an attempt, which is removed with it.
pub const ATTEMPT_MARK: &str = "handoff/attempt";

impl Store {
    /// Returns true if this is the repository of an attempt's worktree.
    pub fn is_of_attempt(&self) -> bool {
        self.common_dir().join(ATTEMPT_MARK).exists()
    }

    /// Opens the repository that contains `dir` by git's discovery rules and environment variables.
    ///
    /// Refuses another user's repository where git refuses it, so that programs named in its
    /// settings do not run.
    pub fn discover(dir: &Path) -> Result<Self, Error> {
        Self::accept(discover::discover(dir)?)
    }

    /// Opens exactly the git directory `dir`, ignoring the environment.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let repo = gix::ThreadSafeRepository::open_opts(dir, bounded(gix::open::Options::isolated()))
            .map_err(|e| Error::Open(dir.to_owned(), Box::new(e)))?;
        Self::accept(repo)
    }

    fn accept(repo: gix::ThreadSafeRepository) -> Result<Self, Error> {
        let local = repo.to_thread_local();
        let storage = local.config_snapshot().string("extensions.refStorage");
        if let Some(storage) = storage.filter(|name| name.as_slice() != b"files") {
            return Err(Error::RefStorage(storage.to_string()));
        }
        let known = Known {
            git_dir: absolute(local.git_dir()),
            common_dir: absolute(local.common_dir()),
            objects_dir: absolute(local.objects.store_ref().path()),
            hash: local.object_hash(),
            renewed: Mutex::new((keep_pack::written(), None)),
            gathering: Mutex::new(()),
            archives: Mutex::default(),
            packed: Mutex::default(),
        };
        Ok(Self { repo, durability: Durability::Strict, known: Arc::new(known) })
    }

    /// Sets the durability of writes.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns a handle for one thread.
    pub fn local(&self) -> gix::Repository {
        let mut repo = self.current().to_thread_local();
        // Evidence is read as stored: `git replace` must not change it.
        repo.objects.ignore_replacements = true;
        repo
    }

    /// Returns a handle without a size limit, for checking out the user's own files.
    pub fn unbounded(&self) -> Result<gix::Repository, Error> {
        let repo = self.local();
        let options = repo.open_options().clone().config_overrides(None::<&str>).open_path_as_is(true);
        let opened = gix::ThreadSafeRepository::open_opts(self.git_dir(), options);
        let mut local = opened.map_err(|e| Error::Open(self.git_dir(), Box::new(e)))?.to_thread_local();
        local.objects.ignore_replacements = true;
        Ok(local)
    }

    /// Returns the repository, reopened after many packs.
    fn current(&self) -> gix::ThreadSafeRepository {
        let written = keep_pack::written();
        let mut renewed = self.known.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if written - renewed.0 > RENEW_AFTER {
            let mut repo = self.repo.to_thread_local();
            // If reopening fails, keep the open one.
            if repo.reload().is_ok() {
                *renewed = (written, Some(repo.into_sync()));
            }
        }
        renewed.1.clone().unwrap_or_else(|| self.repo.clone())
    }

    /// Locks the merging of packs, or returns `None` if another thread holds the lock.
    pub(super) fn alone_gathering(&self) -> Option<MutexGuard<'_, ()>> {
        self.known.gathering.try_lock().ok()
    }

    /// Returns the git directory that linked worktrees share.
    pub fn common_dir(&self) -> PathBuf {
        self.known.common_dir.clone()
    }

    /// Returns the git directory of this worktree.
    pub fn git_dir(&self) -> PathBuf {
        self.known.git_dir.clone()
    }

    /// Returns the directory of the object database.
    pub fn objects_dir(&self) -> PathBuf {
        self.known.objects_dir.clone()
    }

    /// Returns the root of the work tree, or `None` in a bare repository.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.repo.work_dir().map(absolute)
    }

    /// Returns the hash function for object ids.
    pub fn hash_kind(&self) -> gix::hash::Kind {
        self.known.hash
    }

    /// Returns the object format as git writes it: `sha1` or `sha256`.
    pub fn object_format(&self) -> &'static str {
        object_format(self.hash_kind())
    }

    /// Returns the id of the empty tree, which git knows without an object.
    pub fn empty_tree(&self) -> Oid {
        Oid(gix::ObjectId::empty_tree(self.hash_kind()))
    }

    /// Returns the command line `git --git-dir=<this repository>`.
    pub fn git(&self) -> Git {
        Git::new(&self.git_dir())
    }

    /// Writes a single blob; see [`Store::write`].
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Oid, Error> {
        self.write(gix::objs::Kind::Blob, bytes)
    }

    /// Writes a single object from its bytes without the header.
    ///
    /// `git prune --expire=now` removes it until a ref reaches it, so objects to keep go into a
    /// [`Batch`]. An existing object is freshened, so that an age-based prune spares it.
    pub fn write(&self, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        let oid = object_oid(self.hash_kind(), kind, bytes)?;
        if self.freshen(oid) {
            return Ok(oid);
        }
        let repo = self.local();
        retry(|| repo.objects.write_buf(kind, bytes).map(Oid).map_err(|e| Error::Object(Box::new(e))))
    }

    /// Returns the names of bytes, which need not be stored.
    pub fn compute_product(&self, bytes: &[u8]) -> Result<Product, Error> {
        Product::from_bytes(bytes, self.hash_kind()).map_err(|Unnamed(cause)| Error::Name(cause))
    }

    /// Starts a batch of objects that appear together and are kept until a ref reaches them.
    pub fn batch(&self) -> Batch {
        Batch::new(self)
    }

    /// Returns when objects are synced to disk.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Reads an object with its kind, without fetching. An object larger than [`bounds`] allows for
    /// its kind is an error.
    pub fn read(&self, oid: Oid) -> Result<(gix::objs::Kind, Vec<u8>), Error> {
        self.whole(oid).map(|object| (object.kind, object.bytes))
    }

    /// Reads an object like [`Store::read`], with its stored size.
    pub fn whole(&self, oid: Oid) -> Result<Whole, Error> {
        whole(&self.local(), oid)
    }

    /// Reads a blob into memory, unless it is larger than [`bounds::BLOB`].
    pub fn read_blob(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        self.read_blob_of(oid, bounds::BLOB)
    }

    /// Reads a blob of at most `most` bytes into memory.
    pub fn read_blob_of(&self, oid: Oid, most: u64) -> Result<Vec<u8>, Error> {
        let object = bounded_read::read(&self.local(), oid, |_| most)?.ok_or(Error::Missing(oid))?;
        if object.kind == gix::objs::Kind::Blob { Ok(object.bytes) } else { Err(Error::Kind(oid, object.kind)) }
    }

    /// Returns the kind of an object, or `None` if it is missing.
    pub fn kind(&self, oid: Oid) -> Result<Option<gix::objs::Kind>, Error> {
        Ok(bounded_read::header(&self.local(), oid)?.map(|(kind, _)| kind))
    }

    /// Returns the size of an object in bytes, or `None` if it is missing.
    pub fn size(&self, oid: Oid) -> Result<Option<u64>, Error> {
        Ok(bounded_read::header(&self.local(), oid)?.map(|(_, size)| size))
    }

    /// Returns true if the object exists here.
    pub fn contains(&self, oid: Oid) -> bool {
        oid.0.kind() == self.hash_kind() && self.local().has_object(oid.0)
    }

    /// Copies a blob to `out`, streaming large ones. Returns its SHA-256 and size.
    pub fn copy_blob(&self, oid: Oid, out: &mut dyn Write) -> Result<(Digest, u64), Error> {
        let (_, size) = bounded_read::header(&self.local(), oid)?.ok_or(Error::Missing(oid))?;
        let mut hasher = Hasher::default();
        if size <= STREAM_ABOVE {
            let bytes = self.read_blob(oid)?;
            hasher.update(&bytes);
            out.write_all(&bytes).map_err(Error::Write)?;
            return Ok(hasher.finish());
        }
        // gix inflates an object in memory; git streams it. Nothing is fetched, because it exists,
        // and replacements are ignored.
        self.git()
            .frugal()
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .args(["cat-file", "blob", &oid.to_string()])
            .stream(&mut |chunk| {
                hasher.update(chunk);
                out.write_all(chunk)
            })
            .map_err(|e| Error::Program(Box::new(e)))?;
        Ok(hasher.finish())
    }

    /// Syncs objects that git wrote, if durability is strict; a [`Batch`] syncs its own.
    pub fn sync(&self) -> Result<(), Error> {
        if self.durability == Durability::Relaxed {
            return Ok(());
        }
        let objects = fs::File::open(self.objects_dir()).map_err(Error::Sync)?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&objects).map_err(|e| Error::Sync(e.into()))?;
        #[cfg(not(target_os = "linux"))]
        objects.sync_all().map_err(Error::Sync)?;
        Ok(())
    }

    /// Sets a loose object's time to now. Returns true if it exists.
    fn freshen(&self, oid: Oid) -> bool {
        let hex = oid.to_string();
        let path = self.objects_dir().join(&hex[..2]).join(&hex[2..]);
        fs::File::open(path).is_ok_and(|file| file.set_modified(SystemTime::now()).is_ok())
    }
}

/// Adds limits to the options for reading a chain.
pub(super) fn bounded(options: gix::open::Options) -> gix::open::Options {
    options.object_store_slots(SLOTS).config_overrides([bounded_read::setting(), midx::SETTING.to_owned()])
}

/// Reads an object by a handle that is kept for many; see [`Store::whole`].
pub(crate) fn whole(reader: &gix::Repository, oid: Oid) -> Result<Whole, Error> {
    bounded_read::read(reader, oid, most)?.ok_or(Error::Missing(oid))
}

/// Returns the most bytes of an object that is read into memory for any purpose.
pub fn most(kind: gix::objs::Kind) -> u64 {
    match kind {
        gix::objs::Kind::Commit | gix::objs::Kind::Tag => bounds::COMMIT,
        gix::objs::Kind::Tree => bounds::TREE,
        gix::objs::Kind::Blob => bounds::BLOB,
    }
}

/// Returns the object id of `bytes`. Bytes made to collide under SHA-1 are an error.
pub fn object_oid(hash: gix::hash::Kind, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
    gix::objs::compute_hash(hash, kind, bytes).map(Oid).map_err(|e| Error::Name(Box::new(e)))
}

/// Returns git's name of an object format: `sha1` or `sha256`.
pub fn object_format(kind: gix::hash::Kind) -> &'static str {
    match kind {
        gix::hash::Kind::Sha256 => "sha256",
        _ => "sha1",
    }
}

/// Retries a write that failed because `git gc` removed the folder it needed.
fn retry<T>(mut write: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 0;
    loop {
        match write() {
            Err(Error::Object(_)) if tries < GC_RETRIES => tries += 1,
            other => return other,
        }
    }
}

errors! {
    /// Why an object cannot be read or written.
    #[derive(Debug, thiserror::Error)] pub enum Error = "store";
    Nowhere(PathBuf) "no-repository": "not in a git repository: {}" [.0.display()];
    Open(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>) "no-repository":
        "cannot open a git repository from {}" [.0.display()];
    Foreign(PathBuf) "foreign-repository":
        "cannot open {}: another user owns it, and programs named in its settings would run as you" [.0.display()];
    InWorkTree(PathBuf, PathBuf) "bare-in-work-tree":
        "cannot open {}: it lies in the work tree {}, and programs named in its settings would run as you"
        [.0.display(), .1.display()];
    RefStorage(String) "ref-storage": "the repository keeps its refs in `{0}`, which is not supported; only `files` is";
    Name(#[source] Box<dyn std::error::Error + Send + Sync>):
        "the bytes cannot be named by this repository's hash function; a repository of --object-format=sha256 can";
    Object(#[source] Box<dyn std::error::Error + Send + Sync>): "cannot write an object";
    Pack(#[source] io::Error): "cannot write a pack";
    Tree(String, #[source] Box<dyn std::error::Error + Send + Sync>): "cannot edit the tree at {0}";
    Folder(usize): "a folder of the tree would take {0} bytes; at most {max} are read" [max = bounds::TREE];
    Folders(usize): "the files lie in {0} folders; at most {max} are possible" [max = bounds::FOLDERS];
    Find(Oid, #[source] Box<dyn std::error::Error + Send + Sync>): "object {0} could not be read";
    Missing(Oid): "object {0} is not in the repository";
    Kind(Oid, gix::objs::Kind): "object {0} is a {1}";
    Read(#[source] io::Error): "reading failed";
    Write(#[source] io::Error): "writing failed";
    Sync(#[source] io::Error): "cannot sync new objects to disk";
    Whole(#[source] bounded_read::Error): "{0}";
    #[from "store"] Program(Box<program::Error>);
}

impl From<bounded_read::Error> for Error {
    fn from(error: bounded_read::Error) -> Self {
        if let bounded_read::Error::Find(oid, source) = error { Self::Find(oid, source) } else { Self::Whole(error) }
    }
}
