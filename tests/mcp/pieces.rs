//! Pieces of runs, a part at a time.

use serde_json::json;

use super::{Client, repository};

#[test]
fn a_piece_is_read_in_parts_and_hashed_as_a_whole() {
    let env = repository();
    let script = "mkdir -p outputs; for i in $(seq 3000); do printf '%0100d' $i; printf 'ä'; done >outputs/large; \
                  printf '\\377\\000' >outputs/bytes; echo said";
    let items = json!([{ "id": "a", "executor": "command", "inputs": { "command": script } }]);
    env.write("r.json", &json!({ "id": "r", "items": items }).to_string());
    env.handoff(["run", "../r.json"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let (mut text, mut offset, mut parts) = (String::new(), json!(0), 0);
    while !offset.is_null() {
        let part = client.call("cat", &json!({ "what": "r/a:outputs/large", "offset": offset }));
        assert_eq!((&part["size"], &part["encoding"]), (&json!(306_000), &json!("utf-8")));
        text += part["content"].as_str().unwrap();
        (offset, parts) = (part["next"].clone(), parts + 1);
    }
    assert_eq!((text.len(), parts), (306_000, 2));
    assert_eq!(text, env.handoff(["cat", "r/a:outputs/large"]).success());
    let part = client.call("cat", &json!({ "what": "r/a:outputs/bytes" }));
    assert_eq!((&part["content"], &part["encoding"]), (&json!("/wA="), &json!("base64")));
    assert_eq!(client.call("cat", &json!({ "what": "r/a:transcript" }))["content"], "said\n");
    let beyond = client.call("cat", &json!({ "what": "r/a:transcript@1", "offset": 99 }));
    assert_eq!((&beyond["content"], &beyond["size"]), (&json!(""), &json!(5)));
    client.refused("cat", &json!({ "what": "r/a:outputs/none" }), "no-such-thing");
    client.refused("cat", &json!({ "what": "r/a:transcript@2" }), "no-transcript");
    client.refused("cat", &json!({ "what": "r/a" }), "usage");
    // Nothing is returned from a tampered run.
    let commit = env.git(["rev-parse", "refs/handoff/runs/r~1"]).success().trim().to_owned();
    let forged =
        env.git(["commit-tree", "-p", &commit, "-m", "item.reconciled", &format!("{commit}^{{tree}}")]).success();
    env.git(["update-ref", "refs/handoff/runs/r", forged.trim()]).success();
    let answer = client.ask("tools/call", &json!({ "name": "cat", "arguments": { "what": "r/a:outputs/bytes" } }));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}
