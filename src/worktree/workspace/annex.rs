//! Supports git-annex: file contents in the git directory under a key that a link or pointer names.
//!
//! A worker gets the contents and no filter: an unlocked file has its content, and a locked one is
//! a link to it. Its git treats both as ordinary files. At capture, git-annex's clean filter
//! converts changes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stat};
use md5::{Digest as _, Md5};

use super::Error;
use super::git_config::Config;
use crate::git::store::Store;

/// The name of the filter of git-annex.
pub(crate) const FILTER: &str = "annex";

/// The start of a pointer, before the key.
const POINTER: &[u8] = b"/annex/objects/";

/// The most bytes of a pointer; a key is a file name.
const LONGEST: u64 = 1024;

/// Settings of git-annex that affect its clean filter.
const SETTINGS: [&str; 8] =
    ["uuid", "version", "largefiles", "backend", "gitaddtoannex", "dotfiles", "maxextensionlength", "maxextensions"];

/// The git-annex data of a repository.
#[derive(Clone, Debug)]
pub(super) struct Annex {
    /// Its whole folder.
    folder: PathBuf,
    /// The folder of contents.
    objects: PathBuf,
}

impl Annex {
    /// Returns the git-annex data of a repository, or `None` if it does not use git-annex.
    pub(super) fn find(store: &Store) -> Option<Self> {
        store.local().config_snapshot().string("annex.uuid")?;
        let folder = store.common_dir().join("annex");
        Some(Self { objects: folder.join("objects"), folder })
    }

    /// Links the folder of contents into a worker's git directory, where locked files point.
    pub(super) fn link(&self, git_dir: &Path) -> io::Result<()> {
        if !self.objects.is_dir() {
            return Ok(());
        }
        let folder = git_dir.join("annex");
        fs::create_dir(&folder)?;
        symlink(&self.objects, folder.join("objects"))
    }

    /// Makes one of our git directories use all git-annex data.
    pub(super) fn lend(&self, git_dir: &Path) -> io::Result<()> {
        if self.folder.is_dir() { symlink(&self.folder, git_dir.join("annex")) } else { Ok(()) }
    }

    /// Replaces the pointers of freshly checked out unlocked files with their contents, if present.
    pub(super) fn put(&self, dir: &Path, index: &mut gix::index::State) -> Result<(), Error> {
        let is_candidate = |entry: &gix::index::Entry| {
            matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)
                && !entry.flags.contains(Flags::SKIP_WORKTREE)
                && u64::from(entry.stat.size) <= LONGEST
                && u64::from(entry.stat.size) > POINTER.len() as u64
        };
        let entries = index.entries().iter().enumerate().filter(|(_, entry)| is_candidate(entry));
        let places: Vec<(usize, PathBuf)> =
            entries.map(|(at, entry)| (at, dir.join(entry.path(index).to_path_lossy()))).collect();
        for (at, path) in places {
            let Some(content) = self.content(&path).map_err(|e| Error::io(&path, e))? else { continue };
            let stat = replace(&path, content).map_err(|e| Error::io(&path, e))?;
            index.entries_mut()[at].stat = stat;
        }
        Ok(())
    }

    /// Opens the content of a pointer, or returns `None` if the file is no pointer or the content
    /// is absent.
    fn content(&self, path: &Path) -> io::Result<Option<File>> {
        let mut text = Vec::new();
        File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
        let Some(key) = key(&text) else { return Ok(None) };
        match File::open(self.objects.join(place(key))) {
            Ok(content) => Ok(Some(content)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The age that a file gets relative to its content in the annex.
const OLDER: Duration = Duration::from_secs(10);

/// Writes content over a pointer and returns the file's status.
///
/// The file gets an old time: if it were as new as the index, git would compare its bytes with the
/// pointer's.
fn replace(path: &Path, mut content: File) -> io::Result<Stat> {
    let mut file = File::options().write(true).truncate(true).open(path)?;
    io::copy(&mut content, &mut file)?;
    let written = content.metadata()?.modified()?;
    file.set_modified(written.checked_sub(OLDER).unwrap_or(written))?;
    let meta = gix::index::fs::Metadata::from_path_no_follow(path)?;
    Stat::from_fs(&meta).map_err(io::Error::other)
}

/// Returns true if the repository uses git-annex.
pub(crate) fn is_used(store: &Store) -> bool {
    Annex::find(store).is_some()
}

/// Returns true if a line of a patch adds a pointer or a link to a content of git-annex.
pub(crate) fn is_named_by(line: &[u8]) -> bool {
    line.starts_with(b"+") && line.contains_str(POINTER)
}

/// Returns the key in a pointer, or `None` if the bytes are no pointer.
pub(crate) fn key(pointer: &[u8]) -> Option<&BStr> {
    let name = pointer.strip_prefix(POINTER)?.lines().next()?;
    let is_name = !name.is_empty() && name.len() <= 255 && !name.contains(&b'/') && !matches!(name, b"." | b"..");
    is_name.then(|| name.as_bstr())
}

/// Returns the path of a key's content below the folder of contents: `79/mG/<key>/<key>`.
///
/// Two groups of five bits of the key's MD5, in git-annex's alphabet, name each of the two folders.
pub(crate) fn place(key: &BStr) -> PathBuf {
    const LETTERS: &[u8; 32] = b"0123456789zqjxkmvwgpfZQJXKMVWGPF";
    let hash = Md5::digest(key);
    let word = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
    let letter = |at: u32| char::from(LETTERS[(word >> (6 * at) & 31) as usize]);
    let key = std::ffi::OsStr::from_bytes(key);
    let folders = format!("{}{}/{}{}", letter(1), letter(0), letter(3), letter(2));
    Path::new(&folders).join(key).join(key)
}

/// Writes settings that make git-annex's clean filter work in one of our git directories.
pub(super) fn configure(store: &Store, config: &mut Config) {
    config.section("annex", None);
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    for name in SETTINGS {
        if let Some(value) = snapshot.string(format!("annex.{name}").as_str()) {
            config.value(name, &value);
        }
    }
    // Its record of where contents are would be lost with the git directory.
    config.value("alwayscommit", b"false");
}

#[cfg(test)]
mod tests {
    use gix::bstr::ByteSlice as _;

    use super::{key, place};

    #[test]
    fn contents_lie_where_git_annex_puts_them() {
        for (key, folders) in [
            ("SHA256E-s6--4c47b3e816fbe7d40cef9f665ba8f0be1ae68b5e8e7ed70f5b6bab7f70528e8f.dat", "79/mG"),
            ("SHA256E-s4053--ae8f66274879da5c0521b3bb414fd58f2b4ccb49f712ef374cc4b593e1391dd8.dat", "6p/4Z"),
            ("SHA256E-s4058--f353b1c2157b2c7cbb090f8be0096309ddae999bb8c583f524b4e2036557fa44.dat", "Gf/Zf"),
        ] {
            let place = place(key.as_bytes().as_bstr());
            assert_eq!(place.to_str(), Some(format!("{folders}/{key}/{key}").as_str()));
        }
    }

    #[test]
    fn only_pointers_name_keys() {
        assert_eq!(key(b"/annex/objects/MD5E-s1--x.dat\n"), Some("MD5E-s1--x.dat".into()));
        assert_eq!(key(b"/annex/objects/KEY"), Some("KEY".into()));
        for other in
            [&b"annex/objects/KEY\n"[..], b"/annex/objects/\n", b"/annex/objects/../x\n", b"/annex/objects/..\n"]
        {
            assert_eq!(key(other), None);
        }
    }
}
