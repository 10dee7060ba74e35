//! The outer layer: what bubblewrap is told.

use std::fs;
use std::path::{Path, PathBuf};

use super::Word;
use super::map::{Access, Map};
use super::places::{SETTINGS, SHARED_MEMORY};
use super::scratch::Over;
use super::seen::Seen;
use crate::model::confinement::Network;

/// Where this program lies inside.
pub(in crate::worker) const PROGRAM: &str = "/run/git-handoff";

/// Where the kernel shows the machine, and its control groups, each kind of which may be a mount of its own.
const KERNEL: &str = "/sys";

/// Folders that are there and empty, so that writing there fails as it does where one may not.
const EMPTY: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt"];

/// What the arguments say.
pub(super) struct Mounts<'a> {
    /// What may be done where.
    pub(super) map: &'a Map,
    /// What lies over what is the user's.
    pub(super) over: &'a Over,
    /// Home directories that are to be there although nothing of them may be reached.
    pub(super) homes: &'a [PathBuf],
    /// This program, to be run inside; none where nothing of ours is.
    pub(super) program: Option<&'a Path>,
    pub(super) network: Network,
    /// How many bytes of shared memory there may be; none where bubblewrap cannot bound it, or nobody does.
    pub(super) shared: Option<u64>,
    /// Whether Landlock keeps what is hidden from being read as well.
    pub(super) landlock: bool,
}

/// Returns the arguments up to the command, and what is to lie inside at the places that they name: bubblewrap looks each up again,
/// and follows links.
pub(super) fn arguments(mounts: &Mounts<'_>) -> (Vec<Word>, Vec<Seen>) {
    let mut say = Words(Vec::new());
    let mut held = Vec::new();
    for word in [
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ] {
        say.word(word);
    }
    if mounts.network != Network::Any {
        say.word("--unshare-net");
    }
    say.one("--proc", Path::new("/proc"));
    say.one("--dev", Path::new("/dev"));
    if let Some(most) = mounts.shared {
        say.word("--size");
        say.word(most.to_string());
        say.one("--tmpfs", Path::new(SHARED_MEMORY));
    }
    let mut closed: Vec<&Path> = Vec::new();
    let is_read_only = |place: &Path| place.parent().is_some_and(|above| mounts.map.access(above) == Access::Read);
    // Of all mounts bubblewrap reads after each that it makes, and here many may come with one.
    let (last, first): (Vec<_>, Vec<_>) = mounts.map.places().partition(|(place, _)| place.starts_with(KERNEL));
    for (place, access) in first.into_iter().chain(last) {
        if let Some(own) = mounts.over.places.get(place) {
            say.two("--bind", own, place);
            continue;
        }
        let is_device = place.starts_with("/dev") && !place.is_dir() && !place.is_file();
        if access != Access::Hidden && !is_device {
            // What went away meanwhile, or became a link, is missed by whoever needs it.
            let Ok(seen) = Seen::at(place) else { continue };
            held.push(seen);
        }
        match access {
            Access::Read | Access::Write if is_device => say.two("--dev-bind", place, place),
            Access::Read => say.two("--ro-bind-try", place, place),
            Access::Write => say.two("--bind", place, place),
            // Nothing can be put there, and what comes there later is left to the inner layer.
            Access::Hidden if fs::symlink_metadata(place).is_err() => {}
            // It can neither be read nor changed, nor does anybody listen there; each mount costs every worker's start.
            Access::Hidden
                if mounts.landlock
                    && is_read_only(place)
                    && !mounts.over.holds(place)
                    && (place.is_file() || place.starts_with(SETTINGS)) => {}
            Access::Hidden if place.is_dir() => {
                say.one("--tmpfs", place);
                closed.push(place);
            }
            // A device cannot be opened there.
            Access::Hidden => say.two("--ro-bind", Path::new("/dev/null"), place),
        }
    }
    let is_bare = |path: &Path| mounts.map.access(path) == Access::Hidden;
    for (link, target) in mounts.map.links() {
        // Where something is mounted, its own links are there.
        if link.parent().is_none_or(is_bare) {
            say.two("--symlink", target, link);
        }
    }
    let folders = EMPTY.iter().map(Path::new).chain(mounts.homes.iter().map(PathBuf::as_path));
    for folder in
        folders.filter(|folder| is_bare(folder) && fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()))
    {
        say.one("--dir", folder);
    }
    if let Some(program) = mounts.program {
        say.two("--ro-bind", program, Path::new(PROGRAM));
    }
    for place in closed {
        say.one("--remount-ro", place);
    }
    say.one("--remount-ro", Path::new("/"));
    // Where nothing is a worker's; the command has a folder of its own.
    say.one("--chdir", Path::new("/"));
    say.word("--");
    (say.0, held)
}

/// Returns the folder of the machine that would lie over the place of this program inside, if workers are given one: nothing could be
/// mounted there, or it would be made on the machine itself.
pub(super) fn laid_over(map: &Map) -> Option<PathBuf> {
    let given = Path::new(PROGRAM).ancestors().skip(1).filter(|folder| map.access(folder) != Access::Hidden);
    given.last().map(Path::to_owned)
}

struct Words(Vec<Word>);

impl Words {
    fn word(&mut self, word: impl Into<Word>) {
        self.0.push(word.into());
    }

    fn one(&mut self, option: &str, path: &Path) {
        self.word(option);
        self.word(path);
    }

    fn two(&mut self, option: &str, from: &Path, to: &Path) {
        self.one(option, from);
        self.word(to);
    }
}
