//! The JSON Schema of entries: the header, and one definition for each kind.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::digest::Digest;
use super::entry::Entry;
use super::event::{Event, KindSchema};
use super::format::VERSION;
use super::formats::Fingerprint;
use super::name::{RunId, ThreadId};
use super::time::Moment;

/// The kinds of entries, as a schema.
pub struct EntryKind;

impl JsonSchema for EntryKind {
    fn schema_name() -> Cow<'static, str> {
        "Kind".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<&str> = Event::kinds(&mut generator.clone()).iter().map(|kind| kind.kind).collect();
        json_schema!({ "description": "The kinds of entries.", "type": "string", "enum": kinds })
    }
}

impl JsonSchema for Entry {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = Event::kinds(generator);
        let choices: Vec<Value> =
            kinds.iter().map(|kind| json!({ "$ref": format!("#/$defs/{}", kind.name) })).collect();
        for kind in kinds {
            let (name, schema) = define(kind, generator);
            generator.definitions_mut().insert(name, schema);
        }
        let field = |about: &str, schema: Schema| -> Value {
            let mut schema = schema.to_value();
            schema["description"] = about.into();
            schema
        };
        json_schema!({
            "description": "An entry of a chain, with the fields of its header and of its kind \
                            (docs/reference/format.md, sections 3 and 4).",
            "type": "object",
            "required": ["v", "kind", "seq", "at", "actor"],
            "properties": {
                "v": { "description": "The version of the format.", "const": VERSION },
                "kind": field("The kind.", generator.subschema_for::<EntryKind>()),
                "seq": {
                    "description": "The position in the chain, from 0 and without gaps.",
                    "type": "integer",
                    "minimum": 0
                },
                "at": field("The time of the entry.", generator.subschema_for::<Moment>()),
                "actor": { "description": "The actor: a claim. The signature is the proof.", "type": "string" },
                "prev": field(
                    "The leaf hash of the previous entry; absent in entry 0.",
                    generator.subschema_for::<Digest>()
                ),
                "clock": { "description": "`pinned` if `at` is from a pinned test clock; absent otherwise.", "const": "pinned" }
            },
            "oneOf": choices
        })
    }
}

/// Returns the definition of a kind, with its name.
fn define(kind: KindSchema, generator: &mut SchemaGenerator) -> (String, Value) {
    let mut schema = kind.fields.to_value();
    schema["description"] = kind.about.trim().into();
    schema["properties"]["kind"] = json!({ "const": kind.kind });
    let mut add = |name: &str, is: Schema| schema["properties"][name] = is.to_value();
    let subject = match kind.kind.split('.').next() {
        _ if kind.kind == "log.recorded" => {
            add("run", generator.subschema_for::<RunId>());
            add("thread", generator.subschema_for::<ThreadId>());
            schema["oneOf"] = json!([{ "required": ["run"] }, { "required": ["thread"] }]);
            return (kind.name.to_owned(), schema);
        }
        Some("thread") => ("thread", generator.subschema_for::<ThreadId>()),
        Some("archive") => ("archive", generator.subschema_for::<Fingerprint>()),
        _ => ("run", generator.subschema_for::<RunId>()),
    };
    add(subject.0, subject.1);
    if let Value::Array(required) = &mut schema["required"] {
        // Only a statement of another key has an author.
        required.retain(|field| field != "author");
        required.insert(0, subject.0.into());
    }
    (kind.name.to_owned(), schema)
}
