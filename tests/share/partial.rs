//! Clones without blobs: everything verify needs comes in one batch, and stays when the remote is
//! gone.

use std::fs;

use super::{json, marks, pushed};
use crate::common::Environment;
use crate::common::report::{find_line, verdict, without_hashes};

/// Clones without blobs, and without asking for one at checkout.
fn blobless(env: &Environment) {
    let url = format!("file://{}/hub", env.path().display());
    env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "lazy"]).success();
}

fn packs(env: &Environment) -> usize {
    let packs = fs::read_dir(env.path().join("lazy/.git/objects/pack")).unwrap();
    packs.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack")).count()
}

#[test]
fn every_row_but_content_holds_when_the_remote_is_gone() {
    let env = pushed();
    blobless(&env);
    let before = packs(&env);
    let fetched = json(&env.handoff_in("lazy", ["fetch", "--json"]).exit(0));
    // The plan, two manifests, the index of the log; no product.
    assert_eq!(fetched["blobs"], 4);
    assert_eq!(packs(&env), before + 2, "commits and trees, then all evidence at once");
    fs::rename(env.path().join("hub"), env.path().join("gone")).unwrap();
    let report = env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0);
    assert_eq!(marks(&report), "✓✓✓✓✓✓✓─");
    fs::rename(env.path().join("gone"), env.path().join("hub")).unwrap();
    assert_eq!(env.handoff_in("lazy", ["fetch"]).exit(0).stderr, "everything is here already\n");
    env.handoff_in("lazy", ["fetch", "--content"]).success();
    fs::remove_dir_all(env.path().join("hub")).unwrap();
    assert_eq!(marks(&env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0)), "✓✓✓✓✓✓✓✓");
}

#[test]
fn fetch_completes_runs_that_plain_git_fetched() {
    let env = pushed();
    blobless(&env);
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    env.git_in("lazy", ["fetch", "--quiet", "origin", spec]).success();
    assert_eq!(verdict(&env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(3).stdout), "✗ INCOMPLETE");
    env.handoff_in("lazy", ["fetch"]).success();
    assert_eq!(marks(&env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0)), "✓✓✓✓✓✓✓─");
}

#[test]
fn a_full_clone_needs_no_second_batch() {
    let env = pushed();
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    assert_eq!(fetched["blobs"], 0);
}

#[test]
fn a_bundle_of_missing_objects_is_refused_without_asking_a_remote() {
    let env = pushed();
    blobless(&env);
    env.handoff_in("lazy", ["fetch"]).success();
    let stderr = env.handoff_in("lazy", ["bundle", "origin/handoff-dag-1", "--output", "../x.bundle"]).exit(1).stderr;
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: in a partial clone, bring the products first: git handoff fetch --content");
    assert!(!env.path().join("x.bundle").exists());
}

#[test]
fn without_trees_the_rows_that_need_blobs_are_open() {
    let env = pushed();
    let url = format!("file://{}/hub", env.path().display());
    env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=tree:0", &url, "bare"]).success();
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    env.git_in("bare", ["fetch", "--quiet", "origin", spec]).success();
    fs::rename(env.path().join("hub"), env.path().join("gone")).unwrap();
    let open = env.handoff_in("bare", ["verify", "origin/handoff-dag-1"]).exit(3);
    assert_eq!(verdict(&open.stdout), "✗ INCOMPLETE");
    assert_eq!(marks(&open), "✓✓✓✓────", "{open}");
}

/// Clones without trees.
fn treeless(env: &Environment, more: &[&str]) {
    let url = format!("file://{}/hub", env.path().display());
    let clone = ["clone", "--quiet", "--filter=tree:0"];
    env.git_in(".", clone.iter().chain(more).chain(&[url.as_str(), "lazy"])).success();
}

#[test]
fn a_clone_without_trees_can_fetch_and_verify() {
    for more in [&["--no-checkout"][..], &[], &["--bare"], &["--depth=1"]] {
        let env = pushed();
        treeless(&env, more);
        let settings = env.git_in("lazy", ["config", "--list", "--local"]).success();
        env.handoff_in("lazy", ["fetch"]).success();
        assert_eq!(env.git_in("lazy", ["config", "--list", "--local"]).success(), settings, "the filter stays");
        assert_eq!(env.handoff_in("lazy", ["fetch"]).exit(0).stderr, "everything is here already\n", "{more:?}");
        fs::rename(env.path().join("hub"), env.path().join("gone")).unwrap();
        let report = env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0);
        assert_eq!(marks(&report), "✓✓✓✓✓✓✓─", "{more:?}");
        fs::rename(env.path().join("gone"), env.path().join("hub")).unwrap();
        env.handoff_in("lazy", ["fetch", "--content"]).success();
        let verify_report = env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0);
        assert_eq!(marks(&verify_report), "✓✓✓✓✓✓✓✓", "{more:?}");
    }
}

#[test]
fn trees_that_plain_git_left_out_are_brought() {
    let env = pushed();
    treeless(&env, &[]);
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    env.git_in("lazy", ["fetch", "--quiet", "origin", spec]).success();
    env.handoff_in("lazy", ["fetch"]).success();
    fs::rename(env.path().join("hub"), env.path().join("gone")).unwrap();
    assert_eq!(marks(&env.handoff_in("lazy", ["verify", "origin/handoff-dag-1"]).exit(0)), "✓✓✓✓✓✓✓─");
}

#[test]
fn missing_objects_give_a_fetch_command() {
    let env = pushed();
    // The base of the run lies deeper than what the shallow clones have.
    env.shell(
        "repo",
        "echo later >later && git add later && git commit --quiet --message Later && git push --quiet origin main",
    )
    .success();
    let url = format!("file://{}/hub", env.path().display());
    let content = "git handoff fetch --content   # in a partial clone; in a shallow one: git fetch --unshallow";
    let history = "git fetch origin …   # in a shallow clone: git fetch --unshallow";
    for (name, options, verify, apply) in [
        ("blobless", &["--filter=blob:none"][..], Some("git handoff fetch --content"), content),
        ("treeless", &["--filter=tree:0"], Some("git handoff fetch --content"), content),
        ("shallow", &["--depth=1"], None, history),
        (
            "both",
            &["--depth=1", "--filter=blob:none"],
            Some("git handoff fetch --content && git fetch --unshallow"),
            history,
        ),
    ] {
        env.git_in(".", ["clone", "--quiet"].iter().chain(options).chain(&[url.as_str(), name])).success();
        env.handoff_in(name, ["fetch"]).success();
        let verified = env.handoff_in(name, ["verify", "origin/handoff-dag-1"]).exit(0);
        let hint = verified.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
        assert_eq!(hint, verify, "{name}: {verified}");
        let refused = env.handoff_in(name, ["apply", "origin/handoff-dag-1", "--branch", "x"]).exit(1);
        let second_hint = refused.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        assert_eq!(without_hashes(second_hint), apply, "{name}: {refused}");
        assert_eq!(env.git_in(name, ["branch", "--list", "x"]).success(), "");
        // It does bring it.
        if name == "blobless" || name == "treeless" {
            env.handoff_in(name, ["fetch", "--content"]).success();
        } else {
            env.git_in(name, ["fetch", "--quiet", "--unshallow"]).success();
            env.handoff_in(name, ["fetch", "--content"]).success();
        }
        env.handoff_in(name, ["apply", "origin/handoff-dag-1", "--branch", "x"]).success();
    }
}

#[test]
fn a_run_in_a_clone_without_files_names_the_command_that_brings_them() {
    for (name, options) in [
        ("treeless", &["--bare", "--filter=tree:0"][..]),
        ("blobless", &["--bare", "--filter=blob:none"]),
        ("bare-tree", &["--no-checkout", "--filter=tree:0"]),
    ] {
        let env = pushed();
        let url = format!("file://{}/hub", env.path().display());
        env.git_in(".", ["clone", "--quiet"].iter().chain(options).chain(&[url.as_str(), name])).success();
        let item = r#"{"id": "edit", "executor": "command", "maxAttempts": 1, "inputs": {"command": "echo x >x"}}"#;
        env.write("plan.json", &format!(r#"{{"id": "p", "items": [{item}]}}"#));
        let failed = env.handoff_in(name, ["run", "../plan.json"]).exit(4);
        insta::allow_duplicates! {
            insta::assert_snapshot!(find_line(&failed.stderr, "✗ edit  failed: "), @"✗ edit  failed: the worktree could not be made: cannot check out the base commit: this partial clone lacks .handoff/apply-patch.sh; `git fetch --refetch --no-filter` fetches everything");
        }
        env.git_in(name, ["fetch", "--quiet", "--refetch", "--no-filter"]).success();
        env.handoff_in(name, ["retry", "p/edit"]).success();
        env.handoff_in(name, ["run", "p"]).success();
    }
}

#[test]
fn a_chain_that_a_shallow_fetch_cut_names_the_way_out() {
    let env = pushed();
    let url = format!("file://{}/hub", env.path().display());
    env.git_in(".", ["clone", "--quiet", "--depth=1", &url, "shallow"]).success();
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    env.git_in("shallow", ["fetch", "--quiet", "--depth=1", "origin", spec]).success();
    let cut = env.handoff_in("shallow", ["verify", "origin/handoff-dag-1"]).exit(3);
    assert_eq!(verdict(&cut.stdout), "✗ INCOMPLETE");
    insta::assert_snapshot!(cut.stderr, @"hint: git fetch --unshallow");
    env.git_in("shallow", ["fetch", "--quiet", "--unshallow", "origin", spec]).success();
    let whole = env.handoff_in("shallow", ["verify", "origin/handoff-dag-1"]).exit(0);
    assert_eq!(whole.stderr, "");
}

#[test]
fn an_entry_that_names_bytes_of_another_format_stops_no_fetch() {
    let env = pushed();
    env.write("state", "first");
    env.handoff(["checkpoint", "t", "--state", "../state"]).success();
    env.handoff(["push", "--all"]).success();
    let bent = |tip: &str, name: &str| {
        let commit = env.git_in("hub", ["cat-file", "commit", tip]).success();
        let (before, after) = commit.split_once("\"oid\": \"").unwrap();
        let other = format!("{before}\"oid\": \"{}{}", "1".repeat(64), &after[40..]);
        env.write("bent", &other);
        let oid = env.git_in("hub", ["hash-object", "-t", "commit", "-w", "../bent"]).success();
        env.git_in("hub", ["update-ref", name, oid.trim()]).success();
    };
    bent("refs/handoff/runs/handoff-dag-1^{/item.fired}", "refs/handoff/runs/bent");
    bent("refs/handoff/threads/t", "refs/handoff/threads/bent");
    blobless(&env);
    let fetched = json(&env.handoff_in("lazy", ["fetch", "--content", "--json"]).exit(1));
    let refs = fetched["refs"].as_array().unwrap().iter();
    let status = |kind, name| {
        let mut matches = refs.clone().filter(move |one| one["kind"] == kind && one["name"] == name);
        matches.next().map(|one| one["status"].clone())
    };
    for (kind, name) in [("run", "handoff-dag-1"), ("thread", "t")] {
        assert_eq!(status(kind, name), Some("new".into()), "{fetched}");
        assert_eq!(status(kind, "bent"), Some("unsound".into()), "{fetched}");
    }
}
