//! Changes to protected files that a check judged, and checks without protected files.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{changes, on, repo, status};
use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

/// Fixes the code and adds a test.
const ADDS_A_TEST: &str = "echo fixed >app.txt; echo 'grep -q fixed app.txt' >tests/parts/two.sh";

fn judging() -> TestRepo {
    let repo = repo("none");
    repo.config("handoff.onProtectedChange", "judge");
    repo
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Recomputes a run's page with the second implementation of the format.
fn page(repo: &TestRepo, run: &str) -> String {
    let path = repo.path("page.html");
    repo.env.handoff(["report", run, "-o", path.to_str().unwrap()]).success();
    let mut node = Command::new("node");
    node.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tests/interop/pages.mjs", "--only-check"]).arg(&path);
    let output = node.output().expect("node is installed; see .ci/prepare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn work_that_adds_a_test_is_green_and_marked_on_every_screen() {
    let repo = judging();
    let more = format!("{ADDS_A_TEST}; echo more >>tests/check.sh");
    let ended = repo.drive("r", &[item("a", &more)]).exit(0);
    let mark = "! 2 protected files changed, judged as in the base";
    let stdout = repo.env.handoff(["show", "r/a"]).success();
    let verified = repo.env.handoff(["verify", "r"]).success();
    let markdown = repo.env.handoff(["report", "r", "--markdown"]).success();
    let screens = [ended.stdout.clone(), repo.env.handoff(["status", "r"]).success(), stdout, verified, markdown];
    for screen in &screens {
        assert!(screen.contains(mark), "{screen}");
        assert!(!screen.contains("nothing protected"), "{screen}");
    }
    let line = format!("{mark}: a: tests/check.sh modified, tests/parts/two.sh added");
    assert_eq!(find_line(&screens[3], mark), line);
    let listed = status(&repo, "r", "a");
    assert_eq!((&listed["status"], &listed["judged"], &listed["red"]), (&json!("done"), &json!(true), &Value::Null));
    let report = json_of(&repo.env.handoff(["verify", "r", "--json"]).success());
    assert_eq!(report["protected"][0]["judged"], true);
    assert!(page(&repo, "r").contains(mark));
    // The check saw the files of the base.
    let entry = repo.entries("r").into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
    assert_eq!((&entry["protectedJudged"], &entry["check"]["restored"]), (&json!(true), &json!(2)));
    let applied = repo.env.handoff(["apply", "r"]).success();
    assert_eq!(applied, format!("a: applied\n{line}\n"));
    repo.env.git(["reset", "--quiet", "--hard"]).success();
    let allowed = json_of(&repo.env.handoff(["apply", "r", "--json", "--without-protected"]).success());
    assert_eq!(
        (&allowed["items"][0]["judged"], &allowed["items"][0]["withoutProtected"]),
        (&Value::Null, &json!(true))
    );
}

#[test]
fn a_change_that_no_check_let_pass_is_red() {
    let repo = judging();
    // The tests of the base fail, whatever the worker makes of them.
    repo.drive("fails", &[item("a", "echo exit 0 >tests/check.sh")]).ends(4);
    let failed = repo.item("fails", "a");
    assert_eq!((failed.status.as_str(), failed.reason.contains("protected-changed: ")), ("done", true), "{failed:?}");
    repo.env.handoff(["verify", "fails"]).ends(4);
    // The word of the worker is no check, and neither is no check at all.
    repo.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
    let claims =
        "echo fixed >app.txt; echo more >>tests/check.sh; echo '{\"verify\":{\"passed\":true}}' >\"$HANDOFF_RESULT\"";
    repo.drive("none", &[item("a", "echo more >>tests/check.sh"), item("claims", claims)]).ends(4);
    for id in ["a", "claims"] {
        let listed = status(&repo, "none", id);
        assert_eq!((&listed["red"], &listed["judged"]), (&json!(true), &Value::Null), "{listed:#}");
    }
    repo.env.handoff(["verify", "none"]).ends(4);
    page(&repo, "none");
}

#[test]
fn judged_changes_do_not_reach_the_checks_of_consumers() {
    let repo = judging();
    let bend = "echo fixed >app.txt; echo exit 0 >tests/check.sh";
    let items = [
        item("a", bend),
        // Its own work does not pass the tests of the base, but those that `a` bent.
        on("b", "a", "git apply inputs/patch; echo broken >app.txt"),
        on("c", "a", "git apply inputs/patch"),
    ];
    repo.drive("r", &items).ends(4);
    let outcome = |id: &str| {
        let item = status(&repo, "r", id);
        (item["red"] == true, item["judged"] == true, changes(&item))
    };
    let bent = vec![("tests/check.sh".to_owned(), "modified".to_owned())];
    assert_eq!(outcome("a"), (false, true, bent.clone()));
    assert_eq!((outcome("b").0, outcome("b").1), (true, false));
    assert_eq!(outcome("c"), (false, true, bent));
    repo.env.handoff(["verify", "r"]).ends(4);
    let stdout = repo.env.handoff(["apply", "r/c"]).success();
    assert!(
        stdout.ends_with("! 1 protected file changed, judged as in the base: c: tests/check.sh modified\n"),
        "{stdout}"
    );
}

#[test]
fn a_plan_chooses_the_effect_unless_a_setting_does() {
    let repo = repo("none");
    let mut adds = item("a", ADDS_A_TEST);
    for (effect, code) in [("red", 4), ("judge", 0)] {
        adds["onProtectedChange"] = json!(effect);
        repo.drive(effect, &[adds.clone()]).ends(code);
        repo.env.handoff(["verify", effect]).ends(code);
    }
    repo.config("handoff.onProtectedChange", "red");
    repo.drive("set", &[adds.clone()]).ends(4);
    for (wrong, why) in [
        (json!("allow"), "expected red, fail or judge, found \"allow\""),
        (json!("Judge"), "expected red, fail or judge, found \"Judge\""),
        (json!(true), "expected a string, found true"),
        (json!(""), "expected a string that is not empty"),
    ] {
        adds["onProtectedChange"] = wrong;
        let file = repo.plan("w", &[adds.clone()]);
        let refused = repo.env.handoff(["validate", &file]).exit(1);
        let problem = format!("wrong-type at items[0].onProtectedChange (item \"a\", line 1): {why}");
        assert_eq!(find_line(&refused.stdout, "wrong-type"), problem);
    }
}

#[test]
fn status_reports_checks_without_protected_files() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.command.verify", "true");
    let bare = "check: nothing protected";
    let one = repo.drive("one", &[item("a", "echo x >x.txt")]).exit(0).stdout;
    assert_eq!(find_line(&one, bare), bare);
    let mut protects = item("b", "echo y >y.txt");
    protects["protect"] = json!(["a.txt"]);
    let several = repo.drive("several", &[item("a", "echo x >x.txt"), protects.clone()]).exit(0).stdout;
    assert_eq!(find_line(&several, bare), format!("{bare} (a)"));
    for command in [&["status", "one"][..], &["show", "one/a"], &["verify", "one"], &["apply", "one"]] {
        let stdout = repo.env.handoff(command).success();
        assert_eq!(find_line(&stdout, bare), bare, "{command:?}");
    }
    assert!(page(&repo, "one").contains(bare));
    assert!(repo.env.handoff(["report", "one", "--markdown"]).success().contains(bare));
    let report = json_of(&repo.env.handoff(["verify", "several", "--json"]).success());
    assert_eq!(report["unprotected"], json!(["a"]));
    assert_eq!(status(&repo, "several", "a")["unprotected"], true);
    // With protected files, or without a check, there is nothing to say.
    protects["id"] = json!("p");
    repo.drive("protects", &[protects]).ends(0);
    repo.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
    repo.drive("unchecked", &[item("a", "echo z >z.txt")]).ends(0);
    for run in ["protects", "unchecked"] {
        for command in ["status", "verify", "apply"] {
            let stdout = repo.env.handoff([command, run]).success();
            assert!(!stdout.contains(bare), "{command} {run}: {stdout}");
        }
    }
}

/// Commits the files of a package with tests.
fn package() -> TestRepo {
    let repo = TestRepo::new();
    repo.env.write("repo/package.json", "{}\n");
    repo.env.write("repo/test/a.sh", "grep -q fixed a.txt\n");
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Tests"]).success();
    repo
}

const RUNS_TESTS: &str = "for test in test/*.sh; do sh $test || exit 1; done";

#[test]
fn a_recorded_check_protects_known_files_by_its_plan() {
    let repo = package();
    let record = |options: &[&str], script: &str| {
        let fixed = ["record", "--check", RUNS_TESTS].into_iter().chain(options.iter().copied());
        repo.env.handoff(fixed.chain(["--", "sh", "-c", script]).collect::<Vec<_>>())
    };
    let adds = "echo fixed >a.txt; echo true >test/b.sh";
    let green = record(&["--as", "green"], adds).exit(0);
    assert!(green.stdout.contains("! 1 protected file changed, judged as in the base"), "{green}");
    let note = "protected while the check runs: test, the files of npm (--no-protect switches this off)";
    assert_eq!(find_line(&green.stderr, "protected while"), note);
    let second_note = "not protected, since honest work changes it: package.json";
    assert_eq!(find_line(&green.stderr, "not protected"), second_note);
    let plan = json_of(&repo.env.git(["show", "refs/handoff/runs/green^{/run.submitted}:plan.json"]).success());
    let item = &plan["items"][0];
    let protect: Vec<&str> = item["protect"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(protect.contains(&"test") && protect.contains(&":(glob)**/.npmrc"), "{protect:?}");
    assert!(!protect.contains(&":(glob)**/package.json"), "{protect:?}");
    assert_eq!(item["onProtectedChange"], "judge");
    record(&["--as", "bends"], "echo true >test/a.sh").ends(4);
    let left = record(&["--as", "left", "--no-protect"], "echo true >test/a.sh").exit(0);
    assert_eq!(find_line(&left.stdout, "check: nothing protected"), "check: nothing protected");
    // Settings that protect files are enough, and so is no check.
    repo.config("handoff.protect", "package.json");
    record(&["--as", "settings"], adds).ends(0);
    let show_plan = json_of(&repo.env.git(["show", "refs/handoff/runs/settings^{/run.submitted}:plan.json"]).success());
    assert_eq!(show_plan["items"][0]["protect"], Value::Null);
    repo.env.handoff(["record", "--no-protect", "--", "true"]).ends(2);
}

#[test]
fn a_new_check_protects_known_files_by_settings() {
    let repo = package();
    let settings = || repo.env.git(["config", "--local", "--get-regexp", "^handoff\\.(protect|onprotected)"]).stdout;
    repo.env.handoff(["init", "--yes", "--check", RUNS_TESTS, "--no-protect"]).success();
    assert_eq!(settings(), "");
    let set = repo.env.handoff(["init", "--yes", "--check", "sh test/a.sh"]).success();
    for line in ["+ handoff.protect = test", "+ handoff.onProtectedChange = judge"] {
        assert_eq!(find_line(&set, line), line);
    }
    let protected = settings();
    repo.drive("r", &[item("a", "echo fixed >a.txt; echo true >test/b.sh")]).ends(0);
    assert_eq!(status(&repo, "r", "a")["judged"], true);
    // Existing settings stay, and so do the files that the user protects.
    repo.env.handoff(["init", "--yes", "--check", RUNS_TESTS]).success();
    assert_eq!(settings(), protected);
    let other = package();
    other.env.handoff(["init", "--yes", "--check", "true", "--protect", "a.txt"]).success();
    let other_settings =
        other.env.git(["config", "--local", "--get-regexp", "^handoff\\.(protect|onprotected)"]).success();
    assert_eq!(other_settings, "handoff.protect a.txt\n");
    let fails = package();
    fails.config("handoff.onProtectedChange", "fail");
    fails.env.handoff(["init", "--yes", "--check", "true"]).success();
    let failing_settings = fails.env.git(["config", "--get-all", "handoff.onProtectedChange"]).success();
    assert_eq!(failing_settings, "fail\n");
    for wrong in
        [&["init", "--yes", "--no-protect"][..], &["init", "--yes", "--check", "x", "--no-protect", "--protect", "y"]]
    {
        fails.env.handoff(wrong).ends(2);
    }
}

#[test]
fn nothing_known_is_nothing_protected() {
    let repo = TestRepo::new();
    repo.env.handoff(["init", "--yes", "--check", "true"]).success();
    let set = repo.env.git(["config", "--local", "--get-regexp", "^handoff\\."]).success();
    assert_eq!(set, "handoff.executor.command.verify true\n");
    let done = repo.env.handoff(["record", "--check", "true", "--", "sh", "-c", "echo x >x.txt"]).exit(0);
    assert_eq!(find_line(&done.stdout, "check: nothing"), "check: nothing protected");
    assert!(Path::new(&repo.env.repo()).exists());
}
