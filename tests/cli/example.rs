//! The worked example from its plan to its proof.

use std::process::Stdio;

use crate::common::report::find_line;
use crate::common::{Environment, assert_output, examples, finished, program_path};

#[test]
fn handoff_dag_from_plan_to_proof() {
    let env = Environment::example("handoff-dag");
    assert_output!(env.handoff(["validate", "plan.json"]), @"valid: 2 items");
    assert_output!(env.handoff(["submit", "plan.json"]), @"handoff-dag-1");
    assert_output!(env.handoff(["status", "handoff-dag-1"]), @r"
    · edit-a       ready    0 attempts
    · apply-patch  pending  0 attempts
    submitted 2026-06-04 02:00Z by human:ada
    handoff-dag-1: 0 of 2 done, 2 pending
    ");
    assert_output!(env.handoff(["run", "handoff-dag-1"]), @r"
    ✓ edit-a       done  1 attempt  patch
    ✓ apply-patch  done  1 attempt  patch, outputs/applied.txt
    handoff-dag-1: 2 of 2 done, sealed
    check: nothing protected (apply-patch)
    check in the worker's worktree (apply-patch)
    ✓ check passed: grep -q reviewed src/main.ts (0 ms)
    ─ no check for 1 item
    2 files changed, +6 −0: src/main.test.ts, src/main.ts; 1 output
    agents: apply-patch, code-edit
    proof ✓ intact, 6 entries, your key: git handoff verify handoff-dag-1
    ------- stderr -------
    ▶ edit-a  attempt 1
    ✓ edit-a  done in 0ms, 1 product
    ▶ apply-patch  attempt 1
    ✓ apply-patch  done in 0ms, 2 products: applied the patch and wrote a test
    hint: git handoff apply handoff-dag-1   # as a commit: --commit
    ");
    assert_output!(env.handoff(["status", "handoff-dag-1"]), @r"
    ✓ edit-a       done  1 attempt  2026-06-04 02:00Z  0ms  patch
    ✓ apply-patch  done  1 attempt  2026-06-04 02:00Z  0ms  patch, outputs/applied.txt
    submitted 2026-06-04 02:00Z by human:ada
    handoff-dag-1: 2 of 2 done, sealed
    check: nothing protected (apply-patch)
    check in the worker's worktree (apply-patch)
    ");
    assert_output!(env.handoff(["runs"]), @r"
    handoff-dag-1  default  sealed  2026-06-04 02:00Z  human:ada  2 done
    ");
    assert_output!(env.handoff(["log", "handoff-dag-1"]), @"
    0  5289ccf9  2026-06-04T02:00:05.000Z  human:ada  run.submitted handoff-dag-1
    1  47a7245a  2026-06-04T02:00:07.000Z  human:ada  item.fired edit-a #1: running
    2  68556a84  2026-06-04T02:00:07.000Z  human:ada  item.reconciled edit-a #1: done
    3  2f62aa20  2026-06-04T02:00:07.000Z  human:ada  item.fired apply-patch #1: running
    4  544b3a35  2026-06-04T02:00:07.000Z  human:ada  item.reconciled apply-patch #1: done: applied the patch and wrote a test
    5  0cbaf824  2026-06-04T02:00:07.000Z  human:ada  run.sealed handoff-dag-1
    ");
    assert_output!("handoff_dag_show", env.handoff(["show", "handoff-dag-1"]));
    assert_output!("handoff_dag_show_item", env.handoff(["show", "handoff-dag-1/apply-patch"]));
    assert_output!("handoff_dag_verify", env.handoff(["verify", "handoff-dag-1"]));
    assert_output!("handoff_dag_cat_patch", env.handoff(["cat", "handoff-dag-1/apply-patch:patch"]));
    assert_output!(env.handoff(["cat", "handoff-dag-1/apply-patch:outputs/applied.txt"]), @r"
     src/main.ts | 2 ++
     1 file changed, 2 insertions(+)
    ");
    assert_output!("handoff_dag_cat_manifest", env.handoff(["cat", "handoff-dag-1/apply-patch:manifest"]));
    assert_output!(env.handoff(["cat", "handoff-dag-1/apply-patch:transcript"]), @"built on src/main.ts");
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
    assert_output!(env.handoff(["submit", "plan.json"]), @r"
    handoff-dag-1
    ------- stderr -------
    the same plan was submitted before; nothing changed
    ");
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn running_a_settled_run_again_changes_nothing() {
    let env = finished();
    let before = env.git(["for-each-ref"]).success();
    assert_output!(env.handoff(["run"]), @r"
    ------- stderr -------
    every run here has settled
    ");
    assert_output!(env.handoff(["run", "handoff-dag-1"]), @r"
    ✓ edit-a       done  1 attempt  patch
    ✓ apply-patch  done  1 attempt  patch, outputs/applied.txt
    handoff-dag-1: 2 of 2 done, sealed
    check: nothing protected (apply-patch)
    check in the worker's worktree (apply-patch)
    ✓ check passed: grep -q reviewed src/main.ts (0 ms)
    ─ no check for 1 item
    2 files changed, +6 −0: src/main.test.ts, src/main.ts; 1 output
    agents: apply-patch, code-edit
    proof ✓ intact, 6 entries, your key: git handoff verify handoff-dag-1
    ------- stderr -------
    hint: git handoff apply handoff-dag-1   # as a commit: --commit
    ");
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn a_run_leaves_the_work_tree_and_the_branches_alone() {
    let env = finished();
    assert_eq!(env.git(["status", "--porcelain"]).success(), "");
    assert_output!(env.git(["for-each-ref", "--format=%(refname) %(objecttype)"]), @r"
    refs/handoff/bases/handoff-dag-1 commit
    refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg commit
    refs/handoff/runs/handoff-dag-1 commit
    refs/handoff/transcripts/handoff-dag-1 tree
    refs/heads/main commit
    ");
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
    assert_output!(env.handoff(["apply", "handoff-dag-1", "--branch", "result"]), @r"
    edit-a: committed as b3d82cb6971310c9b9f059acfe34fdd31fc65323
    apply-patch: committed as 23dd23b1d425ac5b21bc747a054ff36060275625
    check: nothing protected (apply-patch)
    ");
    assert_output!(env.git(["log", "--stat", "--format=%s", "main..result"]), @r"
    apply-patch: apply the patch of handoff-dag-1

     src/main.test.ts | 4 ++++
     1 file changed, 4 insertions(+)
    edit-a: apply the patch of handoff-dag-1

     src/main.ts | 2 ++
     1 file changed, 2 insertions(+)
    ");
    assert_output!(env.handoff(["apply", "handoff-dag-1/edit-a"]), @"edit-a: applied");
    assert_eq!(env.git(["status", "--porcelain"]).success(), "M  src/main.ts\n");
}

#[test]
fn failed_worker_is_retried_with_feedback() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.command", "echo no such luck; exit 7"]).success();
    assert_output!("failure_run", env.handoff(["run", "plan.json"]).exit(4));
    assert_output!(env.handoff(["cat", "handoff-dag-1/edit-a:transcript"]), @"no such luck");
    assert_output!("failure_verify_open", env.handoff(["verify", "handoff-dag-1"]).exit(3));
    // Mended, retried, done.
    env.git(["config", "--unset", "handoff.subagent.code-edit.command"]).success();
    assert_output!(env.handoff(["retry", "handoff-dag-1/edit-a"]).exit(0), @r"
    handoff-dag-1/edit-a will be tried again
    ------- stderr -------
    hint: git handoff run handoff-dag-1
    ");
    env.handoff(["run", "handoff-dag-1"]).success();
    assert_output!("failure_verify_done", env.handoff(["verify", "handoff-dag-1"]).exit(0));
}

#[test]
fn a_run_that_did_not_get_done_can_be_closed() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.command", "exit 7"]).success();
    env.git(["config", "handoff.subagent.code-edit.maxAttempts", "1"]).success();
    let _ = env.handoff(["run", "plan.json"]).exit(4);
    assert_output!(env.handoff(["close", "handoff-dag-1"]).exit(0), @"handoff-dag-1: 2 entries, sealed");
    assert_output!("close_verify", env.handoff(["verify", "handoff-dag-1"]).exit(4));
    assert_output!(env.handoff(["retry", "handoff-dag-1/edit-a"]).exit(1), @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" is sealed; nothing can follow
    hint: git handoff verify handoff-dag-1
    [exit status: 1]
    "#);
}

#[test]
fn the_examples_run_as_they_are() {
    let examples_of = [
        ("handoff-dag", "handoff-dag-1"),
        ("offload-fanout", "fanout-1"),
        ("gate", "gate-1"),
        ("map-reduce", "map-reduce-1"),
        ("quorum", "quorum-1"),
        ("approvals", "approvals-1"),
    ];
    for (name, run) in examples_of {
        let env = Environment::empty();
        let script = examples().join(name).join("run.sh");
        let output = env
            .command(script, ".")
            .env("HANDOFF_BIN", program_path())
            .env_remove("HANDOFF_CLOCK")
            .stdin(Stdio::null())
            .output()
            .expect("the script can be started");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            find_line(&stdout, "git handoff verify · "),
            format!("{:<63} ✓ INTACT · tamper-detecting", format!("git handoff verify · {run}"))
        );
    }
}
