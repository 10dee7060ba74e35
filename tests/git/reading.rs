//! Stock git reads our data.

use serde_json::Value;

use crate::common::assert_output;
use crate::common::finished;

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

#[test]
fn git_reads_a_run_as_history_and_folder() {
    let env = finished();
    assert_output!("git_log", env.git(["log", "--format=fuller", RUN]));
    assert_output!(env.git(["ls-tree", "-r", RUN]), @"");
    let patch = env.git(["show", &format!("{RUN}^{{/item.reconciled apply-patch }}:patch")]);
    assert_eq!(patch.raw, env.handoff(["cat", "handoff-dag-1/apply-patch:patch"]).raw);
}

#[test]
fn bodies_are_json_with_a_key_a_line() {
    let env = finished();
    let bodies = env.git(["log", "--reverse", "--format=%b", RUN]).success();
    let entries = serde_json::Deserializer::from_str(&bodies).into_iter::<Value>();
    let mut seqs = Vec::new();
    for entry in entries.map(|entry| entry.expect("a body is JSON")) {
        seqs.push(entry["seq"].as_u64().unwrap());
        let text = String::from_utf8(git_handoff::model::format::entry_text(&entry)).unwrap();
        assert!(bodies.contains(&format!("{text}\n")), "a body is what the format says: {text}");
    }
    assert!(seqs.len() > 5 && seqs.iter().copied().eq(0..seqs.len() as u64), "{seqs:?}");
}

#[test]
fn git_verifies_every_signature() {
    let env = finished();
    let signers = env.handoff(["key"]).success();
    env.write("signers", &signers);
    env.git(["config", "gpg.ssh.allowedSignersFile", "../signers"]).success();
    for commit in env.git(["rev-list", RUN]).success().lines() {
        env.git(["verify-commit", commit]).success();
    }
    assert_output!("git_log_signatures", env.git(["log", "--show-signature", "--oneline", "--no-abbrev-commit", RUN]));
    for log in env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success().lines() {
        env.git(["verify-commit", log]).success();
    }
}

#[test]
fn known_signers_make_the_signature_row_strict() {
    let env = finished();
    let signers = env.handoff(["key", "--principal", "ci@example.com"]).success();
    env.write("signers", &signers);
    assert_output!("verify_trusted", env.handoff(["verify", "--signers", "../signers", "handoff-dag-1"]).exit(0));
    env.write("nobody", "");
    assert_output!("verify_untrusted", env.handoff(["verify", "--signers", "../nobody", "handoff-dag-1"]).exit(3));
}

#[test]
fn fsck_is_content() {
    let env = finished();
    assert_output!(env.git(["fsck", "--strict", "--no-dangling"]), @"");
}

#[test]
fn a_run_travels_by_push_and_fetch() {
    let env = finished();
    env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    env.git_in("hub", ["config", "receive.fsckObjects", "true"]).success();
    env.git([
        "push",
        "--quiet",
        "../hub",
        "main",
        "refs/handoff/runs/*:refs/handoff/runs/*",
        "refs/handoff/logs/*:refs/handoff/logs/*",
    ])
    .success();
    env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    // A clone has another key and does not know ours.
    env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    env.git_in("clone", ["fetch", "--quiet", "origin", "refs/handoff/*:refs/handoff/remotes/origin/*"]).success();
    assert_output!("fetched_verify", env.handoff_in("clone", ["verify", "handoff-dag-1"]));
}

#[test]
fn a_run_travels_in_a_bundle() {
    let env = finished();
    env.git([
        "bundle",
        "create",
        "--quiet",
        "../run.bundle",
        "--glob=refs/handoff/runs/*",
        "--glob=refs/handoff/logs/*",
    ])
    .success();
    env.git_in(".", ["init", "--quiet", "auditor"]).success();
    env.git_in("auditor", ["fetch", "--quiet", "../run.bundle", "refs/handoff/*:refs/handoff/remotes/ada/*"]).success();
    env.handoff_in("auditor", ["verify", "handoff-dag-1"]).success();
}

#[test]
fn a_changed_product_is_found_out() {
    let env = finished();
    // The history is rewritten without signatures: the last entry's tree gets another patch.
    env.write("repo/other", "diff --git a/x b/x\n");
    let blob = env.git(["hash-object", "-w", "other"]).success();
    env.git(["read-tree", "--index-output=.git/other-index", RUN]).success();
    let entry = format!("100644,{},patch", blob.trim());
    let run = |args: &[&str]| {
        let mut command = env.command("git", "repo");
        let output = command.env("GIT_INDEX_FILE", ".git/other-index").args(args).output().expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("git prints names").trim().to_owned()
    };
    run(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = run(&["write-tree"]);
    let message = env.git(["log", "-1", "--format=%B", RUN]).success();
    let commit = run(&["commit-tree", &tree, "-p", &format!("{RUN}^"), "-m", message.trim_end()]);
    env.git(["update-ref", RUN, &commit]).success();
    assert_output!("verify_tampered", env.handoff(["verify", "handoff-dag-1"]).exit(3));
}

#[test]
fn a_call_of_git_has_no_more_memory_than_it_is_given() {
    use git_handoff::git::program::{Error, Git};
    use std::fmt::Write as _;

    let env = finished();
    let lines = (0..800_000).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    });
    env.write("repo/lines", &lines);
    env.git(["add", "lines"]).success();
    let tree = env.git(["write-tree"]).success();
    let git_dir = env.repo().join(".git");
    let diff = |most| {
        let call = Git::new(&git_dir).args(["diff-tree", "-p", "HEAD", tree.trim()]);
        call.most_memory(most).run()
    };
    let refused = diff(Some(16 << 20)).map(|diff| diff.len());
    assert!(matches!(refused, Err(Error::Memory(most)) if most == 16 << 20), "{refused:?}");
    assert_eq!(diff(None).unwrap(), diff(Some(1 << 30)).unwrap());
}
