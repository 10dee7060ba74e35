//! Quorums: what enough of those who look at it approve of goes on.

use serde_json::{Value, json};

use super::{RED, cat, item, play, said, template, told};

/// A subject with reviewers, each of whom wants so many lines.
fn subject(wanted: &[u32], threshold: u32, more: &Value) -> Vec<Value> {
    let reviewer = |lines: &u32| {
        let script =
            format!("git apply inputs/work; n=$(wc -l <code); echo $n >outputs/findings; test $n -ge {lines} || {RED}");
        template(&script)
    };
    let reviewers: Vec<Value> = wanted.iter().map(reviewer).collect();
    let mut payload = json!({
        "reviewers": reviewers,
        "threshold": threshold,
        "commit": template("git apply inputs/work; cp code outputs/committed"),
    });
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    vec![item("work", "echo one >code", &json!({ "quorum": payload }))]
}

#[test]
fn enough_approvals_commit_and_who_was_outvoted_is_no_fault() {
    let ground = play("quorum", &subject(&[1, 1, 9], 2, &json!({})), 0);
    let all = ["work done", "work::commit done", "work::rev-0 done", "work::rev-1 done", "work::rev-2 done"];
    assert_eq!(told(&ground), all);
    assert_eq!(cat(&ground, "work::commit:outputs/committed"), "one\n");
    ground.is_intact("r");
}

#[test]
fn too_few_approvals_commit_nothing() {
    let ground = play("quorum", &subject(&[1, 9, 9], 2, &json!({})), 4);
    assert!(!ground.items("r").contains_key("work::commit"));
    assert_eq!(said(&ground), ["rejected"]);
}

#[test]
fn what_is_rejected_is_fixed_and_looked_at_again() {
    let fix = "git apply inputs/work; echo more >>code; cat inputs/findings-* >outputs/told";
    let more = json!({ "onReject": "spawn-fix", "fixTemplate": template(fix), "maxRounds": 2 });
    let ground = play("quorum", &subject(&[2, 2], 2, &more), 0);
    assert_eq!(cat(&ground, "work-fix-1:outputs/told"), "1\n1\n");
    assert_eq!(cat(&ground, "work~2::commit:outputs/committed"), "one\nmore\n");
    assert!(!ground.items("r").contains_key("work-fix-2"));
    ground.is_intact("r");
    let ground = play("quorum", &subject(&[9, 9], 1, &more), 4);
    assert_eq!(said(&ground), ["rejected"]);
    let items = ground.items("r");
    assert!(items.contains_key("work-fix-2") && !items.contains_key("work-fix-3"), "{items:?}");
}
