//! Checks that the worker has not seen: held-out files, a check that must fail first, a fresh
//! worktree, and the record of a check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;

use crate::common::repo::{TestRepo, item};
use crate::sandbox::scene::has_bubblewrap;

/// A repository whose worker is checked by `sh check.sh`.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.env.write("repo/check.sh", "cat result.txt 2>/dev/null; grep -q fixed app.txt\n");
    repo.env.write("repo/app.txt", "broken\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Check"]).success();
    repo.config("handoff.executor.command.verify", "sh check.sh");
    repo.config("handoff.executor.command.maxAttempts", "1");
    repo
}

/// Returns the fields of the entry that ended an item.
fn end(repo: &TestRepo, run: &str, id: &str) -> Value {
    let entries = repo.entries(run);
    let is_end = |entry: &&Value| entry["kind"] == "item.reconciled" && entry["item"] == id;
    entries.iter().find(is_end).unwrap().clone()
}

fn manifest(repo: &TestRepo, name: &str) -> Value {
    serde_json::from_str(&repo.env.handoff(["cat", &format!("{name}:manifest")]).success()).unwrap()
}

#[test]
fn hidden_check_files_judge_and_stay_hidden() {
    if !has_bubblewrap("held-out files") {
        return;
    }
    let repo = repo();
    repo.config("handoff.sandbox", "auto");
    repo.env.write("hidden/check.sh", "echo HIDDEN-CASE; grep -q fixed app.txt && grep -q tested app.txt\n");
    repo.env.write("hidden/cases/one.txt", "case\n");
    let folder = repo.path("hidden");
    repo.config("handoff.executor.command.heldOut", folder.to_str().unwrap());
    let look = format!("cat {}/check.sh; ls {} cases", folder.display(), folder.display());
    repo.drive(
        "r",
        &[
            item("good", "echo fixed tested >app.txt"),
            item("bad", "echo fixed >app.txt"),
            item("look", &format!("{look} >seen.txt 2>&1; echo fixed tested >app.txt")),
        ],
    )
    .ends(4);
    assert_eq!(repo.item("r", "good").status, "done");
    let bad = repo.item("r", "bad");
    assert_eq!((bad.status.as_str(), bad.reason.as_str()), ("failed", "verify-failed: exited with 1"));
    let patch = repo.env.handoff(["cat", "r/look:patch"]).success();
    assert!(!patch.contains("HIDDEN") && !patch.contains("case\n") && !patch.contains("cases/one.txt"), "{patch}");
    let end = end(&repo, "r", "good");
    assert_eq!(end["check"]["heldOut"], manifest(&repo, "r/good")["heldOut"]);
    // Nothing of the folder is in the object database.
    let objects = repo.env.git(["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objectsize)"]);
    assert!(!objects.success().is_empty());
    let hidden = repo.env.git(["hash-object", folder.join("check.sh").to_str().unwrap()]).success();
    repo.env.git(["cat-file", "-e", hidden.trim()]).ends(1);
    assert_eq!(repo.env.handoff(["show", "r/good", "--check"]).success(), "HIDDEN-CASE\n");
    // With feedback the reason has the output.
    repo.config("handoff.executor.command.heldOutFeedback", "true");
    repo.drive("f", &[item("bad", "echo fixed >app.txt")]).ends(4);
    assert_eq!(repo.item("f", "bad").reason, "verify-failed: exited with 1: HIDDEN-CASE");
}

#[test]
fn output_of_a_hidden_check_is_no_object() {
    if !has_bubblewrap("the output of held-out checks") {
        return;
    }
    let repo = repo();
    repo.config("handoff.sandbox", "auto");
    repo.config("handoff.executor.command.redFirst", "true");
    repo.env.write("hidden/check.sh", "echo THE-HIDDEN-CASE; grep -q fixed app.txt\n");
    repo.config("handoff.executor.command.heldOut", repo.path("hidden").to_str().unwrap());
    let look = "git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | grep 'blob$' | cut -d' ' -f1 | git cat-file --batch >all.txt; grep -c THE-HIDDEN-CAS[E] all.txt";
    let work = format!("{look} >seen.txt; rm all.txt; echo fixed >app.txt");
    let mut after = item("b", &work);
    after["depends_on"] = serde_json::json!(["a"]);
    repo.drive("r", &[item("a", &work), after]).ends(0);
    for id in ["a", "b"] {
        let patch = repo.env.handoff(["cat", &format!("r/{id}:patch")]).success();
        assert!(patch.contains("+++ b/seen.txt\n@@ -0,0 +1 @@\n+0\n"), "{patch}");
    }
    assert_eq!(repo.env.handoff(["show", "r/a", "--check"]).success(), "THE-HIDDEN-CASE\n");
    assert_eq!(repo.env.handoff(["show", "r/a", "--check-before"]).success(), "THE-HIDDEN-CASE\n");
}

#[test]
fn output_of_a_hidden_check_is_deleted_with_its_run() {
    if !has_bubblewrap("the output of held-out checks") {
        return;
    }
    let repo = repo();
    repo.config("handoff.sandbox", "auto");
    repo.env.write("hidden/check.sh", "echo THE-HIDDEN-CASE; grep -q fixed app.txt\n");
    repo.config("handoff.executor.command.heldOut", repo.path("hidden").to_str().unwrap());
    let (run, id) = ("r".repeat(128), "ä".repeat(33));
    repo.drive(&run, &[item(&id, "echo fixed >app.txt")]).ends(0);
    assert_eq!(repo.env.handoff(["show", &format!("{run}/{id}"), "--check"]).success(), "THE-HIDDEN-CASE\n");
    let checks = repo.path("repo/.git/handoff/checks");
    assert_eq!(std::fs::read_dir(&checks).unwrap().count(), 1);
    repo.env.handoff(["delete", &run, "--yes"]).success();
    assert_eq!(std::fs::read_dir(&checks).unwrap().count(), 0);
}

#[test]
fn salvage_skips_hidden_check_files() {
    if !has_bubblewrap("salvage beside held-out files") {
        return;
    }
    let repo = repo();
    repo.config("handoff.sandbox", "auto");
    repo.env.write("hidden/check.sh", "sh app.sh; exit 1\n");
    repo.env.write("hidden/case.txt", "THE-HIDDEN-CASE\n");
    repo.config("handoff.executor.command.heldOut", repo.path("hidden").to_str().unwrap());
    repo.env.git(["config", "handoff.protect", "check.sh"]).success();
    // The code under test stands in the way of the files that come back.
    repo.drive("r", &[item("a", "echo '# more' >>check.sh; echo 'rm check.sh; mkdir -p check.sh/x' >app.sh")]).ends(4);
    let refs = repo.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/salvage"]).success();
    for name in refs.lines() {
        let files = repo.env.git(["ls-tree", "-r", "--name-only", name]).success();
        assert!(!files.contains("case.txt"), "{files}");
    }
}

#[test]
fn readable_hidden_check_files_are_rejected() {
    let repo = repo();
    repo.env.write("hidden/check.sh", "true\n");
    let folder = repo.path("hidden");
    let inside = repo.path("repo/inside");
    std::fs::create_dir(&inside).unwrap();
    for (run, key, value, exposed) in [
        ("none", "handoff.sandbox", "none", &folder),
        ("inside", "handoff.sandbox", "auto", &inside),
        ("readable", "handoff.executor.command.readable", folder.to_str().unwrap(), &folder),
    ] {
        if run != "none" && !has_bubblewrap("held-out files") {
            continue;
        }
        repo.config("handoff.executor.command.heldOut", exposed.to_str().unwrap());
        repo.config(key, value);
        repo.drive(run, &[item("a", "echo fixed >app.txt")]).ends(4);
        let refused_item = repo.item(run, "a");
        assert_eq!(refused_item.status, "failed");
        assert!(refused_item.reason.starts_with("held-out-readable: "), "{run}: {}", refused_item.reason);
    }
}

#[test]
fn a_check_that_passes_before_the_work_proves_nothing() {
    let repo = repo();
    repo.config("handoff.executor.command.redFirst", "true");
    repo.config("handoff.executor.command.maxAttempts", "3");
    repo.drive("r", &[item("fix", "echo fixed >app.txt")]).ends(0);
    let first = end(&repo, "r", "fix");
    assert_eq!((&first["checkBefore"]["exit"]["code"], &first["check"]["exit"]["code"]), (&1.into(), &0.into()));
    repo.env.write("repo/app.txt", "fixed\n");
    repo.env.git(["commit", "-qam", "Fixed"]).success();
    repo.drive("s", &[item("again", "echo fixed >app.txt; echo more >>app.txt")]).ends(4);
    let retried_item = repo.item("s", "again");
    assert_eq!((retried_item.status.as_str(), retried_item.attempts), ("failed", 1));
    assert_eq!(retried_item.reason, "check-not-red: the check passes before the work");
    repo.config("handoff.executor.command.verify", "no-such-program");
    repo.drive("t", &[item("a", "true")]).ends(4);
    assert_eq!(repo.item("t", "a").reason, "check-not-red: the check cannot be run, it exited with 127");
}

#[test]
fn a_fresh_worktree_has_the_base_and_the_patch_alone() {
    let repo = repo();
    repo.env.write("repo/.gitignore", "cache\n");
    repo.env.write("repo/folder/old", "old\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Ignore"]).success();
    repo.config("handoff.executor.command.setup", "echo setup >cache.setup");
    repo.config(
        "handoff.executor.command.verify",
        "test ! -e cache && test -e cache.setup && test -x run.sh && test ! -e folder/old && grep -q fixed app.txt",
    );
    let work = "echo fixed >app.txt; echo poison >cache; echo x >run.sh; chmod +x run.sh; rm -r folder";
    repo.drive("there", &[item("a", work)]).ends(4);
    repo.config("handoff.executor.command.verifyIn", "fresh");
    repo.drive("fresh", &[item("a", work), item("b", "echo fixed >app.txt")]).ends(4);
    assert_eq!(repo.item("fresh", "a").status, "done");
    assert_eq!(repo.item("fresh", "b").status, "failed");
    assert_eq!(manifest(&repo, "fresh/a")["verifyIn"], "fresh");
}

#[test]
fn the_record_of_a_check_has_its_command_and_output() {
    let repo = repo();
    repo.drive("r", &[item("a", "echo said by the check >result.txt; echo fixed >app.txt")]).ends(0);
    let end = end(&repo, "r", "a");
    let check = &end["check"];
    assert_eq!(check["argv"], serde_json::json!(["sh", "-c", "sh check.sh"]));
    assert_eq!((&check["exit"]["code"], &check["output"]["size"]), (&0.into(), &18.into()));
    assert!(check["durationMs"].is_u64() && check["output"]["sha256"].is_string(), "{check}");
    assert_eq!(repo.env.handoff(["show", "r/a", "--check"]).success(), "said by the check\n");
    assert_eq!(repo.env.handoff(["cat", "r/a:check"]).success(), "said by the check\n");
    repo.env.handoff(["show", "r/a", "--check-before"]).ends(1);
    repo.env.handoff(["verify", "r"]).ends(0);
}
