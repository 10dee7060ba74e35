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
        "mkdir test",
        "mkdir -p test/a/b",
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

/// Sets a repository up whose setup makes an ignored tool that the check runs.
fn with_tool() -> TestRepo {
    let repo = repo();
    repo.env.write("repo/.gitignore", "tools\nlocal.mk\n");
    repo.env.write(
        "repo/setup.sh",
        "mkdir -p tools/empty tools/lib/.git; echo x >tools/lib/.git/config; echo 'sh tests/check.sh' >tools/check\n",
    );
    repo.env.write("repo/Makefile", "-include local.mk tools/more.mk\ntest:\n\tsh tools/check\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Tools"]).success();
    repo.config("handoff.executor.command.setup", "sh setup.sh");
    repo
}

/// Ways to bend a check through files that git ignores.
const IGNORED: [(&str, &str); 4] = [
    ("settings", "echo 'SHELL = true' >local.mk"),
    ("tool", "echo exit 0 >tools/check"),
    ("list", "echo 'SHELL = true' >local.mk; rm -r .gitignore tools/lib"),
    ("setup", "echo 'mkdir tools; echo exit 0 >tools/check' >setup.sh"),
];

#[test]
fn ignored_files_are_moved_away_except_those_of_a_fresh_setup() {
    let repo = with_tool();
    let bends = IGNORED.map(|(id, script)| item(id, script));
    let items = [&[item("honest", "echo fixed >app.txt")][..], &bends].concat();
    // The worker could have changed the tools in its worktree.
    repo.drive("worktree", &items).ends(4);
    assert_eq!(status(&repo, "worktree", "honest")["red"], true);
    repo.config("handoff.executor.command.verifyIn", "fresh");
    for (run, effect) in [("red", "red"), ("judged", "judge")] {
        repo.config("handoff.onProtectedChange", effect);
        repo.drive(run, &items).ends(4);
        let honest = status(&repo, run, "honest");
        assert_eq!((&honest["status"], &honest["red"]), (&json!("done"), &json!(null)), "{run}");
        for (bend, _) in IGNORED {
            assert_eq!(status(&repo, run, bend)["red"], true, "{run} {bend}");
        }
        let repeated = repo.env.handoff(["verify", run, "--recheck", "--yes", "--json"]).success();
        let repeated: Value = serde_json::from_str(&repeated).unwrap();
        let results = repeated["recheck"]["items"].as_array().unwrap().iter();
        assert!(results.clone().count() == 5 && results.clone().all(|item| item["result"] == "same"), "{repeated:#}");
    }
}

#[test]
fn files_of_a_consumed_patch_do_not_count_as_those_of_a_setup() {
    let repo = with_tool();
    repo.config("handoff.executor.command.verifyIn", "fresh");
    repo.config("handoff.onProtectedChange", "judge");
    let first = item(
        "first",
        "echo fixed >app.txt; echo >.gitignore; rm -rf tools/empty tools/lib; echo 'SHELL = true' >tools/more.mk",
    );
    let mut second = item("second", "echo broken again >app.txt; rm -r tools/lib");
    second["needs"] = json!({"patch": {"from": "first", "select": {"kind": "patch"}, "apply": true}});
    repo.drive("r", &[first, second]).ends(4);
    assert_eq!(status(&repo, "r", "second")["red"], true);
}

#[test]
fn inputs_and_outputs_stay_for_the_check() {
    let repo = repo();
    repo.config("handoff.executor.command.verify", "cat inputs/log outputs/log 2>/dev/null; make -s");
    let mut second = item("second", "echo fixed >app.txt; echo two >outputs/log");
    second["needs"] = json!({"log": {"from": "first", "select": {"kind": "output", "path": "log"}}});
    repo.drive("r", &[item("first", "echo fixed >app.txt; echo one >outputs/log"), second]).ends(0);
    let output = |id: &str| repo.env.handoff(["show", &format!("r/{id}"), "--check"]).success();
    assert_eq!([output("first"), output("second")], ["one\n", "one\ntwo\n"]);
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

const LIMITS: &str = "more than 64 rules with exceptions, or pathspecs of more than 131072 bytes";

#[test]
fn parentheses_in_a_path_are_no_magic() {
    let repo = TestRepo::new();
    let mut edit = item("edit", "mkdir -p 'src/(auth)'; echo x >'src/(auth)/page'");
    edit["protect"] = json!({"except": ["src/(auth)/page"]});
    repo.config("handoff.protect", "src/(other)/..page");
    repo.drive("r", &[edit]).ends(0);
    assert_eq!(changes(&status(&repo, "r", "edit")), []);
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
        (
            json!({"except": [":(prefix:1)x"]}),
            "bad-pathspec",
            "protect.except[0]",
            "the pathspec \":(prefix:1)x\" has a prefix, which is for git's own use",
        ),
        (
            json!({"except": [":/:/x"]}),
            "bad-pathspec",
            "protect.except[0]",
            "the pathspec \":/:/x\" leads out of the repository; name a path from its top",
        ),
        (json!(vec![json!({"except": ["x"]}); 65]), "bad-pathspec", "protect", LIMITS),
        (json!(["x".repeat(131_072)]), "bad-pathspec", "protect", LIMITS),
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
