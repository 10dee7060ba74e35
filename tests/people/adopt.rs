//! A run without an owner is continued by a person who trusts its keys.

use serde_json::{Value, json};

use super::elsewhere::{bob_says, shared};
use super::{as_person, items, person, signer, statuses};
use crate::common::ground::Ground;
use crate::common::report::{find_line, find_row, verdict};
use crate::common::{Output, assert_output};

/// A run that its owner began, of which the first item is done, and a second key that knows the
/// first.
fn left_behind(items: &[Value]) -> Ground {
    let ground = Ground::new();
    person(&ground.env, "bob");
    know_ada(&ground);
    ground.submit("r", items);
    ground.env.handoff(["run", "r"]).ends(4);
    ground
}

fn know_ada(ground: &Ground) {
    let signers = ground.env.handoff(["key", "--principal", "ada"]).success();
    ground.env.write("home/signers", &signers);
    ground.config("gpg.ssh.allowedSignersFile", &ground.path("home/signers").display().to_string());
}

fn bob(ground: &Ground, args: &[&str]) -> Output {
    as_person(&ground.env, "repo", "bob", args)
}

#[test]
fn an_open_run_goes_on_under_another_id_and_key() {
    let ground = left_behind(&items());
    assert_output!("people_adopt_run_1", bob(&ground, &["adopt-run", "r", "--id", "r2"]));
    assert_eq!(statuses(&ground, "r2"), "done ready pending");
    let said = bob(&ground, &["verify", "r2"]).exit(3).stdout;
    let origin = "✓ origin     continues r (3 entries, root sha256:";
    assert!(said.contains(origin), "{said}");
    assert_eq!(verdict(&said), "✗ NOT SEALED");
    // Nothing is run again, and the rest is as it would have been.
    bob(&ground, &["run", "r2"]).ends(4);
    bob(&ground, &["approve", "r2/sign-off"]).success();
    bob(&ground, &["run", "r2"]).success();
    let said = bob(&ground, &["verify", "r2"]).success();
    assert!(said.contains(origin), "{said}");
    assert_eq!(verdict(&said), "✓ INTACT · tamper-detecting");
    insta::assert_snapshot!(find_line(&said, "✓ taken from run r ("), @"✓ taken from run r (root sha256:c3648035…): here, intact");
    // The way back names the old run, which is open.
    let said = bob(&ground, &["lineage", "r2/ship"]).success();
    insta::assert_snapshot!(said, @"
    r2/ship  by command
      r2/sign-off  by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
        r2/build  by command
          r/build  reused  by command
    ");
    assert_eq!(ground.env.handoff(["cat", "r2/build:outputs/report"]).success(), "built\n");
    let dispatched = ground.entries("r2");
    let fired = dispatched.iter().filter(|entry| entry["kind"] == "item.fired" && entry["item"] == "build");
    assert_eq!(fired.count(), 1);
    let done = dispatched.iter().find(|entry| entry["kind"] == "item.reconciled" && entry["item"] == "build").unwrap();
    assert_eq!((&done["reused"]["run"], &done["durationMs"]), (&json!("r"), &json!(0)));
    ground.passes_fsck();
    let report: Value = serde_json::from_str(&bob(&ground, &["verify", "r2", "--json"]).success()).unwrap();
    assert_eq!((&report["continues"]["run"], &report["intact"]), (&json!("r"), &json!(true)));
    assert_eq!(report["takenFrom"][0]["name"], "r");
    // The continued products verify even if the old run is gone.
    let proof = bob(&ground, &["prove", "r2/build:outputs/report"]).success();
    ground.env.write("home/proof.json", &proof);
    ground.env.handoff_in("home", ["verify", "--proof", "proof.json"]).success();
    ground.env.git(["update-ref", "-d", "refs/handoff/runs/r"]).success();
    let said = bob(&ground, &["verify", "r2"]).success();
    insta::assert_snapshot!(find_row(&said, "origin"), @"✓ origin     continues r (3 entries, root sha256:c3648035…)");
    insta::assert_snapshot!(find_line(&said, "─ taken from run r ("), @"─ taken from run r (root sha256:c3648035…): not here; proven by its signed entries");
    let said = bob(&ground, &["lineage", "r2/ship"]).success();
    insta::assert_snapshot!(said, @"
    r2/ship  by command
      r2/sign-off  by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
        r2/build  by command
          r/build  not here; its signed entries are sealed with the run, root c3648035
    ");
}

#[test]
fn the_same_command_again_changes_nothing_and_another_run_keeps_its_id() {
    let ground = left_behind(&items());
    bob(&ground, &["adopt-run", "r", "--id", "r2"]).success();
    let before = ground.tip("r2");
    let again: Value =
        serde_json::from_str(&bob(&ground, &["adopt-run", "r", "--id", "r2", "--json"]).success()).unwrap();
    assert_eq!((&again["created"], &again["taken"], &again["left"]), (&json!(false), &json!([]), &json!(2)));
    assert_eq!(ground.tip("r2"), before);
    // The old run went on: that is another beginning.
    ground.env.handoff(["reject", "r/sign-off"]).success();
    let said = bob(&ground, &["adopt-run", "r", "--id", "r2"]).exit(1).stderr;
    insta::assert_snapshot!(said, @r#"
    error: the run "r2" exists, and does not continue the current state of "r"
    hint: give the plan another id than "r2"
    "#);
    bob(&ground, &["adopt-run", "r", "--id", "r"]).ends(2);
    bob(&ground, &["adopt-run", "r", "--id", "a/b"]).ends(2);
    bob(&ground, &["adopt-run", "none", "--id", "r3"]).ends(1);
}

#[test]
fn a_sealed_run_is_continued_in_a_clone() {
    let ground = shared(&items(), &[]);
    ground.env.handoff(["abandon", "r", "-m", "the key is lost"]).success();
    ground.env.handoff(["push", "--all"]).success();
    bob_says(&ground, &["fetch"]).success();
    // Bob does not know the key.
    let said = bob_says(&ground, &["adopt-run", "origin/r", "--id", "r2"]).exit(1).stderr;
    insta::assert_snapshot!(said, @r#"
    error: cannot continue the run "r": it is signed with the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg, which is not known here
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    "#);
    know_ada(&ground);
    let signers = ground.path("home/signers").display().to_string();
    ground.env.git_in("clone", ["config", "gpg.ssh.allowedSignersFile", &signers]).success();
    let said = bob_says(&ground, &["adopt-run", "origin/r", "--id", "r2"]).success();
    assert_eq!(said, "r2 continues r: 1 item taken over, 2 left\n");
    bob_says(&ground, &["approve", "r2/sign-off"]).success();
    bob_says(&ground, &["run", "r2"]).success();
    let said = bob_says(&ground, &["verify", "r2"]).success();
    insta::assert_snapshot!(find_row(&said, "origin"), @"✓ origin     continues r (6 entries, root sha256:5bdc1b76…)");
    insta::assert_snapshot!(find_line(&said, "✓ taken from run r ("), @"✓ taken from run r (root sha256:5bdc1b76…): here, intact");
}

#[test]
fn nothing_is_continued_that_a_key_without_trust_signed() {
    let ground = left_behind(&items());
    let ada = signer(&ground.env, "signing_key").fingerprint();
    ground.env.write("home/revoked", &format!("{ada}\n"));
    ground.config("handoff.revoked", &ground.path("home/revoked").display().to_string());
    let refused = bob(&ground, &["adopt-run", "r", "--id", "r2"]);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "r" is not trusted, so nothing is taken from it: signature: entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 2 more)
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    "#);
    refused.ends(3);
    assert_eq!(ground.tip("r2"), None);
}

#[test]
fn documents_and_what_they_are_needed_for_are_taken_over() {
    let mut items = items();
    items[0]["inputs"]["command"] = json!("mkdir outputs; cp inputs/notes outputs/report");
    items[0]["needs"] = json!({ "notes": { "from": "@documents", "select": { "kind": "document", "name": "notes" } } });
    let ground = Ground::new();
    person(&ground.env, "bob");
    know_ada(&ground);
    ground.submit("r", &items);
    ground.env.write("repo/notes", "mind the gap\n");
    ground.env.handoff(["doc", "put", "r", "notes", "notes"]).success();
    ground.env.handoff(["run", "r"]).ends(4);
    let said = bob(&ground, &["adopt-run", "r", "--id", "r2"]).success();
    assert_eq!(said, "r2 continues r: 1 item taken over, 2 left\n");
    assert_eq!(ground.env.handoff(["cat", "r2/build:outputs/report"]).success(), "mind the gap\n");
    bob(&ground, &["abandon", "r2"]).success();
    let said = bob(&ground, &["verify", "r2"]).exit(4).stdout;
    insta::assert_snapshot!(find_row(&said, "origin"), @"✓ origin     continues r (4 entries, root sha256:99878b00…)");
}
