//! Quorums: what enough of those who look at it approve of goes on.

use serde_json::{Value, json};

use super::{RED, cat, item, item_statuses, play, rule_outcomes, submit, template};
use crate::common::repo::TestRepo;
use crate::common::report::{find_line, find_row};

/// A subject with reviewers, each of whom wants so many lines.
fn subject(needed_lines: &[u32], threshold: u32, more: &Value) -> Vec<Value> {
    let reviewer = |lines: &u32| {
        let script =
            format!("git apply inputs/work; n=$(wc -l <code); echo $n >outputs/findings; test $n -ge {lines} || {RED}");
        template(&script)
    };
    let reviewers: Vec<Value> = needed_lines.iter().map(reviewer).collect();
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
    let repo = play("quorum", &subject(&[1, 1, 9], 2, &json!({})), 0);
    let all = ["work done", "work::commit done", "work::rev-0 done", "work::rev-1 done", "work::rev-2 done"];
    assert_eq!(item_statuses(&repo), all);
    assert_eq!(cat(&repo, "work::commit:outputs/committed"), "one\n");
    repo.is_intact("r");
}

#[test]
fn too_few_approvals_commit_nothing() {
    let repo = play("quorum", &subject(&[1, 9, 9], 2, &json!({})), 4);
    assert!(!repo.items("r").contains_key("work::commit"));
    assert_eq!(rule_outcomes(&repo), ["rejected"]);
}

#[test]
fn rejected_work_is_fixed_and_reviewed_again() {
    let fix = "git apply inputs/work; echo more >>code; cat inputs/findings-* >outputs/told";
    let more = json!({ "onReject": "spawn-fix", "fixTemplate": template(fix), "maxRounds": 2 });
    let repo = play("quorum", &subject(&[2, 2], 2, &more), 0);
    assert_eq!(cat(&repo, "work-fix-1:outputs/told"), "1\n1\n");
    assert_eq!(cat(&repo, "work~2::commit:outputs/committed"), "one\nmore\n");
    // An approved change is committed once, as it was reviewed.
    let items = repo.items("r");
    assert!(!items.contains_key("work-fix-2") && !items.contains_key("work::commit"), "{items:?}");
    repo.is_intact("r");
    let second_repo = play("quorum", &subject(&[9, 9], 1, &more), 4);
    assert_eq!(rule_outcomes(&second_repo), ["rejected"]);
    let second_items = second_repo.items("r");
    assert!(second_items.contains_key("work-fix-2") && !second_items.contains_key("work-fix-3"), "{second_items:?}");
    // A forced apply prints a warning, and replaced items are shown as such.
    let output = second_repo.env.handoff(["apply", "r", "--branch", "taken", "--allow-red"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"warning: the run says of itself: rejected");
    let stdout = second_repo.env.handoff(["show", "r/work::rev-0"]).success();
    insta::assert_snapshot!(find_line(&stdout, "superseded "), @"superseded by work~2::rev-0");
}

#[test]
fn rejected_work_is_never_committed() {
    let more = json!({ "onReject": "spawn-fix", "fixTemplate": template("exit 1") });
    let mut items = subject(&[1, 9], 2, &more);
    // He approves at the second request, while a fix is in progress.
    let second = template("test $HANDOFF_ATTEMPT -ge 2");
    items[0]["inputs"]["quorum"]["reviewers"][1] = second;
    let repo = play("quorum", &items, 4);
    assert_eq!(repo.items("r")["work-fix-1"].status, "failed");
    repo.env.handoff(["retry", "r/work::rev-1"]).success();
    let _ = repo.env.handoff(["run", "r"]).exit(4);
    assert_eq!(repo.items("r")["work::rev-1"].status, "done");
    assert!(!repo.items("r").contains_key("work::commit"));
}

#[test]
fn superseded_item_cannot_be_retried() {
    let more = json!({ "onReject": "spawn-fix", "fixTemplate": template("git apply inputs/work; echo more >>code") });
    let mut items = subject(&[1], 1, &more);
    items[0]["inputs"]["quorum"]["reviewers"][0] = template("exit 1");
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "1");
    submit(&repo, "quorum", &items).success();
    let output = repo.env.handoff(["run", "r"]).exit(4);
    insta::assert_snapshot!(find_line(&output.stderr, "hint: git handoff retry "), @"hint: git handoff retry 'r/work~2::rev-0'   # or seal it as it is: git handoff close r");
}

#[test]
fn closing_before_the_rules_ran_is_recorded() {
    let repo = TestRepo::new();
    repo.config("handoff.maxItems", "1");
    submit(&repo, "quorum", &subject(&[9], 1, &json!({}))).success();
    // No reviewers.
    repo.env.handoff(["run", "r"]).ends(1);
    repo.env.handoff(["close", "r"]).success();
    let output = repo.env.handoff(["verify", "r"]).exit(4);
    insta::assert_snapshot!(find_row(&output.stdout, "outcome"), @"✗ outcome    1 of 1 done, closed-early");
    insta::assert_snapshot!(repo.env.handoff(["status", "r"]).success(), @"
    ✓ work  done  1 attempt  2026-06-04 02:00Z  0ms  patch
    submitted 2026-06-04 02:00Z by human:ada
    r: 1 of 1 done, closed-early, sealed, PARTIAL
    ");
    let export_output = repo.env.handoff(["export", "r", "--format", "bundle-json"]).exit(1);
    insta::assert_snapshot!(export_output.stderr, @r#"error: the run's own outcome is "closed-early", but this format has only outcomes of items"#);
    let packet = repo.env.handoff(["packet", "auto", "--run", "r"]).success();
    insta::assert_snapshot!(find_line(&packet, "  \"next_action\": "), @r#"  "next_action": "Run `git handoff show r` and submit a new plan for what is missing","#);
    repo.is_intact("r");
}

#[test]
fn retried_reviewer_delays_the_next_round() {
    let fix = "test $HANDOFF_ATTEMPT -ge 2; git apply inputs/work; echo more >>code";
    let more = json!({ "onReject": "spawn-fix", "fixTemplate": template(&format!("set -e; {fix}")) });
    let mut items = subject(&[1], 1, &more);
    let reviewer = "case $HANDOFF_ITEM in *~2*) exit 0;; esac; test $HANDOFF_ATTEMPT -ge 2; sleep 1";
    items[0]["inputs"]["quorum"]["reviewers"][0] = template(&format!("set -e; {reviewer}"));
    let repo = play("quorum", &items, 4);
    repo.env.handoff(["retry", "r/work::rev-0"]).success();
    repo.env.handoff(["retry", "r/work-fix-1"]).success();
    repo.env.handoff(["run", "r"]).ends(0);
    let second_items = repo.items("r");
    assert!(
        second_items.contains_key("work~2::commit") && !second_items.contains_key("work::commit"),
        "{second_items:?}"
    );
    repo.is_intact("r");
}
