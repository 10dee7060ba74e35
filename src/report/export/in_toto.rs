//! in-toto attestations: for each product a Statement v1 with SLSA provenance v1 in a DSSE
//! envelope.
//!
//! Formats: <https://github.com/in-toto/attestation/blob/main/spec/v1>, <https://slsa.dev/spec/v1.0/provenance>,
//! <https://github.com/secure-systems-lab/dsse>.

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};

use crate::git::store::Store;
use crate::ledger::sign::Signer;
use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;
use crate::model::format;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::model::program::{Interpreter, Program};
use crate::run::query::{VerifiedRun, View};

use super::{Done, Error};

/// The media type of an in-toto statement in an envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The SLSA build type of an item.
const BUILD_TYPE: &str = "urn:git-handoff:item:1";

/// Returns an envelope for each product of the done items, or of one item, in plan order.
pub fn export(store: &Store, run: &VerifiedRun, only: Option<&ItemId>, signer: &Signer) -> Result<Vec<Value>, Error> {
    let view: &View = run;
    if !view.state.sealed {
        return Err(Error::Open);
    }
    let mut envelopes = Vec::new();
    for done in super::done(store, view)? {
        if only.is_some_and(|only| *only != done.fired.1.item) {
            continue;
        }
        for (key, product) in &done.reconciled.1.products {
            let statement = statement(view, &done, key, product);
            envelopes.push(envelope(&format::canonical(&statement), signer)?);
        }
    }
    Ok(envelopes)
}

fn statement(view: &View, done: &Done<'_>, key: &ProductKey, product: &Product) -> Value {
    let item = view.state.graph.item(done.at);
    let manifest = &done.manifest;
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": format!("{}/{}:{key}", view.run, item.id), "digest": sha256(&product.sha256) }],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "run": view.run,
                    "item": item.id,
                    "plan": view.state.submitted.plan.sha256,
                    "executor": item.executor,
                    "inputs": item.inputs,
                },
                "internalParameters": { "manifest": manifest },
                "resolvedDependencies": dependencies(view.state.submitted.base, done),
            },
            "runDetails": {
                "builder": {
                    "id": format!("urn:git-handoff:writer:{}", view.state.submitted.roles.keys().map(String::as_str).collect::<Vec<_>>().join(",")),
                    "version": { "git-handoff": manifest.claims.tool },
                },
                "metadata": {
                    "invocationId": format!("{}/{}#{}", view.run, item.id, done.fired.1.attempt),
                    "startedOn": done.fired.0.entry.at,
                    "finishedOn": done.reconciled.0.entry.at,
                },
                "byproducts": byproducts(view, done),
            },
        },
    })
}

/// Returns what an attempt started from: the base, its inputs and its program.
fn dependencies(base: Oid, done: &Done<'_>) -> Vec<Value> {
    let claims = &done.manifest.claims;
    let mut dependencies = vec![json!({ "name": "base", "digest": { "gitCommit": base } })];
    for (input, reference) in &done.fired.1.input_refs {
        dependencies.push(json!({ "name": format!("inputs/{input}"), "digest": sha256(&reference.digest) }));
    }
    if let Some(Program { path, sha256: digest, size, version }) = &claims.program {
        dependencies.push(file("program", path, digest, *size));
        if let (Some(version), Some(program)) = (version, dependencies.last_mut()) {
            program["annotations"]["version"] = json!(version);
        }
    }
    if let Some(Interpreter { path, sha256: digest, size }) = &claims.interpreter {
        dependencies.push(file("interpreter", path, digest, *size));
    }
    dependencies
}

/// Returns what else an attempt left: its entries, with what the run states about the item, and its
/// transcript.
fn byproducts(view: &View, done: &Done<'_>) -> Vec<Value> {
    let mut byproducts = vec![
        json!({ "name": "entry item.fired", "digest": sha256(&done.fired.0.hash) }),
        json!({ "name": "entry item.reconciled", "digest": sha256(&done.reconciled.0.hash) }),
    ];
    // A reader of the statement alone must see what the run states about the item.
    let (end, state) = (&done.reconciled.1, &view.state.items[done.at]);
    if state.red {
        byproducts[1]["annotations"]["red"] = true.into();
        byproducts[1]["annotations"]["verify"] = json!(end.verify);
    }
    if let Some(grade) = end.grade {
        byproducts[1]["annotations"]["grade"] = json!(grade);
    }
    if !end.protected.is_empty() {
        byproducts[1]["annotations"]["protected"] = json!(end.protected);
    }
    if end.protected_judged {
        byproducts[1]["annotations"]["protectedJudged"] = true.into();
    }
    if let Some(by) = &state.allowed_by {
        byproducts[1]["annotations"]["allowedBy"] = by.as_str().into();
    }
    if let Some(by) = &state.approved_by {
        byproducts[1]["annotations"]["approvedBy"] = by.as_str().into();
    }
    // The builder does not vouch for these.
    if let Some(claims) = Reported::new(end.claims.as_deref(), end.usage) {
        byproducts[1]["annotations"]["workerClaims"] = json!(claims);
    }
    // Nothing was executed: the statement about the build is the other run's.
    if let Some(reused) = &done.reconciled.1.reused {
        byproducts[1]["annotations"]["reused"] = json!(reused);
    }
    if let Some(by) = view.state.replaced_by(done.at) {
        byproducts[1]["annotations"]["supersededBy"] = by.as_str().into();
    }
    if let Some(transcript) = &done.reconciled.1.transcript {
        byproducts.push(json!({ "name": "transcript", "digest": sha256(&transcript.sha256) }));
    }
    byproducts
}

/// Signs a payload as in DSSE: over the pre-authentication encoding, with the bare key.
fn envelope(payload: &[u8], signer: &Signer) -> Result<Value, Error> {
    let signature = signer.sign_raw(&pre_authentication_encoding(PAYLOAD_TYPE, payload))?;
    Ok(json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": Base64::encode_string(payload),
        "signatures": [{ "keyid": signer.fingerprint(), "sig": Base64::encode_string(&signature) }],
    }))
}

/// Returns the pre-authentication encoding, which a DSSE signature covers.
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the resource descriptor of a file of the machine that ran the item.
fn file(name: &str, path: &str, digest: &Digest, size: u64) -> Value {
    json!({ "name": name, "digest": sha256(digest), "annotations": { "path": path, "size": size } })
}

fn sha256(digest: &Digest) -> Value {
    json!({ "sha256": digest.hex() })
}
