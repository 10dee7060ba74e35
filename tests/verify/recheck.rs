//! `verify --recheck`: recorded checks are repeated in fresh worktrees, and nothing is left behind.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item, wait_for};
use crate::common::report::{error_code, find_line, find_row};
use crate::sandbox::scene::has_bubblewrap;

/// Returns a repository in whose runs each check reads a file outside, which tests change.
fn repo(check: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.env.write("outside", "one\n");
    repo.config("handoff.executor.command.verify", &check.replace("OUTSIDE", &outside(&repo)));
    repo.config("handoff.executor.command.onVerifyFail", "keep");
    repo
}

fn outside(repo: &TestRepo) -> String {
    repo.path("outside").to_str().unwrap().to_owned()
}

/// Repeats checks, and returns the answer without the report of the run.
#[track_caller]
fn recheck_in(repo: &TestRepo, dir: &str, what: &str, code: i32) -> Value {
    let output = repo.env.handoff_in(dir, ["verify", "--recheck", what, "--yes", "--json"]).exit(code);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    assert_eq!(report["intact"], true, "{report}");
    repo.no_process_is_left();
    assert_eq!(repo.worktrees(), Vec::<std::path::PathBuf>::new(), "worktrees were left");
    report["recheck"].clone()
}

#[track_caller]
fn recheck(repo: &TestRepo, what: &str, code: i32) -> Value {
    recheck_in(repo, "repo", what, code)
}

/// Returns an item that consumes the patch and an output of another.
fn on(id: &str, other: &str, script: &str) -> Value {
    let mut item = item(id, script);
    item["needs"] = json!({
        "patch": { "from": other, "select": { "kind": "patch" } },
        "log": { "from": other, "select": { "kind": "output", "path": "log.txt" } },
    });
    item
}

#[test]
fn a_check_that_ends_as_recorded_is_the_same() {
    let check = "grep -q good a.txt && test -x new/tool && test -f outputs/log.txt && ! test -e dir";
    let repo = repo(check);
    let setups = repo.env.path().join("setups");
    repo.config("handoff.executor.command.setup", &format!("echo ran >>'{}'", setups.display()));
    let make = "echo good >a.txt; mkdir -p new; echo 'exit 0' >new/tool; chmod +x new/tool; rm -r dir; echo x >outputs/log.txt";
    let items = [
        item("good", make),
        item("red", "echo bad >a.txt; echo x >outputs/log.txt"),
        on("next", "good", "git apply inputs/patch; cp inputs/log outputs/log.txt; echo more >>a.txt"),
        json!({ "id": "unchecked", "executor": "plain" }),
    ];
    repo.config("handoff.executor.plain.command", "true");
    repo.drive("r", &items).ends(4);
    let refs = repo.refs();
    let count = || std::fs::read_to_string(&setups).unwrap().lines().count();
    assert_eq!(count(), 3);
    let answer = recheck(&repo, "r", 0);
    assert_eq!(count(), 6);
    let same = |item: &str, detail: &str| json!({ "item": item, "result": "same", "detail": detail });
    let passed = "the check passed; recorded: passed";
    let red = same("red", "the check exited with 1; recorded: failed");
    assert_eq!(
        answer,
        json!({ "result": "same", "detail": "3 same", "items": [same("good", passed), red, same("next", passed)] })
    );
    assert_eq!(recheck(&repo, "r/red", 0), json!({ "result": "same", "detail": "1 same", "items": [red] }));
    assert_eq!(repo.refs(), refs, "something was recorded");
    repo.is_clean();
    let text = repo.env.handoff(["verify", "r/good", "--recheck", "--yes"]).exit(0);
    assert!(text.stdout.ends_with("✓ recheck    good: same: the check passed; recorded: passed\n"), "{text}");
    assert!(text.stderr.contains("good: sandbox none\n  setup  sh -c "), "{text}");
    assert!(text.stderr.ends_with(&format!("\n  check  sh -c '{check}'\n")), "{text}");
    let refused = repo.env.handoff(["--json", "verify", "--recheck", "r/unchecked", "--yes"]).exit(1);
    assert_eq!(error_code(&refused.stderr), "no-check");
}

#[test]
fn a_setup_sees_what_the_worker_declared() {
    let repo = repo("test \"$(cat cache/installed)\" = two");
    repo.env.write("repo/.gitignore", "cache\n");
    repo.env.write("repo/wanted", "one\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Wanted"]).success();
    let install = "mkdir -p cache; cp wanted cache/installed; echo spoiled >wanted; git checkout -q HEAD -- a.txt";
    repo.config("handoff.executor.command.setup", install);
    repo.drive("r", &[item("a", "echo two >wanted; echo two >a.txt; cp wanted cache/installed")]).ends(0);
    assert_eq!(recheck(&repo, "r", 0)["items"][0]["detail"], "the check passed; recorded: passed");
}

#[test]
fn a_setup_that_applies_a_consumed_patch_runs_before_the_product_is_there() {
    let repo = repo("grep -q more a.txt && test -f dir/b.txt && test -f cache/x && ! test -e OUTSIDE.d/log.txt");
    repo.env.write("outside.d/b.txt", "mine\n");
    repo.env.write("repo/.gitignore", "cache\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Ignore"]).success();
    let first = item("first", "echo good >a.txt; echo x >outputs/log.txt");
    // The consumed patch is part of the product, and a link must not lead a product out.
    let setup = "if [ -e inputs/patch ]; then git apply --index inputs/patch || exit; fi; mkdir cache; touch cache/x";
    repo.config(
        "handoff.executor.worker.setup",
        &format!("{setup}; rm -r dir outputs; ln -s {0}.d dir; ln -s {0}.d outputs", outside(&repo)),
    );
    repo.config(
        "handoff.executor.worker.command",
        "rm dir outputs; mkdir dir outputs; git checkout -q HEAD -- dir; echo more >>a.txt; echo x >outputs/log.txt",
    );
    repo.config(
        "handoff.executor.worker.verify",
        &repo.env.git(["config", "handoff.executor.command.verify"]).success(),
    );
    repo.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
    let mut second = on("second", "first", "");
    second["executor"] = "worker".into();
    second["inputs"] = json!({});
    repo.drive("r", &[first, second]).ends(0);
    let answer = recheck(&repo, "r", 0);
    assert_eq!(answer["items"][0]["detail"], "the check passed; recorded: passed", "{answer}");
    assert_eq!(repo.lines("outside.d/b.txt"), ["mine"]);
}

#[test]
fn a_check_that_ends_otherwise_is_different_and_shows_both_outputs() {
    let repo = repo("cat OUTSIDE; grep -q one OUTSIDE");
    repo.drive("r", &[item("a", "echo work >a.txt"), item("b", "echo other >dir/b.txt")]).ends(0);
    repo.env.write("outside", "two\n");
    let detail = "the check exited with 1; recorded: passed; output now: two; recorded output: one";
    let different = |item: &str| json!({ "item": item, "result": "different", "detail": detail });
    assert_eq!(
        recheck(&repo, "r", 3),
        json!({ "result": "different", "detail": "2 different", "items": [different("a"), different("b")] })
    );
    // A check that passes now although it failed is different, too.
    repo.drive("red", &[item("a", "echo work >a.txt")]).ends(4);
    repo.env.write("outside", "one\n");
    let answer = recheck(&repo, "red", 3);
    assert_eq!(
        answer["items"][0]["detail"],
        "the check passed; recorded: failed; output now: one; recorded output: two"
    );
}

#[test]
fn unrepeatable_check_gives_a_reason() {
    let repo = repo("OUTSIDE");
    let script = |text: &str| {
        repo.env.write("outside", text);
        repo.env.shell(".", "chmod +x outside").success();
    };
    script("#!/bin/sh\nexit 0\n");
    repo.config("handoff.executor.command.setup", &format!("cat {}", outside(&repo)));
    repo.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let cannot = |detail: &str| json!({ "result": "cannot", "detail": "1 cannot", "items": [{ "item": "a", "result": "cannot", "detail": detail }] });
    for code in [126, 127] {
        script(&format!("#!/bin/sh\necho no\nexit {code}\n"));
        let why = format!("the check exited with {code}: a program that it needs is missing here or cannot run: no");
        assert_eq!(recheck(&repo, "r/a", 4), cannot(&why));
    }
    std::fs::remove_file(repo.path("outside")).unwrap();
    let why = "the setup exited with 1: cat: $TEST/outside: No such file or directory";
    assert_eq!(recheck(&repo, "r", 4), cannot(why));
}

#[test]
fn the_run_of_another_clone_is_repeated_where_its_base_is() {
    let repo = repo("grep -q work a.txt");
    let base = repo.env.git(["rev-parse", "HEAD"]).success().trim().to_owned();
    repo.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    repo.env.git(["commit", "--quiet", "--allow-empty", "--message", "Next"]).success();
    let path = repo.env.path().display().to_string();
    repo.env.git_in(".", ["clone", "--quiet", "--bare", "repo", "hub"]).success();
    repo.env.git(["remote", "add", "origin", &format!("{path}/hub")]).success();
    repo.env.handoff(["push", "origin", "r"]).success();
    let url = format!("file://{path}/hub");
    for (name, depth) in [("full", &[][..]), ("shallow", &["--depth=1"][..])] {
        let clone = [&["clone", "--quiet"][..], depth, &[url.as_str(), name]].concat();
        repo.env.git_in(".", clone).success();
        repo.env.handoff_in(name, ["fetch", "origin"]).success();
    }
    let answer = recheck_in(&repo, "full", "origin/r/a", 0);
    assert_eq!(answer["items"][0]["detail"], "the check passed; recorded: passed");
    let shallow_answer = recheck_in(&repo, "shallow", "origin/r", 4);
    assert_eq!(shallow_answer["items"][0]["detail"], format!("the run's base commit {base} is not in this repository"));
    let hub_answer = recheck_in(&repo, "hub", "r", 4);
    assert_eq!(hub_answer["items"][0]["detail"], "a bare repository has no work tree: recheck the run in a clone");
}

#[test]
fn protected_files_have_their_reference_state() {
    let repo = repo("sh test.sh");
    repo.env.write("repo/test.sh", "grep -q work a.txt\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Test"]).success();
    repo.config("handoff.protect", "test.sh");
    repo.config("handoff.executor.tester.command", "echo 'grep -q tested a.txt' >test.sh");
    repo.config("handoff.executor.tester.onProtectedChange", "allow");
    let mut implement = item("implement", "echo tested >a.txt");
    implement["needs"] = json!({ "patch": { "from": "tester", "select": { "kind": "patch" } } });
    let items = [
        item("bends", "echo 'exit 0' >test.sh"),
        item("breaks", "echo 'exit 1' >test.sh; echo work >a.txt"),
        json!({ "id": "tester", "executor": "tester" }),
        implement,
    ];
    repo.drive("r", &items).ends(4);
    let answer = recheck(&repo, "r", 0);
    let details: Vec<_> = answer["items"].as_array().unwrap().iter().map(|item| &item["detail"]).collect();
    let (passed, failed) = ("the check passed; recorded: passed", "the check exited with 1; recorded: failed");
    assert_eq!(details, [failed, passed, passed], "{answer}");
    // The local settings do not decide what is protected.
    repo.env.git(["config", "--unset", "handoff.protect"]).success();
    assert_eq!(recheck(&repo, "r", 0), answer);
}

#[test]
fn without_a_terminal_nothing_runs_before_it_is_confirmed() {
    let repo = repo("touch OUTSIDE.ran");
    repo.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let ran = repo.path("outside.ran");
    std::fs::remove_file(&ran).unwrap();
    let refused = repo.env.handoff(["verify", "--recheck", "r"]).exit(2);
    insta::assert_snapshot!(refused.stderr, @r"
    a: sandbox none
      check  sh -c 'touch $TEST/outside.ran'
    error: --recheck needs --yes where there is no terminal to ask on; nothing was run
    hint: git handoff verify --recheck r --yes   # runs these commands
    ");
    assert!(!ran.exists());
    let answers = |answer: &str, code: i32| {
        let line = format!("echo {answer} | script -qec 'git-handoff verify --recheck r' /dev/null");
        repo.env.shell("repo", &line).ends(code);
    };
    answers("no", 1);
    assert!(!ran.exists());
    answers("yes", 0);
    assert!(ran.exists());
    repo.is_clean();
}

#[test]
fn only_an_intact_run_is_repeated() {
    let repo = repo("touch OUTSIDE.ran; ! test -e OUTSIDE.wrong");
    repo.drive("r", &[item("a", "exit 1"), item("b", "true")]).ends(4);
    let ran = repo.path("outside.ran");
    std::fs::remove_file(&ran).unwrap();
    let open = repo.env.handoff(["verify", "--recheck", "r/b", "--yes", "--json"]).exit(3);
    let report: Value = serde_json::from_str(&open.stdout).unwrap();
    assert_eq!((&report["failure"], &report["recheck"]), (&json!("not-sealed"), &Value::Null));
    repo.env.handoff(["close", "r"]).success();
    let signers = ["verify", "--recheck", "r/b", "--yes", "--signers", "/dev/null"];
    repo.env.handoff(signers).ends(3);
    assert!(!ran.exists());
    // Failed items do not count.
    assert_eq!(recheck(&repo, "r", 0)["detail"], "1 same");
    assert!(ran.exists());
    for wrong in [&["r", "r"][..], &["--all"], &["r", "--format", "snapshot"], &["r", "--reproduce", "HEAD"]] {
        repo.env.handoff([&["verify", "--recheck", "--yes"], wrong].concat()).ends(2);
    }
    repo.env.handoff(["verify", "r", "--yes"]).ends(2);
}

#[test]
fn the_network_is_the_recorded_one_and_never_more_than_the_settings_allow() {
    if !has_bubblewrap("the network") {
        return;
    }
    let repo = repo("true");
    repo.config("handoff.sandbox", "auto");
    repo.drive("any", &[item("a", "true")]).ends(0);
    repo.config("handoff.network", "none");
    repo.drive("none", &[item("a", "true")]).ends(0);
    let network = |run: &str| {
        let stderr = repo.env.handoff(["verify", "--recheck", run, "--yes"]).exit(0).stderr;
        stderr.lines().find_map(|line| line.split_once(", network ").map(|(_, network)| network.to_owned()))
    };
    assert_eq!(network("any").as_deref(), Some("none"));
    repo.config("handoff.network", "any");
    assert_eq!(network("none").as_deref(), Some("none"));
    assert_eq!(network("any").as_deref(), Some("any"));
    repo.config("handoff.executor.command.network", "loopback");
    assert_eq!(network("any").as_deref(), Some("loopback"));
}

#[test]
fn check_with_hidden_files_cannot_be_repeated() {
    if !has_bubblewrap("held-out files") {
        return;
    }
    let repo = repo("sh held.sh");
    repo.config("handoff.sandbox", "auto");
    repo.env.write("held/held.sh", "grep -q work a.txt\n");
    repo.config("handoff.executor.command.heldOut", repo.path("held").to_str().unwrap());
    repo.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let answer = recheck(&repo, "r", 4);
    assert_eq!(answer["items"][0]["detail"], "the check needs held-out files, which are not part of the run");
}

#[test]
fn a_stranger_gets_no_secrets_and_runs_no_redacted_command() {
    let repo = repo("test -z \"$TOKEN\"");
    repo.config("handoff.executor.command.secretEnv", "TOKEN");
    let mut command = repo.env.command(crate::common::program_path(), "repo");
    command.env("TOKEN", "hunter2hunter2").args(["run", &repo.plan("r", &[item("a", "true")])]);
    repo.env.ended(command).ends(4);
    let mut second_command = repo.env.command(crate::common::program_path(), "repo");
    second_command.env("TOKEN", "hunter2hunter2").args(["verify", "--recheck", "r", "--yes"]);
    let stdout = repo.env.ended(second_command).exit(3).stdout;
    insta::assert_snapshot!(find_row(&stdout, "recheck"), @"✗ recheck    a: different: the check passed; recorded: failed; output now: none; recorded output: none");
    let token = ["ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"].concat();
    repo.env.git(["config", "--unset", "handoff.executor.command.secretEnv"]).success();
    repo.config("handoff.executor.command.verify", &format!("echo {token}"));
    repo.drive("s", &[item("a", "true")]).ends(0);
    let answer = recheck(&repo, "s", 4);
    assert_eq!(answer["items"][0]["detail"], "a credential was removed from the recorded commands");
}

#[test]
fn an_interrupted_one_leaves_nothing_and_a_killed_one_is_cleaned_up() {
    use rustix::process::Signal;
    let repo = repo("if [ -e OUTSIDE.slow ]; then touch OUTSIDE.runs; sleep 60; fi");
    repo.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    repo.env.write("outside.slow", "");
    let runs = repo.path("outside.runs");
    let start = || {
        let _ = std::fs::remove_file(&runs);
        let started = repo.start(&["verify", "--recheck", "r", "--yes"]);
        wait_for("the check", || runs.exists());
        started
    };
    let started = start();
    started.signal(Signal::INT);
    let (status, output) = started.wait();
    assert_eq!(status.code(), Some(130), "{output}");
    insta::assert_snapshot!(find_line(&output, "interrupted"), @"interrupted; no worktree is left behind");
    repo.is_clean();
    let second_started = start();
    // A second one, and `clean`, leave it alone.
    let verify_output = repo.env.handoff(["--json", "verify", "--recheck", "r", "--yes"]).exit(5);
    assert_eq!(error_code(&verify_output.stderr), "held");
    repo.env.handoff(["clean", "--force"]).success();
    assert!(!repo.worktrees().is_empty(), "clean removed a worktree in use");
    assert!(second_started.kill());
    repo.env.handoff(["clean", "--force"]).success();
    repo.is_clean();
    assert!(!repo.refs().contains("salvage"), "nothing is worth saving");
    assert!(start().kill());
    std::fs::remove_file(repo.path("outside.slow")).unwrap();
    recheck(&repo, "r", 0);
    repo.is_clean();
}
