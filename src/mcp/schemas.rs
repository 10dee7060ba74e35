//! What clients are told of answers: the published schemas, each tool's in one piece.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The file of what all have in common.
const COMMON: &str = "common";

/// What a tool answers that failed.
const FAILED: &str = "error";

macro_rules! published {
    ($($name:literal),* $(,)?) => {
        /// The schemas below `docs/schema/` that tools answer by, each under the name of its file.
        const PUBLISHED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../docs/schema/", $name, ".json")))),*];
    };
}

published! {
    "adopt",
    "check",
    "checkpoint",
    "common",
    "descriptor",
    "diff",
    "document",
    "document-content",
    "document-log",
    "documents",
    "error",
    "fetch",
    "fork",
    "piece",
    "push",
    "resume",
    "rollback",
    "runs",
    "schemas",
    "status",
    "subagents",
    "submit",
    "thread-verify",
    "threads",
    "validate",
    "verify",
    "watch",
}

/// Returns the schema of what a tool answers, which is one of these forms or an error, for clients that have this one text and no other.
///
/// Descriptions stay in the published files, and so do the schemas of parts that have a file of their own: what is listed here a model may
/// have to read whenever a session begins.
pub(super) fn of(forms: &[&str]) -> JsonObject {
    let mut gathered = Gathered::default();
    let forms = forms.iter().chain(&[FAILED]);
    let every: Vec<Value> = forms.map(|form| json!({ "$ref": gathered.refer(form, None) })).collect();
    let fields = [("type", json!("object")), ("anyOf", every.into()), ("$defs", gathered.parts.into())];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The parts of a schema that were referred to, by the names that they have in it.
#[derive(Default)]
struct Gathered {
    parts: JsonObject,
}

impl Gathered {
    /// Takes in a file, or a definition in it, and returns where it stands.
    fn refer(&mut self, file: &str, definition: Option<&str>) -> Value {
        let name = match definition {
            None => file.to_owned(),
            Some(definition) if file == COMMON => definition.to_owned(),
            Some(definition) => format!("{file}.{definition}"),
        };
        if !self.parts.contains_key(&name) {
            // It may refer to itself.
            self.parts.insert(name.clone(), Value::Null);
            let whole = published(file);
            let part = definition.map_or(&whole, |definition| &whole["$defs"][definition]);
            let taken = self.taken(part, file);
            self.parts.insert(name.clone(), taken);
        }
        format!("#/$defs/{name}").into()
    }

    /// Returns a part of a file as it stands here.
    fn taken(&mut self, part: &Value, file: &str) -> Value {
        match part {
            Value::Object(fields) => self.taken_fields(fields, file).into(),
            Value::Array(list) => list.iter().map(|one| self.taken(one, file)).collect(),
            scalar => scalar.clone(),
        }
    }

    fn taken_fields(&mut self, fields: &JsonObject, file: &str) -> JsonObject {
        let mut taken = JsonObject::new();
        for (key, value) in fields {
            let value = match (key.as_str(), value) {
                ("$ref", Value::String(to)) => {
                    taken.extend(self.referred(to, file));
                    continue;
                }
                ("$schema" | "$defs", _) | ("title" | "description", Value::String(_)) => continue,
                // Their keys are names of fields, whatever these are called.
                ("properties", Value::Object(all)) => all
                    .iter()
                    .map(|(name, value)| (name.clone(), self.taken(value, file)))
                    .collect::<JsonObject>()
                    .into(),
                (_, value) => self.taken(value, file),
            };
            taken.insert(key.clone(), value);
        }
        taken
    }

    fn referred(&mut self, to: &str, from: &str) -> JsonObject {
        let (key, value) = match to.split_once("#/$defs/") {
            Some(("", definition)) => ("$ref", self.refer(from, Some(definition))),
            Some(("common.json", definition)) => ("$ref", self.refer(COMMON, Some(definition))),
            _ => ("type", "object".into()),
        };
        JsonObject::from_iter([(key.to_owned(), value)])
    }
}

/// Reads a published schema.
fn published(name: &str) -> Value {
    let (_, text) = PUBLISHED.iter().find(|(known, _)| *known == name).expect("what tools answer is published");
    serde_json::from_str(text).expect("a test reads every published schema")
}
