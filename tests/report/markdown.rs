//! Markdown for a comment or a job summary.

use crate::common::{assert_output, finished};
use crate::report::pages::mixed;

#[test]
fn the_verdict_comes_first_and_everything_is_quoted() {
    let repo = mixed();
    assert_output!("report_markdown", repo.env.handoff(["report", "--markdown", "mixed"]));
}

#[test]
fn threads_have_a_section_of_their_own() {
    let env = finished();
    env.write("state", "one");
    env.handoff(["checkpoint", "login work", "--state", "../state"]).success();
    assert_output!("report_markdown_thread", env.handoff(["report", "--markdown", "login work"]));
}

#[test]
fn a_bar_is_escaped_in_tables_only() {
    let env = finished();
    env.write("state", "one");
    env.handoff(["checkpoint", "in|out", "--state", "../state"]).success();
    let report = env.handoff(["report", "--markdown", "in|out"]).success();
    insta::assert_snapshot!(report.lines().next().unwrap_or_default(), @"## ✓ INTACT: thread `in|out`");
    let plan = serde_json::json!({ "id": "r", "items": [{ "id": "a|b", "executor": "command", "inputs": { "command": ["true"] } }] });
    env.write("plan.json", &plan.to_string());
    env.handoff(["run", "../plan.json"]).success();
    let second_report = env.handoff(["report", "--markdown", "r"]).success();
    assert!(second_report.contains("| ✓ `a\\|b` | done |"), "{second_report}");
}
