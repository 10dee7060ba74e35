//! Finds the command that installs a repository's dependencies into its work tree.

use std::path::Path;

use crate::git::protectable::committed;
use crate::git::store::Store;

/// Folders of dependencies in a work tree, each with a committed file that pins them and the
/// command that installs exactly these.
const KNOWN: [(&str, &str, &str); 10] = [
    ("node_modules", "package-lock.json", "npm ci"),
    ("node_modules", "npm-shrinkwrap.json", "npm ci"),
    ("node_modules", "pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ("node_modules", "yarn.lock", "yarn install --frozen-lockfile"),
    ("node_modules", "bun.lock", "bun install --frozen-lockfile"),
    ("node_modules", "bun.lockb", "bun install --frozen-lockfile"),
    (".venv", "uv.lock", "uv sync --frozen"),
    (".venv", "pdm.lock", "pdm sync"),
    (".venv", "requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
    ("vendor", "composer.lock", "composer install --no-interaction"),
];

/// A file that other ways to install use, too. It is a sign only if the folder exists.
const SHARED: &str = "requirements.txt";

/// The settings of versions of Yarn that may install without a folder.
const YARN: (&str, &str) = ("yarn.lock", ".yarnrc.yml");

/// A folder of dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// Its name in the work tree.
    pub(super) folder: &'static str,
    /// The command that installs it.
    pub(super) setup: &'static str,
}

/// Returns the dependencies of a repository, or `None` if none are known, if several managers may
/// install them, or if the folder is committed.
pub(super) fn find(store: &Store) -> Option<Dependencies> {
    let mut found = KNOWN.iter().filter(|(folder, file, _)| {
        let is_sign = (*file != SHARED || store.work_dir().is_some_and(|top| top.join(folder).is_dir()))
            && (*file != YARN.0 || !is_committed(YARN.1, store));
        is_sign && is_committed(file, store)
    });
    let (folder, _, setup) = *found.next()?;
    let is_plain = found.all(|(other, _, line)| *other == folder && *line == setup);
    (is_plain && committed(store, folder).is_empty()).then_some(Dependencies { folder, setup })
}

fn is_committed(file: &str, store: &Store) -> bool {
    committed(store, file).iter().any(|path| path == file.as_bytes())
}

impl Dependencies {
    /// Returns true if one of these paths is the folder or lies around it.
    pub(super) fn are_in<P: AsRef<Path>>(&self, paths: &[P]) -> bool {
        paths.iter().any(|path| Path::new(self.folder).starts_with(path.as_ref()))
    }
}
