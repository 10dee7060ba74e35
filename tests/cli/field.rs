//! Real environments: files in other encodings, ids in other case, an unwritable home directory.

use serde_json::{Value, json};

use crate::common::report::find_row;
use crate::common::{Environment, Output};

const MARK: &str = "\u{feff}";

fn repository() -> Environment {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo").success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
    env
}

fn plan(id: &str) -> String {
    let item = json!({ "id": "a", "executor": "command", "inputs": { "command": "echo é" } });
    serde_json::to_string_pretty(&json!({ "id": id, "openEnded": true, "items": [item] })).expect("it is JSON")
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn failure(output: &Output) -> Value {
    serde_json::from_str(&output.stderr).unwrap_or_else(|e| panic!("{e}: {output}"))
}

#[test]
fn submit_strips_a_byte_order_mark() {
    let env = repository();
    for (name, text) in [
        ("lf", plan("lf")),
        ("crlf", plan("crlf").replace('\n', "\r\n")),
        ("bom", format!("{MARK}{}", plan("bom"))),
        ("both", format!("{MARK}{}", plan("both").replace('\n', "\r\n"))),
    ] {
        env.write("plan.json", &text);
        env.handoff(["validate", "../plan.json"]).success();
        env.handoff(["submit", "../plan.json"]).success();
        let stored = env.git(["show", &format!("refs/handoff/runs/{name}^{{/run.submitted}}:plan.json")]).exit(0).raw;
        assert_eq!(String::from_utf8(stored).expect("it is text"), text.trim_start_matches(MARK), "{name}");
        env.handoff(["submit", "../plan.json"]).success();
        env.handoff(["extend", name, "../plan.json"]).success();
        env.handoff(["submit", "../plan.json", "--id", &format!("{name}-2")]).success();
    }
    // Only one, and only before all else.
    for text in [format!("{MARK}{MARK}{}", plan("x")), format!(" {MARK}{}", plan("x"))] {
        env.write("plan.json", &text);
        assert!(env.handoff(["validate", "../plan.json"]).exit(1).stdout.starts_with("not-json: not valid JSON"));
    }
}

#[test]
fn other_encodings_are_rejected_by_name() {
    let env = repository();
    std::fs::write(env.path().join("plan.json"), utf16(&plan("x"))).expect("it can be written");
    let refused = env.handoff(["validate", "../plan.json"]).exit(1);
    assert_eq!(refused.stdout, "not-json: the file is UTF-16, and JSON is UTF-8\n");
    env.write("state", "state");
    env.handoff(["checkpoint", "t", "--state", "../state"]).success();
    let line = env.handoff(["key"]).success();
    std::fs::write(env.path().join("signers"), utf16(&line)).expect("it can be written");
    let thread_verify_refused = env.handoff(["--json", "thread", "verify", "--signers", "../signers", "t"]).exit(1);
    assert_eq!(failure(&thread_verify_refused)["message"], "../signers cannot be used: it is UTF-16; save it as UTF-8");
    // As plain text it names the key, mark or not.
    for text in
        [format!("{MARK}{line}"), line.replace('\n', "\r\n"), format!("{MARK}# team\r\n\r\n{}\r\n", line.trim())]
    {
        env.write("signers", &text);
        let verified = env.handoff(["thread", "verify", "--signers", "../signers", "t"]).exit(0);
        assert_eq!(
            find_row(&verified.stdout, "signature"),
            "✓ signature  ed25519 SHA256:DEO… · trusted as ada@example.com"
        );
    }
}

#[test]
fn a_descriptor_is_adopted_without_its_mark() {
    for change in
        [|text: &str| format!("{MARK}{text}"), |text: &str| format!("{MARK}{}\r\n", text.replace('\n', "\r\n"))]
    {
        let env = repository();
        env.write("state", "state");
        env.handoff(["checkpoint", "t", "--state", "../state"]).success();
        let descriptor = env.handoff(["offer", "t"]).success();
        env.write("descriptor.json", &change(&descriptor));
        env.git_in("", ["clone", "--quiet", "repo", "other"]).success();
        env.handoff_in("other", ["adopt", "../descriptor.json", "--as", "u", "--from", "../repo"]).success();
    }
}

#[test]
fn run_ids_that_differ_only_in_case_are_refused() {
    let env = repository();
    env.write("plan.json", &plan("nightly"));
    env.handoff(["submit", "../plan.json"]).success();
    for id in ["Nightly", "NIGHTLY", "nightlY"] {
        env.write("plan.json", &plan(id));
        let before = env.git(["for-each-ref"]).success();
        for command in [&["submit", "../plan.json"][..], &["run", "../plan.json"]] {
            let refused = env.handoff(["--json"].iter().chain(command)).exit(1);
            let failure = failure(&refused);
            assert_eq!(failure["code"], "run-exists", "{refused}");
            assert_eq!(
                failure["message"],
                format!("the run id {id:?} differs from that of the run \"nightly\" only in letter case")
            );
            assert_eq!(failure["hint"], format!("give the plan another id than {id:?}"));
        }
        assert_eq!(env.git(["for-each-ref"]).success(), before);
    }
    env.write("plan.json", &plan("É"));
    env.handoff(["submit", "../plan.json"]).success();
    env.write("plan.json", &plan("é"));
    env.handoff(["submit", "../plan.json"]).ends(1);
    for id in ["nightly", "nightly-2", "night"] {
        env.write("plan.json", &plan(id));
        env.handoff(["submit", "../plan.json"]).success();
    }
}

#[test]
fn a_cache_that_cannot_be_written_names_a_way_out() {
    let env = repository();
    env.write("plan.json", &plan("r"));
    env.git(["config", "--global", "--unset", "handoff.workspace.root"]).success();
    // A file in place of the cache folder stops even root.
    env.write("home/.cache", "");
    let refused = env.handoff(["--json", "run", "../plan.json"]).exit(1);
    let failure: Value = serde_json::from_str(refused.stderr.lines().last().unwrap_or_default()).expect("it is JSON");
    assert_eq!(failure["code"], "no-cache", "{refused}");
    let (message, _) = failure["message"].as_str().expect("a message").rsplit_once('/').expect("a folder");
    assert_eq!(message, "cannot create a worktree in $TEST/home/.cache/git-handoff");
    let hint = "git config handoff.workspace.root /var/tmp/git-handoff   # or set XDG_CACHE_HOME to a folder that you can write to";
    assert_eq!(failure["hint"], hint);
    env.git(["config", "handoff.workspace.root", env.path().join("worktrees").to_str().expect("plain")]).success();
    env.handoff(["run", "r"]).success();
}
