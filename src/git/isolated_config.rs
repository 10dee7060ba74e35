//! Runs git with an isolated configuration: the user's settings for reaching remotes, and nothing
//! that a commit could set.
//!
//! git in a repository reads every file that its configuration includes, and the command line
//! cannot undo that. So these calls run in a temporary repository that borrows the objects.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use gix::bstr::BString;

use super::program::Git;
use super::scratch_repo::{Error, ScratchRepo};
use super::store::Store;

/// A temporary repository in which git uses only these settings and those of the command line.
pub struct IsolatedConfig {
    scratch: ScratchRepo,
    settings: PathBuf,
}

impl IsolatedConfig {
    /// Creates one for objects named by `sha1` or `sha256`. Settings are keys and values as git
    /// lists them.
    pub fn new(object_format: &str, settings: &[(String, String)]) -> Result<Self, Error> {
        let scratch = ScratchRepo::new(object_format)?;
        let (mut file, mut own) = (gix::config::File::default(), gix::config::File::default());
        for (key, value) in settings {
            let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
            let (section, subsection) = match section.split_once('.') {
                Some((section, subsection)) => (section, Some(BString::from(subsection))),
                None => (section, None),
            };
            let wrong = |_| Error::Setting(key.clone());
            // git looks up remotes by name only in the repository's own configuration.
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

    /// Returns the temporary repository.
    pub(super) fn store(&self) -> &Store {
        self.scratch.store()
    }

    /// Returns a git command that sees the objects of a repository.
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

impl fmt::Debug for IsolatedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IsolatedConfig").field("settings", &self.settings).finish_non_exhaustive()
    }
}
