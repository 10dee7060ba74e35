//! The JSON answers.

use serde_json::Value;

use crate::common::finished;
use crate::common::{Environment, assert_output};

#[test]
fn every_answer_is_json_with_a_schema() {
    let env = Environment::example("handoff-dag");
    let ask = |args: &[&str]| {
        let output = env.handoff(["--json"].iter().chain(args)).success();
        let value: Value = serde_json::from_str(&output).expect("an answer is one JSON object");
        assert!(value["schema"].as_str().is_some_and(|schema| schema.starts_with("git-handoff.")), "{value}");
        assert_eq!(output.lines().count(), 1, "an answer is one line: {output}");
        serde_json::to_string_pretty(&value).expect("a value is written")
    };
    assert_output!(ask(&["validate", "plan.json"]), @r#"
    {
      "items": 2,
      "pattern": "dag",
      "problems": [],
      "schema": "git-handoff.validate/1",
      "valid": true
    }
    "#);
    assert_output!(ask(&["submit", "plan.json"]), @r#"
    {
      "created": true,
      "run": "handoff-dag-1",
      "schema": "git-handoff.submit/1"
    }
    "#);
    assert_output!("json_status_before", ask(&["status", "handoff-dag-1"]));
    assert_output!("json_run", ask(&["run", "handoff-dag-1"]));
    assert_output!("json_status", ask(&["status", "handoff-dag-1"]));
    assert_output!("json_runs", ask(&["runs"]));
    assert_output!("json_verify", ask(&["verify", "handoff-dag-1"]));
    assert_output!(ask(&["key"]), @r#"
    {
      "allowedSigners": "ada@example.com namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICg8sjDRN5f2SzMI7bnNAt+pnqPBOrsD8kozgqkn2RSa",
      "fingerprint": "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg",
      "principal": "ada@example.com",
      "schema": "git-handoff.key/1"
    }
    "#);
}

#[test]
fn the_log_is_the_entries_with_hash_and_commit() {
    let env = finished();
    let log = env.handoff(["log", "--json", "handoff-dag-1"]).success();
    let bodies = env.git(["log", "--reverse", "--format=%b", "refs/handoff/runs/handoff-dag-1"]).success();
    let commits = env.git(["log", "--reverse", "--format=%H", "refs/handoff/runs/handoff-dag-1"]).success();
    let bodies: Vec<Value> =
        serde_json::Deserializer::from_str(&bodies).into_iter().collect::<Result<_, _>>().expect("a body is JSON");
    assert_eq!(log.lines().count(), bodies.len());
    for ((line, body), commit) in log.lines().zip(bodies).zip(commits.lines()) {
        let mut value: Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(value["commit"], commit);
        let fields = value.as_object_mut().expect("a line is an object");
        assert!(fields.remove("hash").is_some() && fields.remove("commit").is_some());
        assert_eq!(value, body);
    }
    assert_output!("json_log", log);
}

#[test]
fn answers_and_talk_do_not_mix() {
    let env = Environment::example("handoff-dag");
    let output = env.handoff(["--json", "submit", "--run", "plan.json"]).exit(0);
    let lines: Vec<Value> =
        output.stdout.lines().map(|l| serde_json::from_str(l).expect("stdout is JSON lines")).collect();
    assert_eq!(lines.len(), 1, "{output}");
    assert_eq!(lines[0]["schema"], "git-handoff.run/1");
}
