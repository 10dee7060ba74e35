//! Conditions of this machine that no item is to blame for, such as a full disk.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::model::causes::{self, in_words};

/// The number of files that must be available for another attempt.
const FILES: usize = 32;

/// The number of bytes that must be available on each file system for another attempt.
const BYTES: usize = 64 << 10;

/// A condition of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// A file system, or a quota on it, is full.
    Space,
    /// A file system is read-only.
    ReadOnly,
    /// A disk fails.
    Disk,
    /// This process or this machine can open no more files.
    Files,
    /// There is no memory left.
    Memory,
}

impl Shortage {
    /// Returns the condition that caused an error, or `None`.
    ///
    /// In git's messages this looks only for the full disk, because workers choose the file names
    /// in them.
    pub(super) fn from_error(error: &(dyn Error + 'static)) -> Option<Self> {
        let by_kind = causes::chain(error).filter_map(<dyn Error>::downcast_ref).find_map(Self::of_io);
        by_kind.or_else(|| in_words(error).contains("No space left on device").then_some(Self::Space))
    }

    fn of_io(error: &io::Error) -> Option<Self> {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let code = code_of(error);
        match error.kind() {
            QuotaExceeded | StorageFull => Some(Self::Space),
            ReadOnlyFilesystem => Some(Self::ReadOnly),
            OutOfMemory => Some(Self::Memory),
            _ if code == Some(Errno::IO.raw_os_error()) => Some(Self::Disk),
            _ if [Errno::MFILE, Errno::NFILE].iter().any(|errno| code == Some(errno.raw_os_error())) => {
                Some(Self::Files)
            }
            _ => None,
        }
    }

    /// Returns the code that a reason begins with.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Space => "no-space",
            Self::ReadOnly => "read-only",
            Self::Disk => "disk-error",
            Self::Files => "no-files",
            Self::Memory => "no-memory",
        }
    }

    /// Returns what helps.
    pub(super) fn way_out(self) -> &'static str {
        match self {
            Self::Space => "free some space",
            Self::ReadOnly => "make the file system writable",
            Self::Disk => "check the disk",
            Self::Files => "raise the limit with `ulimit -n`, or run fewer items at once with `-j`",
            Self::Memory => "end other programs, or run fewer items at once with `-j`",
        }
    }

    /// Returns a reason that begins with the condition's code.
    pub(super) fn coded(self, words: &str) -> String {
        format!("{}: {words}", self.code())
    }

    /// Returns the condition whose code a reason begins with, and the rest of the reason.
    pub(super) fn of_reason(reason: &str) -> Option<(Self, &str)> {
        let (code, words) = reason.split_once(": ")?;
        let all = [Self::Space, Self::ReadOnly, Self::Disk, Self::Files, Self::Memory];
        Some((all.into_iter().find(|one| one.code() == code)?, words))
    }
}

/// Returns the system's code of an error. An error of `tempfile` has it only in its text, before
/// the path.
fn code_of(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let text = error.get_ref()?.to_string();
        let (before, _path) = text.split_once(" at path ")?;
        before.strip_suffix(')')?.rsplit_once("(os error ")?.1.parse().ok()
    })
}

/// Describes the condition whose code a reason begins with, and which of the folders it concerns.
pub(super) fn describe(reason: &str, folders: &[PathBuf]) -> String {
    match Shortage::of_reason(reason) {
        Some((shortage, words)) => shortage.coded(&format!("{}: {words}", Described { shortage, folders })),
        None => reason.to_owned(),
    }
}

/// A condition in words, with the folder that it concerns.
struct Described<'a> {
    shortage: Shortage,
    folders: &'a [PathBuf],
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_read_only = |folder: &&PathBuf| {
            stat_file_system(folder).is_some_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY))
        };
        let free_blocks = |folder: &&PathBuf| stat_file_system(folder).map_or(u64::MAX, |stat| stat.f_bavail);
        match self.shortage {
            Shortage::Space => match self.folders.iter().min_by_key(free_blocks) {
                Some(folder) => write!(f, "no space is left on the file system of {}", folder.display()),
                None => f.write_str("no space is left"),
            },
            Shortage::ReadOnly => match self.folders.iter().find(is_read_only) {
                Some(folder) => write!(f, "the file system of {} is read-only", folder.display()),
                None => f.write_str("a file system is read-only"),
            },
            Shortage::Disk => f.write_str("the disk fails"),
            Shortage::Files => match getrlimit(Resource::Nofile).current {
                Some(most) => write!(f, "no more files can be opened (the limit is {most})"),
                None => f.write_str("no more files can be opened"),
            },
            Shortage::Memory => f.write_str("there is no memory left"),
        }
    }
}

fn stat_file_system(folder: &Path) -> Option<rustix::fs::StatVfs> {
    rustix::fs::statvfs(folder).ok()
}

/// Checks that this machine can write to the folders and open the files of an attempt. Fails with
/// the condition that prevents it.
pub(super) fn probe(folders: &[PathBuf]) -> Result<(), Shortage> {
    match try_all(folders) {
        Err(error) => Shortage::from_error(&error).map_or(Ok(()), Err),
        Ok(()) => Ok(()),
    }
}

fn try_all(folders: &[PathBuf]) -> io::Result<()> {
    let files: Vec<File> = (0..FILES).map(|_| File::open("/dev/null")).collect::<io::Result<_>>()?;
    drop(files);
    for folder in folders.iter().filter(|folder| folder.exists()) {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(&vec![0; BYTES])?;
        file.sync_data()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_of_the_machine_is_no_other_error() {
        assert_eq!(shortage_for(Errno::NOSPC), Some(Shortage::Space));
        assert_eq!(shortage_for(Errno::DQUOT), Some(Shortage::Space));
        assert_eq!(shortage_for(Errno::ROFS), Some(Shortage::ReadOnly));
        assert_eq!(shortage_for(Errno::IO), Some(Shortage::Disk));
        assert_eq!(shortage_for(Errno::MFILE), Some(Shortage::Files));
        assert_eq!(shortage_for(Errno::NFILE), Some(Shortage::Files));
        assert_eq!(shortage_for(Errno::NOMEM), Some(Shortage::Memory));
        for other in [Errno::NOENT, Errno::ACCESS, Errno::EXIST, Errno::AGAIN, Errno::FBIG] {
            assert_eq!(shortage_for(other), None, "{other:?}");
        }
        // A worker can name a file so.
        assert_eq!(Shortage::from_error(&io::Error::other("Read-only file system")), None);
        assert_eq!(Shortage::from_error(&io::Error::other("No space left on device")), Some(Shortage::Space));
    }

    fn shortage_for(code: Errno) -> Option<Shortage> {
        Shortage::from_error(&io::Error::from_raw_os_error(code.raw_os_error()))
    }

    #[test]
    fn temporary_files_say_why_they_cannot_be_made() {
        let error = tempfile::NamedTempFile::new_in("/nowhere (os error 24) at path ").unwrap_err();
        assert_eq!((error.raw_os_error(), code_of(&error)), (None, Some(Errno::NOENT.raw_os_error())));
    }

    #[test]
    fn a_reason_says_which_condition_it_is() {
        let reason = Shortage::ReadOnly.coded("cannot write");
        assert_eq!(Shortage::of_reason(&reason), Some((Shortage::ReadOnly, "cannot write")));
        assert_eq!(describe(&reason, &[]), "read-only: a file system is read-only: cannot write");
        assert_eq!(describe("exited with 1", &[]), "exited with 1");
        assert_eq!(Shortage::of_reason("no-spaceship: x"), None);
    }

    #[test]
    fn a_machine_that_can_write_passes() {
        let folder = tempfile::tempdir().unwrap();
        probe(&[folder.path().to_owned(), folder.path().join("absent")]).unwrap();
    }
}
