//! In one repository.

use serde_json::json;

use super::{as_person, items, person, statuses, waiting};
use crate::common::assert_output;
use crate::common::repo::{TestRepo, wait_for};

#[test]
fn a_run_waits_for_an_approval_and_goes_on_after_it() {
    let repo = TestRepo::new();
    repo.submit("r", &items());
    assert_output!("people_a_run_waits_for_somebodys_1", repo.env.handoff(["run", "r"]).exit(4));
    assert_output!("people_a_run_waits_for_somebodys_2", repo.env.handoff(["waiting"]));
    assert_output!(
        "people_a_run_waits_for_somebodys_3",
        repo.env.handoff(["approve", "r/sign-off", "--message", "reads well"])
    );
    assert_output!("people_a_run_waits_for_somebodys_4", repo.env.handoff(["waiting"]));
    assert_output!("people_a_run_waits_for_somebodys_5", repo.env.handoff(["show", "r/sign-off"]));
    assert_output!("people_a_run_waits_for_somebodys_6", repo.env.handoff(["approve", "r/sign-off"]).exit(1));
    repo.env.handoff(["run", "r"]).success();
    assert_output!("people_a_run_waits_for_somebodys_7", repo.env.handoff(["status", "r"]));
    assert_output!("people_a_run_waits_for_somebodys_8", repo.env.handoff(["verify", "r"]));
    repo.passes_fsck();
    let proof = repo.env.handoff(["prove", "r/sign-off"]).success();
    repo.env.write("proof.json", &proof);
    assert_output!(
        "people_a_run_waits_for_somebodys_9",
        repo.env.handoff_in("home", ["verify", "--proof", "../proof.json"])
    );
    for (from, to) in [("\"decision\":\"approved\"", "\"decision\":\"rejected\""), ("reads well", "reads badly")] {
        assert!(proof.contains(from), "{proof}");
        repo.env.write("forged.json", &proof.replace(from, to));
        repo.env.handoff_in("home", ["verify", "--proof", "../forged.json"]).ends(3);
    }
}

#[test]
fn a_driver_that_waits_goes_on_after_the_decision() {
    let repo = TestRepo::new();
    repo.submit("r", &items());
    let mut driver = repo.start(&["run", "r", "--wait"]);
    let line = "waiting for a decision of people: r/sign-off (Ctrl-C ends the driver)";
    wait_for("a driver that waits", || {
        driver.is_over() || driver.stderr().lines().any(|printed_line| printed_line == line)
    });
    assert!(!driver.is_over(), "{}", driver.stderr());
    repo.env.handoff(["approve", "r/sign-off"]).success();
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(output.matches("waiting for a decision").count(), 1, "{output}");
    repo.is_intact("r");
}

#[test]
fn rejected_item_fails_and_can_be_retried() {
    let repo = TestRepo::new();
    repo.submit("r", &items());
    repo.env.handoff(["run", "r"]).ends(4);
    repo.env.handoff(["reject", "r/sign-off", "-m", "not before Monday"]).success();
    assert_output!("people_what_is_rejected_has_failed_1", repo.env.handoff(["run", "r"]).exit(4));
    repo.env.handoff(["retry", "r/sign-off"]).success();
    assert_eq!(statuses(&repo, "r"), "done ready pending");
    repo.env.handoff(["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    repo.ends_intact("r");
}

#[test]
fn an_approver_approves_and_does_nothing_else() {
    let repo = waiting("approve");
    let bob = |args: &[&str]| as_person(&repo.env, "repo", "bob", args);
    let key = super::signer(&repo.env, "bob").fingerprint();
    assert_output!("people_an_approver_approves_and_does_1", bob(&["run", "r"]).exit(1));
    assert_output!("people_an_approver_approves_and_does_2", bob(&["cancel", "r"]).exit(1));
    assert_output!("people_an_approver_approves_and_does_3", bob(&["doc", "put", "r", "notes", "a.txt"]).exit(1));
    for refused in
        [&["retry", "r/build"][..], &["close", "r"], &["admit", "r", &key, "--as", "own"], &["coordinate", "r"]]
    {
        bob(refused).ends(1);
    }
    assert_eq!(statuses(&repo, "r"), "done ready pending");
    bob(&["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_output!("people_an_approver_approves_and_does_4", repo.env.handoff(["verify", "r"]));
    assert_output!(
        "people_an_approver_approves_and_does_5",
        repo.env.handoff(["verify", "r", "--require-trusted"]).exit(3)
    );
}

#[test]
fn an_owner_admits_others_one_role_at_a_time() {
    let repo = TestRepo::new();
    person(&repo.env, "bob");
    repo.submit("r", &items());
    repo.env.handoff(["run", "r"]).ends(4);
    let bob = |args: &[&str]| as_person(&repo.env, "repo", "bob", args);
    assert_output!("people_an_owner_admits_others_one_1", bob(&["approve", "r/sign-off"]).exit(1));
    let file = repo.path("home/bob.pub");
    let key = super::signer(&repo.env, "bob").public().to_openssh().unwrap();
    std::fs::write(&file, &key).unwrap();
    assert_output!(
        "people_an_owner_admits_others_one_2",
        repo.env.handoff(["admit", "r", "../home/bob.pub", "--as", "document"])
    );
    assert_output!(
        "people_an_owner_admits_others_one_3",
        repo.env.handoff(["admit", "r", &key, "--as", "document"]).exit(1)
    );
    assert_output!("people_an_owner_admits_others_one_4", bob(&["approve", "r/sign-off"]).exit(1));
    bob(&["doc", "put", "r", "notes", "a.txt"]).success();
    assert_output!(
        "people_an_owner_admits_others_one_5",
        repo.env.handoff(["admit", "r", "nobody", "--as", "approve"]).exit(2)
    );
    repo.env.handoff(["admit", "r", &key, "--as", "approve"]).success();
    bob(&["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    repo.env.handoff(["verify", "r"]).success();
    let kinds: Vec<_> = repo.entries("r").iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds[3..7].join(" "), "run.admitted document.written run.admitted item.decided");
}

#[test]
fn a_worker_who_was_admitted_conducts_the_run_if_he_knows_who_began_it() {
    let repo = waiting("work");
    repo.env.handoff(["approve", "r/sign-off"]).success();
    let bob = |args: &[&str]| as_person(&repo.env, "repo", "bob", args);
    assert_output!("people_a_worker_who_was_admitted_1", bob(&["run", "r"]).exit(1));
    let signers = repo.env.handoff(["key"]).success();
    repo.env.write("home/signers", &signers);
    repo.config("gpg.ssh.allowedSignersFile", &repo.path("home/signers").display().to_string());
    bob(&["run", "r"]).success();
    // Entry 0 names both, so that either seals.
    repo.env.handoff(["verify", "r"]).success();
    assert_eq!(statuses(&repo, "r"), "done done done");
}

#[test]
fn only_those_decide_whom_an_item_names() {
    let repo = TestRepo::new();
    let bob = person(&repo.env, "bob");
    let mut items = items();
    items[1]["inputs"] = json!({ "approvers": [bob] });
    let file = repo.plan("r", &items);
    repo.env.handoff(["submit", &file, "--admit", &format!("{bob}=approve")]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    assert_output!("people_only_those_decide_whom_an_1", repo.env.handoff(["approve", "r/sign-off"]).exit(1));
    assert_output!("people_only_those_decide_whom_an_2", repo.env.handoff(["waiting"]));
    assert_output!("people_only_those_decide_whom_an_3", repo.env.handoff(["waiting", "--all"]));
    as_person(&repo.env, "repo", "bob", &["approve", "r/sign-off"]).success();
}

#[test]
fn invalid_decisions_are_rejected_at_once() {
    let repo = TestRepo::new();
    let mut items = items();
    items[1]["inputs"] = json!({ "approvers": ["bob"] });
    items[1]["timeout"] = json!(5);
    items[1]["produces"] = json!([{ "kind": "patch" }]);
    items[2]["needs"] = json!({ "x": { "from": "sign-off", "select": { "kind": "output", "path": "approval" } } });
    let file = repo.plan("r", &items);
    assert_output!("people_what_makes_no_sense_is_1", repo.env.handoff(["validate", &file]).exit(1));
    let second_file = repo.plan("r", &super::items());
    let own = super::signer(&repo.env, "signing_key").fingerprint();
    for value in ["bob=approve", &format!("{own}=approve"), &format!("{own}=chief"), "approve"] {
        repo.env.handoff(["submit", &second_file, "--admit", value]).ends(2);
    }
    repo.env.handoff(["submit", &second_file]).success();
    for (target, code) in [("r", 2), ("r/none", 1), ("none/sign-off", 1), ("r/build", 1), ("r/sign-off", 1)] {
        repo.env.handoff(["approve", target]).ends(code);
    }
}

#[test]
fn a_message_with_a_credential_is_refused() {
    let repo = waiting("approve");
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let stderr = repo.env.handoff(["approve", "r/sign-off", "-m", &token]).exit(1).stderr;
    assert!(!stderr.contains(&token), "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: secret-found: the message:1 github-pat
    hint: git config --add handoff.secrets.allow 'github-pat:the message'   # if it is none, or may be known
    ");
}

#[test]
fn nothing_of_a_run_is_executed_to_which_a_revoked_key_may_add() {
    let repo = waiting("own");
    repo.env.handoff(["approve", "r/sign-off"]).success();
    let bob = super::signer(&repo.env, "bob").fingerprint();
    repo.env.write("home/revoked", &format!("{bob}\n"));
    repo.config("handoff.revoked", &repo.path("home/revoked").display().to_string());
    let stderr = repo.env.handoff(["run", "r"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: the key SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ, which is revoked here, can append to the run "r", so it is not executed
    hint: git handoff verify r
    "#);
    assert_eq!(statuses(&repo, "r"), "done done ready");
    // It can be ended.
    repo.env.handoff(["cancel", "r"]).success();
}

#[test]
fn decisions_answer_in_json() {
    let repo = waiting("approve");
    let bob = super::signer(&repo.env, "bob").fingerprint();
    let ask = |args: &[&str]| -> serde_json::Value {
        let output = repo.env.handoff(args.iter().chain(&["--json"])).success();
        serde_json::from_str(&output).unwrap()
    };
    let waits = ask(&["waiting"]);
    assert_eq!((&waits["items"][0]["target"], &waits["items"][0]["mine"]), (&json!("r/sign-off"), &json!(true)));
    let admitted = ask(&["admit", "r", &bob, "--as", "document"]);
    assert_eq!(admitted, json!({"schema": "git-handoff.admit/1", "run": "r", "key": bob, "role": "document"}));
    let decided = ask(&["reject", "r/sign-off", "-m", "not yet"]);
    assert_eq!((&decided["decision"], &decided["recorded"]), (&json!("rejected"), &json!(true)));
    assert_eq!(decided["about"], waits["items"][0]["about"]);
    let steered = |entries: u64, sealed: bool| json!({"schema": "git-handoff.steer/1", "run": "r", "entries": entries, "sealed": sealed});
    // Its dependents were skipped.
    assert_eq!(ask(&["retry", "r/sign-off"])["sealed"], false);
    assert_eq!(ask(&["cancel", "r/ship"]), steered(1, false));
    assert_eq!(ask(&["abandon", "r"])["sealed"], true);
}
