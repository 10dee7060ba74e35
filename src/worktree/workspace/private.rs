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
    pub(super) fn of(host: &Host, attempt: &Path) -> Self {
        let name = Digest::of(attempt.as_os_str().as_encoded_bytes()).hex()[..12].to_owned();
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
        self.root.join(self.beside())
    }

    fn beside(&self) -> String {
        format!("{}.caches", self.name)
    }

    /// Opens it.
    pub(super) fn open(&self) -> io::Result<Folder> {
        Folder::open(&self.root)?.own_folder(&self.name)
    }

    /// Removes it with everything in it. Succeeds if it does not exist.
    pub(super) fn remove(&self) -> Result<(), Error> {
        match Folder::open(&self.root) {
            Ok(root) => {
                root.remove(&self.name).map_err(Error::at(&self.dir()))?;
                root.remove(&self.beside()).map_err(Error::at(&self.caches()))
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
