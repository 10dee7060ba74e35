//! Items that begin on the patches of others.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_row;

/// Returns an item that begins on the patches of others, under the keys `1`, `2` and so on.
fn on(id: &str, others: &[&str], script: &str) -> Value {
    let mut item = item(id, script);
    let need = |from: &str| json!({ "from": from, "select": { "kind": "patch" }, "apply": true });
    let needs = others.iter().enumerate().map(|(at, from)| ((at + 1).to_string(), need(from)));
    item["needs"] = Value::Object(needs.collect());
    item
}

fn patch(repo: &TestRepo, item: &str) -> Vec<String> {
    let patch = repo.env.handoff(["cat", &format!("{item}:patch")]).success();
    let is_head = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
    patch.lines().filter(|line| line.starts_with(['+', '-']) && !is_head(line)).map(str::to_owned).collect()
}

fn file(repo: &TestRepo, path: &str) -> String {
    std::fs::read_to_string(repo.env.repo().join(path)).unwrap()
}

/// Writes the page of a run, and recomputes it with the second implementation of the format.
fn page(repo: &TestRepo, run: &str) {
    let path = repo.path("page.html");
    repo.env.handoff(["report", run, "-o", path.to_str().unwrap()]).success();
    let mut node = Command::new("node");
    node.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tests/interop/pages.mjs", "--only-check"]).arg(&path);
    let output = node.output().expect("node is installed; see .ci/prepare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn an_item_begins_on_its_producers_work_and_hands_over_its_own() {
    let repo = TestRepo::new();
    let items = [
        item("a", "echo three >>a.txt; echo new >new.txt"),
        // It rewrites a line of `a`, and removes a file of it.
        on("b", &["a"], "grep -q three a.txt && sed -i s/three/THREE/ a.txt && rm new.txt && echo c >c.txt"),
        // It begins on all that `b` began on.
        on(
            "c",
            &["b"],
            "test ! -e new.txt && grep -q THREE a.txt && echo c2 >>c.txt; git log --oneline | wc -l >n.txt",
        ),
    ];
    repo.config("handoff.executor.command.setup", "git status --porcelain | grep . && exit 1; true");
    repo.drive("r", &items).ends(0);
    assert_eq!(patch(&repo, "r/b"), ["-three", "+THREE", "+c", "-new"]);
    assert_eq!(patch(&repo, "r/c"), ["+c2", "+2"]);
    let verified = repo.env.handoff(["verify", "r"]).success();
    assert_eq!(find_row(&verified, "plan"), "✓ plan       3 of 3 items accounted for, every transition legal");
    page(&repo, "r");
    // All patches in order are the whole.
    repo.env.handoff(["apply", "r", "--commit"]).success();
    assert_eq!((file(&repo, "a.txt"), file(&repo, "c.txt")), ("one\ntwo\nTHREE\n".to_owned(), "c\nc2\n".to_owned()));
    assert!(!repo.env.repo().join("new.txt").exists());
    assert_eq!(repo.env.git(["rev-list", "--count", "HEAD"]).success(), "4\n");
    repo.env.handoff(["verify", "--commits", "HEAD~3..HEAD"]).success();
    repo.env.handoff(["verify", "r", "--reproduce", "HEAD"]).success();
    assert!(repo.env.handoff(["whence", "a.txt:3"]).success().contains("r/b"));
    // A branch at the base gets the same commits.
    repo.env.handoff(["apply", "r", "--branch", "side"]).success();
    assert_eq!(repo.env.git(["diff", "side", "HEAD"]).success(), "");
    repo.is_clean();
}

#[test]
fn patches_apply_three_way_in_the_order_of_the_keys() {
    let repo = TestRepo::new();
    repo.env.write("repo/long.txt", &(1..40).flat_map(|n| [n.to_string(), "\n".to_owned()]).collect::<String>());
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Long"]).success();
    let items = [
        item("base", "sed -i 's/^20$/twenty/' long.txt"),
        on("top", &["base"], "sed -i 's/^1$/one/' long.txt"),
        on("end", &["base"], "sed -i 's/^39$/last/' long.txt"),
        // `base` is applied once, although both began on it.
        on("both", &["top", "end"], "grep -c -e '^one$' -e '^twenty$' -e '^last$' long.txt >count.txt"),
    ];
    repo.drive("r", &items).ends(0);
    assert_eq!(patch(&repo, "r/both"), ["+3"]);
    repo.env.handoff(["verify", "r"]).success();
    repo.env.handoff(["apply", "r"]).success();
    assert!(file(&repo, "long.txt").starts_with("one\n2\n") && file(&repo, "long.txt").ends_with("38\nlast\n"));
    repo.env.git(["reset", "--quiet", "--hard"]).success();
    // One item alone brings only its own difference.
    repo.env.handoff(["apply", "r/end"]).success();
    assert_eq!(repo.env.git(["diff", "--cached", "--numstat"]).success(), "1\t1\tlong.txt\n");
}

#[test]
fn patches_that_conflict_fail_the_item_with_the_files() {
    let repo = TestRepo::new();
    let items = [
        item("a", "echo mine >>a.txt; echo x >x.txt"),
        item("b", "echo yours >>a.txt; echo y >x.txt"),
        on("c", &["a", "b"], "echo never >ran.txt"),
        // Without `apply`, both are only inputs.
        {
            let mut item = on("d", &["a", "b"], "git apply inputs/1 && echo d >d.txt");
            item["needs"]["1"]["apply"] = json!(false);
            item["needs"]["2"].as_object_mut().unwrap().remove("apply");
            item
        },
    ];
    repo.drive("r", &items).ends(4);
    let failed = repo.item("r", "c");
    let reason = "patch-conflict: the patch of \"b\" and earlier ones change a.txt, x.txt in different ways";
    assert_eq!((failed.status.as_str(), failed.reason.as_str()), ("failed", reason));
    assert_eq!(repo.item("r", "d").status, "done");
    repo.ends_intact("r");
    page(&repo, "r");
}

#[test]
fn checks_protected_files_and_rechecks_know_where_an_item_began() {
    for verify_in in ["worktree", "fresh"] {
        let repo = TestRepo::new();
        repo.env.write("repo/test/a.sh", "grep -q fixed a.txt\n");
        repo.env.git(["add", "--all"]).success();
        repo.env.git(["commit", "--quiet", "--message", "Test"]).success();
        repo.config("handoff.protect", "test");
        repo.config("handoff.executor.command.verify", "for test in test/*.sh; do sh $test || exit 1; done");
        repo.config("handoff.executor.command.verifyIn", verify_in);
        repo.config(
            "handoff.executor.tester.command",
            "echo fixed >>a.txt; echo 'grep -q done b.txt' >test/b.sh; echo done >b.txt",
        );
        repo.config("handoff.executor.tester.onProtectedChange", "allow");
        repo.config("handoff.executor.judged.command", "echo fixed >>a.txt; echo 'exit 1' >test/b.sh");
        repo.config("handoff.executor.judged.onProtectedChange", "judge");
        for executor in ["tester", "judged"] {
            repo.config(&format!("handoff.executor.{executor}.verify"), "sh test/a.sh");
        }
        let items = [
            json!({ "id": "tester", "executor": "tester" }),
            json!({ "id": "judged", "executor": "judged" }),
            // The test that the settings allowed is part of the check, the judged one is not.
            on("fine", &["tester"], "echo more >>b.txt"),
            on("breaks", &["tester"], "echo broken >b.txt"),
            on("unapproved", &["judged"], "echo more >>a.txt"),
            on("bends", &["tester"], "echo true >test/b.sh; echo broken >b.txt"),
        ];
        repo.drive("r", &items).ends(4);
        let status = repo.status("r");
        let outcome = |id: &str| {
            let item = status["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap();
            (item["status"].as_str().unwrap().to_owned(), item["red"] == true, item["protected"].clone())
        };
        let none = Value::Null;
        assert_eq!(outcome("fine"), ("done".to_owned(), false, none.clone()), "{verify_in}");
        assert_eq!(outcome("unapproved"), ("done".to_owned(), false, none), "{verify_in}");
        assert_eq!(outcome("breaks").0, "failed", "{verify_in}: {status:#}");
        assert_eq!(outcome("bends").0, "failed", "{verify_in}");
        repo.env.handoff(["close", "r"]).success();
        let report = repo.env.handoff(["verify", "r", "--allow-partial", "--recheck", "--yes"]).exit(0).stdout;
        assert!(report.contains("protected files of 4 items recomputed"), "{report}");
        let same = report.lines().filter(|line| line.starts_with("✓ recheck") && line.contains(": same: "));
        assert_eq!(same.count(), 4, "{report}");
        page(&repo, "r");
    }
}

#[test]
fn identical_work_is_reused_only_on_the_same_start() {
    let repo = TestRepo::new();
    let plan = |first: &str| [item("a", first), on("b", &["a"], "cat a.txt >copy.txt")];
    repo.drive("one", &plan("echo x >>a.txt")).ends(0);
    repo.submit("same", &plan("echo x >>a.txt"));
    let output = repo.env.handoff(["run", "same", "--reuse"]).exit(0);
    assert!(output.stdout.contains("b  done, reused"), "{output}");
    repo.env.handoff(["verify", "same"]).success();
    // Not applied, the same patch is other work.
    let mut not = plan("echo x >>a.txt");
    not[1]["needs"]["1"]["apply"] = json!(false);
    repo.submit("not", &not);
    let run_output = repo.env.handoff(["run", "not", "--reuse"]).exit(0);
    assert!(
        run_output.stdout.contains("a  done, reused") && !run_output.stdout.contains("b  done, reused"),
        "{run_output}"
    );
}

#[test]
fn a_driver_that_is_killed_in_the_middle_leaves_nothing_wrong() {
    let repo = TestRepo::new();
    let wait = "until test -e ../../../../go; do sleep 0.05; done";
    let wait = wait.replace("../../../../go", repo.path("go").to_str().unwrap());
    repo.config("handoff.sandbox", "none");
    let items = [item("a", "echo three >>a.txt"), on("b", &["a"], &format!("echo four >>a.txt; {wait}"))];
    repo.submit("r", &items);
    let driver = repo.start(&["run", "r"]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while repo.item("r", "b").status != "running" {
        assert!(std::time::Instant::now() < until, "b has not begun");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    driver.kill();
    repo.env.write("go", "");
    repo.env.handoff(["run", "r"]).ends(0);
    assert_eq!(patch(&repo, "r/b"), ["+four"]);
    repo.env.handoff(["verify", "r"]).success();
    repo.is_clean();
}

#[test]
fn only_the_patch_of_an_item_can_be_applied() {
    let repo = TestRepo::new();
    let need = |from: &str, select: Value, apply: Value| json!({ "from": from, "select": select, "apply": apply });
    let output = json!({ "kind": "output", "path": "x" });
    let document = json!({ "kind": "document", "name": "d" });
    for (needs, problem) in [
        (need("a", output, json!(true)), "bad-selector at items[1].needs.k.apply"),
        (need("@documents", document, json!(true)), "bad-selector at items[1].needs.k.apply"),
        (need("a", json!({ "kind": "patch" }), json!("yes")), "wrong-type at items[1].needs.k.apply"),
        (
            json!({ "run": "o", "from": "a", "select": { "kind": "patch" }, "apply": true }),
            "bad-selector at items[1].needs.k.apply",
        ),
    ] {
        let mut second = item("b", "true");
        second["needs"] = json!({ "k": needs });
        let file = repo.plan("w", &[item("a", "true"), second]);
        let refused = repo.env.handoff(["validate", &file]).exit(1).stdout;
        assert!(refused.lines().any(|line| line.starts_with(problem)), "{problem}: {refused}");
    }
}
