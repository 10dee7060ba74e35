//! A repository with its own home, driven through the built binary and stock git with a cleared
//! environment.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::spawned;

/// A folder with a home and a repository in it, gone when dropped.
pub(crate) struct TestClone {
    folder: TempDir,
}

impl TestClone {
    /// Makes a repository with one commit of `main.txt`, which has the lines `one` to `five`.
    pub(crate) fn new() -> Self {
        let clone = Self { folder: crate::common::folder() };
        std::fs::create_dir(clone.home()).unwrap();
        // Items speak to the test through files beside the repository.
        let settings = "[user]\n\tname = Ada\n\temail = ada@example.com\n[handoff]\n\tsandbox = none\n";
        std::fs::write(clone.home().join(".gitconfig"), settings).unwrap();
        std::fs::create_dir(clone.root()).unwrap();
        clone.git(&["init", "--quiet", "--initial-branch=main"]);
        clone.write("main.txt", "one\ntwo\nthree\nfour\nfive\n");
        clone.git(&["add", "."]);
        clone.git(&["commit", "--quiet", "-m", "Start"]);
        clone
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.root().join(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = spawned(program.as_ref(), &std::env::var_os("PATH").unwrap());
        command.args(arguments).current_dir(folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// Runs stock git, which must succeed; returns what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.command("git", &self.root(), arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the built binary; returns exit code, stdout and stderr.
    pub(crate) fn handoff(&self, arguments: &[&str]) -> (i32, String, String) {
        self.handoff_in(&self.root(), arguments)
    }

    /// Runs the built binary in a folder.
    pub(crate) fn handoff_in(&self, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
        let mut command = self.command(env!("CARGO_BIN_EXE_git-handoff"), folder, arguments);
        let output = command.output().unwrap();
        super::answers::hold(&command, &output);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Starts the built binary and does not wait for it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(env!("CARGO_BIN_EXE_git-handoff"), &self.root(), arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs the built binary for its JSON answer.
    pub(crate) fn answer(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, stdout, stderr) = self.handoff(&[arguments, &["--json"]].concat());
        let value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{arguments:?}: {stdout}{stderr}"));
        (code, value)
    }

    /// Writes a plan of shell commands; an item with a `from` is given that item's patch and
    /// applies it first.
    pub(crate) fn plan(&self, id: &str, items: &[(&str, &str, Option<&str>)]) -> String {
        let item = |(item_id, script, from): &(&str, &str, Option<&str>)| match from {
            None => json!({ "id": item_id, "executor": "command", "inputs": { "command": script } }),
            Some(from) => json!({
                "id": item_id, "executor": "command", "inputs": { "command": script },
                "needs": { "patch": { "from": from, "select": { "kind": "patch" } } },
            }),
        };
        let plan = json!({ "id": id, "items": items.iter().map(item).collect::<Vec<_>>() });
        let path = self.folder.path().join(format!("{id}.json"));
        std::fs::write(&path, plan.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs such a plan until every item is done.
    pub(crate) fn done(&self, id: &str, items: &[(&str, &str, Option<&str>)]) {
        let (code, stdout, stderr) = self.handoff(&["run", &self.plan(id, items)]);
        assert_eq!(code, 0, "{stdout}{stderr}");
    }
}
