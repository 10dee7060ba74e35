//! Programs and tools, wherever they lie on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::map::{Access, Led, Map};
use super::reach::Surroundings;
use super::secrets::{beside_programs, is_secret};
use super::tools::{Place, TOOLS, named};

/// So many programs of one folder are followed to where their links lead.
pub(super) const MOST_PROGRAMS: usize = 2000;

/// What lies beside a folder of programs that has its other files there.
const BESIDE: [&str; 5] = ["lib", "lib64", "libexec", "share", "include"];

/// What lies in a folder that is more than some program's: somebody's home, or their work.
const MORE_THAN_PROGRAMS: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".bashrc", ".profile", ".bash_history", ".git", ".env"];

/// The names of folders of programs whose other files lie beside them.
const PROGRAMS: [&str; 5] = ["bin", "sbin", "shims", "libexec", "scripts"];

/// Adds programs and tools to a map, and collects the secrets among them.
pub(super) struct Programs<'a> {
    pub(super) map: &'a mut Map,
    pub(super) around: &'a Surroundings,
    /// Home directories, and folders in which secrets have the same names.
    pub(super) homes: &'a mut Vec<PathBuf>,
    /// Paths that settings name: what lies below them is given with its secrets beside programs.
    pub(super) asked: &'a [PathBuf],
    /// Secrets that are no home's.
    pub(super) secrets: Vec<PathBuf>,
}

impl Programs<'_> {
    /// Adds all of them; returns the secrets among them.
    pub(super) fn add(mut self, home: Option<&Path>) -> Vec<PathBuf> {
        for place in TOOLS.tools.iter().chain(&TOOLS.caches) {
            if let Some(home) = home {
                self.add_usual(home, place);
            }
            let by_variable = place.moved(|name| self.around.variable(name));
            for moved in by_variable.chain(self.around.moved(place.path)) {
                self.add_moved(&moved, place);
            }
        }
        let folders = self.around.path.iter().filter_map(|folder| fs::canonicalize(folder).ok());
        for folder in folders.collect::<Vec<_>>() {
            self.add_programs(&folder);
        }
        for path in TOOLS.finds.iter().flat_map(|name| named(self.around.variable(name).unwrap_or_default())) {
            self.add_found(path);
        }
        for path in TOOLS.bundles.iter().flat_map(|name| named(self.around.variable(name).unwrap_or_default())) {
            self.add_named(path);
        }
        self.secrets
    }

    /// Adds a tool at its usual place below a home directory.
    fn add_usual(&mut self, home: &Path, place: &Place) {
        let path = home.join(place.path);
        // A link that leads out of the home is whoever's who may write there.
        if let Ok(real) = fs::canonicalize(&path)
            && real != home
            && (real.starts_with(home) || self.map.access(&real) != Access::Hidden)
        {
            self.map.set(&path, Access::Read);
        }
    }

    /// Adds a tool where a variable says that it lies. Its secrets lie there under the same names.
    fn add_moved(&mut self, path: &Path, place: &Place) {
        if self.add_named(path) {
            let below = TOOLS.secrets.iter().filter_map(|secret| Path::new(secret).strip_prefix(place.path).ok());
            self.secrets.extend(below.map(|below| path.join(below)));
        }
    }

    /// Adds what a variable names, unless it is secret or holds more than tools; returns true if it is there.
    fn add_named(&mut self, path: &Path) -> bool {
        let Some(real) = self.real(path) else { return false };
        if self.map.access(&real) == Access::Hidden {
            self.map.set(path, Access::Read);
        }
        true
    }

    /// Adds the tool that a variable names: its folder, or a program of it.
    fn add_found(&mut self, path: &Path) {
        let Some(real) = self.real(path) else { return };
        match real.parent() {
            Some(folder) if real.is_file() => self.add_programs(folder),
            _ if self.add_named(path) => self.keep_beside(&real, &real),
            _ => {}
        }
    }

    /// Adds a folder of `PATH`.
    fn add_programs(&mut self, folder: &Path) {
        if self.map.access(folder) != Access::Hidden {
            return;
        }
        let whole = around_programs(folder, self.around, self.homes);
        // `~/.cargo` lies in a home directory, whosever it is; and secrets have their names wherever they lie.
        let above = whole.and_then(Path::parent).filter(|above| *above != Path::new("/"));
        for home in whole.into_iter().chain(above) {
            if !self.homes.iter().any(|known| known == home) {
                self.homes.push(home.to_owned());
            }
        }
        let whole = whole.unwrap_or(folder);
        self.map.set(whole, Access::Read);
        if self.map.access(folder) == Access::Hidden {
            self.map.set(folder, Access::Read);
        }
        self.keep_beside(whole, folder);
        self.add_linked(folder);
    }

    /// Adds the programs elsewhere that links in a folder of programs lead to, each with the files that it needs there.
    fn add_linked(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_PROGRAMS);
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links.map(|entry| entry.path()).collect::<Vec<_>>() {
            let mut way = Map::among(&self.around.worked);
            let Some(Led { real, is_there: true, planted: None }) = way.resolve(&link) else { continue };
            if !real.is_file() || is_secret(&real, self.homes) {
                continue;
            }
            if self.map.access(&real) != Access::Hidden {
                // Below bubblewrap a link on the way is only there if the map knows it.
                let is_hidden = |folder: &Path| self.map.access(folder) == Access::Hidden;
                if way.links().any(|(step, _)| step.parent().is_some_and(is_hidden)) {
                    self.map.resolve(&link);
                }
                continue;
            }
            let steps = way.links().map(|(step, _)| step).chain([&*real]);
            for step in steps.filter(|step| !is_secret(step, self.homes)).map(Path::to_owned).collect::<Vec<_>>() {
                self.add_around(&step);
            }
            if self.map.access(&real) == Access::Hidden {
                self.map.set(&link, Access::Read);
            }
        }
    }

    /// Adds the folder that a linked program is a part of: that around its `bin`, or the packages of Node.js around it.
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

    /// Collects the secrets beside programs, unless a setting names a folder above them.
    fn keep_beside(&mut self, whole: &Path, programs: &Path) {
        let found = beside_programs(whole, programs).into_iter();
        self.secrets.extend(found.filter(|path| !self.asked.iter().any(|asked| path.starts_with(asked))));
    }

    /// Returns the path that a variable's path leads to; `None` where nothing is there, or where it is secret or more than a
    /// tool: a home directory, or a folder that has one in it.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(path).ok()?;
        let is_kept = is_secret(&real, self.homes) || is_secret(path, self.homes);
        let is_folder = real.components().count() > 2 && !holds_more(&real, self.around, self.homes);
        ((real.is_file() || is_folder) && !is_kept).then_some(real)
    }
}

/// Returns true if a folder is or has a home directory, a work tree, or something that no worker reaches.
fn holds_more(folder: &Path, around: &Surroundings, homes: &[PathBuf]) -> bool {
    let own = homes.iter().chain(&around.work_trees).chain(&around.git_dirs).chain(&around.never);
    own.into_iter().any(|other| other.starts_with(folder))
}

/// Returns the outermost `node_modules` that a file lies in: its packages need each other.
fn packages(file: &Path) -> Option<&Path> {
    file.ancestors().filter(|above| above.ends_with("node_modules")).last()
}

/// Returns the folder that a folder of programs is a part of; none where that holds more than the programs' own files.
fn around_programs<'a>(folder: &'a Path, around: &Surroundings, homes: &[PathBuf]) -> Option<&'a Path> {
    let name = folder.file_name()?.to_str()?;
    let whole = folder.parent().filter(|_| PROGRAMS.contains(&name))?;
    let holds_more = holds_more(whole, around, homes) || whole.ends_with(".local");
    let holds = |names: &[&str]| names.iter().any(|name| fs::symlink_metadata(whole.join(name)).is_ok());
    let is_hidden = whole.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let is_tool = whole.components().count() > 2 && !holds_more && !holds(&MORE_THAN_PROGRAMS);
    (is_tool && (is_hidden || holds(&BESIDE))).then_some(whole)
}
