//! Refusals: message, hint, exit code, and no changes.

use serde_json::{Value, json};

use crate::common::finished;
use crate::common::report::find_row;
use crate::common::{Environment, assert_output};

#[test]
fn submit_lists_all_problems_of_a_plan() {
    let env = Environment::example("handoff-dag");
    let plan = json!({
        "id": "bad",
        "queue": "nightly",
        "items": [
            {"id": "a", "executor": "dispatch", "inputs": {"subagent": "code-edti"}, "depends_on": ["b"]},
            {"id": "b", "executor": "comand", "depends_on": ["a"], "needs": {"../x": {"from": "c", "select": {"kind": "blob"}}}},
            {"id": "b", "executor": "command", "inputs": {"inputRefs": {}}, "retries": 3},
        ],
    });
    env.write("repo/bad.json", &plan.to_string());
    assert_output!("validate_problems", env.handoff(["validate", "bad.json"]).exit(1));
    assert_output!("validate_problems_json", env.handoff(["validate", "--json", "bad.json"]).exit(1));
    assert_output!("submit_problems", env.handoff(["submit", "bad.json"]).exit(1));
    assert_eq!(env.git(["for-each-ref", "refs/handoff"]).success(), "");
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    let env = Environment::example("handoff-dag");
    env.write("repo/bad.json", "{\n  \"id\": \"x\",\n  \"items\": [,]\n}\n");
    assert_output!(env.handoff(["validate", "bad.json"]).exit(1), @r"
    not-json at items[0] (line 3): not valid JSON: expected value at line 3 column 13
    ------- stderr -------
    1 problem
    [exit status: 1]
    ");
}

#[test]
fn unknown_names_get_a_hint() {
    let env = finished();
    assert_output!(env.handoff(["status", "handoff-dag-2"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run "handoff-dag-2" here
    hint: did you mean "handoff-dag-1"?
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["status", "zzz"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run "zzz" here
    hint: git handoff runs
    [exit status: 1]
    "#);
    assert_output!("unknown_run_json", env.handoff(["--json", "log", "handoff-dag-2"]).exit(1));
    assert_output!(env.handoff(["verify", "handoff-dag-2"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run "handoff-dag-2" here
    hint: did you mean "handoff-dag-1"?
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["cat", "handoff-dag-1/apply-path:patch"]).exit(1), @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" has no item "apply-path"
    hint: did you mean "apply-patch"?
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["cat", "handoff-dag-1/edit-a:outputs/none"]).exit(1), @r#"
    ------- stderr -------
    error: there is no "handoff-dag-1/edit-a:outputs/none"
    hint: git handoff show handoff-dag-1
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["submit", "none.json"]).exit(1), @r"
    ------- stderr -------
    error: none.json could not be read
    caused by: No such file or directory (os error 2)
    [exit status: 1]
    ");
}

#[test]
fn usage_errors_end_with_2() {
    let env = Environment::example("handoff-dag");
    assert_output!("usage_unknown_command", env.handoff(["stauts"]).exit(2));
    assert_output!(env.handoff(["status"]).exit(2), @r"
    ------- stderr -------
    error: the following required arguments were not provided:
      <RUN>

    Usage: git handoff status <RUN>

    For more information, try '-h'.
    [exit status: 2]
    ");
    assert_output!(env.handoff(["runs", "--everything"]).exit(2), @r"
    ------- stderr -------
    error: unexpected argument '--everything' found

    Usage: git handoff runs [OPTIONS]

    For more information, try '-h'.
    [exit status: 2]
    ");
}

#[test]
fn usage_errors_are_json_with_the_json_option() {
    let env = Environment::example("handoff-dag");
    let output = env.handoff(["--json", "status"]).exit(2);
    let error: Value = serde_json::from_str(&output.stderr).expect("an error is one JSON object");
    assert_eq!(error["schema"], "git-handoff.error/1");
    assert_eq!(error["code"], "usage");
}

#[test]
fn another_plan_under_an_id_in_use_is_refused() {
    let env = finished();
    let plan =
        json!({"id": "handoff-dag-1", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]});
    env.write("repo/other.json", &plan.to_string());
    let before = env.git(["for-each-ref"]).success();
    assert_output!(env.handoff(["submit", "other.json"]).exit(1), @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" exists already with another plan or another writer
    hint: git handoff show handoff-dag-1   # or give the plan another id
    [exit status: 1]
    "#);
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn nothing_follows_a_seal() {
    let env = finished();
    let before = env.git(["for-each-ref"]).success();
    assert_output!(env.handoff(["cancel", "handoff-dag-1"]).exit(1), @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" is sealed; nothing can follow
    hint: git handoff verify handoff-dag-1
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["close", "handoff-dag-1/edit-a"]).exit(1), @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" is sealed; nothing can follow
    hint: git handoff verify handoff-dag-1
    [exit status: 1]
    "#);
    // A script may close what the last item sealed.
    assert_eq!(env.handoff(["close", "handoff-dag-1"]).success(), "handoff-dag-1: was sealed before\n");
    assert_eq!(env.handoff(["close", "@"]).success(), "handoff-dag-1: was sealed before\n");
    let closed = env.handoff(["--json", "close", "handoff-dag-1"]).success();
    assert_eq!(
        closed,
        "{\"entries\":0,\"run\":\"handoff-dag-1\",\"schema\":\"git-handoff.steer/1\",\"sealed\":true}\n"
    );
    assert_eq!(env.git(["for-each-ref"]).success(), before);
}

#[test]
fn a_folder_that_is_no_repository_is_refused() {
    let env = Environment::empty();
    env.write("plain/file", "");
    assert_output!(env.handoff_in("plain", ["runs"]).exit(1), @r#"
    ------- stderr -------
    error: not in a git repository: $TEST/plain
    hint: git init
    [exit status: 1]
    "#);
}

#[test]
fn an_unborn_head_is_refused_with_a_way_out() {
    let env = Environment::empty();
    env.write(
        "repo/plan.json",
        r#"{"id": "r", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.git(["init", "--quiet"]).success();
    assert_output!(env.handoff(["submit", "plan.json"]).exit(1), @r"
    ------- stderr -------
    error: HEAD does not point to a commit yet, so items have no base
    hint: git commit --allow-empty -m 'Start'
    [exit status: 1]
    ");
    assert_output!(env.handoff(["runs"]).exit(0), @r"
    ------- stderr -------
    there are no runs here
    ");
}

#[test]
fn a_run_whose_ref_is_gone_is_missed_by_verify() {
    let env = finished();
    env.git(["update-ref", "-d", "refs/handoff/runs/handoff-dag-1"]).success();
    assert_output!("vanished_verify", env.handoff(["verify", "handoff-dag-1"]).exit(3));
    assert_output!(env.handoff(["submit", "plan.json"]).exit(1), @r#"
    ------- stderr -------
    error: the id "handoff-dag-1" was used before: a log of your key names it, and its ref is gone
    hint: give the plan another id than "handoff-dag-1"
    [exit status: 1]
    "#);
}

#[test]
fn bad_setting_is_reported_with_its_file() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.maxItems", "many"]).success();
    assert_output!(env.handoff(["runs"]).exit(1), @r#"
    ------- stderr -------
    error: the setting `handoff.maxitems` = "many" in $TEST/repo/.git/config is not a whole number
    hint: git config --show-origin --get-all handoff.maxitems
    [exit status: 1]
    "#);
}

#[test]
fn tracked_files_grant_no_trust() {
    let env = Environment::example("handoff-dag");
    env.write("repo/.handoff/config", "[handoff]\n\tsigners = /etc/passwd\n");
    assert_output!(env.handoff(["runs"]).exit(0), @r"
    ------- stderr -------
    warning: `handoff.signers` is ignored: a file inside the work tree sets it, and a commit can change that file
    there are no runs here
    ");
}

#[test]
fn an_older_git_never_reads_a_workers_attributes() {
    let env = Environment::example("handoff-dag");
    env.write(
        "bin/git",
        "#!/bin/sh\nif [ \"$1\" = version ]; then echo git version 2.39.5; else exec git.real \"$@\"; fi\n",
    );
    env.shell(".", "chmod +x bin/git && ln -s \"$(command -v git)\" bin/git.real").success();
    env.shell("repo", "PATH=$PWD/../bin:$PATH git-handoff run plan.json").success();
    env.handoff(["verify", "handoff-dag-1"]).success();
    env.write(
        "repo/sly.json",
        r#"{"id": "sly", "items": [{"id": "x", "executor": "command", "maxAttempts": 1,
        "inputs": {"command": "echo '* -text' >src/.gitattributes"}}]}"#,
    );
    assert_output!(env.shell("repo", "PATH=$PWD/../bin:$PATH git-handoff run sly.json").exit(4), @r#"
    ✗ x  failed  1 attempt  "src/.gitattributes" was changed or removed, which can only be captured with git 2.41 or newer
    sly: 0 of 1 done, 1 failed
    proof ─ not sealed, 3 entries
    ------- stderr -------
    ▶ x  attempt 1
    ✗ x  failed: "src/.gitattributes" was changed or removed, which can only be captured with git 2.41 or newer
    hint: git handoff retry sly/x   # or seal it as it is: git handoff close sly
    [exit status: 4]
    "#);
    // Nor does it read others where those are gone that the base has.
    env.write("repo/.gitattributes", "*.sec -text\n");
    env.git(["add", ".gitattributes"]).success();
    env.git(["commit", "-qm", "Attributes"]).success();
    for (run, script) in [("gone", "rm .gitattributes"), ("folder", "rm .gitattributes; mkdir .gitattributes")] {
        let item = json!({ "id": "x", "executor": "command", "maxAttempts": 1, "inputs": { "command": script } });
        env.write("repo/gone.json", &json!({ "id": run, "items": [item] }).to_string());
        let output = env.shell("repo", "PATH=$PWD/../bin:$PATH git-handoff run gone.json").exit(4);
        assert_eq!(
            find_row(&output.stdout, "x"),
            r#"✗ x  failed  1 attempt  ".gitattributes" was changed or removed, which can only be captured with git 2.41 or newer"#
        );
    }
}
