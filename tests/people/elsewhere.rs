//! Between clones: a person's log has the decision, and the run's driver records it.

use serde_json::{Value, json};

use super::{as_person, items, person, statuses};
use crate::common::assert_output;
use crate::common::repo::TestRepo;
use crate::common::report::find_line;

/// A waiting run in `repo`, and the clone `clone` of the owner of the key `bob`, who may approve
/// and write documents.
pub(super) fn shared(items: &[Value], init: &[&str]) -> TestRepo {
    let env = crate::common::Environment::empty();
    std::fs::create_dir(env.repo()).unwrap();
    let repo = TestRepo { env };
    repo.env.git([&["init", "--quiet"][..], init].concat()).success();
    repo.make(&[]);
    let bob = person(&repo.env, "bob");
    repo.env.git_in(".", [&["init", "--quiet", "--bare"][..], init, &["hub"]].concat()).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "--set-upstream", "origin", "main"]).success();
    let file = repo.plan("r", items);
    repo.env.handoff(["submit", &file, "--admit", &format!("{bob}=approve,document")]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    repo.env.handoff(["push", "--all"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    bob_says(&repo, &["fetch"]).success();
    repo
}

pub(super) fn bob_says(repo: &TestRepo, args: &[&str]) -> crate::common::Output {
    as_person(&repo.env, "clone", "bob", args)
}

#[test]
fn fetch_records_an_approval_from_the_log_of_its_key() {
    for init in [&[][..], &["--object-format=sha256"]] {
        let repo = shared(&items(), init);
        if init.is_empty() {
            assert_output!("people_an_approval_travels_in_the_1", bob_says(&repo, &["waiting"]));
            assert_output!(
                "people_an_approval_travels_in_the_2",
                bob_says(&repo, &["approve", "origin/r/sign-off", "-m", "reads well"])
            );
            assert_output!("people_an_approval_travels_in_the_3", bob_says(&repo, &["waiting"]));
        } else {
            bob_says(&repo, &["approve", "origin/r/sign-off", "-m", "reads well"]).success();
        }
        // By the name of the run that it is about.
        let name = if init.is_empty() { "r" } else { "origin/r" };
        bob_says(&repo, &["push", "origin", name]).success();
        let fetched = repo.env.handoff(["fetch"]);
        assert_eq!(
            find_line(&fetched.stdout, "taken in  "),
            "taken in  r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ"
        );
        // Once.
        assert_eq!(repo.env.handoff(["fetch"]).to_string(), "------- stderr -------\neverything is here already\n");
        repo.env.handoff(["run", "r"]).success();
        repo.env.handoff(["verify", "r"]).success();
        repo.passes_fsck();
        repo.env.handoff(["push", "--all"]).success();
        bob_says(&repo, &["fetch"]).success();
        bob_says(&repo, &["verify", "origin/r"]).success();
        if init.is_empty() {
            assert_output!(
                "people_an_approval_travels_in_the_4",
                bob_says(&repo, &["approve", "origin/r/sign-off"]).exit(1)
            );
        }
    }
}

#[test]
fn a_document_of_a_teammate_becomes_a_revision_by_him() {
    let repo = shared(&items(), &[]);
    repo.env.write("clone/notes.md", "mind the gap\n");
    assert_output!(
        "people_a_document_of_a_teammate_1",
        bob_says(&repo, &["doc", "put", "origin/r", "notes", "notes.md"])
    );
    bob_says(&repo, &["push", "--all"]).success();
    assert_output!("people_a_document_of_a_teammate_2", repo.env.handoff(["--json", "fetch"]));
    assert_output!("people_a_document_of_a_teammate_3", repo.env.handoff(["doc", "log", "r", "notes"]));
    assert_eq!(repo.env.handoff(["doc", "get", "r", "notes"]).success(), "mind the gap\n");
    repo.env.handoff(["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    repo.env.handoff(["verify", "r"]).success();
    repo.passes_fsck();
}

#[test]
fn an_approval_holds_for_the_products_that_it_names_alone_however_far_the_run_went_on() {
    let mut items = items();
    items[1]["needs"] = json!({ "notes": { "from": "@documents", "select": { "kind": "document", "name": "notes" } } });
    let repo = shared(&items, &[]);
    repo.env.write("repo/notes", "first");
    repo.env.handoff(["doc", "put", "r", "notes", "notes"]).success();
    repo.env.handoff(["push", "--all"]).success();
    bob_says(&repo, &["fetch"]).success();
    bob_says(&repo, &["approve", "origin/r/sign-off"]).success();
    bob_says(&repo, &["push", "--all"]).success();
    repo.env.write("repo/notes", "second");
    repo.env.handoff(["doc", "put", "r", "notes", "notes"]).success();
    let stderr = repo.env.handoff(["fetch"]).stderr;
    insta::assert_snapshot!(stderr, @"
    warning: r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it is about products that have changed since
    hint: git handoff verify origin/r
    ");
    assert_eq!(statuses(&repo, "r"), "done ready pending");
    // The old words come back, and so does what they are about: they hold again.
    repo.env.write("repo/notes", "first");
    repo.env.handoff(["doc", "put", "r", "notes", "notes"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(statuses(&repo, "r"), "done done done");
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn of_two_words_about_the_same_the_last_counts() {
    let repo = shared(&items(), &[]);
    bob_says(&repo, &["approve", "origin/r/sign-off"]).success();
    bob_says(&repo, &["reject", "origin/r/sign-off", "-m", "on second thought"]).success();
    bob_says(&repo, &["push", "--all"]).success();
    let fetched = repo.env.handoff(["fetch"]);
    insta::assert_snapshot!(fetched.stdout, @"
    taken in  r/sign-off rejected by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    new  run  r
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.8435f068a834
    new  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ.64dbdba5c429
    ");
    assert_eq!(repo.item("r", "sign-off").reason, "rejected: on second thought");
}

#[test]
fn statements_of_a_key_without_the_role_are_not_accepted() {
    let repo = shared(&items(), &[]);
    person(&repo.env, "eve");
    let eve = |args: &[&str]| as_person(&repo.env, "clone", "eve", args);
    assert_output!("people_the_words_of_somebody_without_1", eve(&["approve", "origin/r/sign-off"]).exit(1));
    assert_output!(
        "people_the_words_of_somebody_without_2",
        eve(&["doc", "put", "origin/r", "notes", "a.txt"]).exit(1)
    );
    // A run that says otherwise has another entry 0, and is another run.
    repo.env.handoff(["cancel", "r"]).success();
}

#[test]
fn decisions_on_a_fetched_run_answer_in_json() {
    let repo = shared(&items(), &[]);
    repo.env.write("clone/notes.md", "Notes.\n");
    let ask = |args: &[&str]| -> Value {
        let output = bob_says(&repo, &[args, &["--json"]].concat()).success();
        serde_json::from_str(&output).unwrap()
    };
    let bob = super::signer(&repo.env, "bob").fingerprint();
    let written = ask(&["doc", "put", "origin/r", "notes", "notes.md"]);
    assert_eq!((&written["schema"], &written["by"]), (&"git-handoff.document-said/1".into(), &bob.as_str().into()));
    let decided = ask(&["approve", "origin/r/sign-off"]);
    assert_eq!((&decided["decision"], &decided["recorded"]), (&"approved".into(), &false.into()));
    let waits = ask(&["waiting", "--all"]);
    assert_eq!(waits["items"][0]["decided"], "approved");
}

#[test]
fn the_last_word_of_a_key_stands_whichever_clone_pushes_last() {
    let repo = shared(&items(), &[]);
    let env = &repo.env;
    env.git_in(".", ["clone", "--quiet", "hub", "second"]).success();
    as_person(env, "second", "bob", &["fetch"]).success();
    bob_says(&repo, &["approve", "origin/r/sign-off"]).success();
    as_person(env, "second", "bob", &["reject", "origin/r/sign-off", "-m", "not yet"]).success();
    as_person(env, "second", "bob", &["push", "origin", "r"]).success();
    bob_says(&repo, &["push", "origin", "r"]).success();
    let output = env.handoff(["fetch"]);
    insta::assert_snapshot!(output.stdout, @"
    taken in  r/sign-off rejected by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    new  run  r
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.8435f068a834
    new  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ.f112bde47769
    ");
    env.handoff(["run", "--close", "r"]).ends(4);
    env.handoff(["verify", "r"]).ends(4);
}

#[test]
fn fetch_records_a_decision_in_two_logs_once() {
    let repo = shared(&items(), &[]);
    let env = &repo.env;
    env.git_in(".", ["init", "--quiet", "--bare", "hub2"]).success();
    env.git_in("clone", ["remote", "add", "b", "../hub2"]).success();
    let put = |name: &str, text: &str| {
        env.write("clone/text", text);
        bob_says(&repo, &["doc", "put", "origin/r", name, "text"]).success();
    };
    put("notes", "first");
    bob_says(&repo, &["push", "origin", "r"]).success();
    env.handoff(["fetch"]).success();
    env.write("repo/text", "corrected");
    env.handoff(["doc", "put", "r", "notes", "text", "--offline"]).success();
    // Another remote gets this log with a run in it that origin does not get, so that origin gets a
    // second log.
    let other = json!({ "id": "other", "items": [crate::common::repo::item("a", "true")] });
    env.write("clone/other.json", &other.to_string());
    bob_says(&repo, &["run", "other.json"]).success();
    bob_says(&repo, &["push", "b", "other"]).success();
    put("todo", "more");
    bob_says(&repo, &["push", "origin", "r"]).success();
    bob_says(&repo, &["push", "b", "other"]).success();
    env.git(["remote", "add", "b", "../hub2"]).success();
    for remote in ["origin", "b"] {
        env.handoff(["fetch", remote]).success();
    }
    assert_eq!(env.handoff(["doc", "get", "r", "notes"]).success(), "corrected");
    assert_eq!(env.handoff(["doc", "get", "r", "todo"]).success(), "more");
}

#[test]
fn a_statement_goes_to_no_place_that_has_another_run_of_the_id() {
    let repo = shared(&items(), &[]);
    let env = &repo.env;
    env.git_in(".", ["init", "--quiet", "--bare", "public"]).success();
    env.git_in("clone", ["remote", "add", "public", "../public"]).success();
    bob_says(&repo, &["approve", "origin/r/sign-off", "-m", "a secret message"]).success();
    let own = json!({ "id": "r", "items": [crate::common::repo::item("a", "true")] });
    env.write("clone/r.json", &own.to_string());
    bob_says(&repo, &["run", "r.json"]).success();
    bob_says(&repo, &["push", "public", "r"]).success();
    let all = env.shell("public", "git cat-file --batch --batch-all-objects").stdout;
    assert!(all.contains("log.recorded") && !all.contains("log.decided") && !all.contains("a secret message"), "{all}");
    bob_says(&repo, &["push", "origin", "origin/r"]).ends(1);
}
