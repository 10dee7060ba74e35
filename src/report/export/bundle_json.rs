//! The audit bundle of another orchestrator, with its structure and hash algorithm.
//!
//! The hash of an entry is `SHA-256(canonical array || previous hash in hex)`. The tree has RFC
//! 6962 leaves and nodes over the raw entry hashes. The signature is plain ed25519 over the root.
//! References have its pinned form, because its verifier checks no others. See
//! `docs/reference/export.md`.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64ct::{Base64, Encoding as _};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::ledger::merkle;
use crate::ledger::sign::Signer;
use crate::model::digest::Digest;
use crate::model::entry::{Event, InputRef, ItemFired, Outcome, Product};
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::{ProductKey, Source};
use crate::run::query::{VerifiedRun, View};

use super::Error;

/// References of manifests, by item and attempt.
type Manifests<'r> = BTreeMap<(&'r ItemId, u32), String>;

/// Exports a sealed run as a bundle, with the root signed by `signer`.
pub fn export(store: &Store, run: &VerifiedRun, signer: &Signer) -> Result<Value, Error> {
    let view: &View = run;
    if !view.state.sealed {
        return Err(Error::Open);
    }
    if let Some(conclusion) = view.state.conclusions().next() {
        return Err(Error::Said(conclusion.outcome.clone()));
    }
    let mut manifests = Vec::new();
    let mut hashes = BTreeMap::new();
    for link in &view.links {
        if let Event::ItemFired(fired) = &link.entry.event {
            let (manifest, hash) = manifest(store, view, link, fired)?;
            hashes.insert((&fired.item, fired.attempt), reference(&view.run, "manifest", fired.item.encoded(), &hash));
            manifests.push(manifest);
        }
    }
    let (entries, leaves) = entries(view, &hashes)?;
    let root = merkle::root(leaves);
    let sealed_at = view.links.last().map_or(0, |link| link.entry.at.millis());
    Ok(json!({
        "runId": view.run,
        "manifests": manifests,
        "auditLog": {
            "entries": entries,
            "root": {
                "epochId": view.run,
                "root": Base64::encode_string(root.as_bytes()),
                "signature": {
                    "alg": "ed25519",
                    "bytes": Base64::encode_string(&signer.sign_raw(root.as_bytes())?),
                    "keyRef": signer.fingerprint(),
                },
                "receipt": { "anchorId": "local", "epochId": view.run, "guarantee": "detect", "at": sealed_at },
            },
        },
        "items": items(view, &entries),
        "report": {},
    }))
}

/// Returns the entries in the format's form, with their leaf hashes.
fn entries(view: &View, manifests: &Manifests<'_>) -> Result<(Vec<Value>, Vec<Digest>), Error> {
    let mut entries = Vec::new();
    let mut leaves = Vec::new();
    let mut previous = String::new();
    for link in &view.links {
        match &link.entry.event {
            Event::DocumentWritten(e) => return Err(Error::Written(e.author.clone(), e.name.clone())),
            // Without it, a failed run would look like a finished one.
            Event::RunConcluded(e) => return Err(Error::Said(e.outcome.clone())),
            Event::ItemReconciled(e) => {
                if let Some(reused) = &e.reused {
                    return Err(Error::Reused(e.item.clone(), reused.run.clone()));
                }
            }
            _ => {}
        }
        let mut entry = entry(view, link, manifests);
        let hash: [u8; 32] =
            Sha256::new().chain_update(canonical_entry(&entry)).chain_update(&previous).finalize().into();
        let hash = Digest::from_bytes(hash);
        entry.insert("entryHash".into(), hash.hex().into());
        entry.insert("prevHash".into(), previous.into());
        previous = hash.hex();
        leaves.push(format::leaf_hash(hash.as_bytes()));
        entries.push(Value::Object(entry));
    }
    Ok((entries, leaves))
}

/// Returns a reference in the pinned form
/// `pangolin://<namespace>/<type>/<name>/<content hash>`.
///
/// The namespace is the run, so references are equal only if run, type, name and bytes are. Parts
/// have no bare `/`.
fn reference(run: &RunId, kind: &str, name: impl Display, digest: &Digest) -> String {
    format!("pangolin://{}/{kind}/{name}/{digest}", run.encoded())
}

/// Returns the reference of a product. The encoded names contain no `:`, so it separates them.
fn product_reference(run: &RunId, item: &ItemId, key: &ProductKey, digest: &Digest) -> String {
    let key = crate::model::name::encode_segment(&key.to_string());
    reference(run, "artifact", format_args!("{}:{key}", item.encoded()), digest)
}

/// Returns the manifest of a dispatch and its hash.
fn manifest(store: &Store, view: &View, link: &Link, fired: &ItemFired) -> Result<(Value, Digest), Error> {
    let ours = super::read_manifest(store, fired)?;
    let mut manifest = Map::new();
    manifest.insert("schemaVersion".into(), 1.into());
    manifest.insert("runId".into(), json!(view.run));
    manifest.insert("itemId".into(), json!(fired.item));
    manifest.insert("parent".into(), format!("run:{}", view.run).into());
    manifest.insert("executor".into(), json!(ours.executor));
    let mut executor = json!(ours);
    executor["attempt"] = fired.attempt.into();
    manifest.insert("executorManifest".into(), executor);
    manifest.insert("secretRefs".into(), json!(ours.claims.secret_env));
    manifest.insert("actor".into(), json!(link.entry.actor));
    manifest.insert("firedAt".into(), json!(link.entry.at));
    if !fired.input_refs.is_empty() {
        let mut refs = Map::new();
        for (key, input) in &fired.input_refs {
            refs.insert(key.to_string(), consumed(view, &fired.item, input)?.into());
        }
        manifest.insert("inputRefs".into(), Value::Object(refs));
    }
    let hash = format::digest_of(&manifest);
    manifest.insert("manifestHash".into(), json!(hash));
    Ok((Value::Object(manifest), hash))
}

fn consumed(view: &View, item: &ItemId, input: &InputRef) -> Result<String, Error> {
    match &input.from {
        Source::Item(from) => Ok(product_reference(&view.run, from, &input.select.product_key(), &input.digest)),
        Source::Artifacts => Err(Error::Unspeakable(item.clone(), "an artifact".into())),
        Source::Elsewhere(_) => Err(Error::Unspeakable(item.clone(), "a product from outside the run".into())),
        Source::Documents => Err(Error::Unspeakable(item.clone(), "a document".into())),
    }
}

fn entry(view: &View, link: &Link, manifests: &Manifests<'_>) -> Map<String, Value> {
    let event = &link.entry.event;
    let mut entry = Map::new();
    entry.insert("runId".into(), json!(view.run));
    entry.insert("seq".into(), link.entry.seq.into());
    entry.insert("at".into(), json!(link.entry.at));
    entry.insert("actor".into(), json!(link.entry.actor));
    entry.insert("kind".into(), kind(event).into());
    if let Some((item, attempt)) = event.item() {
        entry.insert("itemId".into(), json!(item));
        if let (Event::ItemFired(_), Some(manifest)) = (event, manifests.get(&(item, attempt))) {
            entry.insert("manifestRef".into(), json!(manifest));
        }
    }
    if let Event::ItemReconciled(e) = event {
        let status = if e.status == Outcome::Done { "done" } else { "failed" };
        entry.insert("status".into(), status.into());
        let reference = |key, product: &Product| json!(product_reference(&view.run, &e.item, key, &product.sha256));
        if let Some((key, patch)) = e.products.get_key_value(&ProductKey::Patch) {
            entry.insert("resultRef".into(), reference(key, patch));
        }
        // A document that an item produces is listed as its output.
        let outputs = e.products.iter();
        let outputs: Map<String, Value> =
            outputs.filter_map(|(key, product)| Some((key.output()?.to_string(), reference(key, product)))).collect();
        if !outputs.is_empty() {
            entry.insert("outputRefs".into(), Value::Object(outputs));
        }
    }
    entry
}

/// Returns the nearest event kind of the format: it has no requeue, and a seal is a completion.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::ItemRequeued(_) => "item.retried",
        Event::ItemCancelled(_) => "run.cancelled",
        Event::RunSealed(_) => "run.completed",
        other => other.kind(),
    }
}

/// Returns the bytes that an entry's hash covers: a JSON array in fixed order, absent fields as
/// null.
fn canonical_entry(entry: &Map<String, Value>) -> Vec<u8> {
    const FIELDS: [&str; 9] = ["kind", "runId", "itemId", "status", "actor", "manifestRef", "resultRef", "at", "seq"];
    let mut array: Vec<Value> = FIELDS.iter().map(|key| entry.get(*key).cloned().unwrap_or(Value::Null)).collect();
    if let Some(outputs) = entry.get("outputRefs") {
        array.push(String::from_utf8_lossy(&format::canonical(outputs)).into_owned().into());
    }
    serde_json::to_vec(&array).expect("a JSON array serialises")
}

/// Returns the items for display, each with the references of its latest entries; not part of the
/// evidence.
fn items(view: &View, entries: &[Value]) -> Vec<Value> {
    let mut recorded: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for entry in entries {
        let Some(item) = entry["itemId"].as_str() else { continue };
        for key in ["manifestRef", "resultRef", "outputRefs"] {
            if let Some(reference) = entry.get(key) {
                recorded.entry(item).or_default().insert(key.into(), reference.clone());
            }
        }
    }
    view.state
        .items
        .indices()
        .map(|at| {
            let id = &view.state.graph.item(at).id;
            let mut object = recorded.remove(id.as_str()).unwrap_or_default();
            object.insert("id".into(), json!(id));
            object.insert("status".into(), view.state.status(at).into());
            object.insert("attempts".into(), view.state.items[at].attempts.into());
            if view.state.items[at].red {
                // The format can display this, but has no evidence for it.
                object.insert("verify".into(), json!({ "passed": false }));
            }
            Value::Object(object)
        })
        .collect()
}
