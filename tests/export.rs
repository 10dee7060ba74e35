//! Evidence in other people's formats. `tests/interop/check_export.py` holds the same against their own libraries.

use base64ct::{Base64, Encoding as _};
use git_handoff::export::in_toto::{PAYLOAD_TYPE, pre_authentication_encoding};
use serde_json::Value;
use signature::Verifier as _;
use ssh_key::{PublicKey, Signature};

use crate::common::Environment;

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
    let signature = Signature::new(ssh_key::Algorithm::Ed25519, bytes).expect("64 bytes");
    key.key_data().verify(message, &signature).is_ok()
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
        let real = git_handoff::model::digest::Digest::of(bytes.as_bytes());
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
fn what_cannot_be_evidence_is_refused() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let open = env.handoff(["export", "handoff-dag-1", "--format", "in-toto"]).exit(1).to_string();
    assert!(open.contains("does not verify: NOT SEALED"), "{open}");
    env.write("repo/spec.md", "what is wanted\n");
    env.write(
        "repo/artifact.json",
        r#"{"id":"artifact","artifacts":{"spec.md":"spec.md"},"items":[{"id":"a","executor":"command",
            "inputs":{"command":"true"},"needs":{"s":{"from":"@artifacts","select":{"kind":"output","path":"spec.md"}}}}]}"#,
    );
    env.handoff(["run", "artifact.json"]).success();
    let said = env.handoff(["export", "artifact", "--format", "bundle-json"]).exit(1).to_string();
    assert!(said.contains(r#"the item "a" consumed an artifact"#), "{said}");
}
