//! Objects that git's check finds fault with: refused where they come in, unless `fetch.fsck.*`
//! lets them through there.

use std::fs;

use super::{repository, save};
use crate::common::Environment;
use crate::common::report::masked;

/// A line that is longer than git reads.
fn attributes() -> String {
    format!("{} text\n", "a".repeat(3000))
}

/// A repository whose commit holds such a file, with an offer of a checkpoint of its work tree.
fn offered() -> Environment {
    let env = repository();
    env.write("repo/.gitattributes", &attributes());
    env.git(["add", "--all"]).success();
    env.git(["commit", "--quiet", "--message", "Attributes"]).success();
    save(&env, "t", b"state", &["--worktree"]);
    let descriptor = env.handoff(["offer", "t"]).success();
    env.write("descriptor.json", &descriptor);
    env.git_in("", ["init", "--quiet", "other"]).success();
    env
}

const ADOPT: [&str; 7] = ["adopt", "../descriptor.json", "--as", "u", "--from", "../repo", "--accept-unknown-signer"];

const WHY: &str = "gitattributesLineLength: .gitattributes has too long lines to parse";
const HINT: &str = "hint: git config fetch.fsck.gitattributesLineLength ignore   # if you take such objects";

#[test]
fn adopt_obeys_what_the_receiver_lets_through() {
    for (key, value) in [
        ("fetch.fsck.gitattributesLineLength", "ignore"),
        ("fetch.fsck.gitattributeslinelength", "warn"),
        ("fetch.fsck.skipList", "../skip"),
    ] {
        let env = offered();
        let output = env.handoff_in("other", ADOPT).exit(1);
        assert!(output.stderr.contains(WHY) && output.stderr.contains(HINT), "{output}");
        let blob = env.git(["rev-parse", "HEAD:.gitattributes"]).success();
        let skipped = env.path().join("skip");
        fs::write(&skipped, &blob).unwrap();
        let value = if value == "../skip" { skipped.to_str().unwrap() } else { value };
        env.git_in("other", ["config", key, value]).success();
        env.handoff_in("other", ADOPT).success();
    }
    // Some exceptions elsewhere do not apply here.
    let env = offered();
    for key in ["fsck.gitattributesLineLength", "receive.fsck.gitattributesLineLength", "fetch.fsck.gitmodulesUrl"] {
        env.git_in("other", ["config", key, "ignore"]).success();
    }
    assert!(env.handoff_in("other", ADOPT).exit(1).stderr.contains(WHY));
}

#[test]
fn fetch_and_checkpoint_say_what_lets_it_through() {
    let env = offered();
    let output = env.handoff_in("other", ["fetch", "../repo"]).exit(1);
    assert!(output.stderr.contains(WHY) && output.stderr.contains(HINT), "{output}");
    env.git_in("other", ["config", "fetch.fsck.gitattributesLineLength", "ignore"]).success();
    env.handoff_in("other", ["fetch", "../repo"]).success();
    // Uncommitted files are checked when saved.
    let second_env = repository();
    second_env.write("repo/.gitattributes", &attributes());
    second_env.write("state", "s");
    let checkpoint = ["checkpoint", "t", "--state", "../state", "--worktree"];
    let checkpoint_output = second_env.handoff(checkpoint).exit(1);
    assert!(checkpoint_output.stderr.contains(WHY) && checkpoint_output.stderr.contains(HINT), "{checkpoint_output}");
    second_env.git(["config", "fetch.fsck.gitattributesLineLength", "ignore"]).success();
    second_env.handoff(checkpoint).success();
}

#[test]
fn a_bundle_and_a_git_anchor_obey_it_too() {
    let env = offered();
    env.handoff(["bundle", "--all", "--output", "../t.bundle"]).success();
    let output = env.handoff_in("other", ["verify", "--bundle", "../t.bundle"]).exit(1);
    assert!(format!("{output}").contains(WHY), "{output}");
    env.git_in("other", ["config", "--global", "fetch.fsck.gitattributesLineLength", "ignore"]).success();
    let verify_output = env.handoff_in("other", ["verify", "--bundle", "../t.bundle"]);
    insta::assert_snapshot!(masked(&verify_output.to_string()), @"
    git handoff thread verify · t                                   ✓ INTACT  clock pinned
    ✓ chain      1 checkpoint in 1 entry, hash-linked, no gaps
    ✓ signature  ed25519 SHA256:…… · this repository's key
    ✓ anchor     local (detect)
    ─ lineage    began by itself
    ✓ content    1 checkpoint, 2.9 KiB re-hashed
    ");
}
