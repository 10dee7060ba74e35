//! What workers reach on this machine: what is the same for all of them is looked up once.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::map::{Access, Led, Map};
use super::named::is_led_away;
use super::places::{SECRETS, SETTINGS, SHARED_MEMORY, STARTED, SYSTEM, SYSTEM_FILES, SYSTEM_SECRETS, TOOLS};
use super::{Refused, Word, outside};
use crate::model::confinement::{Asked, Home};

/// So many programs of one folder are followed to where their links lead.
pub(super) const MOST_PROGRAMS: usize = 2000;

/// The file of the machine's users, and the least number of one that is a person.
const USERS: (&str, u32) = ("/etc/passwd", 1000);

/// What lies beside a folder of programs that has its other files there.
const BESIDE: [&str; 5] = ["lib", "lib64", "libexec", "share", "include"];

/// What lies in a folder that is more than some program's: somebody's home, or their work.
const MORE_THAN_PROGRAMS: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".bashrc", ".profile", ".bash_history", ".git", ".env"];

/// The names of folders of programs whose other files lie beside them.
const PROGRAMS: [&str; 5] = ["bin", "sbin", "shims", "libexec", "scripts"];

/// What has to be known of a machine and a repository to say what workers reach there.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home directory of who drives the run.
    pub home: Option<PathBuf>,
    /// The folders that programs are looked for in; absolute.
    pub path: Vec<PathBuf>,
    /// The folders of git's own files that belong to the repository.
    pub git_dirs: Vec<PathBuf>,
    /// The folders of objects, the repository's own and those that it borrows from.
    pub objects: Vec<PathBuf>,
    /// The work trees that belong to the repository.
    pub work_trees: Vec<PathBuf>,
    /// Programs that are started outside of the sandbox by their own paths.
    pub programs: Vec<PathBuf>,
    /// What no worker reaches, whatever it is said to: signing keys, sockets of agents, other workers' files.
    pub never: Vec<PathBuf>,
    /// What workers of any executor may write besides their attempts' own files.
    pub worked: Vec<PathBuf>,
}

/// What one executor's workers reach besides the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct More {
    /// How much is asked for.
    pub asked: Asked,
    /// Which home directory they have.
    pub home: Home,
    /// What they may read; absolute.
    pub readable: Vec<PathBuf>,
    /// What they may write; absolute.
    pub writable: Vec<PathBuf>,
    /// Files that the configured command lines name.
    pub named: Vec<PathBuf>,
}

impl More {
    /// Returns which setting gives a folder, which leads through no links.
    pub(super) fn giver(&self, folder: &Path) -> &'static str {
        let leads = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| real == folder);
        match self {
            _ if self.writable.iter().any(leads) => "writable",
            _ if self.readable.iter().any(leads) => "readable",
            _ if self.home == Home::Real => "home",
            _ => "PATH",
        }
    }
}

/// What an executor's workers reach, but for the files of the attempt itself.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Reach {
    pub(super) map: Map,
    /// What Landlock gives, looked up once.
    pub(super) given: Vec<(Word, Access)>,
    /// What lies at the same place below a private home directory, and where it is.
    pub(super) at_home: Vec<(PathBuf, PathBuf)>,
    /// The home directory of who drives the run.
    pub(super) home: Option<PathBuf>,
    /// What is hidden as a whole, and of which a part may be linked into worktrees: homes and work trees.
    pub(super) apart: Vec<PathBuf>,
    /// What is secret in home directories and was not asked for by its own name, whether it is there or not.
    pub(super) secrets: Vec<PathBuf>,
    /// Whether others may write somewhere in it, or it was given places that anybody may write.
    pub(super) shares: bool,
}

impl Reach {
    /// Says what an executor's workers reach; fails where they are to write what is not there, or what a worker may have put a link to.
    pub(super) fn of(around: &Surroundings, more: &More) -> Result<Self, Refused> {
        let mut map = Map::among(&around.worked);
        for place in SYSTEM {
            map.set(Path::new(place), Access::Read);
        }
        for file in SYSTEM_FILES {
            map.set(Path::new(file), Access::Read);
        }
        for secret in SYSTEM_SECRETS.map(Path::new).into_iter().filter(|secret| secret.exists()) {
            map.set(secret, Access::Hidden);
        }
        if rustix::process::geteuid().is_root() {
            for file in roots_own(Path::new(SETTINGS)) {
                map.set(&file, Access::Hidden);
            }
        }
        let home = around.home.as_deref().and_then(|home| fs::canonicalize(home).ok());
        let mut homes: Vec<PathBuf> = home.iter().cloned().chain(peoples_homes()).collect();
        // Also where they lie among programs.
        for own in homes.iter().chain(&around.work_trees) {
            if map.access(own) != Access::Hidden {
                map.set(own, Access::Hidden);
            }
        }
        if more.home == Home::Real
            && let Some(home) = &home
        {
            map.set(home, Access::Write);
            for tree in &around.work_trees {
                map.set(tree, Access::Read);
            }
        }
        if more.asked != Asked::Strict {
            tools(&mut map, around, home.as_deref(), &mut homes);
        }
        // What an agent would make on its first day need not be there yet.
        for path in &more.readable {
            by_no_planted_link(&mut map, path)?;
            map.set(path, Access::Read);
        }
        let give = |path: &PathBuf| -> Result<PathBuf, Refused> {
            by_no_planted_link(&mut map, path)?;
            Ok(map.give_whole(path).ok_or_else(|| Missing(path.clone()))?)
        };
        let writable = more.writable.iter().map(give).collect::<Result<Vec<PathBuf>, Refused>>()?;
        let own_home = home.as_ref();
        let mut secrets = Vec::new();
        for home in &homes {
            let called = around.home.as_deref().filter(|_| Some(home) == own_home);
            secrets.extend(secrets_of(&mut map, (home, called), more, &writable));
        }
        // By where it leads to as well: a link can be whoever's.
        for path in more.named.iter().filter(|path| !is_secret(path, &homes)) {
            let Some(Led { real, is_there: true, planted: None }) = map.resolve(path) else { continue };
            if !is_secret(&real, &homes)
                && map.access(&real) == Access::Hidden
                && !is_led_away(path, &real, &around.work_trees)
            {
                map.set(&real, Access::Read);
            }
        }
        for path in around.git_dirs.iter().chain(&around.never) {
            map.hide(path);
        }
        let is_own = |folder: &Path| around.git_dirs.iter().any(|git_dir| folder.starts_with(git_dir));
        for path in around.objects.iter().filter_map(|folder| fs::canonicalize(folder).ok()) {
            if is_own(&path) || holds_objects(&path) {
                map.set(&path, Access::Read);
            }
        }
        // Below the objects, too: a key is nobody's object.
        for path in &around.never {
            map.hide(path);
        }
        outside::keep(&mut map, around);
        let at_home = match (&home, more.home) {
            (Some(home), Home::Private) => at_home(&map, home),
            _ => Vec::new(),
        };
        let mut given = map.given();
        given.push((SHARED_MEMORY.into(), Access::Write));
        let given = given.into_iter().map(|(path, access)| (path.into(), access)).collect();
        let apart = homes.into_iter().chain(around.work_trees.iter().cloned()).collect();
        let is_given = !more.readable.is_empty() || !more.writable.is_empty() || more.home == Home::Real;
        let shares = is_given || around.worked.iter().any(|folder| reaches(&map, folder));
        Ok(Self { map, given, at_home, home, apart, secrets, shares })
    }
}

/// Returns whether anything in a folder is reached.
fn reaches(map: &Map, folder: &Path) -> bool {
    let mut below = map.places().filter(|(place, _)| place.starts_with(folder));
    map.access(folder) != Access::Hidden || below.any(|(_, access)| access != Access::Hidden)
}

/// Refuses a path that leads through a link which a worker may have put there: it would lead others to whatever that one likes.
fn by_no_planted_link(map: &mut Map, path: &Path) -> Result<(), Refused> {
    match map.resolve(path).and_then(|led| led.planted) {
        Some(link) => Err(Refused::Planted { path: path.to_owned(), link }),
        None => Ok(()),
    }
}

/// Whether a folder holds objects and nothing else: whoever may write a repository that ours borrows from can name any folder as one
/// that it borrows from.
fn holds_objects(folder: &Path) -> bool {
    let is_ours = |name: &OsStr| {
        let name = name.as_bytes();
        let is_objects = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        let is_passing = name.starts_with(b"tmp_") || name.starts_with(b"incoming-") || name.ends_with(b".lock");
        matches!(name, b"pack" | b"info") || is_objects || is_passing
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten().peekable();
    entries.peek().is_some() && entries.all(|entry| is_ours(&entry.file_name()))
}

/// Takes out what is secret in a home directory, and what runs at its owner's next login; what is asked for by its own name stays, and
/// what only a link leads to does not. `called` is what the configuration calls the directory, where that is another name. Returns
/// what is secret there, also where nothing gives it yet.
///
/// Whether they are there or not: they may come any time. Only where a worker may write by its owner's wish is nothing kept free
/// for a secret that is not there, because nothing new could be made beside it.
fn secrets_of(
    map: &mut Map,
    (home, called): (&Path, Option<&Path>),
    more: &More,
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let below = |path: &PathBuf| {
        [Some(home), called].iter().flatten().find_map(|home| path.strip_prefix(home).ok().map(Path::to_owned))
    };
    let asked: Vec<PathBuf> = more.readable.iter().chain(&more.writable).filter_map(below).collect();
    let mut places = |names: &[&str]| -> Vec<(PathBuf, bool)> {
        let unasked = names.iter().filter(|name| !asked.iter().any(|asked| asked == Path::new(name)));
        unasked.filter_map(|name| map.resolve(&home.join(name))).map(|led| (led.real, led.is_there)).collect()
    };
    let (secrets, started) = (places(&SECRETS), places(&STARTED));
    for (secret, is_there) in &secrets {
        let is_given = writable.iter().any(|folder| secret.starts_with(folder));
        if (*is_there || !is_given) && map.access(secret) != Access::Hidden {
            map.set(secret, Access::Hidden);
        }
    }
    for (started, is_there) in started {
        if map.access(&started) == Access::Write {
            map.set(&started, if is_there { Access::Read } else { Access::Hidden });
        }
    }
    secrets.into_iter().map(|(secret, _)| secret).collect()
}

/// Adds the folders of programs and tools.
fn tools(map: &mut Map, around: &Surroundings, home: Option<&Path>, homes: &mut Vec<PathBuf>) {
    for tool in TOOLS {
        // A link that leads out of the home is whoever's who may write there.
        if let Some(home) = home
            && let Ok(real) = fs::canonicalize(home.join(tool))
            && real != home
            && (real.starts_with(home) || map.access(&real) != Access::Hidden)
        {
            map.set(&home.join(tool), Access::Read);
        }
    }
    for folder in around.path.iter().filter_map(|folder| fs::canonicalize(folder).ok()) {
        if map.access(&folder) != Access::Hidden {
            continue;
        }
        let whole = around_programs(&folder, around, homes);
        // `~/.cargo` lies in a home directory, whosever it is; and secrets have their names wherever they lie.
        let above = whole.and_then(Path::parent).filter(|above| *above != Path::new("/"));
        for home in whole.into_iter().chain(above) {
            if !homes.iter().any(|known| known == home) {
                homes.push(home.to_owned());
            }
        }
        map.set(whole.unwrap_or(&folder), Access::Read);
        linked(map, &folder, homes);
    }
}

/// Returns the folder that a folder of programs is a part of; none where that holds more than the programs' own files.
fn around_programs<'a>(folder: &'a Path, around: &Surroundings, homes: &[PathBuf]) -> Option<&'a Path> {
    let name = folder.file_name()?.to_str()?;
    let whole = folder.parent().filter(|_| PROGRAMS.contains(&name))?;
    let own = homes.iter().chain(&around.work_trees).chain(&around.git_dirs).chain(&around.never);
    let holds_more = own.into_iter().any(|other| other.starts_with(whole)) || whole.ends_with(".local");
    let holds = |names: &[&str]| names.iter().any(|name| fs::symlink_metadata(whole.join(name)).is_ok());
    let is_hidden = whole.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let is_tool = whole.components().count() > 2 && !holds_more && !holds(&MORE_THAN_PROGRAMS);
    (is_tool && (is_hidden || holds(&BESIDE))).then_some(whole)
}

/// Adds the files that links in a folder of programs lead to, where nothing else does.
fn linked(map: &mut Map, folder: &Path, homes: &[PathBuf]) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_PROGRAMS);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
        if let Ok(real) = fs::canonicalize(entry.path())
            && real.is_file()
            && map.access(&real) == Access::Hidden
            && !is_secret(&real, homes)
        {
            map.set(&entry.path(), Access::Read);
        }
    }
}

/// Returns the files and folders below one that not everybody may read: what root could read there is nobody else's.
fn roots_own(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![folder.to_owned()];
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata().map(|meta| (meta.mode(), meta.file_type())) else { continue };
            match meta {
                (_, kind) if kind.is_symlink() => {}
                (mode, _) if mode & 0o004 == 0 => found.push(entry.path()),
                (_, kind) if kind.is_dir() => next.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Returns the home directories of the machine's people, and root's.
fn peoples_homes() -> Vec<PathBuf> {
    let (file, first) = USERS;
    let users = fs::read_to_string(file).unwrap_or_default();
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let number: u32 = fields.get(2)?.parse().ok()?;
        let home = Path::new(fields.get(5)?);
        // Daemons and nobody have folders that are no homes.
        let is_persons = number == 0 || (first..u32::from(u16::MAX) - 1).contains(&number);
        (is_persons && home.is_absolute() && home.parent().is_some()).then(|| fs::canonicalize(home).ok())?
    };
    users.lines().filter_map(home).collect()
}

fn is_secret(path: &Path, homes: &[PathBuf]) -> bool {
    let of_home = |home: &PathBuf| SECRETS.iter().any(|secret| path.starts_with(home.join(secret)));
    homes.iter().any(of_home) || SYSTEM_SECRETS.iter().any(|secret| path.starts_with(secret))
}

/// Returns what of a home directory may be reached, with its place below it.
fn at_home(map: &Map, home: &Path) -> Vec<(PathBuf, PathBuf)> {
    let reached = map.places().filter(|(_, access)| *access != Access::Hidden);
    let links = map.links().map(|(link, _)| link.to_owned()).filter(|link| {
        // A link of the home directory that leads to something that may be reached.
        fs::canonicalize(link).is_ok_and(|real| map.access(&real) != Access::Hidden)
    });
    let all = reached.map(|(place, _)| place.to_owned()).chain(links);
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in all {
        let Ok(below) = path.strip_prefix(home) else { continue };
        if below.as_os_str().is_empty() {
            continue;
        }
        found.push((below.to_owned(), path));
    }
    found.sort();
    // What lies below something that is linked as a whole is found through that.
    let tops: Vec<PathBuf> = found.iter().map(|(below, _)| below.clone()).collect();
    found.retain(|(below, _)| !tops.iter().any(|top| top != below && below.starts_with(top)));
    found
}

/// Returns the value of `PATH` as folders, without those that are relative to where a program runs.
pub fn folders(path: Option<&OsString>) -> Vec<PathBuf> {
    let parts = path.into_iter().flat_map(|path| path.as_bytes().split(|byte| *byte == b':'));
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part))).filter(|folder| folder.is_absolute()).collect()
}

/// Something that a worker is to write is not there.
#[derive(Debug, thiserror::Error)]
#[error("{} is to be writable for it and is not there; make it first", .0.display())]
pub struct Missing(PathBuf);

impl Missing {
    /// Where it would be.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
