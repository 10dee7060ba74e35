//! Everything is protected except some paths.

use serde_json::{Value, json};

use super::{BENDS, CHECK, changes, status};
use crate::common::Environment;
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_line, find_row, verdict};

/// Protects everything except `app.txt` from every worker.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.protectExcept", "app.txt");
    repo.config("handoff.executor.command.verify", "make -s");
    repo.config("handoff.executor.command.onVerifyFail", "keep");
    repo.env.write("repo/tests/check.sh", CHECK);
    repo.env.write("repo/tests/parts/one.sh", ":\n");
    repo.env.write("repo/package.json", "{}\n");
    repo.env.write("repo/Makefile", "test:\n\tsh tests/check.sh\n");
    repo.env.write("repo/app.txt", "broken\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Check"]).success();
    repo
}

#[test]
fn no_bend_is_green_when_everything_else_is_protected() {
    let repo = repo();
    let more = [
        "printf 'test:\\n\\ttrue\\n' >GNUmakefile",
        "printf 'test:\\n\\ttrue\\n' >GNUmakefile; echo GNUmakefile >.git/info/exclude",
        "printf 'test:\\n\\ttrue\\n' >GNUmakefile; echo '*' >.gitignore",
        "echo broken >app.txt; echo x >app.txt.new",
    ];
    let scripts = BENDS.iter().map(|(_, script, _)| *script).chain(more);
    let items: Vec<_> = scripts.enumerate().map(|(at, script)| item(&format!("b{at}"), script)).collect();
    let ended = repo.drive("bends", &items);
    assert_eq!(ended.status, Some(4), "{ended}");
    for item in repo.status("bends")["items"].as_array().unwrap() {
        assert!(item["status"] == "failed" || item["red"] == true, "{item:#}");
    }
    let edited = status(&repo, "bends", "b0");
    assert_eq!(changes(&edited), [("tests/check.sh".to_owned(), "modified".to_owned())]);
    repo.env.handoff(["close", "bends"]).success();
    let verified = repo.env.handoff(["verify", "bends", "--require", "protected"]).exit(4).stdout;
    assert_eq!(verdict(&verified), "─ INTACT · tamper-detecting PARTIAL");
}

#[test]
fn work_on_the_exceptions_is_green_and_proven_without_the_base() {
    let repo = repo();
    let items = [
        item("fix", "echo fixed >app.txt; echo log >outputs/log"),
        item("add", "echo fixed >app.txt; echo x >new.txt"),
    ];
    repo.drive("r", &items).ends(4);
    let (fix, add) = (status(&repo, "r", "fix"), status(&repo, "r", "add"));
    assert_eq!((&fix["status"], &fix["red"], changes(&fix)), (&json!("done"), &json!(null), vec![]));
    assert_eq!((&add["red"], changes(&add)), (&json!(true), vec![("new.txt".to_owned(), "added".to_owned())]));
    let row = find_row(&repo.env.handoff(["verify", "r"]).exit(4).stdout, "plan").to_owned();
    insta::assert_snapshot!(row, @"✓ plan       2 of 2 items accounted for, every transition legal, protected files of 2 items recomputed");
    repo.env.handoff(["bundle", "r", "-o", "../r.bundle"]).success();
    repo.env.shell(".", "git init -q other").success();
    let elsewhere = repo.env.handoff_in("other", ["verify", "--bundle", "../r.bundle"]).exit(4).stdout;
    assert_eq!(find_row(&elsewhere, "protected"), "✗ protected  add: new.txt added");
}

#[test]
fn exceptions_of_plan_executor_and_repository_are_free_only_together() {
    let repo = repo();
    repo.config("handoff.executor.command.protectExcept", "app.txt");
    repo.env.git(["config", "--add", "handoff.executor.command.protectExcept", "docs"]).success();
    repo.env.git(["config", "--add", "handoff.protectExcept", "docs"]).success();
    repo.env.git(["config", "--add", "handoff.protect", "docs/fixed"]).success();
    let mut of_plan = item("of-plan", "echo fixed >app.txt; mkdir docs; echo x >docs/x");
    of_plan["protect"] = json!({"except": ["app.txt"]});
    let items = [
        item("both", "echo fixed >app.txt; mkdir docs; echo x >docs/x"),
        item("fixed", "echo fixed >app.txt; mkdir docs; echo x >docs/fixed"),
        of_plan,
    ];
    repo.drive("r", &items).ends(4);
    assert_eq!(changes(&status(&repo, "r", "both")), []);
    let added = |path: &str| vec![(path.to_owned(), "added".to_owned())];
    assert_eq!(changes(&status(&repo, "r", "fixed")), added("docs/fixed"));
    assert_eq!(changes(&status(&repo, "r", "of-plan")), added("docs/x"));
    let manifest = repo.env.handoff(["cat", "r/of-plan:manifest"]).success();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let expected = json!(["docs/fixed", {"except": ["app.txt"]}, {"except": ["app.txt", "docs"]}]);
    assert_eq!(manifest["protect"], expected);
}

#[test]
fn settings_do_not_allow_what_a_plan_protects_by_an_exception() {
    let repo = repo();
    repo.config("handoff.onProtectedChange", "allow");
    let mut edit = item("edit", "echo fixed >app.txt; echo x >new.txt");
    repo.drive("settings", &[edit.clone()]).ends(0);
    edit["protect"] = json!({"except": ["app.txt"]});
    repo.drive("plan", &[edit]).ends(4);
    assert_eq!(repo.item("plan", "edit").reason, "protected-changed: new.txt added");
    let verified = repo.env.handoff(["verify", "plan"]).exit(4).stdout;
    assert_eq!(find_row(&verified, "protected"), "✗ protected  edit: new.txt added");
}

#[test]
fn without_an_exception_everything_is_protected() {
    let repo = TestRepo::new();
    let mut review = item("review", "echo fine >outputs/review.md");
    review["protect"] = json!({"except": []});
    let mut edit = item("edit", "echo x >x.txt");
    edit["protect"] = json!(["a.txt", {"except": []}]);
    repo.drive("r", &[review, edit]).ends(4);
    assert_eq!(changes(&status(&repo, "r", "review")), []);
    assert_eq!(changes(&status(&repo, "r", "edit")), [("x.txt".to_owned(), "added".to_owned())]);
}

#[test]
fn what_is_ignored_is_moved_away_but_for_the_files_of_a_fresh_setup() {
    let repo = repo();
    repo.env.write("repo/.gitignore", "tools\nlocal.mk\n");
    repo.env.write("repo/Makefile", "-include local.mk\ntest:\n\tsh tests/check.sh && cat tools/tool\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Tools"]).success();
    repo.config("handoff.executor.command.setup", "mkdir -p tools; echo ready >tools/tool");
    let bend = "echo 'SHELL = true' >local.mk; mkdir -p tools; echo mine >tools/tool";
    let items =
        [item("honest", "echo fixed >app.txt"), item("bend", bend), item("list", &format!("{bend}; rm .gitignore"))];
    // The worker could have changed the tools in its worktree.
    repo.drive("worktree", &items).ends(4);
    assert_eq!(status(&repo, "worktree", "honest")["red"], true);
    repo.config("handoff.executor.command.verifyIn", "fresh");
    repo.drive("fresh", &items).ends(4);
    let honest = status(&repo, "fresh", "honest");
    assert_eq!((&honest["status"], &honest["red"]), (&json!("done"), &json!(null)));
    assert_eq!(repo.env.handoff(["cat", "fresh/honest:check"]).success(), "ready\n");
    for bent in ["bend", "list"] {
        assert_eq!(status(&repo, "fresh", bent)["red"], true, "{bent}");
    }
    // A check of the list that judges changes does not see the files that came with them.
    repo.config("handoff.onProtectedChange", "judge");
    repo.drive("judged", &items[2..]).ends(4);
    assert_eq!(status(&repo, "judged", "list")["red"], true);
    let repeated = repo.env.handoff(["verify", "fresh", "--recheck", "--yes", "--json"]).success();
    let repeated: Value = serde_json::from_str(&repeated).unwrap();
    let results = repeated["recheck"]["items"].as_array().unwrap().iter().map(|item| item["result"].as_str().unwrap());
    assert_eq!(results.collect::<Vec<_>>(), ["same", "same", "same"]);
}

#[test]
fn a_recording_has_the_exceptions_in_its_plan() {
    let repo = repo();
    let script = "echo fixed >app.txt; echo x >new.txt";
    repo.env.handoff(["record", "--as", "r", "--check", "make -s", "--", "sh", "-c", script]).ends(4);
    assert_eq!(changes(&status(&repo, "r", "record")), [("new.txt".to_owned(), "added".to_owned())]);
    let verified = repo.env.handoff(["verify", "r"]).exit(4).stdout;
    assert_eq!(find_row(&verified, "protected"), "✗ protected  record: new.txt added");
}

#[test]
fn a_wrong_exception_is_refused_by_its_place() {
    let repo = TestRepo::with_options(Environment::empty(), &[]);
    let mut wrong = item("a", "true");
    for (protect, code, at, why) in [
        (json!({"except": "src"}), "wrong-type", "protect.except", "expected an array, found a string"),
        (json!({}), "missing-field", "protect.except", "the field `except` is missing"),
        (json!({"except": [3]}), "wrong-type", "protect.except[0]", "expected a string, found 3"),
        (
            json!({"except": ["src", ":!x"]}),
            "bad-pathspec",
            "protect.except[1]",
            "the pathspec \":!x\" excludes files; protect what it leaves, or protect everything except some files",
        ),
        (
            json!(["tests", {"except": ["../x"]}]),
            "bad-pathspec",
            "protect[1].except[0]",
            "the pathspec \"../x\" leads out of the repository; name a path from its top",
        ),
        (json!("src"), "wrong-type", "protect", "expected an array, found a string"),
    ] {
        wrong["protect"] = protect;
        let file = repo.plan("w", &[wrong.clone()]);
        let refused = repo.env.handoff(["validate", &file]).exit(1);
        assert_eq!(find_line(&refused.stdout, code), format!("{code} at items[0].{at} (item \"a\", line 1): {why}"));
    }
    repo.config("handoff.protectExcept", "/src");
    insta::assert_snapshot!(repo.env.handoff(["runs"]).exit(1).stderr, @r#"
    error: the setting `handoff.protectexcept` = "/src" in $TEST/repo/.git/config leads out of the repository; name a path from its top
    hint: git config --show-origin --get-all handoff.protectexcept
    "#);
}
