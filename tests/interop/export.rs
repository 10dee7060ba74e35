//! Exports. `tests/interop/check_export.py` checks them with other libraries.

use base64ct::{Base64, Encoding as _};
use git_handoff::report::export::in_toto::{PAYLOAD_TYPE, pre_authentication_encoding};
use serde_json::{Value, json};
use signature::Verifier as _;
use ssh_key::{PublicKey, Signature};

use crate::common::Environment;
use crate::common::repo::{TestRepo, after, item, wait_for};

fn sealed() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    env
}

/// Returns the key that the repository signs with.
fn public_key(env: &Environment) -> PublicKey {
    let line = env.handoff(["key"]).success();
    let key = line.find("ssh-ed25519").map(|at| &line[at..]).expect("the line names an ed25519 key");
    PublicKey::from_openssh(key.trim()).expect("the key is readable")
}

fn verifies(key: &PublicKey, message: &[u8], signature: &Value) -> bool {
    let bytes = Base64::decode_vec(signature.as_str().expect("a text")).expect("base64");
    let second_signature = Signature::new(ssh_key::Algorithm::Ed25519, bytes).expect("64 bytes");
    key.key_data().verify(message, &second_signature).is_ok()
}

#[test]
fn every_product_has_a_signed_statement() {
    let env = sealed();
    let key = public_key(&env);
    let lines = env.handoff(["export", "handoff-dag-1", "--format", "in-toto"]).success();
    let mut subjects = Vec::new();
    for line in lines.lines() {
        let envelope: Value = serde_json::from_str(line).expect("an envelope is JSON");
        let payload = Base64::decode_vec(envelope["payload"].as_str().expect("a text")).expect("base64");
        let signed = pre_authentication_encoding(PAYLOAD_TYPE, &payload);
        assert!(verifies(&key, &signed, &envelope["signatures"][0]["sig"]));
        assert!(!verifies(&key, &payload, &envelope["signatures"][0]["sig"]), "the type is signed as well");
        let statement: Value = serde_json::from_slice(&payload).expect("a statement is JSON");
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        let subject = &statement["subject"][0];
        let (name, digest) = (subject["name"].as_str().expect("a name"), subject["digest"]["sha256"].as_str());
        let bytes = env.handoff(["cat", name]).success();
        let real = git_handoff::model::digest::Digest::compute(bytes.as_bytes());
        assert_eq!(digest, Some(real.hex().as_str()), "{name}");
        subjects.push(name.to_owned());
    }
    let expected = [
        "handoff-dag-1/edit-a:patch",
        "handoff-dag-1/apply-patch:outputs/applied.txt",
        "handoff-dag-1/apply-patch:patch",
    ];
    assert_eq!(subjects.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), expected.into());
    let one = env.handoff(["export", "handoff-dag-1/edit-a", "--format", "in-toto"]).success();
    assert_eq!(one.lines().count(), 1);
}

#[test]
fn the_bundle_is_signed_and_closed() {
    let env = sealed();
    let bundle: Value =
        serde_json::from_str(&env.handoff(["export", "handoff-dag-1", "--format", "bundle-json"]).success())
            .expect("JSON");
    let root = &bundle["auditLog"]["root"];
    let bytes = Base64::decode_vec(root["root"].as_str().expect("a text")).expect("base64");
    assert!(verifies(&public_key(&env), &bytes, &root["signature"]["bytes"]));
    let entries = bundle["auditLog"]["entries"].as_array().expect("entries");
    assert_eq!(entries.last().map(|entry| &entry["kind"]), Some(&Value::from("run.completed")));
    let consumed = bundle["manifests"][1]["inputRefs"]["patch"].as_str().expect("apply-patch consumed a patch");
    assert!(entries.iter().any(|entry| entry["status"] == "done" && entry["resultRef"] == consumed));
}

#[test]
fn export_rejects_insufficient_evidence() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let open = env.handoff(["export", "handoff-dag-1", "--format", "in-toto"]).exit(1).to_string();
    insta::assert_snapshot!(open, @r#"
    ------- stderr -------
    error: the run "handoff-dag-1" does not verify: NOT SEALED
    hint: git handoff verify handoff-dag-1
    [exit status: 1]
    "#);
    env.write("repo/spec.md", "what is wanted\n");
    env.write(
        "repo/artifact.json",
        r#"{"id":"artifact","artifacts":{"spec.md":"spec.md"},"items":[{"id":"a","executor":"command",
            "inputs":{"command":"true"},"needs":{"s":{"from":"@artifacts","select":{"kind":"output","path":"spec.md"}}}}]}"#,
    );
    env.handoff(["run", "artifact.json"]).success();
    let message = env.handoff(["export", "artifact", "--format", "bundle-json"]).exit(1).to_string();
    insta::assert_snapshot!(message, @r#"
    ------- stderr -------
    error: the item "a" consumed an artifact, but this format has only products of items
    [exit status: 1]
    "#);
}

/// Exports a run and holds that the export verifies; returns the kinds of its entries about items,
/// and how the items are shown.
#[track_caller]
fn exported(repo: &TestRepo, run: &str) -> (Vec<String>, Vec<String>) {
    let text = repo.env.handoff(["export", run, "--format", "bundle-json"]).success();
    repo.env.write("export.json", &text);
    let read = repo.env.handoff(["verify", "--json", "--allow-partial", "--bundle-json", "../export.json"]);
    let report: Value = serde_json::from_str(&read.stdout).expect("a report");
    assert_eq!((read.status, &report["intact"]), (Some(0), &json!(true)), "{run}: {read}");
    let bundle: Value = serde_json::from_str(&text).expect("JSON");
    is_bound(&bundle);
    let each = |list: &Value, field: &str| -> Vec<String> {
        let all = list.as_array().expect("a list").iter();
        all.map(|one| one[field].as_str().expect("a text").to_owned()).collect()
    };
    let kinds = each(&bundle["auditLog"]["entries"], "kind");
    (kinds, each(&bundle["items"], "status"))
}

/// Holds what the format's own verifier asks of a reference before it binds anything to it, and
/// that each is bound.
#[track_caller]
fn is_bound(bundle: &Value) {
    let pinned = |reference: &Value| {
        let text = reference.as_str().expect("a text").strip_prefix("pangolin://").expect("its scheme");
        let parts: Vec<&str> = text.split('/').collect();
        assert!(parts.len() == 4 && parts.iter().all(|part| !part.is_empty()) && parts[1] != "dispatches", "{text}");
        parts[3].to_owned()
    };
    let manifests = bundle["manifests"].as_array().expect("a list");
    let hashes: Vec<&str> = manifests.iter().map(|one| one["manifestHash"].as_str().expect("a hash")).collect();
    let entries = bundle["auditLog"]["entries"].as_array().expect("a list");
    let fired: Vec<String> =
        entries.iter().filter(|e| e["kind"] == "item.fired").map(|e| pinned(&e["manifestRef"])).collect();
    assert_eq!(fired, hashes);
    let consumed = manifests.iter().filter_map(|one| one["inputRefs"].as_object()).flat_map(|refs| refs.values());
    let produced = entries.iter().flat_map(|entry| {
        let outputs = entry["outputRefs"].as_object().into_iter().flat_map(|refs| refs.values());
        entry.get("resultRef").into_iter().chain(outputs)
    });
    consumed.chain(produced).for_each(|reference| drop(pinned(reference)));
}

#[test]
fn every_kind_of_run_that_ended_is_exported_and_verifies() {
    let repo = TestRepo::new();
    let mut flaky = item("a", "test $HANDOFF_ATTEMPT = 2");
    flaky["maxAttempts"] = json!(2);
    repo.drive("retried", &[flaky]).ends(0);
    assert_eq!(exported(&repo, "retried").0[1..5], ["item.fired", "item.retried", "item.fired", "item.reconciled"]);

    // Odd names, one product each that another item takes, and one that lacks a product which
    // another item needs.
    let mut takes = item("./a:b", "cat inputs/x");
    takes["needs"] = json!({"x": {"from": "we ird/id", "select": {"kind": "output", "path": "ü/x y"}}});
    let mut lacks = item("lacks", "true");
    lacks["needs"] = json!({"x": {"from": "./a:b", "select": {"kind": "output", "path": "never"}}});
    let makes = item("we ird/id", "mkdir outputs/ü; echo 1 >'outputs/ü/x y'; echo 2 >new.txt");
    repo.drive("failed: 1 %", &[makes, takes, lacks, after("next", &["lacks"], "true")]).ends(4);
    let refused = repo.env.handoff(["export", "failed: 1 %", "--format", "bundle-json"]).exit(1).to_string();
    // An open run is no evidence.
    insta::assert_snapshot!(refused, @r#"
    ------- stderr -------
    error: the run "failed: 1 %" does not verify: NOT SEALED
    hint: git handoff verify 'failed: 1 %'
    [exit status: 1]
    "#);
    repo.env.handoff(["close", "failed: 1 %"]).success();
    assert_eq!(exported(&repo, "failed: 1 %").1, ["done", "failed", "skipped", "skipped"]);

    repo.drive("requeued", &[item("a", "test -e \"$HOME/../fixed\""), after("b", &["a"], "true")]).ends(4);
    repo.env.write("fixed", "");
    repo.env.handoff(["retry", "requeued/a"]).success();
    repo.env.handoff(["run", "requeued"]).success();
    let (kinds, statuses) = exported(&repo, "requeued");
    assert_eq!((kinds[4].as_str(), statuses.join(" ")), ("item.retried", "done done".to_owned()));

    repo.submit("waiting", &[item("a", "true"), after("b", &["a"], "true")]);
    repo.env.handoff(["cancel", "waiting"]).success();
    assert_eq!(exported(&repo, "waiting").1, ["cancelled", "cancelled"]);

    repo.submit("one", &[item("a", "true"), item("b", "true"), after("c", &["b"], "true")]);
    repo.env.handoff(["cancel", "one/b"]).success();
    repo.env.handoff(["run", "one"]).ends(4);
    repo.env.handoff(["close", "one"]).success();
    assert_eq!(exported(&repo, "one").1, ["done", "cancelled", "skipped"]);
}

#[test]
fn a_run_whose_running_items_were_cancelled_is_exported_and_verifies() {
    let repo = TestRepo::new();
    let slow = "echo >\"$HOME/../began\"; sleep 99";
    repo.submit("r", &[item("slow", slow), after("next", &["slow"], "true")]);
    let driver = repo.start(&["run", "r"]);
    wait_for("the item", || repo.path("began").exists());
    repo.env.handoff(["cancel", "r"]).success();
    assert_eq!(driver.wait().0.code(), Some(4));
    let (kinds, statuses) = exported(&repo, "r");
    assert_eq!(statuses, ["cancelled", "cancelled"]);
    assert_eq!(
        kinds,
        ["run.submitted", "item.fired", "run.cancelled", "run.cancelled", "run.cancelled", "run.completed"]
    );
}

#[test]
fn a_run_that_grew_is_exported_and_verifies() {
    let repo = TestRepo::new();
    let mut wrote = item("write", "echo '{\"score\": 7}' >outputs/score.json");
    wrote["produces"] = json!([{"kind": "document", "name": "score", "path": "score.json"}]);
    let grows = json!({"id": "grown", "openEnded": true, "items": [wrote], "rules": [{"id": "again",
        "when": {"if": [{"document": "score", "pointer": "/score", "op": "<", "value": 8}]},
        "create": {"executor": "command", "inputs": {"command": "true"}}}]});
    repo.env.write("grown.json", &grows.to_string());
    repo.env.handoff(["submit", "../grown.json"]).success();
    repo.env.handoff(["run", "grown"]).success();
    repo.env.write("more.json", &json!({"id": "grown", "items": [item("more", "true")]}).to_string());
    repo.env.handoff(["extend", "grown", "../more.json"]).success();
    repo.env.handoff(["run", "grown"]).success();
    repo.env.handoff(["close", "grown"]).success();
    let (kinds, statuses) = exported(&repo, "grown");
    assert_eq!(kinds.iter().filter(|kind| *kind == "run.extended").count(), 2, "{kinds:?}");
    assert!(kinds.contains(&"run.closed".to_owned()));
    assert_eq!(statuses, ["done", "done", "done"]);
}
