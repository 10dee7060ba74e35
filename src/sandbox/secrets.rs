//! Finds private files, wherever they are.

use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;

use super::access_map::{Access, AccessMap};
use super::default_paths::SYSTEM_SECRETS;
use super::policy::{More, Surroundings};
use super::tools::TOOLS;

/// The file of the machine's users, and the lowest user id of a person.
const USERS: (&str, u32) = ("/etc/passwd", 1000);

/// The most entries to check below one folder, the upper ones first, so that a large tree does not
/// delay a driver.
pub(super) const MOST_LOOKED: usize = 5_000;

/// The bit of a mode that lets others read a file.
pub(super) const OTHERS: u32 = 0o004;

/// The depth below a program folder to which names make files secret.
const NAMED_DEPTH: usize = 3;

/// A folder beside programs in which applications keep passwords. Tools have no folder of this
/// name.
const CONFIGURATION: &str = "config";

/// The bytes of a PEM file searched for a private key.
const PEM_LOOKED: u64 = 64 << 10;

/// Hides the secrets in a home directory and the files that run at the next login. Keeps paths that
/// a setting names, but not targets of links. `around` is given for the home directory of the run's
/// user: settings may spell it differently, and XDG variables move parts of it. Returns the secrets
/// there, granted or not.
///
/// Includes secrets that do not exist yet, except where the owner lets workers write: reserving a
/// name there would block new files beside it.
pub(super) fn secrets_of(
    map: &mut AccessMap,
    home: &Path,
    around: Option<&Surroundings>,
    more: &More,
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let called = around.and_then(|around| around.home.as_deref());
    let configured: Vec<PathBuf> = more
        .readable
        .iter()
        .chain(&more.writable)
        .filter_map(|path| {
            let mut homes = [Some(home), called].into_iter().flatten();
            let below = homes.find_map(|candidate| path.strip_prefix(candidate).ok().map(Path::to_owned));
            around.and_then(|around| around.usual(path)).or(below)
        })
        .collect();
    let mut places = |names: &[&str]| -> Vec<(PathBuf, bool)> {
        let unasked = names.iter().filter(|name| !configured.iter().any(|configured| configured == Path::new(name)));
        let all = unasked
            .flat_map(|name| std::iter::once(home.join(name)).chain(around.and_then(|around| around.moved(name))));
        all.filter_map(|path| map.resolve(&path)).map(|led| (led.real, led.is_there)).collect()
    };
    let (secrets, started) = (places(&TOOLS.secrets), places(&TOOLS.started));
    for (secret, is_there) in &secrets {
        let is_given = writable.iter().any(|folder| secret.starts_with(folder));
        if (*is_there || !is_given) && map.access(secret) != Access::Hidden {
            map.set(secret, Access::Hidden);
        }
    }
    for (start, is_there) in started {
        if map.access(&start) == Access::Write {
            map.set(&start, if is_there { Access::Read } else { Access::Hidden });
        }
    }
    secrets.into_iter().map(|(secret, _)| secret).collect()
}

/// Returns the entries below a folder whose modes lack all of `bits`: private ones, which root, or
/// their owner, can read. Does not search folders in `excluded`.
pub(super) fn kept_by_mode(top: &Path, bits: u32, most: usize, excluded: &[PathBuf]) -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    search(
        top,
        most,
        |_: &Path, meta: &Metadata| {
            bits != 0 && meta.mode() & bits == 0 && (user.is_root() || meta.uid() == user.as_raw())
        },
        |path| excluded.iter().any(|folder| folder == path),
    )
}

/// Returns the mode bit that a private file lacks. The umask removes bits from every file: uses the
/// bit for others, otherwise the group's, or 0 if the umask removes both and modes mean nothing.
pub(super) fn bit_for_others(umask: u32) -> u32 {
    [OTHERS, 0o040].into_iter().find(|bit| umask & bit == 0).unwrap_or(0)
}

/// Returns the umask of this process.
pub(super) fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    umask.unwrap_or(0)
}

/// Returns the secrets beside programs: by name, or by a mode stricter than that of `programs`.
/// Does not search folders that `is_excluded` selects.
pub(super) fn beside_programs(whole: &Path, programs: &Path, is_excluded: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let is_open = is_open(programs);
    let above = whole.components().count();
    search(
        whole,
        MOST_LOOKED,
        |path: &Path, meta: &Metadata| {
            let depth = path.components().count() - above;
            let is_application = depth == 1 && meta.is_dir() && path.ends_with(CONFIGURATION);
            is_open && meta.mode() & OTHERS == 0
                || depth <= NAMED_DEPTH && (is_application || is_named_secret(path, meta))
        },
        is_excluded,
    )
}

/// Returns the secrets in a tool's folder: by name, and files that others may not read although
/// they may read the folder. Searches [`NAMED_DEPTH`] levels, without folders that
/// `is_excluded` selects.
pub(super) fn in_tool(tool: &Path, is_excluded: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let is_open = is_open(tool);
    let above = tool.components().count();
    // Tools leave empty private lock files.
    search(
        tool,
        MOST_LOOKED,
        |path: &Path, meta: &Metadata| {
            (is_open && meta.is_file() && meta.len() > 0 && meta.mode() & OTHERS == 0) || is_named_secret(path, meta)
        },
        |path| (path.components().count() - above >= NAMED_DEPTH) || is_excluded(path),
    )
}

/// Returns true if others may read a folder.
fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|meta| meta.mode() & OTHERS != 0)
}

/// Returns true if a file has a secret's name or is a PEM file that starts with a private key.
fn is_named_secret(path: &Path, meta: &Metadata) -> bool {
    let Some(name) = path.file_name() else { return false };
    let is_pem = meta.is_file() && path.extension().is_some_and(|extension| extension == "pem");
    TOOLS.is_secret_name(name) || is_pem && has_private_key(path)
}

fn has_private_key(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(PEM_LOOKED).read_to_end(&mut start));
    read.is_ok() && start.find(b"PRIVATE KEY-----").is_some()
}

/// Searches at most `most` entries below a folder, breadth first. Skips the contents of found
/// folders and folders that `is_excluded` selects.
pub(super) fn search(
    top: &Path,
    most: usize,
    mut is_found: impl FnMut(&Path, &Metadata) -> bool,
    is_excluded: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = VecDeque::from([top.to_owned()]);
    let mut looked = 0;
    while let Some(folder) = next.pop_front().filter(|_| looked < most) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            looked += 1;
            // The folder's list often tells links apart without another call.
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            if meta.is_symlink() {
            } else if is_found(&path, &meta) {
                found.push(path);
            } else if meta.is_dir() && !is_excluded(&path) {
                next.push_back(path);
            }
        }
    }
    found
}

/// Returns the home directories of people and of root.
pub(super) fn peoples_homes() -> Vec<PathBuf> {
    let (file, first) = USERS;
    let users = fs::read_to_string(file).unwrap_or_default();
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let number: u32 = fields.get(2)?.parse().ok()?;
        let home = Path::new(fields.get(5)?);
        // The folders of daemons are not homes.
        let is_persons = number == 0 || (first..u32::from(u16::MAX) - 1).contains(&number);
        (is_persons && home.is_absolute() && home.parent().is_some()).then(|| fs::canonicalize(home).ok())?
    };
    users.lines().filter_map(home).collect()
}

pub(super) fn is_secret(path: &Path, homes: &[PathBuf]) -> bool {
    let mut below = homes.iter().filter_map(|home| path.strip_prefix(home).ok());
    below.any(|below| TOOLS.secrets.iter().any(|secret| below.starts_with(secret)))
        || SYSTEM_SECRETS.iter().any(|secret| path.starts_with(secret))
}
