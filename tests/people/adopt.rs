//! A run without an owner is continued by a person who trusts its keys.

use serde_json::{Value, json};

use super::elsewhere::{bob_says, shared};
use super::{as_person, items, person, signer, statuses};
use crate::common::repo::TestRepo;
use crate::common::report::{find_line, find_row, verdict};
use crate::common::{Output, assert_output};

/// A run that its owner began, of which the first item is done, and a second key that knows the
/// first.
fn left_behind(items: &[Value]) -> TestRepo {
    let repo = TestRepo::new();
    person(&repo.env, "bob");
    know_ada(&repo);
    repo.submit("r", items);
    repo.env.handoff(["run", "r"]).ends(4);
    repo
}

fn know_ada(repo: &TestRepo) {
    let signers = repo.env.handoff(["key", "--principal", "ada"]).success();
    repo.env.write("home/signers", &signers);
    repo.config("gpg.ssh.allowedSignersFile", &repo.path("home/signers").display().to_string());
}

fn bob(repo: &TestRepo, args: &[&str]) -> Output {
    as_person(&repo.env, "repo", "bob", args)
}

#[test]
fn an_open_run_goes_on_under_another_id_and_key() {
    let repo = left_behind(&items());
    assert_output!("people_adopt_run_1", bob(&repo, &["adopt-run", "r", "--id", "r2"]));
    assert_eq!(statuses(&repo, "r2"), "done ready pending");
    let verify_answer = bob(&repo, &["verify", "r2"]).exit(3).stdout;
    let origin = "✓ origin     continues r (3 entries, root sha256:f3a0792e…)";
    assert_eq!(find_row(&verify_answer, "origin"), origin);
    assert_eq!(verdict(&verify_answer), "✗ NOT SEALED");
    // Nothing is run again, and the rest is as it would have been.
    bob(&repo, &["run", "r2"]).ends(4);
    bob(&repo, &["approve", "r2/sign-off"]).success();
    bob(&repo, &["run", "r2"]).success();
    let trusted_report = bob(&repo, &["verify", "r2"]).success();
    assert_eq!(find_row(&trusted_report, "origin"), origin);
    assert_eq!(verdict(&trusted_report), "✓ INTACT · tamper-detecting");
    insta::assert_snapshot!(find_line(&trusted_report, "✓ taken from run r ("), @"✓ taken from run r (root sha256:f3a0792e…): here, intact");
    // The way back names the old run, which is open.
    let stdout = bob(&repo, &["lineage", "r2/ship"]).success();
    insta::assert_snapshot!(stdout, @"
    r2/ship  by command
      r2/sign-off  by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
        r2/build  by command
          r/build  reused  by command
    ");
    assert_eq!(repo.env.handoff(["cat", "r2/build:outputs/report"]).success(), "built\n");
    let dispatched = repo.entries("r2");
    let fired = dispatched.iter().filter(|entry| entry["kind"] == "item.fired" && entry["item"] == "build");
    assert_eq!(fired.count(), 1);
    let done = dispatched.iter().find(|entry| entry["kind"] == "item.reconciled" && entry["item"] == "build").unwrap();
    assert_eq!((&done["reused"]["run"], &done["durationMs"]), (&json!("r"), &json!(0)));
    repo.passes_fsck();
    let report: Value = serde_json::from_str(&bob(&repo, &["verify", "r2", "--json"]).success()).unwrap();
    assert_eq!((&report["continues"]["run"], &report["intact"]), (&json!("r"), &json!(true)));
    assert_eq!(report["takenFrom"][0]["name"], "r");
    // The continued products verify even if the old run is gone.
    let proof = bob(&repo, &["prove", "r2/build:outputs/report"]).success();
    repo.env.write("home/proof.json", &proof);
    repo.env.handoff_in("home", ["verify", "--proof", "proof.json"]).success();
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/r"]).success();
    let sealed_report = bob(&repo, &["verify", "r2"]).success();
    insta::assert_snapshot!(find_row(&sealed_report, "origin"), @"✓ origin     continues r (3 entries, root sha256:f3a0792e…)");
    insta::assert_snapshot!(find_line(&sealed_report, "─ taken from run r ("), @"─ taken from run r (root sha256:f3a0792e…): not here; proven by its signed entries");
    let lineage_stdout = bob(&repo, &["lineage", "r2/ship"]).success();
    insta::assert_snapshot!(lineage_stdout, @"
    r2/ship  by command
      r2/sign-off  by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
        r2/build  by command
          r/build  not here; its signed entries are sealed with the run, root f3a0792e
    ");
}

#[test]
fn the_same_command_again_changes_nothing_and_another_run_keeps_its_id() {
    let repo = left_behind(&items());
    bob(&repo, &["adopt-run", "r", "--id", "r2"]).success();
    let before = repo.tip("r2");
    let again: Value =
        serde_json::from_str(&bob(&repo, &["adopt-run", "r", "--id", "r2", "--json"]).success()).unwrap();
    assert_eq!((&again["created"], &again["taken"], &again["left"]), (&json!(false), &json!([]), &json!(2)));
    assert_eq!(repo.tip("r2"), before);
    // The old run went on: that is another beginning.
    repo.env.handoff(["reject", "r/sign-off"]).success();
    let stderr = bob(&repo, &["adopt-run", "r", "--id", "r2"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: the run "r2" exists, and does not continue the current state of "r"
    hint: give the plan another id than "r2"
    "#);
    bob(&repo, &["adopt-run", "r", "--id", "r"]).ends(2);
    bob(&repo, &["adopt-run", "r", "--id", "a/b"]).ends(2);
    bob(&repo, &["adopt-run", "none", "--id", "r3"]).ends(1);
}

#[test]
fn a_sealed_run_is_continued_in_a_clone() {
    let repo = shared(&items(), &[]);
    repo.env.handoff(["abandon", "r", "-m", "the key is lost"]).success();
    repo.env.handoff(["push", "--all"]).success();
    bob_says(&repo, &["fetch"]).success();
    // Bob does not know the key.
    let stderr = bob_says(&repo, &["adopt-run", "origin/r", "--id", "r2"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: cannot continue the run "r": it is signed with the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg, which is not known here
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    "#);
    know_ada(&repo);
    let signers = repo.path("home/signers").display().to_string();
    repo.env.git_in("clone", ["config", "gpg.ssh.allowedSignersFile", &signers]).success();
    let stdout = bob_says(&repo, &["adopt-run", "origin/r", "--id", "r2"]).success();
    assert_eq!(stdout, "r2 continues r: 1 item taken over, 2 left\n");
    bob_says(&repo, &["approve", "r2/sign-off"]).success();
    bob_says(&repo, &["run", "r2"]).success();
    let report = bob_says(&repo, &["verify", "r2"]).success();
    insta::assert_snapshot!(find_row(&report, "origin"), @"✓ origin     continues r (6 entries, root sha256:4dd9df72…)");
    insta::assert_snapshot!(find_line(&report, "✓ taken from run r ("), @"✓ taken from run r (root sha256:4dd9df72…): here, intact");
}

#[test]
fn nothing_is_continued_that_a_key_without_trust_signed() {
    let repo = left_behind(&items());
    let ada = signer(&repo.env, "signing_key").fingerprint();
    repo.env.write("home/revoked", &format!("{ada}\n"));
    repo.config("handoff.revoked", &repo.path("home/revoked").display().to_string());
    let refused = bob(&repo, &["adopt-run", "r", "--id", "r2"]);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "r" is not trusted, so nothing is taken from it: signature: entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 2 more)
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    "#);
    refused.ends(3);
    assert_eq!(repo.tip("r2"), None);
}

#[test]
fn adopt_run_copies_documents_and_their_consumers() {
    let mut items = items();
    items[0]["inputs"]["command"] = json!("mkdir outputs; cp inputs/notes outputs/report");
    items[0]["needs"] = json!({ "notes": { "from": "@documents", "select": { "kind": "document", "name": "notes" } } });
    let repo = TestRepo::new();
    person(&repo.env, "bob");
    know_ada(&repo);
    repo.submit("r", &items);
    repo.env.write("repo/notes", "mind the gap\n");
    repo.env.handoff(["doc", "put", "r", "notes", "notes"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    let stdout = bob(&repo, &["adopt-run", "r", "--id", "r2"]).success();
    assert_eq!(stdout, "r2 continues r: 1 item taken over, 2 left\n");
    assert_eq!(repo.env.handoff(["cat", "r2/build:outputs/report"]).success(), "mind the gap\n");
    bob(&repo, &["abandon", "r2"]).success();
    let report = bob(&repo, &["verify", "r2"]).exit(4).stdout;
    insta::assert_snapshot!(find_row(&report, "origin"), @"✓ origin     continues r (4 entries, root sha256:25bce4e6…)");
}
