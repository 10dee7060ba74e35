//! A shared run with an entry that a later version of the program wrote: this version leaves it
//! alone, and says why.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use git_handoff::ledger::sign::Signer;
use git_handoff::model::format;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Hub, plan};
use crate::common::repo::{item, wait_for};
use crate::common::report::error_code;

const RUN: &str = "refs/handoff/runs/r";

impl Hub {
    /// Appends an entry with these fields at the remote, signed by the key of the clone `b`, and
    /// returns its commit.
    fn append_of_later(&self, fields: &Value) -> String {
        let env = &self.repo.env;
        let raw = env.git_in("hub.git", ["cat-file", "commit", RUN]).success();
        let (tree, parent) = (self.show("%T"), self.show("%H"));
        let line = |begin: &str| raw.lines().find(|line| line.starts_with(begin)).unwrap();
        let (_, body) = raw.trim_end().rsplit_once("\n\n").unwrap();
        let last: Value = serde_json::from_str(body).unwrap();
        let mut entry = json!({ "v": 2, "run": "r", "at": last["at"], "actor": last["actor"] });
        entry["prev"] = json!(format::leaf_hash(body.as_bytes()).to_string());
        entry["seq"] = json!(last["seq"].as_u64().unwrap() + 1);
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let text = String::from_utf8(format::entry_text(&entry)).unwrap();
        let head = format!("tree {tree}\nparent {parent}\n{}\n{}\n", line("author "), line("committer "));
        let message = format!("\n{} r\n\n{text}\n", entry["kind"].as_str().unwrap());
        let signer = Signer::from_file(&self.repo.path("b/key")).unwrap();
        let signature = signer.sign(format!("{head}{message}").as_bytes()).unwrap().trim_end().replace('\n', "\n ");
        env.write("commit", &format!("{head}gpgsig {signature}\n{message}"));
        let write = ["hash-object", "-w", "-t", "commit", "../commit"];
        let commit = env.git_in("hub.git", write).success().trim().to_owned();
        env.git_in("hub.git", ["update-ref", RUN, &commit, &parent]).success();
        commit
    }

    fn show(&self, what: &str) -> String {
        self.repo.env.git_in("hub.git", ["log", "-1", &format!("--format={what}"), RUN]).success().trim().to_owned()
    }

    fn refs(&self, repository: &str) -> String {
        self.repo.env.git_in(repository, ["for-each-ref"]).success()
    }

    /// Runs a command that must fail with this exit code and error code, and with these words, and
    /// change no ref.
    #[track_caller]
    fn refuses(&self, clone: &str, command: &str, expected: (i32, &str), words: &str) {
        let before = (self.refs(clone), self.refs("hub.git"));
        let all: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let (code, out, stderr) = self.command(clone, &all);
        let second_all = format!("{command} in {clone}: {out}{stderr}");
        assert_eq!((code, error_code(&stderr).as_str()), (Some(expected.0), expected.1), "{second_all}");
        assert!(second_all.contains(words), "{second_all}");
        assert_eq!((self.refs(clone), self.refs("hub.git")), before, "{second_all}");
    }
}

/// Entries of another format, with the words of the refusal.
fn entries() -> [(Value, &'static str); 3] {
    let shared = json!({ "kind": "run.shared", "heartbeat": 200, "lostAfter": 2000 });
    let (mut format, mut field) = (shared.clone(), shared);
    format["v"] = json!(3);
    field["grace"] = json!(5);
    [
        (format, "the entry has format version 3; this program reads version 2"),
        (field, "unknown field `grace`, expected `heartbeat` or `lostAfter`; a later version may have written it"),
        (
            json!({ "kind": "run.paused" }),
            "the entry has the unknown kind \\\"run.paused\\\"; a later version may have written it",
        ),
    ]
}

#[test]
fn a_run_of_a_later_version_is_left_alone() {
    for (fields, words) in entries() {
        let hub = Hub::new(&plan(&[item("i0", "echo x >>\"$HOME/../ran\"; sleep 60")]));
        hub.admit_b();
        hub.clone("c", &[]);
        // The repository knows the run from when this version could read it.
        let driver = hub.drive("repo");
        hub.wait_for("item.fired", "i0");
        wait_for("the worker", || !hub.lines("ran").is_empty());
        driver.signal(Signal::INT);
        driver.wait();
        let later = hub.append_of_later(&fields);
        hub.refuses("repo", "run r --via origin", (1, "not-continuable"), words);
        hub.refuses("repo", "cancel r/i0 --reason no", (3, "not-continuable"), words);
        hub.refuses("repo", "run r", (1, "not-continuable"), words);
        hub.refuses("c", "run r --via origin", (1, "not-continuable"), words);
        // The clone of a later version, with this program.
        hub.repo.env.git(["fetch", "--quiet", "origin", &format!("+{RUN}:{RUN}")]).success();
        for command in
            ["run r", "run r --via origin", "status r", "log r", "cancel r/i0 --reason no", "submit ../plan.json"]
        {
            hub.refuses("repo", command, (1, "chain"), words);
        }
        for (command, expected) in [(&["verify", "r"][..], 3), (&["fetch", "origin"], 1)] {
            let before = (hub.refs("repo"), hub.refs("hub.git"));
            let (code, out, stderr) = hub.command("repo", command);
            let (all, words) = (format!("{out}{stderr}"), words.replace('\\', ""));
            assert!(code == Some(expected) && all.contains(&words) && all.contains(&later[..7]), "{command:?}: {all}");
            assert_eq!((hub.refs("repo"), hub.refs("hub.git")), before, "{command:?}: {all}");
        }
        assert_eq!(hub.lines("ran"), ["x"], "nothing ran again");
    }
}
