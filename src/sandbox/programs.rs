//! Grants programs and tools, wherever they are installed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::access_map::{Access, AccessMap};
use super::policy::Surroundings;
use super::resolve::Led;
use super::secrets::{beside_programs, in_tool, is_secret};
use super::tools::{Place, TOOLS, split_paths};

/// The most programs of one folder whose links are followed.
pub(super) const MOST_PROGRAMS: usize = 2000;

/// Folders beside a program folder with its other files.
const BESIDE: [&str; 5] = ["lib", "lib64", "libexec", "share", "include"];

/// Entries that show that a folder is more than a program's: a home directory or a project.
const MORE_THAN_PROGRAMS: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".bashrc", ".profile", ".bash_history", ".git", ".env"];

/// Names of program folders whose other files are beside them.
const PROGRAMS: [&str; 5] = ["bin", "sbin", "shims", "libexec", "scripts"];

/// Folders in a home directory that many programs share: a variable that names one does not grant
/// it.
const SHARED: [&str; 6] = [".cache", ".config", ".local", ".local/share", ".local/state", ".var"];

/// Adds programs and tools to a map, and collects the secrets among them.
pub(super) struct Programs<'a> {
    pub(super) map: &'a mut AccessMap,
    pub(super) around: &'a Surroundings,
    /// Home directories, and other folders in which secrets have the same names.
    pub(super) homes: &'a mut Vec<PathBuf>,
    /// Paths that settings name: programs below them are granted with the secrets beside them.
    pub(super) configured: &'a [PathBuf],
    /// Secrets outside of home directories.
    pub(super) secrets: Vec<PathBuf>,
}

impl Programs<'_> {
    /// Adds all of them and returns the secrets among them.
    pub(super) fn add(mut self, home: Option<&Path>) -> Vec<PathBuf> {
        let tools = TOOLS.tools.iter().map(|place| (place, false));
        for (place, is_cache) in tools.chain(TOOLS.caches.iter().map(|place| (place, true))) {
            let usual = home.and_then(|home| self.add_usual(home, place));
            let by_variable = place.moved(|name| self.around.variable(name)).chain(self.around.moved(place.path));
            let moved: Vec<PathBuf> = by_variable.filter_map(|moved| self.add_moved(&moved, place)).collect();
            // Modes in a cache are the tool's choice.
            if !is_cache {
                usual.into_iter().chain(moved).for_each(|folder| self.keep_in(&folder));
            }
        }
        for folder in &self.around.path {
            if let Some(folder) = self.follow(folder) {
                self.add_programs(&folder);
            }
        }
        for path in TOOLS.finds.iter().flat_map(|name| split_paths(self.around.variable(name).unwrap_or_default())) {
            self.add_found(path);
        }
        for path in TOOLS.bundles.iter().flat_map(|name| split_paths(self.around.variable(name).unwrap_or_default())) {
            if let Some(folder) = self.add_named(path) {
                self.keep_in(&folder);
            }
        }
        self.secrets
    }

    /// Adds a tool at its usual place below a home directory.
    ///
    /// Follows a link there only to the same name or to a granted path: a worker of another
    /// repository may have made it. Returns the tool's path.
    fn add_usual(&mut self, home: &Path, place: &Place) -> Option<PathBuf> {
        let path = home.join(place.path);
        let real = self.follow(&path).filter(|real| real != home)?;
        let is_given = self.map.access(&real) != Access::Hidden;
        (is_given || real.starts_with(home) && has_name_of(&real, &path)).then(|| {
            self.map.set(&path, Access::Read);
            real
        })
    }

    /// Adds a tool at a variable's path. Its secrets have the same names there.
    fn add_moved(&mut self, path: &Path, place: &Place) -> Option<PathBuf> {
        let real = self.add_named(path)?;
        let below = TOOLS.secrets.iter().filter_map(|secret| Path::new(secret).strip_prefix(place.path).ok());
        self.secrets.extend(below.map(|below| path.join(below)));
        Some(real)
    }

    /// Adds a variable's path unless it is secret or contains more than tools. Returns its real
    /// path.
    fn add_named(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.real(path)?;
        if self.map.access(&real) == Access::Hidden {
            self.map.set(path, Access::Read);
        }
        Some(real)
    }

    /// Adds a variable's tool: its folder, or a program in it.
    fn add_found(&mut self, path: &Path) {
        let Some(real) = self.real(path) else { return };
        match real.parent() {
            Some(folder) if real.is_file() => self.add_programs(folder),
            _ => {
                self.add_named(path);
                self.keep_beside(&real, &real);
            }
        }
    }

    /// Adds a folder of `PATH`.
    fn add_programs(&mut self, folder: &Path) {
        if self.map.access(folder) != Access::Hidden {
            return;
        }
        if holds_more(folder, self.around, self.homes) {
            self.add_files(folder);
            return;
        }
        let whole = around_programs(folder, self.around, self.homes);
        // `~/.cargo` is in some home directory, and secrets have the same names everywhere.
        let above = whole.and_then(Path::parent).filter(|above| *above != Path::new("/"));
        for home in whole.into_iter().chain(above) {
            if !self.homes.iter().any(|known| known == home) {
                self.homes.push(home.to_owned());
            }
        }
        // A cloned tool is granted without the URL of its origin.
        self.keep(vec![folder.join(".git")]);
        let whole = whole.unwrap_or(folder);
        self.map.set(whole, Access::Read);
        if self.map.access(folder) == Access::Hidden {
            self.map.set(folder, Access::Read);
        }
        self.keep_beside(whole, folder);
        self.add_linked(folder);
    }

    /// Adds the targets of links in a program folder, each with its files.
    fn add_linked(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_PROGRAMS);
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links.map(|entry| entry.path()).collect::<Vec<_>>() {
            let walk = self.map.walk(&link);
            let Some(Led { real, is_there: true, planted: None }) = walk.end() else { continue };
            if !real.is_file() || is_secret(&real, self.homes) {
                continue;
            }
            if self.map.access(&real) != Access::Hidden {
                // Below bubblewrap only links in the map exist.
                if walk
                    .links()
                    .any(|(step, _)| step.parent().is_some_and(|parent| self.map.access(parent) == Access::Hidden))
                {
                    self.map.resolve(&link);
                }
                continue;
            }
            let steps = walk.links().map(|(step, _)| step).chain([&*real]);
            for step in steps.filter(|step| !is_secret(step, self.homes)).map(Path::to_owned).collect::<Vec<_>>() {
                self.add_around(&step);
            }
            if self.map.access(&real) == Access::Hidden {
                self.map.set(&link, Access::Read);
            }
        }
    }

    /// Adds the folder of a linked program: the one around its `bin`, or its Node.js packages.
    fn add_around(&mut self, program: &Path) {
        let Some(folder) = program.parent().filter(|folder| self.map.access(folder) == Access::Hidden) else { return };
        if around_programs(folder, self.around, self.homes).is_some() {
            self.add_programs(folder);
        }
        let Some(packages) = packages(program) else { return };
        let is_kept = is_secret(packages, self.homes) || holds_more(packages, self.around, self.homes);
        if self.map.access(packages) == Access::Hidden && !is_kept {
            self.map.set(packages, Access::Read);
            self.keep_beside(packages, packages);
        }
    }

    /// Adds the programs directly in a folder of `PATH` that contains more than programs, such as a
    /// home directory.
    fn add_files(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_PROGRAMS);
        for entry in
            entries.filter(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0))
        {
            if !TOOLS.is_secret_name(&entry.file_name()) {
                self.map.set(&entry.path(), Access::Read);
            }
        }
        self.add_linked(folder);
    }

    /// Collects the secrets beside programs, unless a setting grants a folder above them.
    fn keep_beside(&mut self, whole: &Path, programs: &Path) {
        let found = beside_programs(whole, programs, |path| self.is_apart(path));
        self.keep(found);
    }

    /// Collects the secrets in a tool's folder, unless a setting grants a folder above them.
    fn keep_in(&mut self, tool: &Path) {
        let found = in_tool(tool, |path| self.is_apart(path));
        self.keep(found);
    }

    fn keep(&mut self, found: Vec<PathBuf>) {
        let found = found.into_iter();
        self.secrets.extend(found.filter(|path| !self.configured.iter().any(|folder| path.starts_with(folder))));
    }

    /// Returns true for a folder that is not searched: a cache, whose modes are its tool's choice,
    /// and a folder that workers may write, who could flood it.
    fn is_apart(&self, folder: &Path) -> bool {
        let below = self.homes.iter().find_map(|home| folder.strip_prefix(home).ok());
        let is_cache = below.is_some_and(|below| TOOLS.caches.iter().any(|cache| below == Path::new(cache.path)));
        is_cache || self.around.worked.iter().any(|worked| worked == folder)
    }

    /// Resolves a path, or returns `None` if it does not exist or leads through a link that a
    /// worker may have made.
    fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        match self.map.walk(path).end()? {
            Led { real, is_there: true, planted: None } => Some(real),
            Led { .. } => None,
        }
    }

    /// Resolves a variable's path, or returns `None` if it does not exist, is secret, or is more
    /// than a tool: a home directory, a folder around one, or a folder that all programs share.
    fn real(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.follow(path)?;
        let is_kept = is_secret(&real, self.homes) || is_secret(path, self.homes);
        let is_shared = self.homes.iter().any(|home| SHARED.iter().any(|shared| real == home.join(shared)));
        let is_folder = real.components().count() > 2 && !is_shared && !holds_more(&real, self.around, self.homes);
        ((real.is_file() || is_folder) && !is_kept).then_some(real)
    }
}

/// Returns true if two paths end in the same name, ignoring a leading dot.
fn has_name_of(one: &Path, other: &Path) -> bool {
    bare_name(one) == bare_name(other)
}

fn bare_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.trim_start_matches('.').to_owned())
}

/// Returns true if a folder is or contains a home directory, a work tree, or a path that workers
/// must never reach.
fn holds_more(folder: &Path, around: &Surroundings, homes: &[PathBuf]) -> bool {
    let own = homes.iter().chain(&around.work_trees).chain(&around.git_dirs).chain(&around.never);
    own.into_iter().any(|other| other.starts_with(folder))
}

/// Returns the outermost `node_modules` around a file: its packages need each other.
fn packages(file: &Path) -> Option<&Path> {
    file.ancestors().filter(|above| above.ends_with("node_modules")).last()
}

/// Returns the folder around a program folder, or `None` if it contains more than the programs'
/// files.
fn around_programs<'a>(folder: &'a Path, around: &Surroundings, homes: &[PathBuf]) -> Option<&'a Path> {
    let name = folder.file_name()?.to_str()?;
    let whole = folder.parent().filter(|_| PROGRAMS.contains(&name))?;
    let holds_more = holds_more(whole, around, homes) || whole.ends_with(".local");
    let holds = |names: &[&str]| names.iter().any(|entry| fs::symlink_metadata(whole.join(entry)).is_ok());
    let is_hidden = whole.file_name().is_some_and(|own_name| own_name.as_encoded_bytes()[0] == b'.');
    let is_tool = whole.components().count() > 2 && !holds_more && !holds(&MORE_THAN_PROGRAMS);
    (is_tool && (is_hidden || holds(&BESIDE))).then_some(whole)
}
