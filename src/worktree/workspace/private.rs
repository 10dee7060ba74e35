//! The private files of one attempt's worker: temporary folder, result file and optional home
//! directory.
//!
//! They are in one folder, because each granted folder costs a mount. Its path is short: a socket's
//! path has at most 108 bytes, and programs create sockets deep below `TMPDIR`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::git_dir::identity;
use super::{Error, Workspace};
use crate::model::digest::Digest;
use crate::sandbox::folder::{Folder, is_no_folder};
use crate::worktree::home_mirror::{Given, HomeMirror};
use crate::worktree::host::Host;

/// The folder for temporary files.
const TMP: &str = "tmp";
/// The home directory.
const HOME: &str = "home";

/// The private folder of one attempt.
#[derive(Clone, Debug)]
pub(super) struct Private {
    root: PathBuf,
    name: String,
}

impl Private {
    /// Returns the private folder for the attempt folder `attempt`; the same in every process.
    pub(super) fn new(host: &Host, attempt: &Path) -> Self {
        let name = Digest::compute(attempt.as_os_str().as_encoded_bytes()).hex()[..12].to_owned();
        Self { root: host.settings.private.clone(), name }
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    pub(super) fn tmp(&self) -> PathBuf {
        self.dir().join(TMP)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.dir().join(HOME)
    }

    /// Creates it with its temporary folder, and removes an earlier one with the same name.
    pub(super) fn make(&self) -> Result<(), Error> {
        own(&self.root).map_err(Error::at(&self.root))?;
        self.remove()?;
        self.create()
    }

    /// Creates it with its temporary folder where nothing exists.
    pub(super) fn create(&self) -> Result<(), Error> {
        for dir in [self.dir(), self.tmp()] {
            DirBuilder::new().mode(0o700).create(&dir).map_err(Error::at(&dir))?;
        }
        Ok(())
    }

    /// Creates the home directory with git's identity settings and the links in `at_home`, each
    /// with its target.
    pub(super) fn make_home(&self, host: &Host, at_home: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
        make_home(&self.home(), host, at_home)
    }

    /// Returns the folder for writes to the user's caches. It is outside of the granted folder:
    /// only the kernel may write to the parts of an overlay.
    pub(super) fn caches(&self) -> PathBuf {
        self.root.join(self.caches_name())
    }

    fn caches_name(&self) -> String {
        format!("{}.caches", self.name)
    }

    /// Opens it.
    pub(super) fn open(&self) -> io::Result<Folder> {
        Folder::open(&self.root)?.own_folder(&self.name)
    }

    /// Moves it aside, so that a check gets another one at its path.
    pub(super) fn move_aside(&self) -> Result<(), Error> {
        self.moved_away().remove_own()?;
        self.move_to(&self.moved_away())
    }

    /// Replaces it by the one that was moved aside, if there is one.
    pub(super) fn move_back(&self) -> Result<(), Error> {
        if !Folder::open(&self.root).is_ok_and(|root| root.has(&self.moved_away().name)) {
            return Ok(());
        }
        self.remove_own()?;
        self.moved_away().move_to(self)
    }

    fn moved_away(&self) -> Self {
        Self { root: self.root.clone(), name: format!("{}.worker", self.name) }
    }

    fn move_to(&self, to: &Self) -> Result<(), Error> {
        let root = Folder::open(&self.root).map_err(Error::at(&self.root))?;
        for (from, target) in [(&self.name, &to.name), (&self.caches_name(), &to.caches_name())] {
            if root.has(from) {
                rustix::fs::renameat(&root, from, &root, target).map_err(|e| Error::io(&self.dir(), e.into()))?;
            }
        }
        Ok(())
    }

    /// Removes it with everything in it, also if it was moved aside. Succeeds if it does not exist.
    pub(super) fn remove(&self) -> Result<(), Error> {
        self.moved_away().remove_own()?;
        self.remove_own()
    }

    fn remove_own(&self) -> Result<(), Error> {
        match Folder::open(&self.root) {
            Ok(root) => {
                root.remove(&self.name).map_err(Error::at(&self.dir()))?;
                root.remove(&self.caches_name()).map_err(Error::at(&self.caches()))
            }
            Err(error) if is_no_folder(&error) => Ok(()),
            Err(error) => Err(Error::io(&self.root, error)),
        }
    }
}

impl Workspace {
    /// Returns the worker's private folder.
    pub fn private(&self) -> PathBuf {
        self.private.dir()
    }

    /// Returns the worker's private folder for temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.private.tmp()
    }

    /// Returns the worker's private home directory, which may not exist.
    pub fn home(&self) -> PathBuf {
        self.private.home()
    }

    /// Creates the worker's private home directory with git's identity settings and links, each
    /// with its target.
    pub fn make_home(&self, host: &Host, at_home: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
        self.private.make_home(host, at_home)
    }

    /// Creates the private home directory of a check from a record of the user's, as
    /// [`HomeMirror::write`] says, with git's identity settings unless the user has settings.
    pub fn mirror_home(&self, host: &Host, user: &HomeMirror, given: &Given<'_>) -> Result<(), Error> {
        let home = self.home();
        user.write(&home, given).map_err(Error::at(&home))?;
        let settings = home.join(".gitconfig");
        let own = [settings.clone(), home.join(".config/git/config")];
        if own.iter().any(|path| fs::symlink_metadata(path).is_ok()) {
            return Ok(());
        }
        fs::write(&settings, identity(host)).map_err(Error::at(&settings))
    }

    /// Removes the worker's private files, of which only the result is captured.
    pub fn remove_private(&self) -> Result<(), Error> {
        self.private.remove()
    }
}

/// Creates a home directory like [`Private::make_home`].
pub(crate) fn make_home(home: &Path, host: &Host, at_home: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
    DirBuilder::new().mode(0o700).create(home).map_err(Error::at(home))?;
    let settings = home.join(".gitconfig");
    fs::write(&settings, identity(host)).map_err(Error::at(&settings))?;
    for (below, real) in at_home {
        let link = home.join(below);
        let folder = link.parent().unwrap_or(home);
        fs::create_dir_all(folder).map_err(Error::at(folder))?;
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(&link, error)),
            _ => symlink(real, &link).map_err(Error::at(&link))?,
        }
    }
    Ok(())
}

/// Creates a private folder, or checks that it is private: it may be in a shared place.
fn own(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    let meta = fs::symlink_metadata(folder)?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not ours"));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
