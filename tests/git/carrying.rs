//! Stock git reads, checks and carries what we wrote, and verification holds on the other side.

use crate::common::forge::{Forge, assert_intact, git, row_of, stock_git};

use git_handoff::git::store::Store;
use git_handoff::ledger::sign;
use git_handoff::model::format;
use git_handoff::verify::{Failure, Options, State, verify};

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

#[test]
fn stock_git_finds_nothing_wrong_and_every_signature_good() {
    for object_format in ["sha1", "sha256"] {
        let forge = Forge::with_format(object_format);
        let chain = forge.honest();
        assert_intact(&forge.verify());
        forge.git(&["fsck", "--strict", "--no-dangling"]);
        let file = forge.path().join(".git/allowed");
        std::fs::write(&file, sign::allowed_signers_line("ada", forge.signer.public()).unwrap()).unwrap();
        let setting = format!("gpg.ssh.allowedSignersFile={}", file.display());
        for link in &chain.links {
            forge.git(&["-c", &setting, "verify-commit", &link.commit.to_string()]);
        }
        let log = forge.git(&["log", "--reverse", "--format=%b", RUN]);
        assert!(log.starts_with("{\n \"actor\": \"human:ada\",\n \"artifacts\": {\n"), "{log}");
    }
}

#[test]
fn a_gc_changes_nothing() {
    for object_format in ["sha1", "sha256"] {
        let forge = Forge::with_format(object_format);
        forge.honest();
        let before = forge.verify().to_text(false);
        forge.git(&["gc", "-q"]);
        forge.git(&["commit-graph", "write", "--reachable"]);
        let store = Store::discover(forge.path()).unwrap();
        let run = "handoff-dag-1".parse().unwrap();
        assert_eq!(verify(&store, &run, RUN, &forge.options()).unwrap().to_text(false), before);
    }
}

/// Clones bare, without blobs.
fn blobless(forge: &Forge) -> (tempfile::TempDir, Store) {
    forge.git(&["config", "uploadpack.allowFilter", "true"]);
    forge.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let dir = crate::common::folder();
    let url = format!("file://{}", forge.path().display());
    git(dir.path(), &["init", "-q", "--bare", "."]);
    git(dir.path(), &["remote", "add", "origin", &url]);
    git(dir.path(), &["fetch", "-q", "--filter=blob:none", "origin", "+refs/handoff/*:refs/handoff/*"]);
    let store = Store::discover(dir.path()).unwrap();
    (dir, store)
}

#[test]
fn without_evidence_a_blobless_clone_is_incomplete_and_fetches_nothing() {
    let forge = Forge::new();
    forge.honest();
    let (dir, store) = blobless(&forge);
    let run = "handoff-dag-1".parse().unwrap();
    let packs = || std::fs::read_dir(dir.path().join("objects/pack")).unwrap().count();
    let before = packs();
    let report = verify(&store, &run, RUN, &forge.options()).unwrap();
    let text = report.to_text(false);
    assert_eq!((report.failure, report.headline), (Some(Failure::Incomplete), "INCOMPLETE"), "{text}");
    for row in ["chain", "root", "signature", "anchor"] {
        assert_eq!(row_of(&report, row).state, State::Ok, "{text}");
    }
    for row in ["plan", "handoff", "manifest", "content"] {
        assert_eq!(row_of(&report, row).state, State::NotApplicable, "{text}");
    }
    assert_eq!(packs(), before);
}

#[test]
fn with_evidence_a_blobless_clone_lacks_only_the_content() {
    let forge = Forge::new();
    forge.honest();
    let (dir, store) = blobless(&forge);
    let evidence =
        ["run.submitted}:plan.json", "item.fired edit-a }:manifest.json", "item.fired edit-b }:manifest.json"];
    for path in evidence {
        let id = forge.git(&["rev-parse", &format!("{RUN}^{{/{path}")]);
        assert!(stock_git(dir.path(), &["cat-file", "-e", &id]).status.success());
        git(dir.path(), &["cat-file", "-p", &id]);
    }
    let run = "handoff-dag-1".parse().unwrap();
    let report = verify(&store, &run, RUN, &forge.options()).unwrap();
    let text = report.to_text(false);
    assert!(report.intact, "{text}");
    let content = report.rows.content;
    assert_eq!(content.state, State::NotApplicable, "{text}");
    assert!(content.detail.ends_with("not in this partial clone"), "{text}");
}

#[test]
fn verify_fails_for_an_unexpected_plan_or_base() {
    let forge = Forge::new();
    forge.honest();
    let right = Options { plan: Some(crate::common::forge::PLAN.into()), base: Some(forge.base), ..forge.options() };
    assert_intact(&forge.verify_with(&right));
    let plan = Options { plan: Some(b"{}".to_vec()), ..forge.options() };
    crate::common::forge::assert_fails(&forge.verify_with(&plan), "plan", "other-plan");
    let base = Options { base: Some("1".repeat(40).parse().unwrap()), ..forge.options() };
    crate::common::forge::assert_fails(&forge.verify_with(&base), "plan", "other-base");
    assert_eq!(format::run_ref(&"handoff-dag-1".parse().unwrap()), RUN);
}

#[test]
fn a_shallow_clone_is_incomplete_and_accused_of_nothing() {
    let forge = Forge::new();
    forge.honest();
    let dir = crate::common::folder();
    git(dir.path(), &["init", "-q", "--bare", "."]);
    let url = format!("file://{}", forge.path().display());
    git(dir.path(), &["fetch", "-q", "--depth=2", &url, "+refs/handoff/*:refs/handoff/*"]);
    let run = "handoff-dag-1".parse().unwrap();
    let report = verify(&Store::discover(dir.path()).unwrap(), &run, RUN, &forge.options()).unwrap();
    assert_eq!(
        (report.failure, report.headline),
        (Some(Failure::Incomplete), "INCOMPLETE"),
        "{}",
        report.to_text(false)
    );
}
