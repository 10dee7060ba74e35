//! A repository in a temporary folder, and a git with an environment of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::worktree::capture::{Captured, Error, capture};
use git_handoff::worktree::host::Host;
use git_handoff::worktree::workspace::Workspace;

use crate::common::spawned;

pub(super) const FORMATS: [&str; 2] = ["sha1", "sha256"];

/// A repository with a base commit, and a place for attempts beside it.
pub(super) struct Repo {
    pub(super) dir: tempfile::TempDir,
    pub(super) path: PathBuf,
}

impl Repo {
    /// An empty repository.
    pub(super) fn empty(format: &str) -> Self {
        let dir = crate::common::folder();
        let path = fs::canonicalize(dir.path()).unwrap().join("repo");
        fs::create_dir_all(dir.path().join("home")).unwrap();
        let repo = Self { dir, path };
        repo.git_in(repo.dir.path(), &["init", "-q", "-b", "main", "--object-format", format, "repo"]);
        repo.git(&["config", "user.name", "Tester"]);
        repo.git(&["config", "user.email", "tester@example.com"]);
        repo
    }

    /// A repository with a few files of each kind, committed.
    pub(super) fn new(format: &str) -> Self {
        let repo = Self::empty(format);
        repo.write("a.txt", "one\ntwo\nthree\n");
        repo.write("dir/b.txt", "b\n");
        repo.write("dir/deep/c.bin", b"\0\xff\n\r\n\0");
        repo.write("crlf.txt", "x\r\ny\r\n");
        repo.write("empty", "");
        repo.write("run.sh", "#!/bin/sh\n");
        repo.write(".gitignore", "*.log\n/target/\n");
        repo.write(".gitattributes", "*.win text eol=crlf\n");
        repo.write("some.win", "w\r\n");
        repo.git(&["add", "-A"]);
        repo.git(&["update-index", "--chmod=+x", "run.sh"]);
        std::os::unix::fs::symlink("a.txt", repo.path.join("link")).unwrap();
        repo.git(&["add", "-A", "."]);
        repo.git(&["update-index", "--chmod=+x", "run.sh"]);
        repo.git(&["commit", "-qm", "base"]);
        repo
    }

    pub(super) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        write(&self.path.join(path), bytes);
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.path, args)
    }

    /// Runs stock git and returns what it prints.
    pub(super) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.try_git(dir, args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(super) fn try_git(&self, dir: &Path, args: &[impl AsRef<OsStr>]) -> Output {
        let path = std::env::var_os("PATH").unwrap();
        let mut command = spawned("git".as_ref(), &path);
        command.args(["-c", "maintenance.auto=false"]).args(args).current_dir(dir).env_clear();
        command.env("HOME", self.dir.path().join("home"));
        command.env("PATH", path).env("GIT_CONFIG_NOSYSTEM", "1");
        command.output().unwrap()
    }

    pub(super) fn head(&self) -> Oid {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(super) fn host(&self) -> Host {
        let mut host = Host::new(Store::discover(&self.path).unwrap(), self.dir.path().join("cache")).reusing(true);
        host.settings.user = Some(("Worker \"W\" X".into(), "w@example.com".into()));
        host
    }

    pub(super) fn workspace(&self, host: &Host) -> Workspace {
        let workspace = Workspace::create(host, &run(), &item("edit/a"), 1, self.head()).unwrap();
        workspace.mark_started().unwrap();
        workspace
    }

    /// Commits what is there.
    pub(super) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "more"]);
    }

    /// Runs a shell script as a worker would, without our machinery.
    pub(super) fn script(&self, workspace: &Workspace, script: &str) {
        let path = std::env::var_os("PATH").unwrap();
        let mut command = spawned("sh".as_ref(), &path);
        command.arg("-euc").arg(script).current_dir(workspace.tree()).env_clear();
        command.env("HOME", self.dir.path().join("home")).env("PATH", path);
        command.env("CANARY", self.canary()).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A file that only an attack that worked creates.
    pub(super) fn canary(&self) -> PathBuf {
        self.dir.path().join("canary")
    }

    /// Runs a script in a fresh worktree and captures it.
    pub(super) fn captured(&self, script: &str) -> Result<Captured, Error> {
        let host = self.host();
        let workspace = self.workspace(&host);
        self.script(&workspace, script);
        // The worker may run its own traps.
        let _ = fs::remove_file(self.canary());
        let captured = capture(&workspace, &host);
        assert!(!self.canary().exists(), "{script} was executed by the capture");
        workspace.remove().unwrap();
        captured
    }

    /// Captures, and returns the sentence of the refusal.
    pub(super) fn refused(&self, script: &str) -> String {
        match self.captured(script) {
            Err(Error::Refused(sentence)) => sentence,
            other => panic!("{script}: {other:?}"),
        }
    }

    /// Returns the patch that a script's changes make.
    pub(super) fn patch(&self, script: &str) -> Option<Vec<u8>> {
        let product = self.captured(script).unwrap().patch?;
        let bytes = Store::discover(&self.path).unwrap().read_blob(product.oid).unwrap();
        assert_eq!(product.sha256, git_handoff::model::digest::Digest::compute(&bytes));
        assert_eq!(product.size, bytes.len() as u64);
        Some(bytes)
    }

    /// Applies a patch to a clone with stock git and returns `<mode> <id> <path>` of everything
    /// that is then in the index.
    pub(super) fn applied(&self, patch: &[u8], settings: &[&str]) -> String {
        let clone = tempfile::tempdir_in(self.dir.path()).unwrap();
        let dir = clone.path().join("clone");
        let mut args = vec!["clone", "-q"];
        args.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        args.extend(["repo", dir.to_str().unwrap()]);
        self.git_in(self.dir.path(), &args);
        let file = clone.path().join("patch");
        fs::write(&file, patch).unwrap();
        self.git_in(&dir, &["apply", "--index", file.to_str().unwrap()]);
        self.git_in(&dir, &["ls-files", "-sz"])
    }
}

pub(super) fn run() -> RunId {
    RunId::parse("nightly@1").unwrap()
}

pub(super) fn item(name: &str) -> ItemId {
    ItemId::parse(name).unwrap()
}

pub(super) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}
