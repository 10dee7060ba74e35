//! Manifests record the program of an attempt by hash; what a worker says about itself is a claim.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use base64ct::{Base64, Encoding as _};
use git_handoff::model::digest::Digest;
use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

/// Writes a program below the environment.
fn program(repo: &TestRepo, path: &str, text: &str) {
    repo.env.write(path, text);
    fs::set_permissions(repo.path(path), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a repository whose executor `agent` runs a line in which `agent` is a linked script, run
/// by a linked shell.
fn repo(line: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.recordProgram", "true");
    program(&repo, "real/agent", "#!/usr/bin/env -S runner -e\necho ran >outputs/x\n");
    fs::create_dir(repo.path("bin")).unwrap();
    symlink("../real/agent", repo.path("bin/agent")).unwrap();
    symlink("/bin/sh", repo.path("bin/runner")).unwrap();
    set_agent(&repo, "agent", line);
    repo
}

fn set_agent(repo: &TestRepo, name: &str, line: &str) {
    repo.config(&format!("handoff.executor.{name}.command"), line);
    let path = format!("PATH={}:{}", repo.path("bin").display(), std::env::var("PATH").unwrap());
    repo.config(&format!("handoff.executor.{name}.env"), &path);
}

fn agent(id: &str) -> Value {
    json!({ "id": id, "executor": "agent", "inputs": {} })
}

fn show_item(repo: &TestRepo, item: &str) -> Value {
    serde_json::from_str(&repo.env.handoff(["show", "--json", item]).success()).unwrap()
}

/// Returns what is recorded of a file, as outputs show its path.
fn file(repo: &TestRepo, path: &Path) -> Value {
    let bytes = fs::read(path).unwrap();
    json!({ "path": real(repo, path), "sha256": Digest::compute(&bytes), "size": bytes.len() })
}

fn real(repo: &TestRepo, path: &Path) -> String {
    let folder = repo.env.path().to_str().unwrap();
    path.canonicalize().unwrap().to_str().unwrap().replace(folder, "$TEST")
}

/// Returns the path of the recorded program of an item.
fn recorded(repo: &TestRepo, item: &str) -> Option<String> {
    show_item(repo, item)["manifest"]["claims"]["program"]["path"].as_str().map(str::to_owned)
}

/// Returns the in-toto statement of an item's only product.
fn statement(repo: &TestRepo, item: &str) -> Value {
    let printed = repo.env.handoff(["export", item, "--format", "in-toto"]).success();
    let envelope: Value = serde_json::from_str(printed.trim()).unwrap();
    serde_json::from_slice(&Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_script_is_recorded_with_its_interpreter_and_version() {
    for sandbox in ["none", "auto"] {
        let repo = repo("agent --flag");
        repo.config("handoff.sandbox", sandbox);
        if sandbox == "auto" {
            // Another program of this name comes first, which a confined worker does not see.
            program(&repo, "hidden/agent", "#!/bin/sh\nexit 9\n");
            let path = std::env::var("PATH").unwrap();
            let path = format!("PATH={}:{}:{path}", repo.path("hidden").display(), repo.path("bin").display());
            repo.config("handoff.executor.agent.env", &path);
            for folder in ["bin", "real"] {
                let readable = repo.path(folder).display().to_string();
                repo.env.git(["config", "--add", "handoff.executor.agent.readable", &readable]).success();
            }
        }
        let version = "echo asked >>../asked; echo ' agent 1.2 '; echo more";
        repo.config("handoff.executor.agent.versionCommand", version);
        repo.drive("r", &[agent("a"), agent("b")]).ends(0);
        let mut expected = file(&repo, &repo.path("real/agent"));
        expected["version"] = json!("agent 1.2");
        for item in ["r/a", "r/b"] {
            let manifest = show_item(&repo, item)["manifest"].clone();
            assert_eq!(manifest["claims"]["program"], expected, "{sandbox}");
            assert_eq!(manifest["claims"]["interpreter"], file(&repo, Path::new("/bin/sh")), "{sandbox}");
        }
        assert_eq!(fs::read_to_string(repo.path("asked")).unwrap(), "asked\n", "once for both");
        repo.env.handoff(["verify", "r"]).success();
        let show = repo.env.handoff(["show", "r/a"]).success();
        let digest = expected["sha256"].as_str().unwrap();
        let line = find_line(&show, "  program ");
        assert!(line.contains("$TEST/real/agent") && line.contains(digest), "{show}");
        assert!(find_line(&show, "  version ").ends_with("agent 1.2"), "{show}");
        assert!(show.contains("  interpreter "), "{show}");
        let statement = statement(&repo, "r/a");
        let dependencies = &statement["predicate"]["buildDefinition"]["resolvedDependencies"];
        assert_eq!(
            dependencies[1],
            json!({
                "name": "program",
                "digest": { "sha256": digest.strip_prefix("sha256:").unwrap() },
                "annotations": { "path": repo.path("real/agent"), "size": expected["size"], "version": "agent 1.2" },
            })
        );
        assert_eq!(dependencies[2]["name"], "interpreter");
    }
}

#[test]
fn the_first_word_of_a_configured_line_is_the_program_or_the_shell() {
    let repo = repo("true");
    program(&repo, "repo/local", "#!/bin/sh\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Local"]).success();
    program(&repo, "home/bin/mine", "#!/bin/sh\n");
    fs::write(repo.path("bin/plain"), "no program").unwrap();
    let at = |path: &str| Some(real(&repo, &repo.path(path)));
    let (agent, shell) = (at("real/agent"), at("bin/runner"));
    let absolute = format!("{} x", repo.path("bin/agent").display());
    let lines = [
        ("agent", &agent),
        (" exec agent | cat", &agent),
        (&absolute, &agent),
        ("~/bin/mine", &at("home/bin/mine")),
        ("cd . && agent", &shell),
        ("A=b agent", &shell),
        ("\"agent\"", &shell),
        ("if true; then agent; fi", &shell),
        ("./local", &shell),
        ("plain || :", &shell),
    ];
    let mut items = Vec::new();
    for (position, (line, _)) in lines.iter().enumerate() {
        set_agent(&repo, &format!("e{position}"), line);
        items.push(json!({ "id": format!("i{position}"), "executor": format!("e{position}"), "inputs": {} }));
    }
    repo.drive("lines", &items).ends(0);
    for (index, (line, expected)) in lines.iter().enumerate() {
        assert_eq!(recorded(&repo, &format!("lines/i{index}")), **expected, "{line}");
    }
    // A plan's line is the shell's, and a plan's words are looked up.
    let path = json!({ "PATH": repo.path("bin") });
    let words = |id: &str, command: Value| json!({ "id": id, "executor": "command", "inputs": { "command": command, "env": path } });
    let second_items =
        [words("line", json!("agent")), words("words", json!(["agent"])), words("local", json!(["./local"]))];
    repo.env.git(["config", "handoff.executor.command.maxAttempts", "1"]).success();
    // Only `bin` is searched, in which there is no `sh`.
    symlink("/bin/sh", repo.path("bin/sh")).unwrap();
    repo.drive("plan", &second_items).ends(0);
    assert_eq!(recorded(&repo, "plan/line"), shell);
    assert_eq!(recorded(&repo, "plan/words"), agent);
    assert_eq!(recorded(&repo, "plan/local"), None);
    repo.env.handoff(["verify", "plan"]).success();
}

#[test]
fn a_changed_program_is_hashed_again() {
    let repo = repo("agent");
    let real = repo.path("real/agent");
    let before = file(&repo, &real);
    let change = format!("printf '#!/bin/sh\\nexit 0\\n' >{}", real.display());
    let mut change = item("change", &change);
    change["depends_on"] = json!(["before"]);
    let mut after = agent("after");
    after["depends_on"] = json!(["change"]);
    repo.drive("r", &[agent("before"), change, after]).ends(0);
    assert_eq!(show_item(&repo, "r/before")["manifest"]["claims"]["program"], before);
    let now = file(&repo, &real);
    assert_ne!(now, before);
    assert_eq!(show_item(&repo, "r/after")["manifest"]["claims"]["program"], now);
}

#[test]
fn a_version_command_is_bounded_and_fails_with_a_note() {
    let repo = repo("agent");
    let long = "x".repeat(300);
    let token = format!("ghp_{}", "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4");
    let cases: &[(&str, &str, Result<&str, &str>)] = &[
        ("long", &format!("echo {long}"), Ok(&long[..200])),
        ("token", &format!("echo v1 {}''{}", &token[..9], &token[9..]), Ok("v1 [redacted:github-token]")),
        ("control", "printf 'a\\033[31mb\\n'", Ok("a\u{fffd}[31mb")),
        ("fails", "echo v1; exit 3", Err("its command failed (exit status: 3)")),
        ("silent", "true", Err("its first line is empty")),
        ("slow", "echo v1; sleep 60", Err("its command took longer than 10 s")),
    ];
    let mut items = Vec::new();
    for (name, line, _) in cases {
        set_agent(&repo, name, "agent");
        repo.config(&format!("handoff.executor.{name}.versionCommand"), line);
        items.extend(["1", "2"].map(|n| json!({ "id": format!("{name}{n}"), "executor": name, "inputs": {} })));
    }
    let ended = repo.drive("r", &items).exit(0);
    for (name, line, expected) in cases {
        let program = show_item(&repo, &format!("r/{name}2"))["manifest"]["claims"]["program"].clone();
        assert!(program["sha256"].is_string(), "{name}");
        assert_eq!(program["version"].as_str(), expected.ok(), "{name}");
        if let Err(why) = expected {
            let note = format!("the version command `{line}` gives no version: {why}");
            assert_eq!(ended.stderr.matches(&note).count(), 1, "{name}: {ended}");
        }
    }
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn nothing_is_recorded_of_a_program_that_cannot_be_or_must_not_be() {
    let repo = repo("agent");
    // Sparse: only its size counts.
    fs::File::create(repo.path("real/huge")).unwrap().set_len((1 << 30) + 1).unwrap();
    fs::set_permissions(repo.path("real/huge"), fs::Permissions::from_mode(0o755)).unwrap();
    set_agent(&repo, "huge", &format!("{} || :", repo.path("real/huge").display()));
    repo.config("handoff.executor.huge.maxAttempts", "1");
    let ended = repo.drive("huge", &[json!({ "id": "a", "executor": "huge", "inputs": {} })]);
    assert_eq!(recorded(&repo, "huge/a"), None);
    let note = "the program $TEST/real/huge is not recorded: it has more than 1024 MiB";
    assert!(ended.stderr.lines().any(|line| line == note), "{ended}");
    repo.config("handoff.recordProgram", "false");
    repo.config("handoff.executor.agent.versionCommand", "touch ../asked");
    repo.drive("off", &[agent("a")]).ends(0);
    let manifest = show_item(&repo, "off/a")["manifest"].clone();
    assert_eq!((&manifest["claims"]["program"], &manifest["claims"]["interpreter"]), (&Value::Null, &Value::Null));
    assert!(!repo.path("asked").exists());
}

#[test]
fn products_of_another_program_are_not_reused() {
    let repo = repo("agent");
    repo.drive("first", &[agent("a")]).ends(0);
    let again = |run: &str| {
        let file = repo.plan(run, &[agent("a")]);
        repo.env.handoff(["run", "--reuse", &file]).success();
        show_item(&repo, &format!("{run}/a"))["reused"].as_str().map(str::to_owned)
    };
    assert_eq!(again("same").as_deref(), Some("first/a"));
    repo.env.handoff(["verify", "same"]).success();
    repo.config("handoff.executor.agent.versionCommand", "echo 2");
    assert_eq!(again("version"), None);
    repo.env.git(["config", "--unset", "handoff.executor.agent.versionCommand"]).success();
    program(&repo, "real/agent", "#!/usr/bin/env runner\necho other >outputs/x\n");
    let file = repo.plan("other", &[agent("a")]);
    let ended = repo.env.handoff(["run", "--reuse", &file]).exit(0);
    let why = "a: not reused: first/a was given something else to do: program";
    assert!(ended.stderr.lines().any(|line| line == why), "{ended}");
    assert_eq!(repo.env.handoff(["cat", "other/a:outputs/x"]).success(), "other\n");
}

#[test]
fn model_and_session_are_the_workers_word() {
    let repo = TestRepo::new();
    let write = |result: Value| format!("echo x >outputs/x; cat >\"$HANDOFF_RESULT\" <<'E'\n{result}\nE\n");
    let items = [
        item("both", &write(json!({ "model": " large-2 ", "session": "5f1c\nline" }))),
        item("one", &write(json!({ "model": "m", "session": " " }))),
        item("none", &write(json!({ "model": null, "session": "" }))),
        item("long", &write(json!({ "session": "s".repeat(5000) }))),
        item("secret", "printf '{\"model\": \"m ghp_%s\"}' Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4 >\"$HANDOFF_RESULT\""),
    ];
    repo.drive("r", &items).ends(0);
    let claims = |id: &str| {
        let entry = repo.entries("r").into_iter().find(|e| e["kind"] == "item.reconciled" && e["item"] == id).unwrap();
        entry["claims"].clone()
    };
    assert_eq!(claims("both"), json!({ "model": "large-2", "session": "5f1c\nline" }));
    assert_eq!(claims("one"), json!({ "model": "m" }));
    assert_eq!(claims("none"), Value::Null);
    assert_eq!(claims("long")["session"].as_str().unwrap().chars().count(), 4001);
    assert_eq!(claims("secret")["model"], "m [redacted:github-token]");
    repo.env.handoff(["verify", "r"]).success();
    let steps = show_item(&repo, "r/both")["entries"].clone();
    assert_eq!(steps[1]["claims"], json!({ "model": "large-2", "session": "5f1c\nline" }));
    let show = repo.env.handoff(["show", "r/both"]).success();
    assert_eq!(find_line(&show, "model "), "model      large-2, as the worker says");
    assert_eq!(find_line(&show, "session "), "session    5f1c\u{fffd}line, as the worker says");
    let predicate = statement(&repo, "r/one")["predicate"].clone();
    assert_eq!(predicate["runDetails"]["byproducts"][1]["annotations"]["workerClaims"], json!({ "model": "m" }));
    // Another type is no claim.
    repo.config("handoff.executor.command.maxAttempts", "1");
    repo.drive("bad", &[item("a", &write(json!({ "model": 4 })))]).ends(4);
    let why = repo.item("bad", "a").reason;
    assert!(why.starts_with("bad-result: the result file cannot be read: invalid type: integer `4`"), "{why}");
}
