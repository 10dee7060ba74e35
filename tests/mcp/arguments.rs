//! Arguments that a tool does not have, and those of another type than their parameter.

use serde_json::{Value, json};

use super::{Client, TOOLS, repository};

/// Returns the text and the answer of a call.
fn texts(client: &mut Client, tool: &str, arguments: &Value) -> (Vec<String>, Value) {
    let answer = client.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
    let content = answer["result"]["content"].as_array().expect("there is content").clone();
    (
        content.iter().map(|part| part["text"].as_str().expect("it is text").to_owned()).collect(),
        answer["result"].clone(),
    )
}

#[test]
fn arguments_that_a_tool_does_not_have_are_ignored() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": "r", "items": [item]}, "wait_for_previous": true}));
    client
        .call("checkpoint", &json!({"thread_id": "t", "state": "x", "wait_for_previous": false, "_meta": {"a": [1]}}));
    // Every tool treats a call with and without them alike.
    for tool in TOOLS {
        if matches!(tool, "submit" | "checkpoint" | "fork" | "handoff_checkpoint" | "rollback" | "doc_put") {
            continue;
        }
        let mut arguments = match tool {
            "cat" => json!({"what": "r:plan.json"}),
            "doc_list" | "status" | "verify" => json!({"run": "r"}),
            "watch" => json!({"run": "r", "timeout": 0}),
            "diff" | "resume" => json!({"thread_id": "t"}),
            _ => json!({}),
        };
        let plain = client.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        if plain.get("error").is_some() {
            // It has required ones.
            let message = client.invalid(tool, &json!({"wait_for_previous": true, "zzz": {"nested": null}}));
            assert_eq!(plain["error"]["message"], message, "{tool}");
            continue;
        }
        let (_, second_plain) = texts(&mut client, tool, &arguments);
        arguments["wait_for_previous"] = true.into();
        arguments["zzz"] = json!({"nested": null});
        let (content, more) = texts(&mut client, tool, &arguments);
        assert_eq!((&more["isError"], content.len()), (&second_plain["isError"], 1), "{tool}: {more}");
        if tool != "resume" {
            assert_eq!(more["structuredContent"], second_plain["structuredContent"], "{tool}");
        }
    }
    // They change nothing that the server was started with.
    client.call("checkpoint", &json!({"thread_id": "t", "state": "y", "actor": "human:boss", "me": "boss"}));
    assert_eq!(super::actor(&env, "t"), "agent:mcp");
    // Those inside of a plan are still problems of the plan.
    let (text, _) = client.refused(
        "submit",
        &json!({"plan": {"id": "s", "items": [{"id": "a", "executor": "command", "wait_for_previous": true}]}}),
        "invalid-plan",
    );
    insta::assert_snapshot!(text, @r#"
    error: the plan is not valid
    caused by: unknown-field at items[0].wait_for_previous (item "a", line 1): there is no field "wait_for_previous" here
    caused by: missing-field at items[0].inputs.command (item "a", line 1): the field `command` is missing
    "#);
    client.end();
}

#[test]
fn misspelt_argument_gets_a_suggestion() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let saved = json!({"thread_id": "t", "state": "x", "sumary": "one line"});
    let (content, result) = texts(&mut client, "checkpoint", &saved);
    assert_eq!(result["isError"], false);
    assert_eq!(content[1], "note: the argument \"sumary\" was ignored; did you mean \"summary\"?");
    assert_eq!(
        client.invalid("resume", &json!({"thread": "t"})),
        "cannot call resume: missing field `thread_id`; note: the argument \"thread\" was ignored; did you mean \"thread_id\"?"
    );
    client.end();
}

#[test]
fn null_is_no_argument_and_a_whole_float_is_an_integer() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let saved =
        json!({"thread_id": "t", "state": "x", "encoding": null, "summary": null, "packet": null, "worktree": null});
    client.call("checkpoint", &saved);
    assert_eq!(client.call("status", &json!({"run": null}))["schema"], "git-handoff.runs/1");
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": "r", "items": [item]}, "queue": null}));
    let answer = client.call("watch", &json!({"run": "r", "since": 0.0, "timeout": 5.0}));
    assert_eq!(answer["entries"], 1);
    let message = client.invalid("resume", &json!({"thread_id": null}));
    assert_eq!(message, "cannot call resume: missing field `thread_id`");
    client.end();
}

#[test]
fn argument_of_another_type_is_reported() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    for (tool, arguments, message) in [
        ("resume", json!({"thread_id": 7}), "the argument \"thread_id\" must be a string, not 7"),
        (
            "resume",
            json!({"thread_id": "t", "checkout": "yes"}),
            "the argument \"checkout\" must be a boolean, not \"yes\"",
        ),
        (
            "watch",
            json!({"run": "r", "timeout": -1}),
            "the argument \"timeout\" must be an integer of at least 0, not -1",
        ),
        (
            "watch",
            json!({"run": "r", "timeout": 1.5}),
            "the argument \"timeout\" must be an integer of at least 0, not 1.5",
        ),
        ("submit", json!({"plan": [1]}), "the argument \"plan\" must be an object, not [1]"),
        (
            "checkpoint",
            json!({"thread_id": "t", "state": "x", "encoding": "hex"}),
            "the argument \"encoding\" must be one of [\"utf-8\",\"base64\"], not \"hex\"",
        ),
    ] {
        assert_eq!(client.invalid(tool, &arguments), format!("cannot call {tool}: {message}"));
    }
    client.end();
}

#[test]
fn a_state_may_be_an_object_or_a_list() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    for (state, text) in
        [(json!({"step": 1, "todo": ["a"]}), r#"{"step":1,"todo":["a"]}"#), (json!([1, null]), "[1,null]")]
    {
        client.call("checkpoint", &json!({"thread_id": "t", "state": state}));
        assert_eq!(client.call("resume", &json!({"thread_id": "t"}))["state"], text);
    }
    let message = client.invalid("checkpoint", &json!({"thread_id": "t", "state": 7}));
    assert_eq!(message, "cannot call checkpoint: the argument \"state\" must be a string, not 7");
    client.invalid("checkpoint", &json!({"thread_id": {"a": 1}, "state": "x"}));
    client.end();
}
