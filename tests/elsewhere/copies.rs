//! Copies of what was taken from, ours and others', that say the same and that do not.

use serde_json::json;

use super::{build, consumer, designed, of_run, output};
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_line, find_row};

/// Random for each case.
const DRAWN: &str = "mkdir outputs; head -c 9 /dev/urandom | od -An -tx1 >outputs/spec.md; echo three >>a.txt";

/// A repository whose run `design` is sealed and whose thread `login` has two checkpoints, and its
/// `twin`, the same up to the first of them, by the same key, where both went on otherwise.
fn twins() -> TestRepo {
    let repo = TestRepo::new();
    repo.submit("design", &[item("write", DRAWN)]);
    let step = |at: &str, step: u32| {
        repo.env.write("state.json", &json!({ "step": step }).to_string());
        repo.env.handoff_in(at, ["checkpoint", "login", "--state", "../state.json"]).success();
    };
    step("repo", 1);
    let copied = std::process::Command::new("cp").args(["-r", "repo", "twin"]).current_dir(repo.env.path()).status();
    assert!(copied.unwrap().success());
    for (nth, at) in (2..).zip(["repo", "twin"]) {
        repo.env.handoff_in(at, ["run", "design"]).success();
        step(at, nth);
    }
    repo
}

/// Fetches a ref as it is, with no log beside it.
fn fetch(repo: &TestRepo, below: &str) {
    let spec = format!("refs/handoff/{below}:refs/handoff/remotes/twin/{below}");
    repo.env.git(["fetch", "--quiet", "../twin", &spec]).success();
}

#[test]
fn fetched_copy_with_another_seal_contradicts_the_import() {
    let repo = twins();
    repo.drive("build", &build()).ends(0);
    fetch(&repo, "runs/design");
    for own in [true, false] {
        if !own {
            repo.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
        }
        let report = repo.env.handoff(["verify", "build"]).exit(3).stdout;
        assert_eq!(
            find_row(&report, "handoff"),
            "✗ handoff    run design, a source of its imports, is here, but different: it has the same first entry, but its seal says another root"
        );
        assert_eq!(
            find_line(&report, "─ taken from 2 sources"),
            "─ taken from 2 sources in all, at most 1 step back; 1 here and not proven"
        );
    }
}

#[test]
fn fetched_diverged_thread_contradicts_the_import() {
    let repo = twins();
    repo.drive("build", &build()).ends(0);
    fetch(&repo, "threads/login");
    for own in [true, false] {
        if !own {
            repo.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
        }
        let report = repo.env.handoff(["verify", "build"]).exit(3).stdout;
        assert_eq!(
            find_row(&report, "handoff"),
            "✗ handoff    thread login, a source of its imports, is here, but different: another entry follows the one before"
        );
    }
}

#[test]
fn verify_reports_a_thread_that_is_behind_the_import() {
    let repo = twins();
    repo.drive("build", &build()).ends(0);
    let tip = repo.env.git(["rev-parse", "refs/handoff/threads/login^"]).success();
    repo.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
    repo.env.git(["update-ref", "refs/handoff/remotes/far/threads/login", tip.trim()]).success();
    let report = repo.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&report, "─ taken from thread login ("), @"─ taken from thread login (1-d02e3a2bb144): here, but not to that checkpoint");
}

#[test]
fn damaged_copy_contradicts_no_intact_import() {
    let repo = designed();
    repo.drive("build", &build()).ends(0);
    let tip = repo.tip("design").unwrap();
    let tree = repo.env.git(["rev-parse", &format!("{tip}^{{tree}}")]).success();
    let junk = repo.env.git(["commit-tree", "-p", &tip, "-m", "junk", tree.trim()]).success();
    let copies = [("ann", junk.trim()), ("bob", tip.as_str())];
    for (remote, head) in copies {
        repo.env.git(["update-ref", &format!("refs/handoff/remotes/{remote}/runs/design"), head]).success();
    }
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
    let report = repo.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&report, "✓ taken from 2 sources"), @"✓ taken from 2 sources in all, at most 1 step back, all of them here");
    insta::assert_snapshot!(find_line(&report, "✓ taken from run design ("), @"✓ taken from run design (root sha256:142a0af7…): here, intact");
    // Where there is none but that, it is not the same.
    repo.env.git(["update-ref", "-d", "refs/handoff/remotes/bob/runs/design"]).success();
    let verify_answer = repo.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&verify_answer, "handoff"), @"✗ handoff    run design, a source of its imports, is here, but different: chain: commit 0f99eee: the commit is not an entry: the message is not a subject and an entry");
    insta::assert_snapshot!(find_line(&verify_answer, "─ taken from 2 sources"), @"─ taken from 2 sources in all, at most 1 step back; 1 here and not proven");
}

#[test]
fn the_way_back_finds_a_run_wherever_its_copies_are() {
    let repo = designed();
    let tip = repo.tip("design").unwrap();
    let theirs = "refs/handoff/remotes/origin/runs/design";
    repo.env.git(["update-ref", theirs, &tip]).success();
    let needs = json!({ "it": of_run("origin/design", "write", &output("spec.md")) });
    repo.drive("theirs", &[consumer("make", &needs)]).ends(0);
    let whole = repo.env.handoff(["lineage", "theirs/make"]).success();
    insta::assert_snapshot!(whole, @"
    theirs/make  by command
      it = design/write:outputs/spec.md  3b92cc25  by command
    ");
    repo.env.git(["update-ref", "-d", theirs]).success();
    assert_eq!(repo.env.handoff(["lineage", "theirs/make"]).success(), whole);
    // And one of that name that is another run, and nothing that could be read, is passed over.
    repo.env.git(["update-ref", theirs, &tip]).success();
    let other = repo.env.git(["rev-parse", "HEAD"]).success();
    repo.env.git(["update-ref", "refs/handoff/runs/design", other.trim()]).success();
    assert_eq!(repo.env.handoff(["lineage", "theirs/make"]).success(), whole);
}

#[test]
fn a_thread_whose_bytes_are_not_here_is_not_called_intact() {
    let repo = designed();
    repo.drive("build", &build()).ends(0);
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git_in("hub", ["config", "uploadpack.allowFilter", "true"]).success();
    repo.env.git(["remote", "add", "hub", "../hub"]).success();
    repo.env.git(["push", "--quiet", "hub", "main"]).success();
    repo.env.handoff(["push", "hub", "--all"]).success();
    let url = format!("file://{}", repo.path("hub").display());
    repo.env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "lazy"]).success();
    repo.env.handoff_in("lazy", ["fetch"]).success();
    let report = repo.env.handoff_in("lazy", ["verify", "origin/build"]).stdout;
    insta::assert_snapshot!(find_line(&report, "✓ taken from thread"), @"✓ taken from thread login (0-abd21f30c3b2): here, intact");
    repo.env.handoff_in("lazy", ["thread", "verify", "origin/login"]).ends(0);
}

#[test]
fn a_thread_rewritten_by_its_key_contradicts_the_import() {
    let repo = twins();
    repo.drive("build", &build()).ends(0);
    let clear = "git for-each-ref --format='delete %(refname)' refs/handoff | git update-ref --stdin";
    repo.env.shell("twin", clear).success();
    for step in [7, 8] {
        repo.env.write("state.json", &json!({ "step": step }).to_string());
        repo.env.handoff_in("twin", ["checkpoint", "login", "--state", "../state.json"]).success();
    }
    repo.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
    fetch(&repo, "threads/login");
    let report = repo.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✗ handoff    thread login, a source of its imports, is here, but different: its key signed another chain: entry 1 is another");
}

#[test]
fn a_rewritten_first_checkpoint_contradicts_the_import() {
    let repo = TestRepo::new();
    repo.submit("design", &[item("write", DRAWN)]);
    repo.env.handoff(["run", "design"]).success();
    repo.env.write("state.json", &json!({ "step": 1 }).to_string());
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    repo.drive("build", &build()).ends(0);
    repo.env.handoff(["verify", "build"]).success();
    let clear =
        "git for-each-ref --format='delete %(refname)' refs/handoff/threads refs/handoff/logs | git update-ref --stdin";
    repo.env.shell("repo", clear).success();
    repo.env.write("state.json", &json!({ "step": 2 }).to_string());
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    let report = repo.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✗ handoff    thread login, a source of its imports, is here, but different: its key signed another chain: entry 0 is another");
    // A thread of that name by another key is another thread.
    repo.env.shell("repo", clear).success();
    repo.env.git(["config", "handoff.signingKey", ""]).success();
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    let verify_answer = repo.env.handoff(["verify", "build"]).stdout;
    insta::assert_snapshot!(find_row(&verify_answer, "handoff"), @"✓ handoff    3 input refs accounted for, 3 products from elsewhere proven");
}
