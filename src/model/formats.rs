//! The JSON Schemas of texts and numbers with a format: names, digests, times.
//!
//! A type that writes itself as a text has one here. A field of type `String` names one with
//! `schemars(with = …)`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::digest::{Digest, Oid};
use super::driver::DriverId;
use super::hints::Hint;
use super::log_name::LogName;
use super::name::{FilePath, ItemId, RunId, ThreadId};
use super::plan::{ProductKey, Selector, Source};
use super::thread::CheckpointId;
use super::time::Moment;
use super::usage::Dollars;

/// Defines the schemas by a table: the type, its description, and its limits. A type that begins
/// with `struct` exists for its schema only.
macro_rules! formats {
    (@type struct $name:ident $about:literal) => {
        #[doc = $about]
        pub struct $name;
    };
    (@type $name:ident $about:literal) => {};
    ($($($is:ident)? : $name:ident $about:literal { $($limits:tt)+ })*) => {
        $(
            formats!(@type $($is)? $name $about);

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "description": $about, "type": "string", $($limits)+ })
                }
            }
        )*

        /// Returns the format whose pattern this is: its name and its schema.
        ///
        /// Schemars keeps only the pattern of the keys of a map.
        pub fn with_pattern(pattern: &str) -> Option<(&'static str, Value)> {
            let mut generator = SchemaGenerator::default();
            let mut all = [$((stringify!($name), $name::json_schema(&mut generator).to_value())),*].into_iter();
            all.find(|(_, schema)| schema["pattern"] == pattern)
        }
    };
}

formats! {
    : RunId "The id of a run." { "pattern": "^[^/@-][^/]*$", "maxLength": 128 }
    : ThreadId "The id of a thread." { "pattern": "^[^/@-][^/]*$", "maxLength": 128 }
    : ItemId "The id of an item of a run, or of a rule." { "pattern": "^[^@]", "maxLength": 128 }
    : FilePath "A file-like name, with slashes: an input key, an output, an artifact, a document." {
        "minLength": 1, "maxLength": 1024, "pattern": "^[^\\\\]+$"
    }
    : CheckpointId "The name of a checkpoint: the number of its entry and the beginning of its hash." {
        "pattern": "^(0|[1-9][0-9]*)-[0-9a-f]{12}$"
    }
    : Digest "A SHA-256." { "pattern": "^sha256:[0-9a-f]{64}$" }
    struct: HexDigest "A SHA-256 in hexadecimal, without a prefix." { "pattern": "^[0-9a-f]{64}$" }
    : Oid "The name of a git object, in the repository's object format." {
        "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"
    }
    struct: Fingerprint "A key, as `ssh-keygen -l` names it." { "pattern": "^SHA256:[A-Za-z0-9+/]{43}$" }
    : DriverId "A driver of a shared run: one process that drives it." { "pattern": "^[0-9a-f]{32}$" }
    : Moment "A time in UTC, to the millisecond." {
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
    }
    : ProductKey "The name of a product in the records of a run." { "pattern": "^(patch|outputs/.+|documents/.+)$" }
    : Source "The source of a needed product: an item, `@artifacts`, `@documents`, or an item of another run or a checkpoint of a thread." {
        "minLength": 1, "pattern": "^(.|\\s)"
    }
    : LogName "The name of a log: the fingerprint of its key, with digits if it is not the first of the key." {
        "minLength": 1
    }
    struct: SchemaName "A schema in one version: `id@N`." { "pattern": "^[^@\\s]+@[1-9][0-9]*$" }
    : Hint "The next step: a command to paste, or a few words; over MCP, a tool to call or a task for the operator." {
        "minLength": 1
    }
    : Dollars "A price in US dollars, exact to 10^-9 dollars, without superfluous zeros." {
        "pattern": "^(0|[1-9][0-9]*)(\\.[0-9]{0,8}[1-9])?$"
    }
    struct: ItemState "The status of an item." {
        "enum": ["pending", "ready", "claimed", "running", "done", "failed", "skipped", "cancelled"]
    }
    struct: TextOrNull "A text, or null." { "type": ["string", "null"] }
    struct: Stated "Claims, which nothing verifies: any fields may be there." {
        "type": "object", "minProperties": 1, "additionalProperties": true
    }
    struct: FailureCode "A stable word for programs." { "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$" }
    struct: Counts "The number of items per status, of those that some item has: red ones apart from those that are done, and those that were replaced apart from all." {
        "type": "object",
        "propertyNames": {
            "enum": ["pending", "ready", "running", "done", "red", "failed", "skipped", "cancelled", "superseded"]
        },
        "additionalProperties": { "type": "integer", "minimum": 1 }
    }
    struct: Encoding "The encoding of bytes: UTF-8, or base64 with padding." { "enum": ["utf-8", "base64"] }
}

impl JsonSchema for Selector {
    fn schema_name() -> Cow<'static, str> {
        "Selector".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let path = generator.subschema_for::<FilePath>();
        let schema = "The required schema: `id`, or `id@N`.";
        json_schema!({
            "description": "The product of a source.",
            "type": "object",
            "required": ["kind"],
            "oneOf": [
                { "properties": { "kind": { "const": "patch" } } },
                { "properties": { "kind": { "const": "output" }, "path": path }, "required": ["path"] },
                {
                    "properties": {
                        "kind": { "const": "document" },
                        "name": path,
                        "schema": { "description": schema, "type": "string", "minLength": 1 }
                    },
                    "required": ["name"]
                }
            ]
        })
    }
}
