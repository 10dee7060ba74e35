//! Copies the settings of an agent.
//!
//! People keep settings elsewhere and link them, so links are followed, as far as workers may read
//! where they lead.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::cache::make_own;
use crate::git::file_facts::canonical_or_same;
use crate::sandbox::{PrivateCopy, Size};

/// The most bytes and files of all private copies of one attempt.
const MOST: Size = Size { bytes: 256 << 20, files: 20_000 };

/// Names that no settings need and that often hold credentials: links may lead into a project.
const NEVER: [&str; 2] = [".git", ".env"];

/// The most nested folders, links followed.
const MOST_DEEP: usize = 32;

/// Copies settings for one attempt.
pub(super) struct Copier {
    left: Size,
    left_out: Vec<PathBuf>,
}

impl Default for Copier {
    fn default() -> Self {
        Self { left: MOST, left_out: Vec::new() }
    }
}

/// Why a copy is not made.
enum Stopped {
    TooMuch,
    Failed(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Copier {
    /// Copies the parts of a folder, without its logins.
    pub(super) fn copy_folder(&mut self, copy: &PrivateCopy, to: &Path, may: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        // A link among the settings must not lead to a login, or to the data of sessions.
        let except: BTreeSet<PathBuf> =
            copy.logins.iter().chain(&copy.checked).map(|file| canonical_or_same(copy.from.join(file))).collect();
        let own = canonical_or_same(copy.from.clone());
        let settings: Option<Vec<PathBuf>> =
            copy.parts.as_ref().map(|parts| parts.iter().map(|part| canonical_or_same(own.join(part))).collect());
        let is_setting =
            |path: &Path| settings.as_ref().is_none_or(|all| all.iter().any(|part| path.starts_with(part)));
        let may = &|path: &Path| {
            let real = canonical_or_same(path.to_owned());
            may(path) && !except.contains(&real) && (!real.starts_with(&own) || is_setting(&real))
        };
        let parts: Vec<PathBuf> = if let Some(parts) = &copy.parts {
            parts.iter().cloned().collect()
        } else {
            let entries = fs::read_dir(&copy.from).into_iter().flatten().flatten();
            entries.map(|entry| PathBuf::from(entry.file_name())).collect()
        };
        for part in parts {
            let to = to.join(&part);
            if let Some(folder) = to.parent() {
                make_own(folder)?;
            }
            self.copy(&copy.from.join(part), &to, may)?;
        }
        Ok(())
    }

    /// Copies a file or a folder to an unused path. Leaves it out if it is too large.
    pub(super) fn copy(&mut self, from: &Path, to: &Path, may: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        let left = self.left;
        match self.entry(from, to, may, 0) {
            Ok(()) => Ok(()),
            Err(Stopped::Failed(error)) => Err(error),
            Err(Stopped::TooMuch) => {
                self.left = left;
                self.left_out.push(from.to_owned());
                if to.is_dir() { fs::remove_dir_all(to) } else { fs::remove_file(to).or(Ok(())) }
            }
        }
    }

    fn entry(&mut self, from: &Path, to: &Path, may: &dyn Fn(&Path) -> bool, depth: usize) -> Result<(), Stopped> {
        // A path that disappears, or a link that leads nowhere, is not copied.
        let Ok(meta) = fs::metadata(from) else { return Ok(()) };
        let is_secret = from.file_name().is_some_and(|name| NEVER.iter().any(|never| name == *never));
        if is_secret || !may(from) {
            return Ok(());
        }
        if meta.is_file() {
            return self.file(from, to);
        }
        if !meta.is_dir() {
            return Ok(());
        }
        if depth == MOST_DEEP {
            return Err(Stopped::TooMuch);
        }
        make_own(to)?;
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            self.entry(&entry.path(), &to.join(entry.file_name()), may, depth + 1)?;
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), Stopped> {
        // Do not wait for the other end of a pipe.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of the system is a small number");
        let Ok(file) = File::options().read(true).custom_flags(flags).open(from) else { return Ok(()) };
        let meta = file.metadata()?;
        self.left.files = self.left.files.checked_sub(1).ok_or(Stopped::TooMuch)?;
        if !meta.is_file() || meta.len() > self.left.bytes {
            return if meta.is_file() { Err(Stopped::TooMuch) } else { Ok(()) };
        }
        let mut made = File::options().write(true).create_new(true).mode(0o600).open(to)?;
        let copied = io::copy(&mut file.take(self.left.bytes + 1), &mut made)?;
        self.left.bytes = self.left.bytes.checked_sub(copied).ok_or(Stopped::TooMuch)?;
        // The owner alone, but a script stays a program.
        let mode = meta.permissions().mode() & 0o700 | 0o600;
        Ok(made.set_permissions(Permissions::from_mode(mode))?)
    }

    /// Describes what was too large.
    pub(super) fn remarks(self) -> Vec<String> {
        let (mib, files) = (MOST.bytes >> 20, MOST.files);
        let left_out = self.left_out.iter();
        left_out
            .map(|path| {
                format!(
                    "{} is not copied for the worker: all copies have at most {mib} MiB and {files} files",
                    path.display()
                )
            })
            .collect()
    }
}
