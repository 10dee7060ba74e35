//! Copies of what was taken from, ours and others', that say the same and that do not.

use serde_json::json;

use super::{build, consumer, designed, of_run, output};
use crate::common::ground::{Ground, item};
use crate::common::report::{find_line, find_row};

/// Random for each case.
const DRAWN: &str = "mkdir outputs; head -c 9 /dev/urandom | od -An -tx1 >outputs/spec.md; echo three >>a.txt";

/// A repository whose run `design` is sealed and whose thread `login` has two checkpoints, and its
/// `twin`, the same up to the first of them, by the same key, where both went on otherwise.
fn twins() -> Ground {
    let ground = Ground::new();
    ground.submit("design", &[item("write", DRAWN)]);
    let step = |at: &str, step: u32| {
        ground.env.write("state.json", &json!({ "step": step }).to_string());
        ground.env.handoff_in(at, ["checkpoint", "login", "--state", "../state.json"]).success();
    };
    step("repo", 1);
    let copied = std::process::Command::new("cp").args(["-r", "repo", "twin"]).current_dir(ground.env.path()).status();
    assert!(copied.unwrap().success());
    for (nth, at) in (2..).zip(["repo", "twin"]) {
        ground.env.handoff_in(at, ["run", "design"]).success();
        step(at, nth);
    }
    ground
}

/// Fetches a ref as it is, with no log beside it.
fn fetch(ground: &Ground, below: &str) {
    let spec = format!("refs/handoff/{below}:refs/handoff/remotes/twin/{below}");
    ground.env.git(["fetch", "--quiet", "../twin", &spec]).success();
}

#[test]
fn a_fetched_copy_under_another_seal_of_the_same_key_speaks_against_what_was_taken() {
    let ground = twins();
    ground.drive("build", &build()).ends(0);
    fetch(&ground, "runs/design");
    for own in [true, false] {
        if !own {
            ground.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
        }
        let said = ground.env.handoff(["verify", "build"]).exit(3).stdout;
        assert_eq!(
            find_row(&said, "handoff"),
            "✗ handoff    run design, a source of its imports, is here, but different: it has the same first entry, but its seal says another root"
        );
        assert!(!said.contains("all of them here"), "{said}");
    }
}

#[test]
fn a_fetched_thread_that_went_on_otherwise_speaks_against_what_was_taken() {
    let ground = twins();
    ground.drive("build", &build()).ends(0);
    fetch(&ground, "threads/login");
    for own in [true, false] {
        if !own {
            ground.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
        }
        let said = ground.env.handoff(["verify", "build"]).exit(3).stdout;
        assert_eq!(
            find_row(&said, "handoff"),
            "✗ handoff    thread login, a source of its imports, is here, but different: another entry follows the one before"
        );
    }
}

#[test]
fn a_thread_that_is_not_so_far_here_is_said_to_be() {
    let ground = twins();
    ground.drive("build", &build()).ends(0);
    let tip = ground.env.git(["rev-parse", "refs/handoff/threads/login^"]).success();
    ground.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
    ground.env.git(["update-ref", "refs/handoff/remotes/far/threads/login", tip.trim()]).success();
    let said = ground.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&said, "─ taken from thread login ("), @"─ taken from thread login (1-2834f0f8d9fb): here, but not to that checkpoint");
}

#[test]
fn a_spoilt_copy_says_nothing_against_a_whole_one() {
    let ground = designed();
    ground.drive("build", &build()).ends(0);
    let tip = ground.tip("design").unwrap();
    let tree = ground.env.git(["rev-parse", &format!("{tip}^{{tree}}")]).success();
    let junk = ground.env.git(["commit-tree", "-p", &tip, "-m", "junk", tree.trim()]).success();
    let copies = [("ann", junk.trim()), ("bob", tip.as_str())];
    for (remote, tip) in copies {
        ground.env.git(["update-ref", &format!("refs/handoff/remotes/{remote}/runs/design"), tip]).success();
    }
    ground.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
    let said = ground.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&said, "✓ taken from 2 sources"), @"✓ taken from 2 sources in all, at most 1 step back, all of them here");
    insta::assert_snapshot!(find_line(&said, "✓ taken from run design ("), @"✓ taken from run design (root sha256:7a6557d1…): here, intact");
    // Where there is none but that, it is not the same.
    ground.env.git(["update-ref", "-d", "refs/handoff/remotes/bob/runs/design"]).success();
    let said = ground.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&said, "handoff"), @"✗ handoff    run design, a source of its imports, is here, but different: chain: commit 1d29a00: the commit is not an entry: the message is not a subject and an entry");
    insta::assert_snapshot!(find_line(&said, "─ taken from 2 sources"), @"─ taken from 2 sources in all, at most 1 step back; 1 here and not proven");
}

#[test]
fn the_way_back_finds_a_run_wherever_its_copies_are() {
    let ground = designed();
    let tip = ground.tip("design").unwrap();
    let theirs = "refs/handoff/remotes/origin/runs/design";
    ground.env.git(["update-ref", theirs, &tip]).success();
    let needs = json!({ "it": of_run("origin/design", "write", &output("spec.md")) });
    ground.drive("theirs", &[consumer("make", &needs)]).ends(0);
    let whole = ground.env.handoff(["lineage", "theirs/make"]).success();
    assert!(!whole.contains("not here"), "{whole}");
    ground.env.git(["update-ref", "-d", theirs]).success();
    assert_eq!(ground.env.handoff(["lineage", "theirs/make"]).success(), whole);
    // And one of that name that is another run, and nothing that could be read, is passed over.
    ground.env.git(["update-ref", theirs, &tip]).success();
    let other = ground.env.git(["rev-parse", "HEAD"]).success();
    ground.env.git(["update-ref", "refs/handoff/runs/design", other.trim()]).success();
    assert_eq!(ground.env.handoff(["lineage", "theirs/make"]).success(), whole);
}

#[test]
fn a_thread_whose_bytes_are_not_here_is_not_called_intact() {
    let ground = designed();
    ground.drive("build", &build()).ends(0);
    ground.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    ground.env.git_in("hub", ["config", "uploadpack.allowFilter", "true"]).success();
    ground.env.git(["remote", "add", "hub", "../hub"]).success();
    ground.env.git(["push", "--quiet", "hub", "main"]).success();
    ground.env.handoff(["push", "hub", "--all"]).success();
    let url = format!("file://{}", ground.path("hub").display());
    ground.env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "lazy"]).success();
    ground.env.handoff_in("lazy", ["fetch"]).success();
    let said = ground.env.handoff_in("lazy", ["verify", "origin/build"]).stdout;
    let line = said.lines().find(|line| line.contains("thread login")).unwrap();
    let alone = ground.env.handoff_in("lazy", ["thread", "verify", "origin/login"]);
    assert_eq!(line.contains("here, intact"), alone.status == Some(0), "{said}\n{}", alone.stdout);
}

#[test]
fn a_thread_that_its_key_told_anew_speaks_against_what_was_taken() {
    let ground = twins();
    ground.drive("build", &build()).ends(0);
    let clear = "git for-each-ref --format='delete %(refname)' refs/handoff | git update-ref --stdin";
    ground.env.shell("twin", clear).success();
    for step in [7, 8] {
        ground.env.write("state.json", &json!({ "step": step }).to_string());
        ground.env.handoff_in("twin", ["checkpoint", "login", "--state", "../state.json"]).success();
    }
    ground.env.git(["update-ref", "-d", "refs/handoff/threads/login"]).success();
    fetch(&ground, "threads/login");
    let said = ground.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&said, "handoff"), @"✗ handoff    thread login, a source of its imports, is here, but different: its key signed another chain: entry 1 is another");
}

#[test]
fn a_first_checkpoint_that_its_key_told_anew_speaks_against_what_was_taken() {
    let ground = Ground::new();
    ground.submit("design", &[item("write", DRAWN)]);
    ground.env.handoff(["run", "design"]).success();
    ground.env.write("state.json", &json!({ "step": 1 }).to_string());
    ground.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    ground.drive("build", &build()).ends(0);
    ground.env.handoff(["verify", "build"]).success();
    let clear =
        "git for-each-ref --format='delete %(refname)' refs/handoff/threads refs/handoff/logs | git update-ref --stdin";
    ground.env.shell("repo", clear).success();
    ground.env.write("state.json", &json!({ "step": 2 }).to_string());
    ground.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    let said = ground.env.handoff(["verify", "build"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&said, "handoff"), @"✗ handoff    thread login, a source of its imports, is here, but different: its key signed another chain: entry 0 is another");
    // A thread of that name by another key is another thread.
    ground.env.shell("repo", clear).success();
    ground.env.git(["config", "handoff.signingKey", ""]).success();
    ground.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    let said = ground.env.handoff(["verify", "build"]).stdout;
    assert!(!said.contains("signed another chain"), "{said}");
}
