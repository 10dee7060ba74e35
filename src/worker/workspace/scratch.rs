//! What an attempt writes in the place of the user's caches, and of the machine's folders for temporary files.

use std::fs::{self, DirBuilder, File, FileTimes};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{Error, Workspace};
use crate::worker::sandbox::Confinement;
use crate::worker::sandbox::overlay::{UPPER, folders};

/// Folders that servers of the X Window System expect to find in `/tmp`, and may not make unless they are root.
const SOCKETS: [&str; 2] = [".X11-unix", ".ICE-unix"];

/// Their mode.
const EVERYBODYS: u32 = 0o1777;

impl Workspace {
    /// Returns the folder of what overlays over caches need.
    pub fn caches(&self) -> PathBuf {
        self.private.caches()
    }

    /// Returns the folder that holds what the attempt wrote to caches, if there is one.
    pub fn written_caches(&self) -> Option<PathBuf> {
        Some(self.caches().join(UPPER)).filter(|folder| folder.exists())
    }

    /// Makes what a worker that is confined so writes in the place of caches and of `/tmp`.
    pub fn make_scratch(&self, by: &Confinement) -> Result<(), Error> {
        for folder in by.overlays().into_iter().flat_map(|n| folders(&self.caches(), n)) {
            own_folders(&folder).map_err(Error::at(&folder))?;
        }
        for (below, place) in by.own_caches(&self.tree()) {
            if let Some(to) = own_place(&self.home(), below)? {
                place.map_or_else(|| own_folders(&to), |place| copy(place, &to)).map_err(Error::at(&to))?;
            }
        }
        for (below, text) in by.settings() {
            if let Some(to) = own_place(&self.home(), &below)? {
                fs::write(&to, text).map_err(Error::at(&to))?;
            }
        }
        if by.has_own_tmp() {
            for name in SOCKETS {
                let folder = self.tmp().join(name);
                let made = fs::create_dir(&folder);
                let open = || fs::set_permissions(&folder, fs::Permissions::from_mode(EVERYBODYS));
                made.and_then(|()| open()).map_err(Error::at(&folder))?;
            }
        }
        Ok(())
    }
}

/// Returns a path below a private home directory, with the folders above it made, or `None` if something is there already, or a link
/// to a place of the user's is on the way.
fn own_place(home: &Path, below: &Path) -> Result<Option<PathBuf>, Error> {
    let to = home.join(below);
    let above = below.ancestors().skip(1).map(|above| home.join(above));
    let is_led_out = above.into_iter().any(|above| above.is_symlink());
    if is_led_out || fs::symlink_metadata(&to).is_ok() {
        return Ok(None);
    }
    let folder = to.parent().unwrap_or(home);
    own_folders(folder).map_err(Error::at(folder))?;
    Ok(Some(to))
}

fn own_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// Copies a cache. The kernel shares the content of files where the file system can. What goes away meanwhile, or may not be read, is
/// not in the copy: a cache is complete without it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    own_folders(to)?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries {
        let Ok(entry) = entry else { continue };
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            copy(&path, &to)?;
        } else if meta.is_symlink() {
            let Ok(target) = fs::read_link(&path) else { continue };
            symlink(target, &to)?;
        } else if meta.is_file() {
            let Ok(mut source) = File::open(&path) else { continue };
            let mut made = File::create_new(&to)?;
            io::copy(&mut source, &mut made)?;
            made.set_permissions(meta.permissions())?;
            // Tools compare times, and remove what is old.
            made.set_times(FileTimes::new().set_modified(meta.modified()?))?;
        }
    }
    Ok(())
}
