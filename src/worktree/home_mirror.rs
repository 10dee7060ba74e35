//! A home directory for checks of workers that may write the user's own.
//!
//! It offers what the user's home directory offered before any worker of this driver ran: small
//! files as copies, everything else by links. Entries that a worker adds are not in it.

use std::fs::{self, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folders whose entries are mirrored one by one, because tools read settings or load modules
/// there. `*` matches any one name.
const OPENED: [&str; 12] = [
    "",
    ".cargo",
    ".config",
    ".config/*",
    ".gradle",
    ".local",
    ".local/lib",
    ".local/lib/*",
    ".local/lib/*/site-packages",
    ".local/share",
    ".m2",
    ".rustup",
];

/// The beginnings of the names of files that processes lock or share.
const SHARED: [&str; 2] = [".package-cache", ".global-cache"];

/// The most bytes of a file that is copied.
const MOST_COPIED: u64 = 256 << 10;

/// The most entries. Folders beyond it are linked as a whole.
const MOST_ENTRIES: usize = 20_000;

/// The permissions that copies keep.
const RIGHTS: u32 = 0o700;

/// The home directory of the user who drives a run.
#[derive(Debug, Default)]
pub struct UserHome {
    path: Option<PathBuf>,
    mirror: OnceLock<HomeMirror>,
}

impl UserHome {
    /// Returns the home directory at a path. Reads nothing yet.
    pub fn at(path: Option<PathBuf>) -> Self {
        Self { path, mirror: OnceLock::new() }
    }

    /// Returns its record, which the first call makes.
    pub fn mirror(&self) -> &HomeMirror {
        self.mirror.get_or_init(|| self.path.as_deref().map(HomeMirror::read).unwrap_or_default())
    }

    /// Returns the place in the home directory `other` of a path in this one, or `None` if the path
    /// is elsewhere.
    pub fn moved(&self, path: &Path, other: &Path) -> Option<PathBuf> {
        Some(other.join(path.strip_prefix(self.path.as_ref()?).ok()?))
    }
}

/// Decides what is given of an entry.
pub type Given<'a> = dyn Fn(&Path, &[u8]) -> Option<Vec<u8>> + 'a;

/// A record of a home directory.
#[derive(Clone, Debug, Default)]
pub struct HomeMirror {
    entries: Vec<(PathBuf, Entry)>,
}

/// An entry of the home directory.
#[derive(Clone, Debug)]
enum Entry {
    Folder,
    /// Its content and permissions, and its real path.
    File(Vec<u8>, u32, PathBuf),
    /// The real path.
    Link(PathBuf),
}

impl HomeMirror {
    /// Reads a home directory. Skips entries that cannot be read.
    pub fn read(home: &Path) -> Self {
        let mut mirror = Self::default();
        mirror.add_folder(home, Path::new(""));
        mirror
    }

    fn add_folder(&mut self, home: &Path, below: &Path) {
        let entries = fs::read_dir(home.join(below)).into_iter().flatten().flatten();
        for entry in entries {
            let below = below.join(entry.file_name());
            let Ok(real) = fs::canonicalize(entry.path()) else { continue };
            let is_full = self.entries.len() >= MOST_ENTRIES;
            if !is_full && real.is_dir() && is_opened(&below) {
                self.entries.push((below.clone(), Entry::Folder));
                self.add_folder(home, &below);
                continue;
            }
            let is_copied = !is_full && is_settings(&below);
            let file = if is_copied { read_small(&real) } else { None };
            let mirrored =
                file.map(|(bytes, mode)| Entry::File(bytes, mode, real.clone())).unwrap_or(Entry::Link(real));
            self.entries.push((below, mirrored));
        }
    }

    /// Creates a home directory at `to`, which must not exist. `given` receives the real path of an
    /// entry, and the content if it is a copy; it returns the content to give, or `None` to leave
    /// the entry out.
    pub fn write(&self, to: &Path, given: &Given<'_>) -> io::Result<()> {
        make_own(to)?;
        for (below, entry) in &self.entries {
            let place = to.join(below);
            match entry {
                Entry::Folder => make_own(&place)?,
                Entry::File(bytes, mode, real) => {
                    let Some(bytes) = given(real, bytes) else { continue };
                    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&place)?;
                    io::Write::write_all(&mut file, &bytes)?;
                    file.set_permissions(Permissions::from_mode(mode & RIGHTS))?;
                }
                Entry::Link(real) if given(real, b"").is_some() => symlink(real, &place)?,
                Entry::Link(_) => {}
            }
        }
        Ok(())
    }
}

fn make_own(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// Returns true if a folder is one of [`OPENED`].
fn is_opened(below: &Path) -> bool {
    let names: Vec<_> = below.iter().collect();
    OPENED.iter().any(|pattern| {
        let pattern: Vec<_> = Path::new(pattern).iter().collect();
        pattern.len() == names.len() && pattern.iter().zip(&names).all(|(want, name)| *want == "*" || want == name)
    })
}

/// Returns true if a file may be settings: neither data at the top nor shared by processes.
fn is_settings(below: &Path) -> bool {
    let name = below.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_hidden = below.as_os_str().as_encoded_bytes().starts_with(b".");
    is_hidden && !SHARED.iter().any(|start| name.starts_with(start))
}

/// Returns the content and the mode of a small regular file.
fn read_small(path: &Path) -> Option<(Vec<u8>, u32)> {
    let meta = fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MOST_COPIED)?;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST_COPIED + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_COPIED).then_some((bytes, meta.permissions().mode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_copied_and_everything_else_is_linked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(folder.path()).expect("it is there");
        let home = top.join("home");
        for path in
            [".npmrc", "notes", ".config/pip/pip.conf", ".cargo/.package-cache", ".ssh/config", ".local/lib/p/a"]
        {
            fs::create_dir_all(home.join(path).parent().expect("a folder")).expect("folders are made");
            fs::write(home.join(path), path).expect("a file is written");
        }
        fs::write(home.join(".large"), vec![b'x'; 1 + (256 << 10)]).expect("a file is written");
        symlink("none", home.join(".gone")).expect("a link is made");
        let mirror = HomeMirror::read(&home);
        // Later changes are not part of it.
        fs::write(home.join(".npmrc"), "changed").expect("a file is written");
        for path in [".rc", ".config/pip/more", ".local/lib/p/b"] {
            fs::write(home.join(path), "new").expect("a file is written");
        }
        let to = top.join("mirror");
        mirror
            .write(&to, &|path: &Path, content: &[u8]| (!path.ends_with("notes")).then(|| content.to_owned()))
            .expect("it is written");
        let kind = |path: &str| match fs::symlink_metadata(to.join(path)) {
            Ok(meta) if meta.is_symlink() => "link",
            Ok(meta) if meta.is_file() => "copy",
            Ok(_) => "folder",
            Err(_) => "none",
        };
        for (path, expected) in [
            (".npmrc", "copy"),
            (".config/pip/pip.conf", "copy"),
            (".cargo/.package-cache", "link"),
            (".large", "link"),
            (".ssh", "link"),
            (".local/lib/p", "folder"),
            (".local/lib/p/a", "copy"),
            ("notes", "none"),
            (".gone", "none"),
            (".rc", "none"),
            (".config/pip/more", "none"),
            (".local/lib/p/b", "none"),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
        assert_eq!(fs::read(to.join(".npmrc")).expect("it is there"), b".npmrc");
        let mode = fs::metadata(to.join(".npmrc")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others read nothing");
    }

    #[test]
    fn a_home_directory_that_is_not_there_has_an_empty_mirror() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let user = UserHome::at(Some(folder.path().join("none")));
        let to = folder.path().join("mirror");
        user.mirror().write(&to, &|_, content| Some(content.to_owned())).expect("it is written");
        assert_eq!(fs::read_dir(&to).expect("it is a folder").count(), 0);
    }
}
