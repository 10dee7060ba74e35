//! Stock git reads, checks and carries what we wrote, and verification holds on the other side.

use crate::common::lab::{Lab, assert_intact, git, stock_git};

use git_handoff::git::store::Store;
use git_handoff::ledger::sign;
use git_handoff::model::format;
use git_handoff::verify::{Failure, Options, State, verify};

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

#[test]
fn stock_git_finds_nothing_wrong_and_every_signature_good() {
    for object_format in ["sha1", "sha256"] {
        let lab = Lab::with_format(object_format);
        let told = lab.honest();
        assert_intact(&lab.verify());
        lab.git(&["fsck", "--strict", "--no-dangling"]);
        let file = lab.path().join(".git/allowed");
        std::fs::write(&file, sign::allowed_signers_line("ada", lab.signer.public()).unwrap()).unwrap();
        let setting = format!("gpg.ssh.allowedSignersFile={}", file.display());
        for link in &told.links {
            lab.git(&["-c", &setting, "verify-commit", &link.commit.to_string()]);
        }
        let log = lab.git(&["log", "--reverse", "--format=%b", RUN]);
        assert!(log.starts_with(r#"{"actor":"human:ada","artifacts":"#), "{log}");
    }
}

#[test]
fn a_gc_changes_nothing() {
    for object_format in ["sha1", "sha256"] {
        let lab = Lab::with_format(object_format);
        lab.honest();
        let before = lab.verify().to_text(false);
        lab.git(&["gc", "-q"]);
        lab.git(&["commit-graph", "write", "--reachable"]);
        let store = Store::discover(lab.path()).unwrap();
        let run = "handoff-dag-1".parse().unwrap();
        assert_eq!(verify(&store, &run, RUN, &lab.options()).unwrap().to_text(false), before);
    }
}

/// Clones bare, without blobs.
fn blobless(lab: &Lab) -> (tempfile::TempDir, Store) {
    lab.git(&["config", "uploadpack.allowFilter", "true"]);
    lab.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let dir = crate::common::folder();
    let url = format!("file://{}", lab.path().display());
    git(dir.path(), &["init", "-q", "--bare", "."]);
    git(dir.path(), &["remote", "add", "origin", &url]);
    git(dir.path(), &["fetch", "-q", "--filter=blob:none", "origin", "+refs/handoff/*:refs/handoff/*"]);
    let store = Store::discover(dir.path()).unwrap();
    (dir, store)
}

#[test]
fn without_evidence_a_blobless_clone_is_incomplete_and_fetches_nothing() {
    let lab = Lab::new();
    lab.honest();
    let (dir, store) = blobless(&lab);
    let run = "handoff-dag-1".parse().unwrap();
    let packs = || std::fs::read_dir(dir.path().join("objects/pack")).unwrap().count();
    let before = packs();
    let report = verify(&store, &run, RUN, &lab.options()).unwrap();
    let text = report.to_text(false);
    assert_eq!((report.failure, report.headline), (Some(Failure::Incomplete), "INCOMPLETE"), "{text}");
    for row in ["chain", "root", "signature"] {
        assert_eq!(report.row(row).unwrap().state, State::Ok, "{text}");
    }
    for row in ["anchor", "plan", "handoff", "manifest", "content"] {
        assert_eq!(report.row(row).unwrap().state, State::NotApplicable, "{text}");
    }
    assert_eq!(packs(), before);
}

#[test]
fn with_evidence_a_blobless_clone_lacks_only_the_content() {
    let lab = Lab::new();
    lab.honest();
    let (dir, store) = blobless(&lab);
    let evidence = ["plan.json", "items/edit-a/manifest.json", "items/edit-b/manifest.json"];
    for path in evidence {
        let id = lab.git(&["rev-parse", &format!("{RUN}:{path}")]);
        assert!(stock_git(dir.path(), &["cat-file", "-e", &id]).status.success());
        git(dir.path(), &["cat-file", "-p", &id]);
    }
    let run = "handoff-dag-1".parse().unwrap();
    // The log's record of the run after each entry.
    let log = format::log_ref(&lab.signer.fingerprint());
    for entry in [log.clone(), format!("{log}~1")] {
        let id = lab.git(&["rev-parse", &format!("{entry}:{}", format::log_path(&run))]);
        git(dir.path(), &["cat-file", "-p", &id]);
    }
    let report = verify(&store, &run, RUN, &lab.options()).unwrap();
    let text = report.to_text(false);
    assert!(report.intact, "{text}");
    let content = report.row("content").unwrap();
    assert_eq!(content.state, State::NotApplicable, "{text}");
    assert!(content.detail.ends_with("not in this partial clone"), "{text}");
}

#[test]
fn another_plan_or_base_than_was_asked_for_fails() {
    let lab = Lab::new();
    lab.honest();
    let right = Options { plan: Some(crate::common::lab::PLAN.into()), base: Some(lab.base), ..lab.options() };
    assert_intact(&lab.verify_with(&right));
    let plan = Options { plan: Some(b"{}".to_vec()), ..lab.options() };
    crate::common::lab::assert_fails(&lab.verify_with(&plan), "plan", "not of the given one");
    let base = Options { base: Some("1".repeat(40).parse().unwrap()), ..lab.options() };
    crate::common::lab::assert_fails(&lab.verify_with(&base), "plan", "not from 1111111");
    assert_eq!(format::run_ref(&"handoff-dag-1".parse().unwrap()), RUN);
}

#[test]
fn a_shallow_clone_is_incomplete_and_accused_of_nothing() {
    let lab = Lab::new();
    lab.honest();
    let dir = crate::common::folder();
    git(dir.path(), &["init", "-q", "--bare", "."]);
    let url = format!("file://{}", lab.path().display());
    git(dir.path(), &["fetch", "-q", "--depth=2", &url, "+refs/handoff/*:refs/handoff/*"]);
    let run = "handoff-dag-1".parse().unwrap();
    let report = verify(&Store::discover(dir.path()).unwrap(), &run, RUN, &lab.options()).unwrap();
    assert_eq!(
        (report.failure, report.headline),
        (Some(Failure::Incomplete), "INCOMPLETE"),
        "{}",
        report.to_text(false)
    );
}
