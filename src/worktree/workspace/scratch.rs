//! Creates an attempt's own folders in place of the user's caches and the machine's temporary
//! folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::cache::{self, Copying, make_own};
use super::{Error, Workspace};
use crate::sandbox::overlay::UPPER;
use crate::sandbox::{Confinement, MOST_COPIED};

/// Folders that X Window servers expect in `/tmp` and only root may create.
const SOCKETS: [&str; 2] = [".X11-unix", ".ICE-unix"];

/// Their mode.
const EVERYBODYS: u32 = 0o1777;

impl Workspace {
    /// Returns the folder for overlays over caches.
    pub fn caches(&self) -> PathBuf {
        self.private.caches()
    }

    /// Returns the folder with the attempt's writes to caches, if it exists.
    pub fn written_caches(&self) -> Option<PathBuf> {
        Some(self.caches().join(UPPER)).filter(|folder| folder.exists())
    }

    /// Creates the folders in place of caches and `/tmp`. Returns remarks for the transcript.
    pub fn make_scratch(&self, by: &Confinement) -> Result<Vec<String>, Error> {
        for folder in by.scratch_folders(&self.caches()) {
            make_own(&folder).map_err(Error::at(&folder))?;
        }
        for hidden in by.hidden_in_caches(&self.caches()) {
            cache::leave_out(&hidden).map_err(Error::at(&hidden.upper.join(&hidden.below)))?;
        }
        let remarks = self.copy_caches(by)?;
        for (below, text) in by.settings() {
            if let Some(to) = own_place(&self.home(), &below)? {
                fs::write(&to, text).map_err(Error::at(&to))?;
            }
        }
        if by.has_own_tmp() {
            for name in SOCKETS {
                let folder = self.tmp().join(name);
                let made = fs::create_dir(&folder);
                made.and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(EVERYBODYS)))
                    .map_err(Error::at(&folder))?;
            }
        }
        Ok(remarks)
    }

    /// Creates the cache folders in the private home and their copies. Returns the caches that are
    /// too large.
    fn copy_caches(&self, by: &Confinement) -> Result<Vec<String>, Error> {
        let mut copying = Copying::new(MOST_COPIED, |path: &Path| by.hides(path));
        let mut remarks = Vec::new();
        for (below, place) in by.own_caches(&self.tree()) {
            let Some(to) = own_place(&self.home(), below)? else { continue };
            let is_whole = place.map_or_else(|| make_own(&to).map(|()| true), |place| copying.copy(place, &to));
            if let (false, Some(place)) = (is_whole.map_err(Error::at(&to))?, place) {
                let (place, gib, files) = (place.display(), MOST_COPIED.bytes >> 30, MOST_COPIED.files);
                remarks.push(format!(
                    "this attempt begins with an empty cache in the place of {place}, which has grown since the run began: \
                     copies have at most {gib} GiB and {files} files"
                ));
            }
        }
        Ok(remarks)
    }
}

/// Creates the parents of a path in a private home directory and returns it. Returns `None` if it
/// exists or a link to a place of the user's is on it.
pub(super) fn own_place(home: &Path, below: &Path) -> Result<Option<PathBuf>, Error> {
    let to = home.join(below);
    let above = below.ancestors().skip(1).map(|above| home.join(above));
    let is_led_out = above.into_iter().any(|above| above.is_symlink());
    if is_led_out || fs::symlink_metadata(&to).is_ok() {
        return Ok(None);
    }
    let folder = to.parent().unwrap_or(home);
    make_own(folder).map_err(Error::at(folder))?;
    Ok(Some(to))
}
