//! git with a configuration of its own: what the user says of how others are reached, and nothing that a commit could say.
//!
//! A call of git in a repository takes in every file that its configuration includes, and none of that can be taken back on the
//! command line. So such a call is made from a throw-away repository that only borrows the objects.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use gix::bstr::BString;

use super::program::Git;
use super::scratch::{Error, Scratch};
use super::store::Store;

/// A throw-away repository whose git knows these settings and no others but those of the command line.
pub struct Apart {
    scratch: Scratch,
    settings: PathBuf,
}

impl Apart {
    /// Makes one for objects that are named by `sha1` or `sha256`; settings are keys and values as git lists them.
    pub fn new(object_format: &str, settings: &[(String, String)]) -> Result<Self, Error> {
        let scratch = Scratch::new(object_format)?;
        let (mut file, mut own) = (gix::config::File::default(), gix::config::File::default());
        for (key, value) in settings {
            let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
            let (section, subsection) = match section.split_once('.') {
                Some((section, subsection)) => (section, Some(BString::from(subsection))),
                None => (section, None),
            };
            let wrong = |_| Error::Setting(key.clone());
            // git finds a remote by its name in the repository's own configuration alone.
            let to = if section == "remote" { &mut own } else { &mut file };
            to.new_section(section, subsection).map_err(wrong)?.push(name, value.as_str()).map_err(wrong)?;
        }
        let folder = scratch.store().git_dir();
        let path = folder.join("settings");
        fs::write(&path, file.to_bstring()).map_err(Error::Folder)?;
        let mut config = fs::OpenOptions::new().append(true).open(folder.join("config")).map_err(Error::Folder)?;
        config.write_all(&own.to_bstring()).map_err(Error::Folder)?;
        Ok(Self { scratch, settings: path })
    }

    /// Returns the throw-away repository.
    pub(super) fn store(&self) -> &Store {
        self.scratch.store()
    }

    /// Returns a call of git on the objects of a repository.
    pub(super) fn git(&self, store: &Store) -> Git {
        self.scratch
            .store()
            .git()
            .env("GIT_CONFIG_GLOBAL", &self.settings)
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_OBJECT_DIRECTORY", store.objects_dir())
    }
}

impl fmt::Debug for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apart").field("settings", &self.settings).finish_non_exhaustive()
    }
}
