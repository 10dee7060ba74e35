//! Lists the fields of a bundle that no hash covers, to warn readers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::json::JsonPath;
use crate::verify::report::Uncovered;

use super::reading::{BLOCKS, PLACES};

/// The fields that a hash covers or that are recomputed, at each level.
const BUNDLE: [&str; 4] = ["runId", "manifests", "auditLog", "items"];
const LOG: [&str; 2] = ["entries", "root"];
const ROOT: [&str; 3] = ["epochId", "root", "signature"];
const SIGNATURE: [&str; 2] = ["alg", "bytes"];
const LINKS: [&str; 2] = ["entryHash", "prevHash"];
const ITEM: [&str; 5] = ["id", "status", "manifestRef", "resultRef", "outputRefs"];

/// The most fields to name; the rest are counted.
const MAX_NAMED: usize = 1000;

/// Lists the fields by path. `unsaid` are values that the entries could show but do not.
pub(super) fn list(bundle: &Value, unsaid: Vec<Uncovered>, signature_holds: bool) -> Vec<Uncovered> {
    let mut list = List::default();
    for Uncovered { path, detail } in unsaid {
        list.add(path, &detail);
    }
    let log = &bundle["auditLog"];
    let root = &log["root"];
    // An empty report contains nothing to list.
    let report = bundle["report"].as_object().is_some_and(Map::is_empty);
    list.add_fields(bundle, "", |key| BUNDLE.contains(&key) || (key == "report" && report));
    list.add_fields(log, "auditLog", |key| LOG.contains(&key));
    list.add_fields(root, "auditLog.root", |key| ROOT.contains(&key));
    let signature = "auditLog.root.signature";
    if signature_holds {
        list.add_fields(&root["signature"], signature, |key| SIGNATURE.contains(&key));
    } else if !root["signature"].is_null() {
        list.add(signature.to_owned(), "not checked");
    }
    for entry in map_objects(&log["entries"]) {
        let place = "auditLog.entries[]";
        list.add_fields(entry, place, |key| PLACES.contains(&key) || BLOCKS.contains(&key) || LINKS.contains(&key));
        for key in PLACES.iter().filter(|key| entry.get(**key).is_some_and(Value::is_null)) {
            list.add(format!("{place}.{key}"), "null, which hashes as if it were absent");
        }
    }
    for manifest in map_objects(&bundle["manifests"]) {
        list.add_fields(manifest, "manifests[]", |key| key != "signature");
    }
    for item in map_objects(&bundle["items"]) {
        list.add_fields(item, "items[]", |key| ITEM.contains(&key));
    }
    let more = list.0.len().saturating_sub(MAX_NAMED);
    let listed = list.0.into_iter().take(MAX_NAMED).map(|(path, detail)| Uncovered { path, detail });
    let rest = (more > 0).then(|| Uncovered { path: "…".to_owned(), detail: format!("{more} more are not covered") });
    listed.chain(rest).collect()
}

fn map_objects(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[derive(Default)]
struct List(BTreeMap<String, String>);

impl List {
    fn add(&mut self, path: String, detail: &str) {
        self.0.entry(path).or_insert_with(|| detail.to_owned());
    }

    /// Adds every field of an object that is not covered.
    fn add_fields(&mut self, object: &Value, at: &str, is_covered: impl Fn(&str) -> bool) {
        let fields = object.as_object().into_iter().flat_map(Map::keys);
        for key in fields.filter(|key| !is_covered(key.as_str())) {
            let field = JsonPath::root().key(key).to_string();
            let dot = if at.is_empty() || field.starts_with('[') { "" } else { "." };
            self.add(format!("{at}{dot}{field}"), "no hash covers it");
        }
    }
}
