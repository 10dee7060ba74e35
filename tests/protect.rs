//! Protected files: ways to bend a check, none of which makes an item green, and honest work that
//! stays green.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod allowed;
mod except;
mod judged;
mod runners;
mod suggested;
mod unmatched;

use serde_json::{Value, json};

use crate::common::Environment;
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_line, find_row};

/// The check of the base: it needs a fix in `app.txt`, and runs every part below `tests/parts`.
const CHECK: &str = "for part in tests/parts/*.sh; do . ./$part; done\nfor conf in $(find . -name conftest.sh); do . $conf; done\ngrep -q fixed app.txt\n";

/// A way to bend the check, and the changes to protected files that it is seen by. It has no change
/// if the check still fails.
type Bend = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const BENDS: &[Bend] = &[
    ("edit the test", "echo exit 0 >tests/check.sh", &[("tests/check.sh", "modified")]),
    ("append to the test", "sed -i '1i exit 0' tests/check.sh", &[("tests/check.sh", "modified")]),
    ("delete the test", "rm tests/check.sh", &[("tests/check.sh", "deleted")]),
    ("delete all tests", "rm -r tests", &[("tests/check.sh", "deleted"), ("tests/parts/one.sh", "deleted")]),
    ("edit a part", "echo exit 0 >tests/parts/one.sh", &[("tests/parts/one.sh", "modified")]),
    ("add a part", "echo exit 0 >tests/parts/two.sh", &[("tests/parts/two.sh", "added")]),
    ("add a hidden part", "echo exit 0 >tests/parts/.two.sh", &[("tests/parts/.two.sh", "added")]),
    ("add an ignored part", "echo 'tests/parts/ignored.sh' >.gitignore; echo exit 0 >tests/parts/ignored.sh", &[]),
    ("add the runner's settings", "echo exit 0 >conftest.sh", &[("conftest.sh", "added")]),
    ("edit the scripts", "echo '{\"scripts\":{\"test\":\"true\"}}' >package.json", &[("package.json", "modified")]),
    ("edit the Makefile", "printf 'test:\\n\\ttrue\\n' >Makefile", &[("Makefile", "modified")]),
    (
        "edit cargo's settings",
        "mkdir -p .cargo; echo '[alias]' >.cargo/config.toml",
        &[(".cargo/config.toml", "added")],
    ),
    (
        "edit CI",
        "mkdir -p .github/workflows; echo 'on: never' >.github/workflows/ci.yml",
        &[(".github/workflows/ci.yml", "added")],
    ),
    ("a link to another test", "ln -sf /bin/true tests/check.sh", &[("tests/check.sh", "type")]),
    (
        "a link in place of the folder",
        "mv tests mine; echo exit 0 >mine/check.sh; ln -s mine tests",
        &[("tests", "added"), ("tests/check.sh", "deleted"), ("tests/parts/one.sh", "deleted")],
    ),
    (
        "a file in place of the folder",
        "rm -r tests; echo exit 0 >tests",
        &[("tests", "added"), ("tests/check.sh", "deleted"), ("tests/parts/one.sh", "deleted")],
    ),
    (
        "a folder in place of the test",
        "rm tests/check.sh; mkdir tests/check.sh; echo exit 0 >tests/check.sh/x",
        &[("tests/check.sh", "deleted"), ("tests/check.sh/x", "added")],
    ),
    (
        "a link in place of the inner folder",
        "mv tests/parts p; echo exit 0 >p/one.sh; ln -s ../p tests/parts",
        &[("tests/parts", "added"), ("tests/parts/one.sh", "deleted")],
    ),
    ("make the test unreadable", "chmod 000 tests/check.sh", &[]),
    ("permission to run", "chmod +x tests/check.sh", &[("tests/check.sh", "modified")]),
    ("a hard link", "ln tests/check.sh other; echo exit 0 >other", &[("tests/check.sh", "modified")]),
    ("rename away and back", "mv tests t; mv t tests", &[]),
    ("edit and put back", "cp tests/check.sh c; echo exit 0 >tests/check.sh; cp c tests/check.sh", &[]),
    ("a case variant", "mkdir Tests; echo exit 0 >Tests/check.sh", &[]),
    (
        "commit the edit",
        "echo exit 0 >tests/check.sh; git add -A; git -c user.name=w -c user.email=w@w commit -qm w",
        &[("tests/check.sh", "modified")],
    ),
    (
        "move HEAD",
        "git checkout -q --orphan mine; echo exit 0 >tests/check.sh; git add -A; git -c user.name=w -c user.email=w@w commit -qm w",
        &[("tests/check.sh", "modified")],
    ),
    (
        "mark it in the index",
        "git update-index --skip-worktree tests/check.sh; echo exit 0 >tests/check.sh",
        &[("tests/check.sh", "modified")],
    ),
    (
        "a filter by attributes",
        "echo 'tests/check.sh filter=x' >.gitattributes; git config filter.x.smudge 'echo exit 0'; git config filter.x.clean cat",
        &[],
    ),
    ("a git hook", "echo 'exit 0' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout", &[]),
    ("another work tree for git", "git config core.worktree /tmp; git config core.bare true", &[]),
    ("a repository in the tests", "git init -q tests", &[]),
    (
        "a process that keeps editing",
        "(while :; do echo exit 0 >tests/check.sh; done) >/dev/null 2>&1 & sleep 0.2",
        &[("tests/check.sh", "modified")],
    ),
    ("a program on PATH", "mkdir -p bin; echo 'exit 0' >bin/grep; chmod +x bin/grep", &[]),
    ("output like success", "echo '1 passed, 0 failed'; echo 'exit 0'", &[]),
    ("the word of the worker", "echo '{\"verify\":{\"passed\":true}}' >\"$HANDOFF_RESULT\"", &[]),
    ("variables of git", "export GIT_WORK_TREE=/tmp GIT_DIR=/tmp; echo x >x.txt", &[]),
    ("an untracked file beside it", "echo exit 0 >check.sh", &[]),
    ("old times", "echo exit 0 >tests/check.sh; touch -d 2001-01-01 tests/check.sh", &[("tests/check.sh", "modified")]),
    ("a pipe in place of the test", "rm tests/check.sh; mkfifo tests/check.sh", &[]),
    (
        "a name that is not text",
        "printf 'exit 0\\n' >\"$(printf 'tests/parts/\\377.sh')\"",
        &[("\"tests/parts/\\377.sh\"", "added")],
    ),
];

/// Protects the files of [`CHECK`] from every worker.
fn repo(sandbox: &str) -> TestRepo {
    repo_of_format("sha1", sandbox)
}

fn repo_of_format(format: &str, sandbox: &str) -> TestRepo {
    let repo = TestRepo::with_options(Environment::empty(), &["--object-format", format]);
    repo.config("handoff.sandbox", sandbox);
    for pathspec in ["tests", "conftest.sh", "**/conftest.sh", "package.json", "Makefile", ".cargo", ".github"] {
        repo.env.git(["config", "--add", "handoff.protect", pathspec]).success();
    }
    repo.config("handoff.executor.command.verify", "sh tests/check.sh");
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

fn status(repo: &TestRepo, run: &str, id: &str) -> Value {
    find(&repo.status(run), id)
}

/// Returns one item of what `status --json` printed.
fn find(status: &Value, id: &str) -> Value {
    status["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap().clone()
}

fn changes(item: &Value) -> Vec<(String, String)> {
    let list = item["protected"].as_array().cloned().unwrap_or_default();
    list.iter().map(|it| (it["path"].as_str().unwrap().to_owned(), it["change"].as_str().unwrap().to_owned())).collect()
}

/// Runs every bend, and compares what is seen with the table.
fn no_bend_is_green(sandbox: &str) {
    let repo = repo(sandbox);
    let items: Vec<Value> =
        BENDS.iter().enumerate().map(|(at, (_, script, _))| item(&format!("b{at}"), script)).collect();
    let ended = repo.drive("bends", &items);
    assert_eq!(ended.status, Some(4), "{ended}");
    let mut wrong = Vec::new();
    let bends = repo.status("bends");
    for (at, (what, _, expected)) in BENDS.iter().enumerate() {
        let item = find(&bends, &format!("b{at}"));
        let expected: Vec<_> =
            expected.iter().map(|(path, change)| ((*path).to_owned(), (*change).to_owned())).collect();
        let is_green = item["status"] == "done" && item["red"] != true;
        // A failed attempt has no product, so nothing is changed.
        let is_seen = item["status"] == "failed" || changes(&item) == expected;
        if is_green || !is_seen {
            wrong.push(format!("{what}: {item:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    repo.env.handoff(["close", "bends"]).success();
    let verified = repo.env.handoff(["verify", "bends"]).exit(4);
    assert_eq!(
        find_row(&verified.stdout, "plan"),
        "✓ plan       40 of 40 items accounted for, every transition legal, protected files of 38 items recomputed"
    );
}

#[test]
fn changed_checks_are_red_in_a_sandbox() {
    no_bend_is_green("auto");
}

#[test]
fn changed_checks_are_red_without_a_sandbox() {
    no_bend_is_green("none");
}

/// Returns an item that needs the patch of another at `inputs/patch`.
fn on(id: &str, other: &str, script: &str) -> Value {
    let mut item = item(id, script);
    item["needs"] = json!({ "patch": { "from": other, "select": { "kind": "patch" } } });
    item
}

#[test]
fn honest_work_stays_green() {
    let repo = repo("auto");
    // The test writer is a person's plan: its changes to tests are allowed.
    repo.config("handoff.executor.tester.command", "echo 'grep -q tested app.txt || exit 1' >tests/parts/two.sh");
    repo.config("handoff.executor.tester.onProtectedChange", "allow");
    let items = [
        item("fix", "echo fixed >app.txt"),
        item("format", "echo fixed >app.txt; echo ok >README; echo out >outputs/log.txt"),
        json!({ "id": "tester", "executor": "tester" }),
        on("implement", "tester", "git apply inputs/patch; echo fixed tested >app.txt"),
        on("implement-only", "tester", "echo fixed tested >app.txt"),
        on("forgets", "tester", "echo fixed >app.txt"),
        on("drops", "tester", "git apply inputs/patch; echo 'exit 0' >tests/parts/two.sh; echo fixed tested >app.txt"),
        on("fixer", "implement", "git apply inputs/patch; echo more >>app.txt"),
    ];
    let ended = repo.drive("honest", &items);
    assert_eq!(ended.status, Some(4), "{ended}");
    let words = |id: &str| {
        let item = status(&repo, "honest", id);
        (item["status"].clone(), item["red"] == true, changes(&item))
    };
    let none = Vec::<(String, String)>::new;
    let part = |change: &str| vec![("tests/parts/two.sh".to_owned(), change.to_owned())];
    for id in ["fix", "format", "implement", "implement-only", "fixer"] {
        assert_eq!(words(id), ("done".into(), false, none()), "{id}");
    }
    assert_eq!(words("tester"), ("done".into(), false, part("added")));
    assert_eq!(words("forgets"), ("done".into(), true, none()));
    assert_eq!(words("drops"), ("done".into(), true, part("modified")));
    let report = repo.env.handoff(["verify", "honest"]).exit(4).stdout;
    let protected: Vec<&str> = report.lines().filter(|line| line.contains(" protected  ")).collect();
    assert_eq!(
        protected,
        [
            "─ protected  tester: tests/parts/two.sh added, allowed by your settings",
            "✗ protected  drops: tests/parts/two.sh modified",
        ]
    );
    insta::assert_snapshot!(find_row(&report, "plan"), @"✓ plan       8 of 8 items accounted for, every transition legal, protected files of 8 items recomputed");
}

#[test]
fn the_worktree_is_given_back_as_the_worker_left_it() {
    let repo = repo("auto");
    repo.config(
        "handoff.executor.command.verify",
        "sh tests/check.sh; ls tests >>seen.txt; echo x >tests/left.txt; echo y >tests/check.sh",
    );
    repo.drive("r", &[item("a", "echo fixed >app.txt; echo 'exit 0' >tests/check.sh; echo mine >tests/new.txt")])
        .ends(4);
    let patch = repo.env.handoff(["cat", "r/a:patch"]).success();
    assert!(patch.contains("+exit 0") && patch.contains("+mine") && !patch.contains("left.txt"), "{patch}");
    // The check saw the reference state.
    assert!(patch.contains("+check.sh\n+parts") && !patch.contains("+new.txt"), "{patch}");
}

#[test]
fn a_link_in_place_of_a_folder_leads_to_no_file_outside() {
    let repo = TestRepo::new();
    repo.config("handoff.protect", "tests/*.sh");
    repo.env.write("repo/tests/check.sh", ":\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Check"]).success();
    repo.env.write("outside/check.sh", "mine\n");
    let outside = repo.path("outside").display().to_string();
    repo.config("handoff.executor.command.verify", &format!("sh tests/check.sh && grep -q mine {outside}/check.sh"));
    repo.drive("r", &[item("a", &format!("rm -r tests; ln -s {outside} tests; echo x >a.txt"))]).ends(4);
    assert_eq!(repo.item("r", "a").reason, "protected-changed: tests/check.sh deleted");
    assert_eq!(repo.lines("outside/check.sh"), ["mine"]);
}

#[test]
fn nothing_outside_is_read_written_or_removed() {
    for (run, work, check) in [
        // A link is in place of a folder before the check, or comes there during it.
        ("before", "rm -r tests; ln -s OUT tests", ":"),
        ("edited", "echo '# more' >>tests/check.sh", "rm -r tests; ln -s OUT tests"),
        ("left", ":", "rm -r tests; ln -s OUT tests"),
        (
            "part",
            "echo '# more' >>tests/parts/one.sh; echo x >tests/parts/new.sh",
            "rm -r tests/parts; ln -s OUT tests/parts",
        ),
        ("loop", "echo '# more' >>tests/check.sh", "rm -r tests; ln -s tests tests"),
        ("two", "rm -r tests; ln -s x tests; ln -s OUT x", "rm x; mkdir x"),
    ] {
        let repo = repo("none");
        for (file, text) in
            [("check.sh", "outside\n"), ("parts/one.sh", "outside\n"), ("one.sh", "outside\n"), ("new.sh", "outside\n")]
        {
            repo.env.write(&format!("out/{file}"), text);
        }
        let out = repo.path("out");
        let script = |text: &str| text.replace("OUT", out.to_str().unwrap());
        repo.config("handoff.executor.command.verify", &format!("sh tests/check.sh; {}", script(check)));
        repo.drive(run, &[item("a", &script(work))]).ends(if run == "left" { 0 } else { 4 });
        for file in ["check.sh", "parts/one.sh", "one.sh", "new.sh"] {
            assert_eq!(std::fs::read_to_string(out.join(file)).unwrap(), "outside\n", "{run}: {file}");
        }
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 4, "{run}");
        let patch = repo.env.handoff(["cat", &format!("{run}/a:patch")]);
        assert!(!patch.stdout.contains("outside"), "{run}: {patch}");
    }
}

#[test]
fn the_settings_choose_the_effect_of_a_change() {
    let repo = repo("auto");
    let bend = "echo fixed >app.txt; echo more >>tests/parts/one.sh";
    for (effect, code, status_word, is_red) in
        [("red", 4, "done", true), ("fail", 4, "failed", false), ("allow", 0, "done", false)]
    {
        repo.config("handoff.onProtectedChange", effect);
        repo.drive(effect, &[item("a", bend)]).ends(code);
        let item = status(&repo, effect, "a");
        assert_eq!((item["status"].as_str().unwrap(), item["red"] == true), (status_word, is_red), "{item:#}");
        if status_word == "failed" {
            repo.env.handoff(["close", effect]).success();
        }
        repo.env.handoff(["verify", effect]).ends(code);
    }
    assert_eq!(repo.item("fail", "a").reason, "protected-changed: tests/parts/one.sh modified");
}

#[test]
fn an_approval_clears_a_change() {
    let repo = repo("auto");
    let mut moved = item("move", "echo fixed >app.txt; git mv tests/parts/one.sh tests/parts/first.sh");
    moved["protect"] = json!(["tests/check.sh"]);
    let ok = json!({ "id": "ok", "executor": "approval", "depends_on": ["move"] });
    repo.drive("r", &[moved, ok]).ends(4);
    assert_eq!(
        repo.item("r", "move").reason,
        "protected-changed: tests/parts/first.sh added, tests/parts/one.sh deleted"
    );
    repo.env.handoff(["apply", "r/move"]).ends(1);
    repo.env.handoff(["approve", "r/ok"]).success();
    repo.env.handoff(["run", "r"]).success();
    let item = status(&repo, "r", "move");
    assert!(item["red"] != true && item["approvedBy"].as_str().unwrap().starts_with("SHA256:"), "{item:#}");
    let report = repo.env.handoff(["verify", "r"]).success();
    insta::assert_snapshot!(find_row(&report, "protected"), @"─ protected  move: tests/parts/first.sh added, tests/parts/one.sh deleted, approved by this repository's key");
    repo.env.handoff(["apply", "r/move"]).success();
}

#[test]
fn apply_leaves_protected_changes_out_on_request() {
    let repo = repo("auto");
    repo.drive("r", &[item("a", "echo fixed >app.txt; echo more >>tests/check.sh; echo new >tests/new.txt")]).ends(4);
    let refused = repo.env.handoff(["apply", "r/a"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: "a" is red because of changes to protected files: tests/check.sh modified, tests/new.txt added; nothing was changed
    hint: git handoff apply r/a --without-protected   # or --allow-red to apply these changes too
    "#);
    repo.env.handoff(["apply", "r/a", "--without-protected"]).success();
    assert_eq!(repo.env.git(["status", "--porcelain"]).success(), "M  app.txt\n");
}

#[test]
fn files_are_added_and_deleted_in_both_object_formats() {
    for format in ["sha1", "sha256"] {
        let repo = repo_of_format(format, "none");
        // The reference state of the second item lacks a file of the base and has a new one.
        let work = "rm tests/parts/one.sh; echo : >tests/parts/two.sh; echo fixed >app.txt";
        repo.config("handoff.executor.tester.command", work);
        repo.config("handoff.executor.tester.onProtectedChange", "allow");
        let tester = json!({ "id": "tester", "executor": "tester" });
        let code = on("code", "tester", "git apply inputs/patch; echo more >>app.txt");
        repo.drive("r", &[tester, code]).ends(0);
        repo.env.handoff(["verify", "r"]).success();
        repo.drive("s", &[item("a", work)]).ends(4);
        repo.env.handoff(["apply", "s/a", "--without-protected"]).success();
        assert_eq!(repo.env.git(["status", "--porcelain"]).success(), "M  app.txt\n", "{format}");
    }
}

#[test]
fn a_pathspec_that_cannot_protect_is_refused() {
    let repo = TestRepo::new();
    let mut wrong = item("a", "true");
    for (pathspec, why) in [
        ("", "expected a string that is not empty"),
        ("../x", "the pathspec \"../x\" leads out of the repository; name a path from its top"),
        ("/x", "the pathspec \"/x\" leads out of the repository; name a path from its top"),
        (
            ":!tests",
            "the pathspec \":!tests\" excludes files; protect what it leaves, or protect everything except some files",
        ),
        (
            ":(exclude)x",
            "the pathspec \":(exclude)x\" excludes files; protect what it leaves, or protect everything except some files",
        ),
        (":(top)../x", "the pathspec \":(top)../x\" leads out of the repository; name a path from its top"),
        (":(attr:x)", "the pathspec \":(attr:x)\" selects by attributes, which a worker can change"),
    ] {
        wrong["protect"] = json!([pathspec]);
        let file = repo.plan("w", &[wrong.clone()]);
        let refused = repo.env.handoff(["validate", &file]).exit(1);
        let code = if pathspec.is_empty() { "wrong-type" } else { "bad-pathspec" };
        let problem = format!("{code} at items[0].protect[0] (item \"a\", line 1): {why}");
        assert_eq!(find_line(&refused.stdout, code), problem);
    }
    repo.config("handoff.protect", ":!tests");
    insta::assert_snapshot!(repo.env.handoff(["runs"]).exit(1).stderr, @r#"
    error: the setting `handoff.protect` = ":!tests" in $TEST/repo/.git/config excludes files; protect what it leaves, or protect everything except some files
    hint: git config --show-origin --get-all handoff.protect
    "#);
    repo.config("handoff.protect", "../x");
    insta::assert_snapshot!(repo.env.handoff(["runs"]).exit(1).stderr, @r#"
    error: the setting `handoff.protect` = "../x" in $TEST/repo/.git/config leads out of the repository; name a path from its top
    hint: git config --show-origin --get-all handoff.protect
    "#);
}
