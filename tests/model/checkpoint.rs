//! The origins of checkpoints, as entries may and may not name them. Both implementations agree.

use std::io::Write as _;
use std::process::{Command, Stdio};

use git_handoff::model::entry::Entry;
use git_handoff::model::format;
use serde_json::{Value, json};

/// Returns the entries with the reason for their verdict; true for those that are valid.
fn entries() -> Vec<(bool, &'static str, Value)> {
    let [digest, other] = ["1", "2"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    let oid = "1".repeat(40);
    let plain = json!({
        "v": 2, "kind": "thread.checkpointed", "thread": "t", "seq": 0, "at": "2026-06-04T02:00:00.000Z",
        "actor": "human:ada", "state": { "sha256": digest, "oid": oid, "size": 1 },
    });
    let with = |seq: u64, fields: Value| {
        let mut entry = plain.clone();
        entry["seq"] = seq.into();
        if seq > 0 {
            entry["prev"] = digest.clone().into();
        }
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        entry
    };
    let name = "0-0123456789ab";
    let source = json!({ "thread": "s", "checkpoint": name, "commit": oid });
    let run = json!({ "id": "r", "commit": oid });
    let mut offer = json!({
        "sha256": digest, "descriptor": digest, "nonce": "n", "acceptedUnknown": false, "acceptedPacket": "critical",
        "signer": "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg", "toAgent": "writer",
    });
    offer.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    let bent = |field: &str, value: Value| {
        let mut bent = offer.clone();
        bent[field] = value;
        json!({ "adopted": bent })
    };
    let ignored = |file: Value| json!({ "worktree": { "tree": oid, "ignored": [file] } });
    vec![
        (true, "no origin", plain.clone()),
        (true, "all of the content", with(1, json!({ "summary": "s", "packet": plain["state"], "base": oid }))),
        (true, "an ignored file", with(0, ignored(json!({ "path": "a" })))),
        (true, "a run", with(0, json!({ "run": run }))),
        (true, "a run later", with(1, json!({ "run": run }))),
        (true, "an offer", with(0, json!({ "adopted": offer }))),
        (true, "a source", with(0, json!({ "from": source }))),
        (true, "an earlier checkpoint", with(1, json!({ "to": name }))),
        (false, "an offer later", with(1, json!({ "adopted": offer }))),
        (false, "a source later", with(1, json!({ "from": source }))),
        (false, "an earlier checkpoint than the first", with(0, json!({ "to": name }))),
        (false, "an offer of another state", with(0, bent("sha256", other.into()))),
        (false, "an offer with another field", with(0, bent("more", 1.into()))),
        (false, "an offer without a nonce", with(0, bent("nonce", Value::Null))),
        (false, "a run and a source", with(0, json!({ "run": run, "from": source }))),
        (false, "a run and an earlier checkpoint", with(1, json!({ "run": run, "to": name }))),
        (false, "an offer and a source", with(0, json!({ "adopted": offer, "from": source }))),
        (false, "a source in another form", with(0, json!({ "from": name }))),
        (false, "a null", with(1, json!({ "to": null }))),
        (false, "another name than that of a checkpoint", with(1, json!({ "to": "first" }))),
        (false, "a field that is not one", with(0, json!({ "more": 1 }))),
        (false, "the digest of an ignored file", with(0, ignored(json!({ "path": "a", "sha256": digest })))),
    ]
}

#[test]
fn a_checkpoint_has_at_most_one_origin_that_fits_its_entry() {
    for (valid, what, entry) in entries() {
        assert_eq!(Entry::parse(&format::entry_text(&entry)).is_ok(), valid, "{what}");
    }
    let script = "import { readFileSync } from 'node:fs';
        import { faultOfEntry } from './src/report/verify/entries/kinds.mjs';
        for (const [valid, what, entry] of JSON.parse(readFileSync(0, 'utf8')))
          if ((faultOfEntry(entry) === null) !== valid) console.log(what);";
    let mut node = Command::new("node");
    node.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--input-type=module", "-e", script]);
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    node.stdin.take().unwrap().write_all(json!(entries()).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
