//! A CycloneDX 1.6 ML-BOM: the models that workers claim, the run's files, and how they were made.
//!
//! Format: <https://cyclonedx.org/docs/1.6/json/>. A run is a workflow of the BOM's formulation,
//! and an attempt is a task of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::digest::Digest;
use crate::model::entry::{Event, InputRef};
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::plan::{ProductKey, Source};
use crate::model::time::Moment;

use super::facts::{Attempt, Facts, uuid};
use super::tool_version;

/// The prefix of the names of our properties.
const OURS: &str = "git-handoff:";

/// A property.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Property {
    name: String,
    value: String,
}

/// A file, or a model.
#[derive(Serialize)]
struct Component {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "bom-ref")]
    bom_ref: String,
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
    properties: Vec<Property>,
}

#[derive(Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

/// An attempt, or an item without one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names are those of the format")]
struct Task {
    #[serde(rename = "bom-ref")]
    bom_ref: String,
    uid: String,
    name: String,
    task_types: [&'static str; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_references: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_start: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_end: Option<Moment>,
    properties: Vec<Property>,
}

/// The BOM of a run while it is made.
struct Bom<'f, 'a> {
    facts: &'f Facts<'a>,
    components: Vec<Component>,
    /// The references of files by source, product and digest.
    files: BTreeMap<(Source, ProductKey, Digest), String>,
}

/// Returns the BOM of a run.
pub(super) fn export(facts: &Facts<'_>) -> Value {
    let mut bom = Bom { facts, components: Vec::new(), files: BTreeMap::new() };
    bom.add_models();
    bom.add_artifacts();
    bom.add_products();
    bom.add_documents();
    let tasks = bom.tasks();
    let dependencies = bom.dependencies();
    let run = facts.run.run.as_str();
    let first = facts.run.links[0].hash;
    let sealed_at = facts.run.links.last().map(|link| link.entry.at);
    let workflow = json!({
        "bom-ref": format!("workflow:{}", facts.run.run.encoded()),
        "uid": first.to_string(),
        "name": run,
        "taskTypes": ["other"],
        "tasks": tasks,
        "taskDependencies": dependencies,
        "timeStart": facts.document.submitted_at,
        "timeEnd": sealed_at,
    });
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": format!("urn:uuid:{}", uuid(&format::digest_of(&json!([OURS, facts.origin.seal])))),
        "version": 1,
        "metadata": {
            "timestamp": sealed_at,
            "tools": { "components": [{
                "type": "application", "name": "git-handoff", "version": tool_version(facts.document.tool),
            }] },
            "component": {
                "type": "data",
                "bom-ref": format!("run:{}", facts.run.run.encoded()),
                "name": run,
                "properties": evidence(facts),
            },
        },
        "components": bom.components,
        "formulation": [{ "workflows": [workflow] }],
    })
}

impl Bom<'_, '_> {
    /// Adds each model that a worker named, once.
    fn add_models(&mut self) {
        let models = self.facts.attempts.iter().filter_map(|attempt| attempt.claims()?.model.as_deref());
        for model in models.collect::<BTreeSet<_>>() {
            self.components.push(Component {
                kind: "machine-learning-model",
                bom_ref: model_ref(model),
                name: model.to_owned(),
                hashes: Vec::new(),
                properties: vec![property("claim", "a worker of the run named this model; nothing verifies it")],
            });
        }
    }

    fn add_artifacts(&mut self) {
        for (path, digest) in &self.facts.document.artifacts {
            let bom_ref = format!("artifact:{}", path.encoded());
            self.files.insert((Source::Artifacts, ProductKey::Output(path.clone()), *digest), bom_ref.clone());
            self.components.push(file(bom_ref, path.to_string(), digest, Vec::new()));
        }
    }

    fn add_products(&mut self) {
        for (at, item) in self.facts.run.state.graph.items().indexed() {
            for (key, product) in &self.facts.run.state.items[at].products {
                let bom_ref = product_ref(&item.id, key);
                self.files.insert((Source::Item(item.id.clone()), key.clone(), product.sha256), bom_ref.clone());
                let size = property("size", &product.size.to_string());
                self.components.push(file(bom_ref, format!("{}:{key}", item.id), &product.sha256, vec![size]));
            }
        }
    }

    /// Adds each revision that a person wrote; those of items are products.
    fn add_documents(&mut self) {
        for link in &self.facts.run.links {
            let Event::DocumentWritten(e) = &link.entry.event else { continue };
            let bom_ref = format!("document:{}:{}", e.name.encoded(), e.revision);
            self.files.insert((Source::Documents, ProductKey::Document(e.name.clone()), e.sha256), bom_ref.clone());
            let properties = vec![
                property("size", &e.size.to_string()),
                property("author", &e.author),
                property("entry", &link.hash.to_string()),
            ];
            self.components.push(file(bom_ref, format!("{} #{}", e.name, e.revision), &e.sha256, properties));
        }
    }

    /// Returns a task for each attempt, and one for each item that has none, in plan order.
    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for at in self.facts.run.state.graph.items().indices() {
            let before = tasks.len();
            tasks.extend(self.facts.attempts_of(at).map(|attempt| self.task(attempt)));
            if tasks.len() == before {
                tasks.push(self.idle(at));
            }
        }
        tasks
    }

    fn task(&self, attempt: &Attempt<'_>) -> Task {
        let summary = &attempt.summary;
        let id = &attempt.fired.item;
        let mut properties = vec![
            property("item", id.as_str()),
            property("attempt", &attempt.fired.attempt.to_string()),
            property("entry", &attempt.entry().to_string()),
        ];
        let details = attempt.details(self.facts);
        for name in ["status", "reason", "executor", "subagent", "actor", "sandbox", "grade", "supersededBy"] {
            properties.extend(details[name].as_str().map(|value| property(name, value)));
        }
        properties.extend(attempt.result().and_then(|e| e.reused.as_ref()).map(|r| property("reused", &r.to_string())));
        if let Some(Value::Object(claims)) = details.get("claims") {
            properties.extend(claims.iter().map(|(name, value)| match value {
                Value::String(text) => property(&format!("claim:{name}"), text),
                other => property(&format!("claim:{name}"), &other.to_string()),
            }));
        }
        let model = attempt.claims().and_then(|claims| claims.model.as_deref());
        let products = attempt.result().into_iter().flat_map(|e| &e.products);
        Task {
            bom_ref: task_ref(id, attempt.fired.attempt),
            uid: summary.fired.hash.to_string(),
            name: format!("{id} #{}", attempt.fired.attempt),
            task_types: ["other"],
            resource_references: model.map(|model| json!({ "ref": model_ref(model) })).into_iter().collect(),
            inputs: attempt.fired.input_refs.iter().map(|(key, input)| self.input(key.as_str(), input)).collect(),
            outputs: products
                .map(|(key, _)| json!({ "type": "artifact", "resource": { "ref": product_ref(id, key) } }))
                .collect(),
            time_start: Some(summary.started_at),
            time_end: summary.ended_at,
            properties,
        }
    }

    /// Returns a consumed input: a reference to a file of the BOM, or its digest.
    fn input(&self, key: &str, input: &InputRef) -> Value {
        let product = input.select.product_key();
        let mut properties = vec![property("input", key)];
        let reference = (input.from.clone(), product, input.digest);
        if let Some(bom_ref) = self.files.get(&reference) {
            return json!({ "resource": { "ref": bom_ref }, "properties": properties });
        }
        properties.push(property("from", &input.from.to_string()));
        let parameter = json!({ "name": reference.1.to_string(), "value": input.digest });
        json!({ "parameters": [parameter], "properties": properties })
    }

    /// Returns the task of an item without attempts: decided, skipped, cancelled, or never ready.
    fn idle(&self, at: ItemIndex) -> Task {
        let (id, state) = (self.facts.id(at), &self.facts.run.state.items[at]);
        let mut properties = vec![property("item", id.as_str()), property("status", self.facts.run.state.status(at))];
        properties.extend(state.reason.as_deref().map(|reason| property("reason", reason)));
        properties.extend(state.decided_by.as_deref().map(|by| property("decidedBy", by)));
        Task {
            bom_ref: task_ref(id, 0),
            uid: format!("{}/{id}", self.facts.run.run),
            name: id.to_string(),
            task_types: ["other"],
            resource_references: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            time_start: None,
            time_end: None,
            properties,
        }
    }

    /// Returns for each item's last task the last tasks of its dependencies.
    fn dependencies(&self) -> Vec<Value> {
        let graph = &self.facts.run.state.graph;
        let last = |at: ItemIndex| {
            let attempt = self.facts.attempts_of(at).next_back().map_or(0, |attempt| attempt.fired.attempt);
            task_ref(self.facts.id(at), attempt)
        };
        graph
            .items()
            .indices()
            .map(|at| {
                let on: BTreeSet<String> = graph.dependencies(at).iter().map(|on| last(*on)).collect();
                json!({ "ref": last(at), "dependsOn": on })
            })
            .collect()
    }
}

fn evidence(facts: &Facts<'_>) -> Vec<Property> {
    facts.origin.pairs().iter().map(|(name, value)| property(name, value)).collect()
}

fn property(name: &str, value: &str) -> Property {
    Property { name: format!("{OURS}{name}"), value: value.to_owned() }
}

fn file(bom_ref: String, name: String, digest: &Digest, properties: Vec<Property>) -> Component {
    let hashes = vec![Hash { alg: "SHA-256", content: digest.hex() }];
    Component { kind: "file", bom_ref, name, hashes, properties }
}

fn model_ref(model: &str) -> String {
    format!("model:{model}")
}

fn product_ref(item: &ItemId, key: &ProductKey) -> String {
    format!("product:{}:{key}", item.encoded())
}

fn task_ref(item: &ItemId, attempt: u32) -> String {
    format!("task:{}:{attempt}", item.encoded())
}
