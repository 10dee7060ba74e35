//! `verify --recheck`: recorded checks are repeated in fresh worktrees, and nothing is left behind.

use serde_json::{Value, json};

use crate::common::ground::{Ground, item, wait_for};
use crate::common::report::error_code;
use crate::sandbox::scene::has_bubblewrap;

/// Returns a repository in whose runs each check reads a file outside, which tests change.
fn ground(check: &str) -> Ground {
    let ground = Ground::new();
    ground.env.write("outside", "one\n");
    ground.config("handoff.executor.command.verify", &check.replace("OUTSIDE", &outside(&ground)));
    ground.config("handoff.executor.command.onVerifyFail", "keep");
    ground
}

fn outside(ground: &Ground) -> String {
    ground.path("outside").to_str().unwrap().to_owned()
}

/// Repeats checks, and returns the answer without the report of the run.
#[track_caller]
fn recheck_in(ground: &Ground, dir: &str, what: &str, code: i32) -> Value {
    let output = ground.env.handoff_in(dir, ["verify", "--recheck", what, "--yes", "--json"]).exit(code);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    assert_eq!(report["intact"], true, "{report}");
    ground.no_process_is_left();
    assert_eq!(ground.worktrees(), Vec::<std::path::PathBuf>::new(), "worktrees were left");
    report["recheck"].clone()
}

#[track_caller]
fn recheck(ground: &Ground, what: &str, code: i32) -> Value {
    recheck_in(ground, "repo", what, code)
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
    let ground = ground(&format!("{check} && test -f $TMPDIR/prepared"));
    ground.config("handoff.executor.command.setup", "touch $TMPDIR/prepared");
    let make = "echo good >a.txt; mkdir -p new; echo 'exit 0' >new/tool; chmod +x new/tool; rm -r dir; echo x >outputs/log.txt";
    let items = [
        item("good", make),
        item("red", "echo bad >a.txt; echo x >outputs/log.txt"),
        on("next", "good", "git apply inputs/patch; cp inputs/log outputs/log.txt; echo more >>a.txt"),
        json!({ "id": "unchecked", "executor": "plain" }),
    ];
    ground.config("handoff.executor.plain.command", "true");
    ground.drive("r", &items).ends(4);
    let refs = ground.refs();
    let answer = recheck(&ground, "r", 0);
    let same = |item: &str, detail: &str| json!({ "item": item, "result": "same", "detail": detail });
    let passed = "the check passed; recorded: passed";
    let red = same("red", "the check exited with 1; recorded: failed");
    assert_eq!(
        answer,
        json!({ "result": "same", "detail": "3 same", "items": [same("good", passed), red, same("next", passed)] })
    );
    assert_eq!(recheck(&ground, "r/red", 0), json!({ "result": "same", "detail": "1 same", "items": [red] }));
    assert_eq!(ground.refs(), refs, "something was recorded");
    ground.is_clean();
    let text = ground.env.handoff(["verify", "r/good", "--recheck", "--yes"]).exit(0);
    assert!(text.stdout.ends_with("✓ recheck    good: same: the check passed; recorded: passed\n"), "{text}");
    let commands = format!(
        "good: sandbox none\n  setup  sh -c 'touch $TMPDIR/prepared'\n  check  sh -c '{check} && test -f $TMPDIR/prepared'\n"
    );
    assert!(text.stderr.ends_with(&commands), "{text}");
    let refused = ground.env.handoff(["--json", "verify", "--recheck", "r/unchecked", "--yes"]).exit(1);
    assert_eq!(error_code(&refused.stderr), "no-check");
}

#[test]
fn a_setup_sees_what_the_worker_declared() {
    let ground = ground("test \"$(cat cache/installed)\" = two");
    ground.env.write("repo/.gitignore", "cache\n");
    ground.env.write("repo/wanted", "one\n");
    ground.env.git(["add", "-A"]).success();
    ground.env.git(["commit", "-qm", "Wanted"]).success();
    let install = "mkdir -p cache; cp wanted cache/installed; echo spoiled >wanted; git checkout -q HEAD -- a.txt";
    ground.config("handoff.executor.command.setup", install);
    ground.drive("r", &[item("a", "echo two >wanted; echo two >a.txt; cp wanted cache/installed")]).ends(0);
    assert_eq!(recheck(&ground, "r", 0)["items"][0]["detail"], "the check passed; recorded: passed");
}

#[test]
fn a_setup_that_applies_a_consumed_patch_runs_before_the_product_is_there() {
    let ground = ground("grep -q more a.txt && test -f dir/b.txt && test -f cache/x && ! test -e OUTSIDE.d/log.txt");
    ground.env.write("outside.d/b.txt", "mine\n");
    ground.env.write("repo/.gitignore", "cache\n");
    ground.env.git(["add", "-A"]).success();
    ground.env.git(["commit", "-qm", "Ignore"]).success();
    let first = item("first", "echo good >a.txt; echo x >outputs/log.txt");
    // The consumed patch is part of the product, and a link must not lead a product out.
    let setup = "if [ -e inputs/patch ]; then git apply --index inputs/patch || exit; fi; mkdir cache; touch cache/x";
    ground.config(
        "handoff.executor.worker.setup",
        &format!("{setup}; rm -r dir outputs; ln -s {0}.d dir; ln -s {0}.d outputs", outside(&ground)),
    );
    ground.config(
        "handoff.executor.worker.command",
        "rm dir outputs; mkdir dir outputs; git checkout -q HEAD -- dir; echo more >>a.txt; echo x >outputs/log.txt",
    );
    ground.config(
        "handoff.executor.worker.verify",
        &ground.env.git(["config", "handoff.executor.command.verify"]).success(),
    );
    ground.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
    let mut second = on("second", "first", "");
    second["executor"] = "worker".into();
    second["inputs"] = json!({});
    ground.drive("r", &[first, second]).ends(0);
    let answer = recheck(&ground, "r", 0);
    assert_eq!(answer["items"][0]["detail"], "the check passed; recorded: passed", "{answer}");
    assert_eq!(ground.lines("outside.d/b.txt"), ["mine"]);
}

#[test]
fn a_check_that_ends_otherwise_is_different_and_shows_both_outputs() {
    let ground = ground("cat OUTSIDE; grep -q one OUTSIDE");
    ground.drive("r", &[item("a", "echo work >a.txt"), item("b", "echo other >dir/b.txt")]).ends(0);
    ground.env.write("outside", "two\n");
    let detail = "the check exited with 1; recorded: passed; output now: two; recorded output: one";
    let different = |item: &str| json!({ "item": item, "result": "different", "detail": detail });
    assert_eq!(
        recheck(&ground, "r", 3),
        json!({ "result": "different", "detail": "2 different", "items": [different("a"), different("b")] })
    );
    // A check that passes now although it failed is different, too.
    ground.drive("red", &[item("a", "echo work >a.txt")]).ends(4);
    ground.env.write("outside", "one\n");
    let answer = recheck(&ground, "red", 3);
    assert_eq!(
        answer["items"][0]["detail"],
        "the check passed; recorded: failed; output now: one; recorded output: two"
    );
}

#[test]
fn a_check_that_cannot_be_repeated_says_why() {
    let ground = ground("OUTSIDE");
    let script = |text: &str| {
        ground.env.write("outside", text);
        ground.env.shell(".", "chmod +x outside").success();
    };
    script("#!/bin/sh\nexit 0\n");
    ground.config("handoff.executor.command.setup", &format!("cat {}", outside(&ground)));
    ground.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let cannot = |detail: &str| json!({ "result": "cannot", "detail": "1 cannot", "items": [{ "item": "a", "result": "cannot", "detail": detail }] });
    for code in [126, 127] {
        script(&format!("#!/bin/sh\necho no\nexit {code}\n"));
        let why = format!("the check exited with {code}: a program that it needs is missing here or cannot run: no");
        assert_eq!(recheck(&ground, "r/a", 4), cannot(&why));
    }
    std::fs::remove_file(ground.path("outside")).unwrap();
    let why = "the setup exited with 1: cat: $TEST/outside: No such file or directory";
    assert_eq!(recheck(&ground, "r", 4), cannot(why));
}

#[test]
fn the_run_of_another_clone_is_repeated_where_its_base_is() {
    let ground = ground("grep -q work a.txt");
    let base = ground.env.git(["rev-parse", "HEAD"]).success().trim().to_owned();
    ground.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    ground.env.git(["commit", "--quiet", "--allow-empty", "--message", "Next"]).success();
    let path = ground.env.path().display().to_string();
    ground.env.git_in(".", ["clone", "--quiet", "--bare", "repo", "hub"]).success();
    ground.env.git(["remote", "add", "origin", &format!("{path}/hub")]).success();
    ground.env.handoff(["push", "origin", "r"]).success();
    let url = format!("file://{path}/hub");
    for (name, depth) in [("full", &[][..]), ("shallow", &["--depth=1"][..])] {
        let clone = [&["clone", "--quiet"][..], depth, &[url.as_str(), name]].concat();
        ground.env.git_in(".", clone).success();
        ground.env.handoff_in(name, ["fetch", "origin"]).success();
    }
    let answer = recheck_in(&ground, "full", "origin/r/a", 0);
    assert_eq!(answer["items"][0]["detail"], "the check passed; recorded: passed");
    let answer = recheck_in(&ground, "shallow", "origin/r", 4);
    assert_eq!(answer["items"][0]["detail"], format!("the run's base commit {base} is not in this repository"));
    let answer = recheck_in(&ground, "hub", "r", 4);
    assert_eq!(answer["items"][0]["detail"], "a bare repository has no work tree: recheck the run in a clone");
}

#[test]
fn protected_files_have_their_reference_state() {
    let ground = ground("sh test.sh");
    ground.env.write("repo/test.sh", "grep -q work a.txt\n");
    ground.env.git(["add", "-A"]).success();
    ground.env.git(["commit", "-qm", "Test"]).success();
    ground.config("handoff.protect", "test.sh");
    ground.config("handoff.executor.tester.command", "echo 'grep -q tested a.txt' >test.sh");
    ground.config("handoff.executor.tester.onProtectedChange", "allow");
    let mut implement = item("implement", "echo tested >a.txt");
    implement["needs"] = json!({ "patch": { "from": "tester", "select": { "kind": "patch" } } });
    let items = [
        item("bends", "echo 'exit 0' >test.sh"),
        item("breaks", "echo 'exit 1' >test.sh; echo work >a.txt"),
        json!({ "id": "tester", "executor": "tester" }),
        implement,
    ];
    ground.drive("r", &items).ends(4);
    let answer = recheck(&ground, "r", 0);
    let details: Vec<_> = answer["items"].as_array().unwrap().iter().map(|item| &item["detail"]).collect();
    let (passed, failed) = ("the check passed; recorded: passed", "the check exited with 1; recorded: failed");
    assert_eq!(details, [failed, passed, passed], "{answer}");
    // The local settings do not decide what is protected.
    ground.env.git(["config", "--unset", "handoff.protect"]).success();
    assert_eq!(recheck(&ground, "r", 0), answer);
}

#[test]
fn without_a_terminal_nothing_runs_before_it_is_confirmed() {
    let ground = ground("touch OUTSIDE.ran");
    ground.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let ran = ground.path("outside.ran");
    std::fs::remove_file(&ran).unwrap();
    let refused = ground.env.handoff(["verify", "--recheck", "r"]).exit(2);
    insta::assert_snapshot!(refused.stderr, @r"
    a: sandbox none
      check  sh -c 'touch $TEST/outside.ran'
    error: --recheck needs --yes where there is no terminal to ask on; nothing was run
    hint: git handoff verify --recheck r --yes   # runs these commands
    ");
    assert!(!ran.exists());
    let answers = |answer: &str, code: i32| {
        let line = format!("echo {answer} | script -qec 'git-handoff verify --recheck r' /dev/null");
        ground.env.shell("repo", &line).ends(code);
    };
    answers("no", 1);
    assert!(!ran.exists());
    answers("yes", 0);
    assert!(ran.exists());
    ground.is_clean();
}

#[test]
fn only_an_intact_run_is_repeated() {
    let ground = ground("touch OUTSIDE.ran; ! test -e OUTSIDE.wrong");
    ground.drive("r", &[item("a", "exit 1"), item("b", "true")]).ends(4);
    let ran = ground.path("outside.ran");
    std::fs::remove_file(&ran).unwrap();
    let open = ground.env.handoff(["verify", "--recheck", "r/b", "--yes", "--json"]).exit(3);
    let report: Value = serde_json::from_str(&open.stdout).unwrap();
    assert_eq!((&report["failure"], &report["recheck"]), (&json!("not-sealed"), &Value::Null));
    ground.env.handoff(["close", "r"]).success();
    let signers = ["verify", "--recheck", "r/b", "--yes", "--signers", "/dev/null"];
    ground.env.handoff(signers).ends(3);
    assert!(!ran.exists());
    // Failed items do not count.
    assert_eq!(recheck(&ground, "r", 0)["detail"], "1 same");
    assert!(ran.exists());
    for wrong in [&["r", "r"][..], &["--all"], &["r", "--format", "snapshot"], &["r", "--reproduce", "HEAD"]] {
        ground.env.handoff([&["verify", "--recheck", "--yes"], wrong].concat()).ends(2);
    }
    ground.env.handoff(["verify", "r", "--yes"]).ends(2);
}

#[test]
fn the_network_is_the_recorded_one_and_never_more_than_the_settings_allow() {
    if !has_bubblewrap("the network") {
        return;
    }
    let ground = ground("true");
    ground.config("handoff.sandbox", "auto");
    ground.drive("any", &[item("a", "true")]).ends(0);
    ground.config("handoff.network", "none");
    ground.drive("none", &[item("a", "true")]).ends(0);
    let network = |run: &str| {
        let said = ground.env.handoff(["verify", "--recheck", run, "--yes"]).exit(0).stderr;
        said.lines().find_map(|line| line.split_once(", network ").map(|(_, network)| network.to_owned()))
    };
    assert_eq!(network("any").as_deref(), Some("none"));
    ground.config("handoff.network", "any");
    assert_eq!(network("none").as_deref(), Some("none"));
    assert_eq!(network("any").as_deref(), Some("any"));
    ground.config("handoff.executor.command.network", "loopback");
    assert_eq!(network("any").as_deref(), Some("loopback"));
}

#[test]
fn a_check_with_held_out_files_cannot_be_repeated() {
    if !has_bubblewrap("held-out files") {
        return;
    }
    let ground = ground("sh held.sh");
    ground.config("handoff.sandbox", "auto");
    ground.env.write("held/held.sh", "grep -q work a.txt\n");
    ground.config("handoff.executor.command.heldOut", ground.path("held").to_str().unwrap());
    ground.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    let answer = recheck(&ground, "r", 4);
    assert_eq!(answer["items"][0]["detail"], "the check needs held-out files, which are not part of the run");
}

#[test]
fn a_stranger_gets_no_secrets_and_runs_no_redacted_command() {
    let ground = ground("test -z \"$TOKEN\"");
    ground.config("handoff.executor.command.secretEnv", "TOKEN");
    let mut command = ground.env.command(crate::common::program_path(), "repo");
    command.env("TOKEN", "hunter2hunter2").args(["run", &ground.plan("r", &[item("a", "true")])]);
    ground.env.ended(command).ends(4);
    let mut command = ground.env.command(crate::common::program_path(), "repo");
    command.env("TOKEN", "hunter2hunter2").args(["verify", "--recheck", "r", "--yes"]);
    let said = ground.env.ended(command).exit(3).stdout;
    assert!(said.contains("✗ recheck    a: different: the check passed; recorded: failed"), "{said}");
    let token = ["ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"].concat();
    ground.env.git(["config", "--unset", "handoff.executor.command.secretEnv"]).success();
    ground.config("handoff.executor.command.verify", &format!("echo {token}"));
    ground.drive("s", &[item("a", "true")]).ends(0);
    let answer = recheck(&ground, "s", 4);
    assert_eq!(answer["items"][0]["detail"], "a credential was removed from the recorded commands");
}

#[test]
fn an_interrupted_one_leaves_nothing_and_a_killed_one_is_cleaned_up() {
    use rustix::process::Signal;
    let ground = ground("if [ -e OUTSIDE.slow ]; then touch OUTSIDE.runs; sleep 60; fi");
    ground.drive("r", &[item("a", "echo work >a.txt")]).ends(0);
    ground.env.write("outside.slow", "");
    let runs = ground.path("outside.runs");
    let start = || {
        let _ = std::fs::remove_file(&runs);
        let started = ground.start(&["verify", "--recheck", "r", "--yes"]);
        wait_for("the check", || runs.exists());
        started
    };
    let started = start();
    started.signal(Signal::INT);
    let (status, said) = started.wait();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted; no worktree is left behind"), "{said}");
    ground.is_clean();
    let started = start();
    // A second one, and `clean`, leave it alone.
    let held = ground.env.handoff(["--json", "verify", "--recheck", "r", "--yes"]).exit(5);
    assert_eq!(error_code(&held.stderr), "held");
    ground.env.handoff(["clean", "--force"]).success();
    assert!(!ground.worktrees().is_empty(), "clean removed a worktree in use");
    assert!(started.kill());
    ground.env.handoff(["clean", "--force"]).success();
    ground.is_clean();
    assert!(!ground.refs().contains("salvage"), "nothing is worth saving");
    assert!(start().kill());
    std::fs::remove_file(ground.path("outside.slow")).unwrap();
    recheck(&ground, "r", 0);
    ground.is_clean();
}
