//! The lines of known agents with large tasks and unusual names, and what is recorded of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;

use git_handoff::repository::config::PRESETS;
use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

/// Puts a program into `PATH`.
fn program(repo: &TestRepo, name: &str, script: &str) {
    let path = format!("programs/{name}");
    repo.env.write(&path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(repo.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn output(repo: &TestRepo, what: &str) -> String {
    repo.env.handoff(["cat", what]).success()
}

#[test]
fn long_task_is_passed_as_a_file() {
    for agent in ["copilot", "mini", "opencode"] {
        let repo = TestRepo::new();
        repo.config(&format!("handoff.subagent.{agent}.command"), &PRESETS[agent].command);
        let script = "for last; do :; done\nprintf %s \"$last\" >outputs/last\nwc -c <\"$HANDOFF_TASK\" >outputs/size\n\
            case $last in *\"read the file $HANDOFF_TASK\") echo file ;; *) echo text ;; esac >outputs/by";
        program(&repo, agent, script);
        for (run, length, by) in [("short", 10, "text\n"), ("long", 200_000, "file\n"), ("edge", 99_000, "text\n")] {
            let inputs = json!({"subagent": agent, "workerInput": "x".repeat(length)});
            repo.drive(run, &[json!({"id": "a", "executor": "dispatch", "inputs": inputs})]).ends(0);
            assert_eq!(output(&repo, &format!("{run}/a:outputs/by")), by, "{agent}");
            let last = output(&repo, &format!("{run}/a:outputs/last"));
            assert!(last.starts_with("Do the task that this JSON describes"), "{agent}: {last}");
            assert_eq!(last.contains(&"x".repeat(length)), by == "text\n", "{agent}");
            let size: usize = output(&repo, &format!("{run}/a:outputs/size")).trim().parse().unwrap();
            assert!(size > length);
        }
    }
    // The others read it from a file or from standard input.
    let others = PRESETS.iter().filter(|(_, preset)| !preset.command.contains("cat \""));
    assert_eq!(
        others.map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["aider", "claude", "codex", "gemini", "qwen"]
    );
}

#[test]
fn aider_reads_inputs_whatever_their_names_are() {
    let repo = TestRepo::new();
    repo.config("handoff.subagent.aider.command", &PRESETS["aider"].command);
    program(&repo, "aider", "for word; do printf '%s\\n' \"$word\"; done >outputs/words");
    let keys = ["my notes.txt", "a  b", "star*.txt", "[x].txt", "plain", "sub folder/é.txt"];
    let need = |_: &&str| json!({"from": "a", "select": {"kind": "output", "path": "n"}});
    let needs: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), need(key))).collect();
    let reader = json!({"id": "b", "executor": "dispatch", "inputs": {"subagent": "aider"}, "needs": needs});
    repo.drive("r", &[item("a", "echo n >outputs/n"), reader]).ends(0);
    let words = output(&repo, "r/b:outputs/words");
    let words: Vec<&str> = words.lines().collect();
    let mut read: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--read").map(|pair| pair[1]).collect();
    read.sort_unstable();
    let mut expected: Vec<String> = keys.iter().map(|key| format!("inputs/{key}")).collect();
    expected.sort();
    assert_eq!(read, expected);
}

#[test]
fn excluded_paths_are_recorded_and_printed() {
    let repo = TestRepo::new();
    let line = "git init -q nested && echo x >nested/x && git init -q 'two words' && echo y >y.txt";
    repo.drive("r", &[item("a", line)]).ends(0);
    let ended = repo.entries("r").into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
    assert_eq!(ended["claims"]["excluded"], json!(["nested/", "two words/"]));
    let stdout = repo.env.handoff(["show", "r/a"]).success();
    assert!(stdout.contains("\nleft out of the patch\n  nested/\n  two words/\n"), "{stdout}");
    repo.is_intact("r");
    // Ignored files are left out without a word, and a plain patch lists nothing.
    repo.drive("s", &[item("a", "echo nested >.git/info/exclude; echo y >y.txt")]).ends(0);
    assert!(!repo.env.handoff(["show", "s/a"]).success().contains("left out"));
    let here = "rm a.txt && mkfifo a.txt && echo z >z.txt";
    repo.env.handoff(["record", "--as", "t", "--here", "--", "sh", "-c", here]).success();
    let second_ended = repo.entries("t").into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
    assert_eq!(second_ended["claims"]["excluded"], json!(["a.txt"]));
}

#[test]
fn the_version_of_a_known_agent_is_recorded() {
    let repo = TestRepo::new();
    repo.config("handoff.recordProgram", "true");
    let script = "if [ \"$1\" = --version ]; then echo '9.9 (stand-in)'; exit; fi; echo x >x.txt";
    program(&repo, "codex", script);
    repo.env.handoff(["record", "--as", "r", "--", "codex", "exec"]).success();
    let version = |what: &str| {
        let manifest: Value = serde_json::from_str(&output(&repo, what)).unwrap();
        manifest["claims"]["program"]["version"].clone()
    };
    assert_eq!(version("r/record:manifest"), "9.9 (stand-in)");
    // A setting of one's own counts more, and a program of another name has none.
    repo.config("handoff.executor.command.versionCommand", "echo mine");
    repo.env.handoff(["record", "--as", "s", "--", "codex", "exec"]).success();
    assert_eq!(version("s/record:manifest"), "mine");
    repo.env.git(["config", "--unset", "handoff.executor.command.versionCommand"]).success();
    program(&repo, "other", script);
    repo.env.handoff(["record", "--as", "t", "--", "other"]).success();
    assert_eq!(version("t/record:manifest"), Value::Null);
    // `init` registers the line.
    repo.env.handoff(["init", "--yes", "--agent", "codex"]).success();
    let line = repo.env.git(["config", "handoff.subagent.codex.versionCommand"]).success();
    assert_eq!(line, "codex --version\n");
}

#[test]
fn whence_prints_model_and_session_of_the_worker() {
    let repo = TestRepo::new();
    let result = r#"{"model": "small-1", "session": "s-42"}"#;
    repo.drive("r", &[item("a", &format!("echo x >x.txt; echo '{result}' >$HANDOFF_RESULT"))]).ends(0);
    repo.drive("s", &[item("b", "echo y >y.txt")]).ends(0);
    for run in ["r", "s"] {
        repo.env.handoff(["apply", run, "--commit"]).success();
    }
    let found = repo.env.handoff(["whence", "x.txt:1"]).success();
    assert!(found.contains("small-1, as the worker says\n") && found.contains("s-42, as the worker says\n"), "{found}");
    let answer: Value = serde_json::from_str(&repo.env.handoff(["whence", "--json", "x.txt:1"]).success()).unwrap();
    assert_eq!(answer["commits"][0]["items"][0]["made"]["claims"], json!({"model": "small-1", "session": "s-42"}));
    assert!(!repo.env.handoff(["whence", "y.txt:1"]).success().contains("as the worker says"));
}
