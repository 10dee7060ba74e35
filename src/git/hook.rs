//! The person's own hooks, where a commit is made in the person's name.
//!
//! Everywhere else git runs without hooks. Here it runs as the person would run it, with the person's configuration and environment,
//! in the person's work tree; what is about to be committed stands in an index that is thrown away.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program::{self, Git};
use super::store::Store;
use super::temporary::Temporary;
use super::variables::REPOSITORY_VARIABLES;
use super::way;
use super::work_tree;
use crate::model::digest::Oid;

/// Looks at what is about to be committed, and may refuse it.
pub const PRE_COMMIT: &str = "pre-commit";
/// Writes into the message, and may refuse it.
pub const PREPARE_MESSAGE: &str = "prepare-commit-msg";
/// Looks at the message, may change and may refuse it.
pub const MESSAGE: &str = "commit-msg";
/// Hears of the commit.
pub const POST_COMMIT: &str = "post-commit";

const ALL: [&str; 4] = [PRE_COMMIT, PREPARE_MESSAGE, MESSAGE, POST_COMMIT];

/// The most bytes of what a hook prints that are repeated.
const MOST_SAID: u64 = 64 << 10;

/// The hooks of a work tree that commits are made with.
pub struct Hooks {
    store: Store,
    root: PathBuf,
    /// Whether git finds this repository from the top of the work tree by itself.
    found: bool,
    /// What of the work tree would be run, and what leads there, relative to its top.
    own: Vec<PathBuf>,
    /// What git says of hooks: another answer means others.
    said: Said,
    folder: Temporary,
}

impl Hooks {
    /// Looks for the hooks; none where there are none.
    pub fn find(store: &Store) -> Result<Option<Self>, Error> {
        let Some(root) = store.work_dir() else { return Ok(None) };
        let folder = Temporary::new().map_err(Error::Folder)?;
        let said = Said { folder: PathBuf::new(), commands: None };
        let mut hooks = Self { store: store.clone(), root, found: true, own: Vec::new(), said, folder };
        let real = |path: &Path| fs::canonicalize(path).ok();
        let at = hooks.answer(&["rev-parse", "--absolute-git-dir"])?;
        hooks.found = at.is_some_and(|at| real(&at) == real(&store.git_dir()));
        hooks.said = hooks.ask()?;
        let path = hooks.root.join(&hooks.said.folder);
        // Later versions of git have hooks in their configuration as well.
        if !ALL.iter().any(|name| runs(&path.join(name))) && hooks.said.commands.is_none() {
            return Ok(None);
        }
        let top = real(&hooks.root).unwrap_or_else(|| hooks.root.clone());
        let own = ways(&path);
        hooks.own = own.iter().filter_map(|path| path.strip_prefix(&top).ok().map(Path::to_owned)).collect();
        Ok(Some(hooks))
    }

    /// Asks git where hooks lie, and which its configuration names.
    fn ask(&self) -> Result<Said, Error> {
        let folder = self.answer(&["rev-parse", "--git-path", "hooks"])?.unwrap_or_default();
        Ok(Said { folder, commands: self.answer(&["config", "--get-regexp", r"^hook\."])? })
    }

    /// Returns whether a change of a path of the work tree changes what is run: a hook, the folder of hooks, and whatever leads there.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own) || own.starts_with(path))
    }

    /// Returns whether git would look for hooks where they were found: what is applied may be part of the configuration.
    pub fn are_same(&self) -> Result<bool, Error> {
        Ok(self.ask()? == self.said)
    }

    /// Shows the hooks a tree as what is about to be committed.
    pub fn show(&self, tree: Oid) -> Result<(), Error> {
        // What the person's index knows of the files is kept, so that nobody has to read them again.
        work_tree::copy_of_index(&self.store, self.folder.path()).map_err(Error::Folder)?;
        self.git().args(["read-tree", "--reset", &tree.to_string()]).run()?;
        self.git().args(["update-index", "--refresh"]).succeeds()?;
        Ok(())
    }

    /// Returns the tree that is about to be committed, as the hooks left it.
    pub fn shown(&self) -> Result<String, Error> {
        Ok(self.git().arg("write-tree").line()?)
    }

    fn git(&self) -> Git {
        let git = self.store.git().work_tree(&self.root).env("GIT_INDEX_FILE", self.index());
        git.config("core.splitIndex=false")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join(work_tree::COPY)
    }

    /// Runs a hook, if there is one, before the commit; returns what it printed.
    pub fn run(&self, name: &'static str, arguments: &[&OsStr]) -> Result<String, Error> {
        self.call(name, arguments, &self.index())
    }

    /// Runs a hook, if there is one, after the commit, with the person's own index.
    pub fn tell(&self, name: &'static str) -> Result<String, Error> {
        self.call(name, &[], &self.store.git_dir().join("index"))
    }

    fn call(&self, name: &'static str, arguments: &[&OsStr], index: &Path) -> Result<String, Error> {
        // A file and no pipe: what a hook leaves running in the background may hold on to it.
        let mut said = tempfile::tempfile().map_err(Error::Folder)?;
        let both = || said.try_clone().map(Stdio::from).map_err(Error::Folder);
        let mut command = self.command();
        command.args(["hook", "run", "--ignore-missing", name, "--"]).args(arguments);
        // Nobody is asked to edit anything; git says so like this.
        command.env("GIT_INDEX_FILE", index).env("GIT_EDITOR", ":");
        let status = command.stdin(Stdio::null()).stdout(both()?).stderr(both()?).status().map_err(Error::Spawn)?;
        let mut text = Vec::new();
        said.rewind().and_then(|()| said.take(MOST_SAID).read_to_end(&mut text)).map_err(Error::Folder)?;
        let text = String::from_utf8_lossy(&text).trim_end().to_owned();
        if status.success() { Ok(text) } else { Err(Error::Refused { name, code: status.code(), said: text }) }
    }

    /// Starts a call of git, as the user would make it, that runs these hooks and no others.
    pub(super) fn git_with_hooks(&self) -> Git {
        let git = if self.found { Git::found_from(&self.root) } else { self.store.git().work_tree(&self.root) };
        let mut setting = OsString::from("core.hooksPath=");
        setting.push(self.root.join(&self.said.folder));
        git.config(setting)
    }

    /// Asks the person's git; none where it has no answer.
    fn answer(&self, arguments: &[&str]) -> Result<Option<PathBuf>, Error> {
        let output = self.command().args(arguments).stdin(Stdio::null()).output().map_err(Error::Spawn)?;
        let line = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then(|| PathBuf::from(line)))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for variable in REPOSITORY_VARIABLES {
            command.env_remove(variable);
        }
        // A hook that looks at another repository must not be pointed at this one, unless nothing else leads there.
        if !self.found {
            command.env("GIT_DIR", self.store.git_dir()).env("GIT_WORK_TREE", &self.root);
        }
        command.current_dir(&self.root);
        command
    }
}

/// What git says of hooks.
#[derive(PartialEq, Eq)]
struct Said {
    /// Where they lie.
    folder: PathBuf,
    /// What the configuration says of them.
    commands: Option<PathBuf>,
}

/// Returns what would be run from a folder of hooks, with all that leads there; hooks that are not there yet as well.
fn ways(folder: &Path) -> Vec<PathBuf> {
    let mut own: Vec<PathBuf> = ALL.iter().flat_map(|name| way::places(&folder.join(name))).collect();
    // husky keeps in this folder what calls the scripts beside it.
    let is_husky = |path: &Path| path.ends_with("_");
    for path in [Some(folder.to_owned()), fs::canonicalize(folder).ok()].into_iter().flatten() {
        let beside = path.parent().filter(|_| is_husky(&path)).map(Path::to_owned);
        own.extend(way::places(&beside.unwrap_or(path)));
    }
    own
}

/// Returns whether git would run a file.
fn runs(file: &Path) -> bool {
    let Ok(meta) = fs::metadata(file) else { return false };
    #[cfg(unix)]
    return meta.is_file() && std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    meta.is_file()
}

/// Why a hook did not let something pass.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{name} ended{}: {said}", .code.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    Refused { name: &'static str, code: Option<i32>, said: String },
    #[error("the git program could not be run")]
    Spawn(#[source] io::Error),
    #[error("no temporary file could be made")]
    Folder(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] program::Error),
}
