//! Runs the user's hooks for commits made in the user's name.
//!
//! All other calls of git run without hooks. These run in the user's work tree with the user's
//! configuration and environment; the content to commit is in a temporary index.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::file_facts::is_executable;
use super::program::{self, Git};
use super::store::Store;
use super::symlink_path;
use super::temporary::Temporary;
use super::trace;
use super::variables::REPOSITORY_VARIABLES;
use super::work_tree;
use crate::model::digest::Oid;

/// Checks the content to commit and may refuse it.
pub const PRE_COMMIT: &str = "pre-commit";
/// Edits the message and may refuse it.
pub const PREPARE_MESSAGE: &str = "prepare-commit-msg";
/// Checks the message, may change it and may refuse it.
pub const MESSAGE: &str = "commit-msg";
/// Runs after the commit.
pub const POST_COMMIT: &str = "post-commit";

const ALL: [&str; 4] = [PRE_COMMIT, PREPARE_MESSAGE, MESSAGE, POST_COMMIT];

/// The most bytes of a hook's output that are repeated.
const MOST_SAID: u64 = 64 << 10;

/// The commit hooks of a work tree.
pub struct Hooks {
    store: Store,
    root: PathBuf,
    /// True if git discovers this repository from the top of the work tree.
    found: bool,
    /// Paths in the work tree that are run as hooks or lead to them, relative to its top.
    own: Vec<PathBuf>,
    /// git's answers about hooks; a different answer means different hooks.
    settings: Said,
    folder: Temporary,
}

impl Hooks {
    /// Finds the hooks, or returns `None`.
    pub fn find(store: &Store) -> Result<Option<Self>, Error> {
        let Some(root) = store.work_dir() else { return Ok(None) };
        let folder = Temporary::new().map_err(Error::Folder)?;
        let settings = Said { folder: PathBuf::new(), commands: None };
        let mut hooks = Self { store: store.clone(), root, found: true, own: Vec::new(), settings, folder };
        let at = hooks.answer(&["rev-parse", "--absolute-git-dir"])?;
        hooks.found = at.is_some_and(|at| canonical(&at) == canonical(&store.git_dir()));
        hooks.settings = hooks.ask()?;
        let path = hooks.root.join(&hooks.settings.folder);
        // Newer versions of git also define hooks in the configuration.
        if !ALL.iter().any(|name| is_executable(&path.join(name))) && hooks.settings.commands.is_none() {
            return Ok(None);
        }
        let top = canonical(&hooks.root).unwrap_or_else(|| hooks.root.clone());
        let own = ways(&path);
        hooks.own = own.iter().filter_map(|file| file.strip_prefix(&top).ok().map(Path::to_owned)).collect();
        Ok(Some(hooks))
    }

    /// Asks git for the folder of hooks and for hooks in the configuration.
    fn ask(&self) -> Result<Said, Error> {
        let folder = self.answer(&["rev-parse", "--git-path", "hooks"])?.unwrap_or_default();
        Ok(Said { folder, commands: self.answer(&["config", "--get-regexp", r"^hook\."])? })
    }

    /// Returns true if changing this path of the work tree changes which hooks run: a hook, the
    /// folder of hooks, or a path that leads there.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own) || own.starts_with(path))
    }

    /// Returns true if git still finds the same hooks: applied changes may include configuration.
    pub fn are_same(&self) -> Result<bool, Error> {
        Ok(self.ask()? == self.settings)
    }

    /// Fills the temporary index with a tree, for the hooks to check.
    pub fn show(&self, tree: Oid) -> Result<(), Error> {
        // Starts from the user's index, so that files need not be read again.
        work_tree::copy_of_index(&self.store, self.folder.path()).map_err(Error::Folder)?;
        self.git().args(["read-tree", "--reset", &tree.to_string()]).run()?;
        self.git().args(["update-index", "--refresh"]).succeeds()?;
        Ok(())
    }

    /// Returns the tree to commit, as the hooks left it.
    pub fn written_tree(&self) -> Result<String, Error> {
        Ok(self.git().arg("write-tree").line()?)
    }

    fn git(&self) -> Git {
        let git = self.store.git().work_tree(&self.root).env("GIT_INDEX_FILE", self.index());
        git.config("core.splitIndex=false")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join(work_tree::COPY)
    }

    /// Runs a hook before the commit, if it exists, and returns its output.
    pub fn run(&self, name: &'static str, arguments: &[&OsStr]) -> Result<String, Error> {
        self.call(name, arguments, &self.index())
    }

    /// Runs a hook after the commit, if it exists, with the user's own index.
    pub fn tell(&self, name: &'static str) -> Result<String, Error> {
        self.call(name, &[], &self.store.git_dir().join("index"))
    }

    fn call(&self, name: &'static str, arguments: &[&OsStr], index: &Path) -> Result<String, Error> {
        // A file instead of a pipe: background processes of a hook may keep it open.
        let mut output = tempfile::tempfile().map_err(Error::Folder)?;
        let both = || output.try_clone().map(Stdio::from).map_err(Error::Folder);
        let mut command = self.command();
        command.args(["hook", "run", "--ignore-missing", name, "--"]).args(arguments);
        // As git does when no editor is opened.
        command.env("GIT_INDEX_FILE", index).env("GIT_EDITOR", ":");
        let traced = trace::Started::with(command.get_args());
        let status = command.stdin(Stdio::null()).stdout(both()?).stderr(both()?).status().map_err(Error::Spawn)?;
        traced.inspect(|traced| traced.ended(status));
        let mut text = Vec::new();
        output.rewind().and_then(|()| output.take(MOST_SAID).read_to_end(&mut text)).map_err(Error::Folder)?;
        let text = String::from_utf8_lossy(&text).trim_end().to_owned();
        if status.success() { Ok(text) } else { Err(Error::Refused { name, code: status.code(), output: text }) }
    }

    /// Returns a git command as the user would run it, with these hooks and no others.
    pub(super) fn git_with_hooks(&self) -> Git {
        // Hooks of the user may work in bare repositories.
        let mut git = Git::found_from(&self.root);
        if !self.found {
            git = git.env("GIT_DIR", self.store.git_dir()).work_tree(&self.root);
        }
        let mut setting = OsString::from("core.hooksPath=");
        setting.push(self.root.join(&self.settings.folder));
        git.config(setting)
    }

    /// Asks git with the user's configuration. Returns `None` if there is no answer.
    fn answer(&self, arguments: &[&str]) -> Result<Option<PathBuf>, Error> {
        let traced = trace::Started::with(arguments.iter().map(OsStr::new));
        let output = self.command().args(arguments).stdin(Stdio::null()).output().map_err(Error::Spawn)?;
        traced.inspect(|traced| traced.ended(output.status));
        let line = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then(|| PathBuf::from(line)))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for variable in REPOSITORY_VARIABLES {
            command.env_remove(variable);
        }
        // A hook that visits another repository must not be pointed back here, unless discovery
        // does not find this repository.
        if !self.found {
            command.env("GIT_DIR", self.store.git_dir()).env("GIT_WORK_TREE", &self.root);
        }
        command.current_dir(&self.root);
        command
    }
}

fn canonical(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// git's answers about hooks.
#[derive(PartialEq, Eq)]
struct Said {
    /// The folder of hooks.
    folder: PathBuf,
    /// The hooks that the configuration defines.
    commands: Option<PathBuf>,
}

/// Returns the paths that would be run from a folder of hooks and those that lead there, including
/// hooks that do not exist yet.
fn ways(folder: &Path) -> Vec<PathBuf> {
    let mut own: Vec<PathBuf> = ALL.iter().flat_map(|name| symlink_path::places(&folder.join(name))).collect();
    // husky puts scripts in this folder that call those beside it.
    for path in [Some(folder.to_owned()), fs::canonicalize(folder).ok()].into_iter().flatten() {
        let parent = path.parent().filter(|_| path.ends_with("_")).map(Path::to_owned);
        own.extend(symlink_path::places(&parent.unwrap_or(path)));
    }
    own
}

errors! {
    /// Why a hook failed or refused.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Refused { name: &'static str, code: Option<i32>, output: String }:
        "{name} ended{}: {output}" [.code.map(|code| format!(" with exit code {code}")).unwrap_or_default()];
    Spawn(#[source] io::Error): "cannot run git";
    Folder(#[source] io::Error): "cannot create a temporary file";
    #[from] Git(program::Error);
}
