//! Documents are put on a run and read, as by the command line.

use serde_json::{Value, json};

use super::{Client, repository};

#[test]
fn documents_are_put_and_read() {
    let env = repository();
    env.write("notes.schema.json", r#"{"type": "object"}"#);
    let schema = env.path().join("notes.schema.json");
    env.git(["config", "handoff.schema.notes@1.path", schema.to_str().expect("a plain name")]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let plan = json!({"id": "r", "items": [{"id": "a", "executor": "command", "inputs": {"command": ["true"]}}]});
    client.call("submit", &json!({"plan": plan}));
    let first = client
        .call("doc_put", &json!({"run": "r", "name": "notes/a.md", "content": "{\"one\": 1}", "schema": "notes@1"}));
    assert_eq!(
        (&first["document"]["revision"], &first["document"]["author"]["actor"]),
        (&1.into(), &"agent:mcp".into())
    );
    let follow = json!({"run": "r", "name": "notes/a.md", "content": "/wD+", "encoding": "base64",
        "if_match": first["document"]["sha256"]});
    client.call("doc_put", &follow);
    client.refused("doc_put", &follow, "lost-race");
    let read = client.call("doc_get", &json!({"run": "r", "name": "notes/a.md"}));
    assert_eq!((&read["content"], &read["encoding"]), (&"/wD+".into(), &"base64".into()));
    assert_eq!(env.handoff(["doc", "get", "r", "notes/a.md"]).exit(0).raw, [0xff, 0x00, 0xfe]);
    let first_revision =
        client.call("doc_get", &json!({"run": "r", "name": "notes/a.md", "revision": 1, "expect": "notes@1"}));
    assert_eq!((&first_revision["content"], &first_revision["encoding"]), (&"{\"one\": 1}".into(), &"utf-8".into()));
    // A document of another schema is not returned.
    let drifted = json!({"run": "r", "name": "notes/a.md", "revision": 1, "expect": "notes@2"});
    let (text, _) = client.refused("doc_get", &drifted, "drift");
    insta::assert_snapshot!(text, @r#"
    error: the document "notes/a.md" is notes@1 in revision 1, and notes@2 is wanted
    caused by: revision 1 was produced by agent:mcp
    caused by: it has been so from the beginning: agent:mcp wrote revision 1, entry 1; at 2026-06-04T02:00:04.000Z, in commit b5db03ab2bfef639d4a6eea6194176ec10763c00
    hint: call `doc_log` with {"name":"notes/a.md","run":"r"}
    "#);
    let listed = client.call("doc_list", &json!({"run": "r"}));
    let printed: Value =
        serde_json::from_str(&env.handoff(["--json", "doc", "list", "r"]).success()).expect("it is JSON");
    assert_eq!(listed, printed);
    let log = client.call("doc_log", &json!({"run": "r", "name": "notes/a.md"}));
    assert_eq!(log["revisions"].as_array().map(Vec::len), Some(2));
    client.refused("doc_log", &json!({"run": "r", "name": "none"}), "unknown-document");
    // A packet that is a document is checked by its name.
    client.call("doc_put", &json!({"run": "r", "name": "packet.json", "content": "{\"objective\": \"Continue\"}"}));
    let report = client.call("packet_check", &json!({"run": "r", "name": "packet.json"}));
    assert_eq!(report["classification"], "operational");
    assert_eq!(client.call("packet_check", &json!({"run": "r", "name": "none"}))["classification"], "critical");
    client.end();
}
