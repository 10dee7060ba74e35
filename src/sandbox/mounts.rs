//! Builds bubblewrap's arguments, the outer layer.

use std::fs;
use std::path::{Path, PathBuf};

use super::Word;
use super::access_map::{Access, AccessMap};
use super::control_groups::{self, Groups};
use super::default_paths::{SETTINGS, SHARED_MEMORY};
use super::mount_identity::MountIdentity;
use super::scratch::Over;
use crate::model::confinement::Network;

/// The path of this program inside.
pub(crate) const PROGRAM: &str = "/run/git-handoff";

/// The folder where the kernel shows the machine and its control groups, which may be separate
/// mounts.
const KERNEL: &str = "/sys";

/// Folders that exist and are empty, so that writing fails there with the usual error.
const EMPTY: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt"];

/// The settings for the arguments.
pub(super) struct Mounts<'a> {
    /// The access to each path.
    pub(super) map: &'a AccessMap,
    /// The attempt's folders that cover the user's.
    pub(super) over: &'a Over,
    /// Home directories that must exist, even if nothing in them is reachable.
    pub(super) homes: &'a [PathBuf],
    /// This program, if it runs inside.
    pub(super) program: Option<&'a Path>,
    pub(super) network: Network,
    /// The limit of shared memory in bytes, or `None` if bubblewrap cannot limit it or none is set.
    pub(super) shared: Option<u64>,
    /// True if Landlock also hides the hidden paths.
    pub(super) landlock: bool,
}

/// Returns the arguments before the command, and the files expected at the paths in them:
/// bubblewrap looks each up again and follows links.
pub(super) fn arguments(mounts: &Mounts<'_>) -> (Vec<Word>, Vec<MountIdentity>) {
    let mut say = Words(Vec::new());
    say.add_namespaces(mounts.network);
    say.add_kernel_files(mounts.shared);
    let (identities, closed) = say.add_places(mounts);
    say.add_links(mounts.map);
    say.add_empty_folders(mounts);
    if let Some(program) = mounts.program {
        say.two("--ro-bind", program, Path::new(PROGRAM));
    }
    for place in closed {
        say.one("--remount-ro", place);
    }
    say.one("--remount-ro", Path::new("/"));
    // A folder without workers' files; the command changes to its own folder.
    say.one("--chdir", Path::new("/"));
    say.word("--");
    (say.0, identities)
}

/// Returns the granted folder of the machine that would cover the place of this program inside: a
/// mount there would fail or create a file on the machine itself.
pub(super) fn laid_over(map: &AccessMap) -> Option<PathBuf> {
    let given = Path::new(PROGRAM).ancestors().skip(1).filter(|folder| map.access(folder) != Access::Hidden);
    given.last().map(Path::to_owned)
}

/// Returns a message if a writable path disappeared or became a link.
pub(super) fn describe_changed_path(map: &AccessMap) -> Option<String> {
    let written = map.places().filter(|(_, access)| *access == Access::Write).map(|(place, _)| place);
    let mut gone = written.filter_map(|place| MountIdentity::at(place).err().map(|error| (place, error)));
    gone.next().map(|(place, error)| format!("{} was replaced after the run started: {error}", place.display()))
}

/// Returns true if nothing is mounted at a place.
fn is_bare(map: &AccessMap, place: &Path) -> bool {
    map.access(place) == Access::Hidden
}

struct Words(Vec<Word>);

impl Words {
    fn add_namespaces(&mut self, network: Network) {
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
            self.word(word);
        }
        if network != Network::Any {
            self.word("--unshare-net");
        }
    }

    fn add_kernel_files(&mut self, shared: Option<u64>) {
        self.one("--proc", Path::new("/proc"));
        self.one("--dev", Path::new("/dev"));
        if let Some(most) = shared {
            self.word("--size");
            self.word(most.to_string());
            self.one("--tmpfs", Path::new(SHARED_MEMORY));
        }
    }

    /// Adds the places of the map. Returns the files expected there, and the empty folders over
    /// hidden ones.
    fn add_places<'m>(&mut self, mounts: &Mounts<'m>) -> (Vec<MountIdentity>, Vec<&'m Path>) {
        let mut identities = Vec::new();
        let mut closed: Vec<&'m Path> = Vec::new();
        // After each mount bubblewrap reads the list of all mounts, and a recursive one here can
        // add many.
        let (last, first): (Vec<_>, Vec<_>) = mounts.map.places().partition(|(place, _)| place.starts_with(KERNEL));
        for (place, access) in first.into_iter().chain(last) {
            if let Some(own) = mounts.over.places.get(place) {
                self.two("--bind", own, place);
                continue;
            }
            if place == Path::new(control_groups::FOLDER)
                && access == Access::Read
                && let Some(groups) = Groups::own()
            {
                self.add_groups(place, &groups);
                closed.push(place);
                continue;
            }
            let is_device = place.starts_with("/dev") && !place.is_dir() && !place.is_file();
            if access != Access::Hidden && !is_device {
                // A path that disappeared or became a link is simply missing inside.
                let Ok(identity) = MountIdentity::at(place) else { continue };
                identities.push(identity);
            }
            match access {
                Access::Read | Access::Write if is_device => self.two("--dev-bind", place, place),
                Access::Read => self.two("--ro-bind-try", place, place),
                Access::Write => self.two("--bind", place, place),
                // Nothing can be created there; the inner layer hides files that appear later.
                Access::Hidden if fs::symlink_metadata(place).is_err() => {}
                // It can be neither read nor changed and is no socket; each mount slows every
                // start.
                Access::Hidden
                    if mounts.landlock
                        && place.parent().is_some_and(|above| mounts.map.access(above) == Access::Read)
                        && !mounts.over.holds(place)
                        && (place.is_file() || place.starts_with(SETTINGS)) => {}
                Access::Hidden if place.is_dir() => {
                    self.one("--tmpfs", place);
                    closed.push(place);
                }
                // Devices cannot be opened there.
                Access::Hidden => self.two("--ro-bind", Path::new("/dev/null"), place),
            }
        }
        (identities, closed)
    }

    /// Adds a folder with the worker's own control groups alone.
    fn add_groups(&mut self, folder: &Path, groups: &Groups) {
        self.one("--tmpfs", folder);
        for (group, place) in &groups.mounts {
            self.two("--ro-bind-try", group, place);
        }
        for (link, target) in &groups.links {
            self.two("--symlink", target, link);
        }
    }

    fn add_links(&mut self, map: &AccessMap) {
        for (link, target) in map.links() {
            // A mount shows its own links.
            if link.parent().is_none_or(|folder| is_bare(map, folder)) {
                self.two("--symlink", target, link);
            }
        }
    }

    fn add_empty_folders(&mut self, mounts: &Mounts<'_>) {
        let folders = EMPTY.iter().map(Path::new).chain(mounts.homes.iter().map(PathBuf::as_path));
        for folder in folders.filter(|folder| {
            is_bare(mounts.map, folder) && fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir())
        }) {
            self.one("--dir", folder);
        }
    }

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
