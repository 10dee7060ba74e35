//! Messages about misspelt keys, retries, and missing reuse.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

#[test]
fn a_key_of_inputs_that_is_almost_read_is_warned_of() {
    let repo = TestRepo::new();
    repo.config("handoff.subagent.s.command", "true");
    let mut one = item("one", "true");
    one["inputs"]["mapreduce"] = json!({});
    one["inputs"]["Gate"] = json!({});
    one["inputs"]["goal"] = json!("is read by the program");
    let inputs = json!({ "subagent": "s", "workerinput": {}, "work_input": 1, "command": "means nothing here" });
    let plan = repo.plan("r", &[one, json!({ "id": "two", "executor": "dispatch", "inputs": inputs })]);
    let validated = repo.env.handoff(["validate", &plan]).exit(0);
    let warned: Vec<&str> = validated.stderr.lines().collect();
    assert_eq!(
        warned,
        [
            "warning: nothing reads `items[0].inputs.Gate`; did you mean `gate`?",
            "warning: nothing reads `items[0].inputs.mapreduce`; did you mean `mapReduce`?",
            "warning: nothing reads `items[1].inputs.work_input`; did you mean `workerInput`?",
            "warning: nothing reads `items[1].inputs.workerinput`; did you mean `workerInput`?",
        ]
    );
}

#[test]
fn an_item_sets_variables_for_its_own_command_alone() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.command.setup", "echo \"setup: $LOG\" >outputs/said");
    repo.config("handoff.executor.command.verify", "echo \"verify: $LOG\" >>outputs/said");
    repo.config("handoff.executor.command.env", "LOG=configured");
    repo.config("handoff.executor.command.secretEnv", "KEY=!echo the-real-key");
    let mut own = item("a", "echo \"own: $LOG $EMPTY-${#KEY}\" >>outputs/said");
    own["inputs"]["env"] = json!({ "LOG": "debug", "EMPTY": "", "KEY": "another" });
    repo.drive("r", &[own.clone()]).ends(0);
    let stdout = repo.env.handoff(["cat", "r/a:outputs/said"]).success();
    assert_eq!(stdout, "setup: configured\nown: debug -12\nverify: configured\n");
    let manifest: Value = serde_json::from_str(&repo.env.handoff(["cat", "r/a:manifest"]).success()).unwrap();
    let names: Vec<&str> =
        manifest["claims"]["env"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(["EMPTY", "KEY", "LOG"].iter().all(|name| names.contains(name)), "{names:?}");
    repo.ends_intact("r");
    own["inputs"]["env"] = json!({ "A-B": "x", "HOME": "/", "HANDOFF_RUN": "r", "N": 1, "1": "" });
    let refused = repo.env.handoff(["validate", &repo.plan("bad", &[own])]).exit(1);
    for line in [
        "bad-input-key at items[0].inputs.env[\"1\"] (item \"a\", line 1): \"1\" is not the name of an environment variable",
        "bad-input-key at items[0].inputs.env[\"A-B\"] (item \"a\", line 1): \"A-B\" is not the name of an environment variable",
        "reserved-key at items[0].inputs.env.HANDOFF_RUN (item \"a\", line 1): `HANDOFF_RUN` is set by the tool alone",
        "reserved-key at items[0].inputs.env.HOME (item \"a\", line 1): `HOME` is set by the tool alone",
        "wrong-type at items[0].inputs.env.N (item \"a\", line 1): expected a string without NUL, found 1",
    ] {
        assert!(refused.stdout.lines().any(|found| found == line), "{line}: {refused}");
    }
}

#[test]
fn retry_reports_outdated_command_files() {
    let repo = TestRepo::new();
    repo.env.write("repo/tools/check.sh", "exit 1\n");
    repo.env.git(["add", "tools"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Check"]).success();
    let base = repo.env.git(["rev-parse", "--short=7", "HEAD"]).success();
    repo.drive("r", &[item("a", "sh ./tools/check.sh 'a.txt'; exit 1")]).ends(4);
    let retry = repo.env.handoff(["retry", "r/a"]).exit(0);
    insta::assert_snapshot!(retry, @"
    r/a will be tried again
    ------- stderr -------
    hint: git handoff run r
    ");
    repo.env.handoff(["run", "r"]).ends(4);
    repo.env.write("repo/tools/check.sh", "exit 0\n");
    repo.env.git(["commit", "--quiet", "--all", "--message", "Fix the check"]).success();
    repo.env.write("repo/dir/b.txt", "is not named\n");
    let second_retry = repo.env.handoff(["retry", "r/a"]).exit(0);
    let warning = format!(
        "warning: item \"a\" runs tools/check.sh as the base {} of the run has it, without later changes; for those, submit the plan with another id\n",
        base.trim()
    );
    assert!(second_retry.stderr.contains(&warning), "{second_retry}");
}

#[test]
fn reuse_explains_each_item_that_is_not_reused() {
    let repo = TestRepo::new();
    let run = |id: &str, items: &[Value]| {
        repo.submit(id, items);
        repo.env.handoff(["run", "--reuse", id]).exit(0).stderr
    };
    insta::assert_snapshot!(run("first", &[item("a", "echo x >outputs/x")]), @"
    a: not reused: no sealed run here has an item that is done and green and had the same to do
    ▶ a  attempt 1
    ✓ a  done in 0ms, 1 product
    ");
    insta::assert_snapshot!(run("same", &[item("a", "echo x >outputs/x")]), @"
    ▶ a  attempt 1
    ✓ a  reused from first/a, sealed as 0cfd8b9f, 1 product
    ");
    repo.config("handoff.executor.command.timeout", "77");
    let stderr = run("other", &[item("a", "echo y >outputs/x")]);
    insta::assert_snapshot!(stderr, @"
    a: not reused: first/a was given something else to do: argv, inputs, timeout
    ▶ a  attempt 1
    ✓ a  done in 0ms, 1 product
    ");
    let mut wants = item("a", "echo y >outputs/x");
    wants["produces"] = json!([{ "kind": "output", "path": "x" }, { "kind": "patch" }]);
    wants["maxAttempts"] = json!(1);
    repo.submit("wants", &[wants]);
    let run_stderr = repo.env.handoff(["run", "--reuse", "wants"]).exit(4).stderr;
    assert!(
        run_stderr.contains(
            "a: not reused: other/a did the same, and its products are not what this item has to hand over\n"
        ),
        "{run_stderr}"
    );
}
