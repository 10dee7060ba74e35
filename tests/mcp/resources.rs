//! Runs and documents as resources.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Client, repository};
use crate::common::{Environment, answers};

fn submit(client: &mut Client, run: &str) {
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": run, "items": [item]}}));
}

fn put(client: &mut Client, run: &str, name: &str) {
    client.call("doc_put", &json!({"run": run, "name": name, "content": "hello"}));
}

/// Reads a resource, which must exist; returns its JSON.
#[track_caller]
fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.ask("resources/read", &json!({"uri": uri}));
    let contents = answer["result"]["contents"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(contents.len(), 1, "{answer}");
    assert_eq!((&contents[0]["uri"], &contents[0]["mimeType"]), (&uri.into(), &"application/json".into()));
    let value = serde_json::from_str(contents[0]["text"].as_str().expect("it is text")).expect("it is JSON");
    answers::hold_answer(&value);
    value
}

/// Reads a resource that must be refused; returns the code, the code of our error, and the message.
#[track_caller]
fn refused(client: &mut Client, uri: &str) -> (i64, String, String) {
    let answer = client.ask("resources/read", &json!({"uri": uri}));
    let error = &answer["error"];
    assert_eq!(error["data"]["uri"], uri, "{answer}");
    answers::hold_answer(&error["data"]["error"]);
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    (error["code"].as_i64().expect("it is a number"), text(&error["data"]["error"]["code"]), text(&error["message"]))
}

/// Returns every page of the list.
fn pages(client: &mut Client) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut parameters = json!({});
    loop {
        let answer = client.ask("resources/list", &parameters);
        pages.push(answer["result"]["resources"].as_array().unwrap_or_else(|| panic!("{answer}")).clone());
        match &answer["result"]["nextCursor"] {
            Value::Null => return pages,
            cursor => parameters = json!({ "cursor": cursor }),
        }
    }
}

fn uris(resources: &[Value]) -> Vec<&str> {
    resources.iter().map(|resource| resource["uri"].as_str().expect("it is text")).collect()
}

#[test]
fn runs_and_documents_are_listed_and_read_as_by_tools() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    submit(&mut client, "r");
    submit(&mut client, "100% ü");
    put(&mut client, "r", "notes/a b.md");
    client.call("checkpoint", &json!({"thread_id": "t", "state": "x"}));
    let pages = pages(&mut client);
    let [listed] = pages.as_slice() else { panic!("{pages:?}") };
    assert_eq!(
        uris(listed),
        [
            "handoff://runs",
            "handoff://threads",
            "handoff://run/100%25%20%C3%BC",
            "handoff://run/r",
            "handoff://document/r/notes%2Fa%20b.md"
        ]
    );
    for resource in listed {
        let [name, title, about] = ["name", "title", "description"].map(|field| resource[field].as_str());
        assert!(name.is_some() && title.is_some() && about.is_some(), "{resource}");
        assert_eq!(resource["mimeType"], "application/json");
    }
    assert_eq!(listed[3]["description"], "open; items: 1 ready; as recorded, not verified");
    // Each is what its tool answers.
    for (uri, tool, arguments) in [
        ("handoff://runs", "status", json!({})),
        ("handoff://threads", "thread_list", json!({})),
        ("handoff://run/100%25%20%C3%BC", "status", json!({"run": "100% ü"})),
        ("handoff://run/r", "status", json!({"run": "r"})),
        ("handoff://document/r/notes%2Fa%20b.md", "doc_get", json!({"run": "r", "name": "notes/a b.md"})),
        ("handoff://document/r/notes/a%20b.md", "doc_get", json!({"run": "r", "name": "notes/a b.md"})),
    ] {
        assert_eq!(read(&mut client, uri), client.call(tool, &arguments), "{uri}");
    }
    let templates = client.ask("resources/templates/list", &json!({}));
    let templates = templates["result"]["resourceTemplates"].as_array().expect("a list").clone();
    let forms: Vec<_> = templates.iter().map(|template| template["uriTemplate"].as_str()).collect();
    assert_eq!(forms, [Some("handoff://run/{run}"), Some("handoff://document/{run}/{name}")]);
    client.end();
}

#[test]
fn a_fetched_run_is_read_by_its_name_here() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    submit(&mut client, "r");
    put(&mut client, "r", "notes.md");
    client.end();
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.handoff_in("other", ["fetch", "origin", "r"]).success();
    let mut second_client = Client::start(&env, "other", &[]);
    assert_eq!(read(&mut second_client, "handoff://run/origin%2Fr")["run"], "r");
    assert_eq!(refused(&mut second_client, "handoff://document/origin%2Fr/none").1, "unknown-document");
    second_client.end();
}

#[test]
fn missing_resource_and_wrong_uri_differ() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    submit(&mut client, "r");
    for (uri, run) in [
        ("handoff://run/none", "none"),
        ("handoff://run/..", ".."),
        ("handoff://run/a%0Ab", "a\\nb"),
        ("handoff://document/none/x", "none"),
    ] {
        let (code, ours, message) = refused(&mut client, uri);
        assert_eq!((code, ours.as_str()), (-32002, "unknown-run"), "{message}");
        let words = format!("there is no run \"{run}\" here; call `status` without a run: it lists the runs");
        assert_eq!(message, format!("cannot read {uri}: {words}"));
    }
    let (code, _, message) = refused(&mut client, "handoff://document/r/none");
    assert_eq!(code, -32002);
    insta::assert_snapshot!(message, @r#"cannot read handoff://document/r/none: the run "r" has no document "none"; call `doc_list` with {"run":"r"}"#);
    for uri in [
        "",
        "file:///etc/passwd",
        "handoff://",
        "handoff://thread/t",
        "handoff://run/r/",
        "handoff://run/r?x",
        "handoff://run/%zz",
        "handoff://run/%ff",
        "handoff://document/r",
        "handoff://document/r/../x",
        "handoff://document/r/%2e%2e%2f%2e%2e%2fx",
        "handoff://document/r/.git/config",
        "handoff://document/r//etc/passwd",
    ] {
        let (second_code, ours, uri_message) = refused(&mut client, uri);
        assert_eq!((second_code, ours.as_str()), (-32602, "usage"), "{uri}: {uri_message}");
    }
    // A long URI is not repeated as a whole in the message.
    let (_, _, long_message) = refused(&mut client, &format!("handoff://run/{}/x", "x".repeat(10_000)));
    assert!(long_message.len() < 1_000, "{long_message}");
    client.end();
}

#[test]
fn a_document_of_a_run_that_is_not_trusted_is_not_read() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    submit(&mut client, "r");
    put(&mut client, "r", "notes.md");
    env.write("none", "");
    env.git(["config", "handoff.signers", env.path().join("none").to_str().expect("a plain name")]).success();
    let (code, ours, message) = refused(&mut client, "handoff://document/r/notes.md");
    assert_eq!((code, ours.as_str()), (-32603, "untrusted"), "{message}");
    // It is listed, as by `doc_list`.
    assert!(uris(&pages(&mut client)[0]).contains(&"handoff://document/r/notes.md"));
    client.end();
}

/// Makes a repository with many documents and a run that cannot be read.
fn many(client: &mut Client, env: &Environment) -> BTreeSet<String> {
    let mut all = BTreeSet::from(["handoff://runs".to_owned(), "handoff://threads".to_owned()]);
    for run in ["a", "b", "c"] {
        submit(client, run);
        all.insert(format!("handoff://run/{run}"));
        for number in 0..if run == "b" { 120 } else { 2 } {
            put(client, run, &format!("d{number}"));
            all.insert(format!("handoff://document/{run}/d{number}"));
        }
    }
    env.git(["update-ref", "refs/handoff/runs/bad", "HEAD"]).success();
    all.insert("handoff://run/bad".to_owned());
    all
}

#[test]
fn a_long_list_comes_in_pages() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let all = many(&mut client, &env);
    let pages = pages(&mut client);
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [100, all.len() - 100]);
    let listed = pages.concat();
    assert_eq!(uris(&listed).iter().map(|uri| (*uri).to_owned()).collect::<BTreeSet<_>>(), all);
    // A run that cannot be read hides no other, and says so.
    let bad = listed.iter().find(|resource| resource["name"] == "bad").expect("it is listed");
    assert!(bad["description"].as_str().is_some_and(|about| about.starts_with("cannot be read: ")), "{bad}");
    // A page begins after its cursor, even if that run is gone.
    let after = client.ask("resources/list", &json!({"cursor": "handoff://document/bb/x"}));
    let expected = ["handoff://run/c", "handoff://document/c/d0", "handoff://document/c/d1"];
    assert_eq!(uris(after["result"]["resources"].as_array().expect("a list")), expected);
    for cursor in ["", "x", "handoff://runs"] {
        let answer = client.ask("resources/list", &json!({ "cursor": cursor }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    client.end();
}
