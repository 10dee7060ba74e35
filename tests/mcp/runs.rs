//! Runs are submitted, watched and verified; nothing is executed.

use serde_json::{Value, json};

use super::{Client, repository};

fn plan(id: &str) -> Value {
    json!({"id": id, "items": [{"id": "a", "executor": "command", "inputs": {"command": ["true"]}}]})
}

#[test]
fn a_run_is_submitted_watched_and_verified() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let submitted = client.call("submit", &json!({"plan": plan("r")}));
    assert_eq!((&submitted["run"], &submitted["created"]), (&"r".into(), &true.into()));
    assert_eq!(client.call("submit", &json!({"plan": plan("r").to_string()}))["created"], false);
    assert_eq!(client.call("status", &json!({}))["runs"][0]["run"], "r");
    assert_eq!(client.call("status", &json!({"run": "r"}))["items"][0]["status"], "ready");
    let idle = client.call("watch", &json!({"run": "r", "timeout": 0}));
    assert_eq!((&idle["entries"], &idle["new"], &idle["settled"]), (&1.into(), &json!([]), &false.into()));
    // It is notified immediately.
    let (began, late) = (std::time::Instant::now(), std::time::Duration::from_secs(60));
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "tools/call",
        "params": {"name": "watch", "arguments": {"run": "r", "since": 1, "timeout": 600}}}));
    env.handoff(["run", "r"]).success();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut client.from, &mut line).expect("the server answers");
    let message: Value = serde_json::from_str(&line).expect("it is JSON");
    let answer = &message["result"]["structuredContent"];
    crate::common::answers::hold_answer(answer);
    assert_eq!(answer["new"][0]["kind"], "item.fired", "{line}");
    assert!(began.elapsed() < late);
    let all = client.call("watch", &json!({"run": "r", "since": 0}));
    assert_eq!((&all["settled"], &all["sealed"], &all["entries"]), (&true.into(), &true.into(), &4.into()), "{all}");
    assert_eq!(client.call("verify", &json!({"run": "r"}))["intact"], true);
    client.refused("verify", &json!({"run": "none"}), "unknown-run");
    client.end();
}

#[test]
fn a_plan_that_is_not_valid_is_refused_with_every_problem() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let bad = json!({"id": "r", "items": [{"id": "a", "executor": "none"}, {"id": "a", "executor": "command"}]});
    let (text, error) = client.refused("submit", &json!({"plan": bad}), "invalid-plan");
    insta::assert_snapshot!(text, @r#"
    error: the plan is not valid
    caused by: duplicate-id at items[1].id (item "a", line 1): another item has the id "a"
    caused by: unknown-executor at items[0].executor (item "a", line 1): no executor "none" is registered here
    caused by: missing-field at items[1].inputs.command (item "a", line 1): the field `command` is missing
    "#);
    assert_eq!(error["details"]["schema"], "git-handoff.validate/1");
    client.refused("submit", &json!({"plan": "not json"}), "invalid-plan");
    client.refused("submit", &json!({"plan": plan("r"), "queue": "none"}), "unknown-queue");
    client.refused("submit", &json!({"plan": plan("r"), "base": "--help"}), "bad-base");
    // Which files of this machine are sealed into a run is not for a caller to say.
    let mut sealing = plan("r");
    sealing["artifacts"] = json!({"stolen": "/etc/passwd"});
    client.refused("submit", &json!({"plan": sealing}), "artifacts");
    assert_eq!(client.call("status", &json!({}))["runs"], json!([]));
    client.end();
}

#[test]
fn operator_decides_which_plans_agents_submit() {
    let env = repository();
    env.git(["config", "--unset-all", "handoff.mcp.executors"]).success();
    env.git(["config", "handoff.executor.make.command", "true"]).success();
    env.git(["config", "handoff.subagent.writer.command", "true"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let listed = client.call("subagents_list", &json!({}));
    assert_eq!(
        (&listed["subagents"], &listed["executors"]),
        (&json!(["writer"]), &json!(["dispatch", "approval", "make"]))
    );
    client.refused("submit", &json!({"plan": plan("r")}), "executor-not-allowed");
    client.refused("plan_validate", &json!({"plan": plan("r")}), "executor-not-allowed");
    // Nor by what a rule or a pattern creates.
    let item = json!({"id": "a", "executor": "make"});
    let rule = json!({"id": "more", "when": {"items": [{"items": ["a"], "are": "done"}]},
        "create": {"executor": "command", "inputs": {"command": "id"}}});
    let ruled = json!({"id": "r", "items": [item], "rules": [rule]});
    client.refused("submit", &json!({"plan": ruled}), "executor-not-allowed");
    let fix = json!({"executor": "command", "inputs": {"command": "id"}});
    let gate = json!({"id": "g", "executor": "make", "inputs": {"gate": {"onRed": "spawn-fix", "subject": "a", "fixTemplate": fix}}});
    let patterned = json!({"id": "r", "pattern": "pipeline", "items": [item, gate]});
    client.refused("submit", &json!({"plan": patterned}), "executor-not-allowed");
    assert_eq!(client.call("status", &json!({}))["runs"], json!([]));
    let good =
        json!({"id": "r", "items": [item, {"id": "b", "executor": "dispatch", "inputs": {"subagent": "writer"}}]});
    assert_eq!(client.call("plan_validate", &json!({"plan": good}))["valid"], true);
    assert_eq!(client.call("plan_validate", &json!({"plan": {"id": "r"}}))["valid"], false);
    assert_eq!(client.call("submit", &json!({"plan": good}))["created"], true);
    env.git(["config", "handoff.mcp.executors", "dispatch"]).success();
    client.refused("submit", &json!({"plan": {"id": "s", "items": [item]}}), "executor-not-allowed");
    assert_eq!(client.call("thread_list", &json!({}))["threads"], json!([]));
    assert_eq!(client.call("schemas_list", &json!({}))["shapes"], json!([]));
    client.end();
}

#[test]
fn a_run_that_is_called_as_a_file_is_not_run_in_its_place() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    client.call("submit", &json!({"plan": plan("plan.json")}));
    client.end();
    env.write("repo/plan.json", &plan("mine").to_string());
    let both = env.handoff(["--json", "run", "plan.json"]).exit(1);
    let error: Value = serde_json::from_str(&both.stderr).expect("it is JSON");
    let hint = "git handoff run ./plan.json   # or the run: git handoff run refs/handoff/runs/plan.json";
    assert_eq!((&error["code"], &error["hint"]), (&"ambiguous".into(), &hint.into()), "{both}");
    let settled = |run: &str| {
        let status = env.handoff(["--json", "status", run]);
        status.status == Some(0) && status.stdout.contains("\"sealed\":true")
    };
    assert!(!settled("plan.json") && !settled("mine"));
    env.handoff(["run", "./plan.json"]).success();
    assert!(!settled("plan.json") && settled("mine"));
    env.handoff(["run", "refs/handoff/runs/plan.json"]).success();
    assert!(settled("plan.json"));
    // Elsewhere nothing else is called so.
    env.handoff(["status", "plan.json"]).success();
    env.handoff(["run", "refs/handoff/runs/none"]).ends(1);
}

#[test]
fn submit_checks_the_plan_that_it_submits() {
    let env = repository();
    env.git(["config", "--unset-all", "handoff.mcp.executors"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    // Each plan becomes valid while it is looked at: the thread that it needs comes into being
    // beside it.
    let call = |id: usize, tool: &str, arguments: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let rounds = 60;
    for round in 0..rounds {
        let thread = format!("t{round}");
        let mut plan = plan(&format!("r{round}"));
        plan["items"][0]["needs"] = json!({"s": {"thread": thread, "select": {"kind": "output", "path": "state"}}});
        client.send(&call(10_000 + round, "checkpoint", &json!({"thread_id": thread, "state": "x"})));
        std::thread::sleep(std::time::Duration::from_millis(round as u64 % 20));
        client.send(&call(20_000 + round, "submit", &json!({"plan": plan})));
        for _ in 0..2 {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut client.from, &mut line).expect("the server answers");
            let answer: Value = serde_json::from_str(&line).expect("it is JSON");
            let code = &answer["result"]["structuredContent"]["code"];
            if answer["id"].as_u64() >= Some(20_000) {
                assert!(*code == "executor-not-allowed" || *code == "invalid-plan", "{answer}");
            }
        }
    }
    assert_eq!(client.call("status", &json!({}))["runs"], json!([]));
    client.end();
}
