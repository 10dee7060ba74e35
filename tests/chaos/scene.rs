//! A repository in the middle of its work, with a remote and a second clone; made once and put back
//! before every round.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{leftovers, let_an_hour_pass};
use crate::common::Output;
use crate::common::repo::{TestRepo, after, item};

/// The kinds of repository.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Every ref a file of its own.
    Plain,
    /// Every ref in `packed-refs`.
    Packed,
    /// Objects named by SHA-256.
    Sha256,
    /// Commands are given in a linked worktree.
    Linked,
}

/// The repositories that are put back.
const PLACES: [&str; 4] = ["repo", "other", "hub", "linked"];

/// The state that every round begins from.
pub(super) struct Scene {
    pub(super) repo: TestRepo,
    pub(super) kind: Kind,
    /// The doctor's findings at the start.
    findings: Vec<String>,
    /// The thread's first checkpoint.
    pub(super) first: String,
}

impl Scene {
    pub(super) fn new(kind: Kind) -> Self {
        let mut repo = TestRepo::new();
        repo.env.keep();
        if kind == Kind::Sha256 {
            fs::remove_dir_all(repo.env.repo()).unwrap();
            fs::create_dir(repo.env.repo()).unwrap();
            repo.env.git(["init", "--quiet", "--object-format=sha256"]).success();
            repo.env.write("repo/a.txt", "one\ntwo\n");
            repo.env.git(["add", "--all"]).success();
            repo.env.git(["commit", "--quiet", "--message", "Start"]).success();
        }
        let mut scene = Self { repo, kind, findings: Vec::new(), first: String::new() };
        scene.shared();
        scene.handoff(&["push", "--all"]).success();
        scene.repo.env.git_in(".", ["clone", "--quiet", "hub", "other"]).success();
        scene.handoff_in("other", &["fetch"]).success();
        scene.not_fetched();
        scene.handoff(&["push", "--all"]).success();
        scene.not_pushed();
        if kind == Kind::Packed {
            for place in ["repo", "other", "hub"] {
                scene.repo.env.git_in(place, ["pack-refs", "--all"]).success();
            }
        }
        if kind == Kind::Linked {
            scene.repo.env.git(["worktree", "add", "--quiet", "../linked"]).success();
        }
        scene.findings = scene.findings();
        let log = scene.handoff(&["--json", "thread", "log", "t"]).success();
        let first: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        scene.first = format!("t:{}", first["checkpoint_id"].as_str().unwrap());
        fs::create_dir(scene.repo.path("saved")).unwrap();
        scene.copy("", "saved");
        scene
    }

    /// Data in both clones and on the remote.
    fn shared(&self) {
        let repo = &self.repo;
        let make = "echo more >>a.txt; echo report >outputs/report; echo said";
        repo.submit("done", &[item("make", make), after("next", &["make"], "echo x >outputs/x")]);
        repo.env.write("document", "4\n");
        self.handoff(&["doc", "put", "done", "notes", "../document"]).success();
        self.handoff(&["run", "done"]).success();
        repo.env.git_in(".", [&["init", "--quiet", "--bare"], self.format(), &["hub"]].concat()).success();
        repo.env.git(["remote", "add", "origin", "../hub"]).success();
        repo.env.git(["push", "--quiet", "--set-upstream", "origin", "main"]).success();
        self.checkpoint("one");
    }

    fn format(&self) -> &[&str] {
        if self.kind == Kind::Sha256 { &["--object-format=sha256"] } else { &[] }
    }

    /// Data on the remote only.
    fn not_fetched(&self) {
        self.checkpoint("two");
        self.repo.drive("later", &[item("make", "echo x >outputs/x")]).success();
    }

    /// Local data: something for each command to do.
    fn not_pushed(&self) {
        let repo = &self.repo;
        self.checkpoint("three");
        self.offer();
        let noted = "echo $HANDOFF_ITEM $HANDOFF_ATTEMPT >>\"$HOME/../effects\"; echo $HANDOFF_ITEM >outputs/id; echo x >>a.txt";
        repo.submit("open", &[item("top", noted), after("next", &["top"], noted), item("lone", noted)]);
        repo.submit("half", &[item("fails", "exit 1"), after("skipped", &["fails"], "true"), item("fine", noted)]);
        self.handoff(&["run", "half"]).ends(4);
        // A preserved worktree.
        repo.config("handoff.workspace.keep", "true");
        repo.submit("kept", &[item("fails", "echo work >work; exit 1")]);
        self.handoff(&["run", "--close", "kept"]).ends(4);
        repo.env.git(["config", "--unset", "handoff.workspace.keep"]).success();
        let grows = json!({ "id": "grows", "openEnded": true, "items": [item("first", "true")] });
        repo.env.write("grows.json", &grows.to_string());
        self.handoff(&["submit", "../grows.json"]).success();
        repo.env.write("more.json", &json!({ "id": "grows", "items": [item("second", "true")] }).to_string());
        let low = json!({ "if": [{ "document": "score", "pointer": "", "op": "<", "value": 9 }], "atMost": 9 });
        let create = json!({ "executor": "command", "inputs": { "command": "true" } });
        let rules = json!([{ "id": "again", "when": low, "create": create }]);
        let ruled = json!({ "id": "ruled", "rules": rules, "items": [item("first", "true")] });
        repo.env.write("ruled.json", &ruled.to_string());
        self.handoff(&["submit", "../ruled.json"]).success();
        self.handoff(&["doc", "put", "ruled", "score", "../document"]).success();
        let plan = json!({ "id": "new", "items": [item("first", "true")] });
        repo.env.write("new.json", &plan.to_string());
        repo.env.write("state", "the next state\n");
        // The part of a submit that a crash prevented.
        repo.env.git(["update-ref", "-d", "refs/handoff/bases/open"]).success();
        fs::write(repo.path("effects"), "").unwrap();
    }

    fn checkpoint(&self, state: &str) {
        self.repo.env.write("state", state);
        self.handoff(&["checkpoint", "t", "--state", "../state", "--worktree"]).success();
    }

    /// Offers the thread's latest checkpoint, for the other clone.
    fn offer(&self) {
        let descriptor = self.handoff(&["offer", "t"]).success();
        self.repo.env.write("descriptor.json", &descriptor);
    }

    /// Puts everything back as it was.
    pub(super) fn restore(&self) {
        self.copy("saved", "");
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.repo.path(from), self.repo.path(to));
        for place in PLACES.iter().chain(&["worktrees", "effects"]) {
            let (from, to) = (from.join(place), to.join(place));
            if to.is_dir() {
                empty(&to);
            }
            if from.exists() {
                let status = std::process::Command::new("cp").arg("-aT").args([&from, &to]).status();
                assert!(status.unwrap().success());
            }
        }
    }

    /// The folder that commands are given in.
    pub(super) fn home(&self) -> &'static str {
        if self.kind == Kind::Linked { "linked" } else { "repo" }
    }

    /// Runs the program in the repository itself.
    pub(super) fn handoff(&self, args: &[&str]) -> Output {
        self.handoff_in("repo", args)
    }

    pub(super) fn handoff_in(&self, place: &str, args: &[&str]) -> Output {
        self.repo.env.handoff_in(place, args)
    }

    /// Returns the answer of a command that prints JSON.
    pub(super) fn answer(&self, place: &str, args: &[&str]) -> Value {
        let output = self.handoff_in(place, args);
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}\n{output}"))
    }

    pub(super) fn refs(&self, place: &str, below: &str) -> String {
        self.repo.env.git_in(place, ["for-each-ref", "--format=%(objectname) %(refname)", below]).success()
    }

    /// Counts the entries of a run that have a field of some value.
    pub(super) fn entries(&self, run: &str, fields: &[(&str, &str)]) -> usize {
        let is = |entry: &Value| fields.iter().all(|(field, value)| entry[field] == *value);
        self.repo.entries(run).iter().filter(|entry| is(entry)).count()
    }

    /// Holds what is true at every moment of a repository and of the remote: git finds no fault,
    /// and nothing that stands there is anything but whole and signed.
    pub(super) fn is_sound(&self, place: &str) {
        for folder in [place, "hub"] {
            let fsck_output = self.repo.env.git_in(folder, ["fsck", "--strict", "--no-dangling", "--no-progress"]);
            assert_eq!(
                (fsck_output.status, fsck_output.stdout.as_str(), fsck_output.stderr.as_str()),
                (Some(0), "", ""),
                "in {folder}"
            );
        }
        for verify in [&["verify", "--all", "--allow-partial"][..], &["thread", "verify", "--all"]] {
            let output = self.handoff_in(place, verify);
            let words = ["TAMPERED", "UNTRUSTED", "error:"];
            let nothing = output.stderr.contains("error: there are no ");
            let bad = !nothing && words.iter().any(|word| output.stdout.contains(word) || output.stderr.contains(word));
            assert!(matches!(output.status, Some(0 | 3)) && !bad, "in {place}: {verify:?}\n{output}");
        }
    }

    fn findings(&self) -> Vec<String> {
        let answer = self.answer("repo", &["doctor", "--json"]);
        let findings = answer["findings"].as_array().unwrap().iter();
        findings.map(|finding| format!("{} {}", finding["code"], finding["message"])).collect()
    }

    /// Lets an hour pass for what killed processes left, and has it mended.
    pub(super) fn mended(&self) {
        for place in ["repo/.git", "other/.git", "hub"] {
            let_an_hour_pass(&self.repo.path(place));
            let output = self.handoff_in(place.trim_end_matches("/.git"), &["doctor", "--fix"]);
            assert!(matches!(output.status, Some(0 | 3)), "{output}");
        }
    }

    /// Holds that nothing is left over once it was mended and cleaned up.
    pub(super) fn is_tidy(&self) {
        self.mended();
        for place in ["repo", "other"] {
            assert_eq!(leftovers(&self.repo.path(place).join(".git")), Vec::<PathBuf>::new(), "in {place}");
        }
        self.handoff(&["clean", "--force"]).success();
        assert_eq!(self.repo.worktrees(), Vec::<PathBuf>::new(), "worktrees were left");
        let before = &self.findings;
        let findings = self.findings();
        let new: Vec<_> = findings.iter().filter(|finding| !before.contains(finding)).collect();
        assert!(new.is_empty(), "the doctor still finds {new:?}");
    }
}

/// Empties a folder. The git directory in it stays the same one: with another it is a copy, which
/// has worktrees of its own.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == ".git" => empty(&entry.path()),
            true => fs::remove_dir_all(entry.path()).unwrap(),
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what failed is left in {}", self.repo.env.path().display());
        } else {
            let _ = fs::remove_dir_all(self.repo.env.path());
        }
    }
}
