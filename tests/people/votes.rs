//! Quorums of people.

use serde_json::json;

use super::{as_person, person, statuses};
use crate::common::assert_output;
use crate::common::repo::TestRepo;

/// Two of three people are to approve what `build` makes; `ship` comes then.
fn quorum() -> TestRepo {
    let repo = TestRepo::new();
    let (bob, eve) = (person(&repo.env, "bob"), person(&repo.env, "eve"));
    let reviewer = json!({ "executor": "approval", "inputs": {} });
    let build = json!({ "id": "build", "executor": "command", "inputs": {
        "command": super::BUILD,
        "quorum": {
            "reviewers": [reviewer, reviewer, reviewer],
            "threshold": 2,
            "commit": { "executor": "command", "inputs": { "command": "mkdir outputs; echo out >outputs/shipped" } },
            "onReject": "block",
        },
    } });
    repo.env.write("p.json", &json!({ "id": "q", "pattern": "quorum", "items": [build] }).to_string());
    let admitted = [format!("{bob}=approve"), format!("{eve}=approve")];
    repo.env.handoff(["submit", "../p.json", "--admit", &admitted[0], "--admit", &admitted[1]]).success();
    repo.env.handoff(["run", "q"]).ends(4);
    repo
}

#[test]
fn a_quorum_of_people_is_one_of_different_people() {
    let repo = quorum();
    repo.env.handoff(["approve", "q/build::rev-0"]).success();
    assert_output!("people_a_quorum_of_people_is_1", repo.env.handoff(["approve", "q/build::rev-1"]).exit(1));
    repo.env.handoff(["run", "q"]).ends(4);
    as_person(&repo.env, "repo", "bob", &["approve", "q/build::rev-1"]).success();
    as_person(&repo.env, "repo", "eve", &["reject", "q/build::rev-2", "-m", "no"]).success();
    assert_output!("people_a_quorum_of_people_is_2", repo.env.handoff(["run", "q"]));
    assert_eq!(statuses(&repo, "q"), "done done done done done");
    repo.env.handoff(["verify", "q"]).success();
}

#[test]
fn a_quorum_that_is_missed_ships_nothing() {
    let repo = quorum();
    for (who, word, item) in [("bob", "reject", "q/build::rev-0"), ("eve", "reject", "q/build::rev-1")] {
        as_person(&repo.env, "repo", who, &[word, item]).success();
    }
    repo.env.handoff(["approve", "q/build::rev-2"]).success();
    assert_output!("people_a_quorum_that_is_missed_1", repo.env.handoff(["run", "q"]).exit(4));
    repo.env.handoff(["verify", "q"]).ends(4);
}

#[test]
fn votes_about_the_same_are_so_in_whatever_order_they_name_it() {
    let repo = TestRepo::new();
    let item = |id: &str| json!({ "id": id, "executor": "command", "inputs": { "command": "true" } });
    let vote = |id: &str, on: [&str; 2]| json!({ "id": id, "executor": "approval", "depends_on": on });
    let gate = |subject: &str| json!({ "id": format!("gate-{subject}"), "gate": { "item": subject, "votes": true } });
    let plan = json!({
        "id": "v",
        "items": [item("a"), item("b"), vote("one", ["a", "b"]), vote("two", ["b", "a"])],
        "rules": [gate("one"), gate("two")],
    });
    repo.env.write("v.json", &plan.to_string());
    repo.env.handoff(["submit", "../v.json"]).success();
    repo.env.handoff(["run", "v"]).ends(4);
    repo.env.handoff(["approve", "v/one"]).success();
    let second = repo.env.handoff(["approve", "v/two"]).exit(1);
    insta::assert_snapshot!(second.stderr, @r#"error: item "two" is not for the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg to decide: it decided "one" about the same products"#);
    assert_eq!(statuses(&repo, "v"), "done done done ready");
}
