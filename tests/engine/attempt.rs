//! An attempt as a contract: a spec in a file goes in, a result comes out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use git_handoff::model::digest::Digest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item, wait_for};
use crate::common::report::{find_line, masked};
use crate::common::{Output, program_path};

fn small_program() -> PathBuf {
    Path::new(program_path()).with_file_name("git-handoff-attempt")
}

fn small(repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.env.command(small_program(), "repo");
    command.args(args);
    repo.env.ended(command)
}

/// Makes a run of one item, and writes the spec of its attempt.
fn with_spec(script: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.executor.command.verify", "grep -q two a.txt");
    repo.submit("r", &[item("a", script)]);
    small(&repo, &["spec", "r", "a", "../spec.json"]).success();
    repo
}

#[test]
fn a_file_gives_the_products_that_a_driver_gets() {
    let repo = with_spec("echo three >>a.txt; echo x >outputs/x.txt; echo said");
    let bytes = fs::read(repo.path("spec.json")).unwrap();
    assert_eq!(fs::metadata(repo.path("spec.json")).unwrap().permissions().mode() & 0o777, 0o600);
    let printed: Value = serde_json::from_slice(&small(&repo, &["run", "../spec.json"]).exit(0).raw).unwrap();
    assert_eq!(printed["schema"], "git-handoff.attempt-result/1");
    assert_eq!(printed["spec"], json!(Digest::compute(&bytes)), "the spec was read and written as it is");
    let result = &printed["result"];
    assert_eq!((&result["verdict"], &result["verify"]["passed"]), (&json!("done"), &json!(true)), "{result:#}");
    assert!(Path::new(result["worktree"]["path"].as_str().unwrap()).is_dir());
    let keeps = result["keeps"].as_array().unwrap();
    assert!(!keeps.is_empty());
    for name in keeps {
        let keep = repo.path("repo/.git/objects/pack").join(format!("{}.keep", name.as_str().unwrap()));
        assert!(fs::read_to_string(keep).unwrap().contains("handed over"));
    }
    // The objects outlive a collection until a driver takes them over.
    repo.env.git(["gc", "-q", "--prune=now"]).success();
    for product in result["products"].as_object().unwrap().values() {
        repo.env.git(["cat-file", "-e", product["oid"].as_str().unwrap()]).success();
    }
    repo.env.handoff(["run", "r"]).success();
    let entries = repo.entries("r");
    let end = entries.iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
    assert_eq!(result["products"].as_object().unwrap().len(), 2);
    assert_eq!(result["products"], end["products"]);
    assert_eq!(result["exit"], end["exit"]);
    assert_eq!(result["verify"], end["verify"]);
    assert_eq!(result["check"]["run"], end["check"]);
    assert_eq!(result["transcript"]["transcript"], end["transcript"]);
    assert!(repo.worktrees().is_empty(), "the driver removes the worktree that the other attempt left");
    repo.is_intact("r");
}

#[test]
fn a_spec_that_is_wrong_is_refused_before_anything_runs() {
    let repo = with_spec("true");
    repo.env.git(["tag", "v1"]).success();
    fs::remove_file(repo.path("spec.json")).unwrap();
    small(&repo, &["spec", "r", "a", "../spec.json"]).success();
    let original: Value = serde_json::from_slice(&fs::read(repo.path("spec.json")).unwrap()).unwrap();
    let fails = |code: i32, words: &str, change: &dyn Fn(&mut Value)| {
        let mut spec = original.clone();
        change(&mut spec);
        fs::write(repo.path("spec.json"), spec.to_string()).unwrap();
        let output = small(&repo, &["run", "../spec.json"]).exit(code);
        // Without the list of all fields.
        let error = find_line(&output.stderr, "error: ").split(", expected one of").next().unwrap();
        assert_eq!(masked(error), format!("error: {words}"));
        assert!(repo.worktrees().is_empty());
    };
    let other_manifest = "the manifest in the spec has the digest sha256:…, but the claim recorded sha256:…";
    fails(2, other_manifest, &|spec| spec["manifest"]["argv"] = json!(["false"]));
    fails(2, "the spec differs from its manifest here in: argv", &|spec| spec["command"]["argv"] = json!(["false"]));
    fails(2, "the spec differs from its manifest here in: env", &|spec| spec["env"]["LD_PRELOAD"] = json!("/x.so"));
    fails(2, "the spec differs from its manifest here in: inputs", &|spec| spec["task"] = json!("{}"));
    fails(2, "the spec differs from its manifest here in: tags", &|spec| spec["refs"]["packed"] = json!([]));
    let other_schema = "the spec's schema is \"git-handoff.attempt/2\"; this version of git-handoff runs \
                        \"git-handoff.attempt/1\"";
    fails(2, other_schema, &|spec| spec["schema"] = json!("git-handoff.attempt/2"));
    fails(2, "the spec is not valid: unknown field `more`", &|spec| spec["more"] = json!(1));
    fails(1, "cannot open the repository /nowhere of the spec", &|spec| spec["repository"] = json!("/nowhere"));
    let base = "1234567890123456789012345678901234567890";
    fails(1, &format!("the base commit {base} is not in the repository; fetch it first"), &|spec| {
        spec["base"] = json!(base);
    });
    let fails_by_words = |words: &str| {
        let output = small(&repo, &["run", "../spec.json"]).exit(2);
        assert_eq!(find_line(&output.stderr, "error: "), format!("error: {words}"));
    };
    fs::write(repo.path("spec.json"), "{").unwrap();
    fails_by_words("the spec is not JSON: not-json: not valid JSON: EOF while parsing an object at line 1 column 1");
    fs::set_permissions(repo.path("spec.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fails_by_words(
        "the spec ../spec.json holds an environment, but its mode is 640 or another user owns it: chmod 600",
    );
    fs::remove_file(repo.path("spec.json")).unwrap();
    fails_by_words("cannot read the spec ../spec.json");
}

#[test]
fn a_signal_ends_the_command_and_a_result_is_printed() {
    let repo = TestRepo::new();
    let started = repo.path("started");
    repo.submit("r", &[item("a", &format!("echo work >new.txt; touch {}; exec sleep 300", started.display()))]);
    small(&repo, &["spec", "r", "a", "../spec.json"]).success();
    let mut command = repo.env.command(small_program(), "repo");
    let child = command.args(["run", "../spec.json"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the command", || started.exists());
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["result"]["verdict"], "interrupted");
    let tree = printed["result"]["salvaged"].as_str().unwrap();
    assert_eq!(repo.env.git(["show", &format!("{tree}:new.txt")]).success(), "work\n");
    repo.no_process_is_left();
}
