//! The object database: the only place that reads objects, and where batches of new ones begin.
//!
//! gix never syncs what it writes and never freshens what it finds; both are done here (see
//! `docs/explanation/architecture.md`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use gix::objs::Write as _;
use gix::odb::store::init::Slots;

use super::archives;
pub use super::batch::Batch;
use super::discover;
pub use super::edit::{Durability, Edit};
use super::folder::absolute;
use super::kept;
pub use super::kept::Kept;
use super::midx;
use super::program::{self, Git};
use super::whole::{self, Whole};
use crate::model::bounds;
use crate::model::digest::{Digest, Hasher, Oid};

/// Blobs above this size are streamed instead of being held in memory.
const STREAM_ABOVE: u64 = 4 << 20;

/// How many packs gix has room for in a repository that is open. It gives each new one another slot, and where the slots have
/// all been used once, it can lose a pack that comes while another goes.
const SLOTS: Slots = Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 2048 };

/// After so many packs that we wrote the repository is opened anew, well before the slots are used up.
const RENEW_AFTER: usize = 1000;

/// How often a write that lost to a concurrent `git gc` is tried again.
const GC_RETRIES: usize = 8;

/// A repository opened for reading and writing objects and refs; cheap to clone and safe to share between threads.
#[derive(Clone)]
pub struct Store {
    repo: gix::ThreadSafeRepository,
    durability: Durability,
    /// What every write asks for, looked up once.
    pub(super) known: Arc<Known>,
}

/// What does not change while a repository is open.
pub(super) struct Known {
    git_dir: PathBuf,
    common_dir: PathBuf,
    objects_dir: PathBuf,
    hash: gix::hash::Kind,
    /// How many packs had been written when the repository was opened last, and what was opened then, if not at first.
    renewed: Mutex<(usize, Option<gix::ThreadSafeRepository>)>,
    /// Held by whoever merges packs here.
    gathering: Mutex<()>,
    /// What is known of archives.
    pub(super) archives: Mutex<archives::Known>,
}

impl Store {
    /// Opens the repository that contains `dir`, as git's own environment variables and discovery rules say.
    ///
    /// Nothing that its settings name runs as us if it is somebody else's: it is refused where git refuses it.
    pub fn discover(dir: &Path) -> Result<Self, Error> {
        Self::accept(discover::discover(dir)?)
    }

    /// Opens the git directory at `dir`, and no other, whatever the environment says.
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
            renewed: Mutex::new((kept::written(), None)),
            gathering: Mutex::new(()),
            archives: Mutex::default(),
        };
        Ok(Self { repo, durability: Durability::Strict, known: Arc::new(known) })
    }

    /// Returns the same repository with another durability.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns a handle for one thread.
    pub fn local(&self) -> gix::Repository {
        let mut repo = self.current().to_thread_local();
        // Evidence is read as it is stored: `git replace` must not stand in for it.
        repo.objects.ignore_replacements = true;
        repo
    }

    /// Returns a handle that reads objects of any size: for the user's own files, which are checked out whole.
    pub fn unbounded(&self) -> Result<gix::Repository, Error> {
        let repo = self.local();
        let options = repo.open_options().clone().config_overrides(None::<&str>).open_path_as_is(true);
        let opened = gix::ThreadSafeRepository::open_opts(self.git_dir(), options);
        let mut repo = opened.map_err(|e| Error::Open(self.git_dir(), Box::new(e)))?.to_thread_local();
        repo.objects.ignore_replacements = true;
        Ok(repo)
    }

    /// Returns the repository, opened anew after many packs.
    fn current(&self) -> gix::ThreadSafeRepository {
        let written = kept::written();
        let mut renewed = self.known.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if written - renewed.0 > RENEW_AFTER {
            let mut repo = self.repo.to_thread_local();
            // One that cannot be opened now is still open as it was.
            if repo.reload().is_ok() {
                *renewed = (written, Some(repo.into_sync()));
            }
        }
        renewed.1.clone().unwrap_or_else(|| self.repo.clone())
    }

    /// Returns what lets its holder alone merge packs here; nothing while somebody else of this process does.
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

    /// Returns the root of the work tree; none in a bare repository.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.repo.work_dir().map(absolute)
    }

    /// Returns the hash function that names objects here.
    pub fn hash_kind(&self) -> gix::hash::Kind {
        self.known.hash
    }

    /// Returns the object format as git writes it: `sha1` or `sha256`.
    pub fn object_format(&self) -> &'static str {
        match self.hash_kind() {
            gix::hash::Kind::Sha256 => "sha256",
            _ => "sha1",
        }
    }

    /// Returns the name that git gives a blob of these bytes here.
    pub fn blob_oid(&self, bytes: &[u8]) -> Result<Oid, Error> {
        object_oid(self.hash_kind(), gix::objs::Kind::Blob, bytes)
    }

    /// Returns the name of the tree that holds nothing, which git knows without an object.
    pub fn empty_tree(&self) -> Oid {
        Oid(gix::ObjectId::empty_tree(self.hash_kind()))
    }

    /// Returns the command line `git --git-dir=<this repository>`.
    pub fn git(&self) -> Git {
        Git::new(&self.git_dir())
    }

    /// Writes a blob by itself; see [`Store::write`].
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Oid, Error> {
        self.write(gix::objs::Kind::Blob, bytes)
    }

    /// Writes an object by itself, from its bytes without the header.
    ///
    /// Until a ref reaches it `git prune --expire=now` takes it, so what is to stay goes into a [`Batch`]. One that is there
    /// already is freshened instead, so that a prune in progress that goes by age spares it.
    pub fn write(&self, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
        let oid = object_oid(self.hash_kind(), kind, bytes)?;
        if self.freshen(oid) {
            return Ok(oid);
        }
        let repo = self.local();
        retry(|| repo.objects.write_buf(kind, bytes).map(Oid).map_err(|e| Error::Object(Box::new(e))))
    }

    /// Begins objects that are to be there together, and that no prune takes before a ref reaches them.
    pub fn batch(&self) -> Batch {
        Batch::new(self)
    }

    /// Returns how far objects are forced to disk before a ref may show them.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Reads an object with its kind; nothing is fetched from elsewhere. One larger than [`bounds`] say of its kind is an error.
    pub fn read(&self, oid: Oid) -> Result<(gix::objs::Kind, Vec<u8>), Error> {
        self.whole(oid).map(|object| (object.kind, object.bytes))
    }

    /// Reads an object like [`Store::read`], and says what it takes in the object database.
    pub fn whole(&self, oid: Oid) -> Result<Whole, Error> {
        whole::read(&self.local(), oid, most)?.ok_or(Error::Missing(oid))
    }

    /// Reads a blob into memory, unless it is larger than [`bounds::BLOB`].
    pub fn read_blob(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        self.read_blob_of(oid, bounds::BLOB)
    }

    /// Reads a blob of at most so many bytes into memory.
    pub fn read_blob_of(&self, oid: Oid, most: u64) -> Result<Vec<u8>, Error> {
        let object = whole::read(&self.local(), oid, |_| most)?.ok_or(Error::Missing(oid))?;
        if object.kind == gix::objs::Kind::Blob { Ok(object.bytes) } else { Err(Error::Kind(oid, object.kind)) }
    }

    /// Returns the kind of an object that is here; none where it is not.
    pub fn kind(&self, oid: Oid) -> Result<Option<gix::objs::Kind>, Error> {
        Ok(whole::header(&self.local(), oid)?.map(|(kind, _)| kind))
    }

    /// Returns whether an object is here.
    pub fn contains(&self, oid: Oid) -> bool {
        oid.0.kind() == self.hash_kind() && self.local().has_object(oid.0)
    }

    /// Copies a blob's bytes to `out`, streaming large ones; returns their digest and number.
    pub fn copy_blob(&self, oid: Oid, out: &mut dyn Write) -> Result<(Digest, u64), Error> {
        let (_, size) = whole::header(&self.local(), oid)?.ok_or(Error::Missing(oid))?;
        let mut hasher = Hasher::default();
        if size <= STREAM_ABOVE {
            let bytes = self.read_blob(oid)?;
            hasher.update(&bytes);
            out.write_all(&bytes).map_err(Error::Write)?;
            return Ok(hasher.finish());
        }
        // gix inflates an object whole; git streams it. It is here, so nothing is fetched, and it is not to be replaced.
        self.git()
            .frugal()
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .arg("cat-file")
            .arg("blob")
            .arg(oid.to_string())
            .stream(&mut |chunk| {
                hasher.update(chunk);
                out.write_all(chunk)
            })
            .map_err(|e| Error::Program(Box::new(e)))?;
        Ok(hasher.finish())
    }

    /// Forces what git wrote to disk, if durability is strict; what a [`Batch`] keeps is there already.
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

    /// Gives a loose object the present time; returns whether it is there.
    fn freshen(&self, oid: Oid) -> bool {
        let hex = oid.to_string();
        let path = self.objects_dir().join(&hex[..2]).join(&hex[2..]);
        let Ok(file) = fs::File::open(path) else {
            return false;
        };
        file.set_modified(SystemTime::now()).is_ok()
    }
}

/// Returns the same options for a repository that a chain is read from.
pub(super) fn bounded(options: gix::open::Options) -> gix::open::Options {
    options.object_store_slots(SLOTS).config_overrides([whole::setting(), midx::SETTING.to_owned()])
}

/// Returns how large an object may be that is read whole, whatever it is read for.
pub fn most(kind: gix::objs::Kind) -> u64 {
    match kind {
        gix::objs::Kind::Commit | gix::objs::Kind::Tag => bounds::COMMIT,
        gix::objs::Kind::Tree => bounds::TREE,
        gix::objs::Kind::Blob => bounds::BLOB,
    }
}

/// Returns the object name of `bytes` under a hash function; bytes made to collide under SHA-1 have none.
pub fn object_oid(hash: gix::hash::Kind, kind: gix::objs::Kind, bytes: &[u8]) -> Result<Oid, Error> {
    gix::objs::compute_hash(hash, kind, bytes).map(Oid).map_err(|e| Error::Name(Box::new(e)))
}

/// Tries a write again that failed because `git gc` removed the folder it was about to use.
fn retry<T>(mut write: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 0;
    loop {
        match write() {
            Err(Error::Object(_)) if tries < GC_RETRIES => tries += 1,
            other => return other,
        }
    }
}

/// What can go wrong with objects.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("not in a git repository: {}", .0.display())]
    Nowhere(PathBuf),
    #[error("no git repository could be opened from {}", .0.display())]
    Open(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{} belongs to somebody else, and what its settings name would run as you; it is not opened", .0.display())]
    Foreign(PathBuf),
    #[error("the repository keeps its refs in `{0}`, which is not supported yet; only `files` is")]
    RefStorage(String),
    #[error("the bytes cannot be named by this repository's hash function; a repository of --object-format=sha256 can")]
    Name(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("an object could not be written")]
    Object(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("a pack of objects could not be written")]
    Pack(#[source] io::Error),
    #[error("the tree could not be edited at {0}")]
    Tree(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("a folder of the tree would take {0} bytes; at most {max} are read", max = bounds::TREE)]
    Folder(usize),
    #[error("object {0} could not be read")]
    Find(Oid, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Whole(whole::Error),
    #[error("object {0} is not in the repository")]
    Missing(Oid),
    #[error("object {0} is a {1}")]
    Kind(Oid, gix::objs::Kind),
    #[error("reading failed")]
    Read(#[source] io::Error),
    #[error("writing failed")]
    Write(#[source] io::Error),
    #[error("what was written could not be forced to disk")]
    Sync(#[source] io::Error),
    #[error(transparent)]
    Program(Box<program::Error>),
}

impl From<whole::Error> for Error {
    fn from(error: whole::Error) -> Self {
        if let whole::Error::Find(oid, source) = error { Self::Find(oid, source) } else { Self::Whole(error) }
    }
}
