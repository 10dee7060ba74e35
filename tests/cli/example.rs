//! The worked example from its plan to its proof.

use std::process::Stdio;

use crate::common::{Environment, assert_output, examples, program_path};

/// Returns an environment in which the example has run.
pub(super) fn finished() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    env.handoff(["run", "handoff-dag-1"]).success();
    env
}

#[test]
fn handoff_dag_from_plan_to_proof() {
    let env = Environment::example("handoff-dag");
    assert_output!("handoff_dag_validate", env.handoff(["validate", "plan.json"]));
    assert_output!("handoff_dag_submit", env.handoff(["submit", "plan.json"]));
    assert_output!("handoff_dag_status_before", env.handoff(["status", "handoff-dag-1"]));
    assert_output!("handoff_dag_run", env.handoff(["run", "handoff-dag-1"]));
    assert_output!("handoff_dag_status", env.handoff(["status", "handoff-dag-1"]));
    assert_output!("handoff_dag_runs", env.handoff(["runs"]));
    assert_output!("handoff_dag_log", env.handoff(["log", "handoff-dag-1"]));
    assert_output!("handoff_dag_show", env.handoff(["show", "handoff-dag-1"]));
    assert_output!("handoff_dag_show_item", env.handoff(["show", "handoff-dag-1/apply-patch"]));
    assert_output!("handoff_dag_verify", env.handoff(["verify", "handoff-dag-1"]));
    assert_output!("handoff_dag_cat_patch", env.handoff(["cat", "handoff-dag-1/apply-patch:patch"]));
    assert_output!("handoff_dag_cat_output", env.handoff(["cat", "handoff-dag-1/apply-patch:outputs/applied.txt"]));
    assert_output!("handoff_dag_cat_manifest", env.handoff(["cat", "handoff-dag-1/apply-patch:manifest"]));
    assert_output!("handoff_dag_cat_transcript", env.handoff(["cat", "handoff-dag-1/apply-patch:transcript"]));
}

#[test]
fn the_plan_comes_back_byte_for_byte() {
    let env = finished();
    let plan = std::fs::read(examples().join("handoff-dag/plan.json")).expect("the example has a plan");
    assert_eq!(env.handoff(["cat", "handoff-dag-1:plan.json"]).raw, plan);
}

#[test]
fn submitting_the_same_plan_again_changes_nothing() {
    let env = finished();
    let before = env.git(["for-each-ref"]).success();
    assert_output!("submit_again", env.handoff(["submit", "plan.json"]));
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn running_a_settled_run_again_changes_nothing() {
    let env = finished();
    let before = env.git(["for-each-ref"]).success();
    assert_output!("run_again", env.handoff(["run"]));
    assert_output!("run_again_by_name", env.handoff(["run", "handoff-dag-1"]));
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn a_run_leaves_the_work_tree_and_the_branches_alone() {
    let env = finished();
    assert_eq!(env.git(["status", "--porcelain"]).success(), "");
    assert_output!("refs_after_a_run", env.git(["for-each-ref", "--format=%(refname) %(objecttype)"]));
    let worktrees = env.path().join("worktrees");
    let left: Vec<_> = std::fs::read_dir(&worktrees)
        .expect("attempts were made there")
        .flat_map(|entry| std::fs::read_dir(entry.expect("it is readable").path()).expect("it is a folder"))
        .collect();
    assert!(left.is_empty(), "attempts were left behind: {left:?}");
}

#[test]
fn products_are_put_onto_the_index_or_a_branch() {
    let env = finished();
    assert_output!("apply_branch", env.handoff(["apply", "handoff-dag-1", "--branch", "result"]));
    assert_output!("apply_branch_log", env.git(["log", "--stat", "--format=%s", "main..result"]));
    assert_output!("apply_index", env.handoff(["apply", "handoff-dag-1/edit-a"]));
    assert_eq!(env.git(["status", "--porcelain"]).success(), "M  src/main.ts\n");
}

#[test]
fn a_worker_that_fails_is_tried_again_and_told_of() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.command", "echo no such luck; exit 7"]).success();
    assert_output!("failure_run", env.handoff(["run", "plan.json"]).exit(4));
    assert_output!("failure_transcript", env.handoff(["cat", "handoff-dag-1/edit-a:transcript"]));
    assert_output!("failure_verify_open", env.handoff(["verify", "handoff-dag-1"]).exit(3));
    // Mended, retried, done.
    env.git(["config", "--unset", "handoff.subagent.code-edit.command"]).success();
    assert_output!("failure_retry", env.handoff(["retry", "handoff-dag-1/edit-a"]).exit(0));
    env.handoff(["run", "handoff-dag-1"]).success();
    assert_output!("failure_verify_done", env.handoff(["verify", "handoff-dag-1"]).exit(0));
}

#[test]
fn a_run_that_did_not_get_done_can_be_closed() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.command", "exit 7"]).success();
    env.git(["config", "handoff.subagent.code-edit.maxAttempts", "1"]).success();
    let _ = env.handoff(["run", "plan.json"]).exit(4);
    assert_output!("close", env.handoff(["close", "handoff-dag-1"]).exit(0));
    assert_output!("close_verify", env.handoff(["verify", "handoff-dag-1"]).exit(0));
    assert_output!("close_retry", env.handoff(["retry", "handoff-dag-1/edit-a"]).exit(1));
}

#[test]
fn the_examples_run_as_they_are() {
    for (name, run) in [("handoff-dag", "handoff-dag-1"), ("offload-fanout", "fanout-1")] {
        let env = Environment::empty();
        let script = examples().join(name).join("run.sh");
        let output = env
            .command(script, ".")
            .env("HANDOFF_BIN", program_path())
            .env_remove("HANDOFF_CLOCK")
            .stdin(Stdio::null())
            .output()
            .expect("the script can be started");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
        assert!(shown.contains(&format!("git handoff verify · {run}")), "{shown}");
        assert!(shown.contains("✓ TAMPER-DETECTING"), "{shown}");
    }
}
