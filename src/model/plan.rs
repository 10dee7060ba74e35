//! A plan: items with their needs and products.

mod built_in;
mod need;
mod product;

pub use built_in::{BuiltIn, Line, is_line};
pub(crate) use need::{DraftNeed, read_need};
pub use need::{Need, Source};
pub use product::{Declared, Produced, ProductKey, ProductKeyError, ProductKind, Selector, SelectorError};
pub(crate) use product::{read_products, read_selector};

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

use super::protect_rule::ProtectRule;
use crate::model::format;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::protected::OnProtectedChange;
use crate::model::rule::Rule;

/// The input key that names an item's pipeline.
pub const PIPELINE: &str = "pipeline";

/// The input key with environment variables, for the executor `command`.
pub const ENV: &str = "env";

/// The input key with the command line that checks an item of the executor `command`.
pub const CHECK: &str = "check";

/// The input key that says what an item of the executor `command` reads on standard input.
pub const STDIN: &str = "stdin";

/// The value of [`STDIN`] for an empty standard input instead of the task.
pub const NO_STDIN: &str = "none";

/// The input key with the folder of the worktree that an item of the executor `command` starts in.
pub const DIRECTORY: &str = "directory";

/// The input key with the goal of an item, for readers.
pub const GOAL: &str = "goal";

/// The input key with the settings that `record` seals; see `engine::record`. No other plan has it.
pub const RECORDED: &str = "recorded";

/// The input key with the agent whose own line an item of the executor `command` runs. The task of
/// such an item is the goal alone.
pub const AGENT: &str = "agent";

/// The fields of a plan: `name: type = "name in JSON", presence, reader [, as written form];`.
///
/// These tables generate the data types and their written form (here), and the set of known fields
/// and the parser (`plan::draft`). Fields are parsed, and problems reported, in this order.
///
/// The presence is `optional`, `required` (absence is reported first) or `late` (absence is
/// reported in order). A reader returns the draft form of the type (`plan::draft`). Absent values
/// are not written.
macro_rules! plan_fields {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
        /// A DAG of work items, with defaults filled in.
        #[derive(Clone, Debug, PartialEq)]
        Plan read as Draft (
            /// The id of the plan and of its run.
            id: RunId
        ) {
            /// The JSON Schema for editors; no other effect.
            schema: Option<String> = "$schema", optional, read::string;
            /// A comment for readers; no effect.
            comment: Option<String> = "$comment", optional, read::string;
            /// The queue.
            queue: String = "queue", optional, read::text_or("default");
            /// The pattern, if the queue does not set one; see [`crate::plan`].
            pattern: Option<String> = "pattern", optional, read::text;
            /// The plan's rules; a queue can add some. See [`crate::model::rule`].
            rules: Vec<Rule> = "rules", optional, read::rules;
            /// The base revision of all attempts; `HEAD` if absent.
            base: Option<String> = "base", optional, read::text;
            /// Whether items can be added after submit.
            open_ended: bool = "openEnded", optional, read::boolean;
            /// The most items that may run at once, over all drivers.
            concurrency: Option<u32> = "concurrency", optional, read::integer(1..=100_000);
            /// Files to seal at submit, by path.
            artifacts: BTreeMap<FilePath, String> = "artifacts", optional, read::artifacts;
            /// The items, in order.
            items: Vec<Item> = "items", late, read::items;
        }
    } };
}

/// The fields of an item; see [`plan_fields`].
macro_rules! item_fields {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
        /// An item of the plan.
        #[derive(Clone, Debug, PartialEq)]
        Item read as DraftItem (
            /// The id, unique in the run.
            id: ItemId
        ) {
            /// A comment for readers; no effect.
            comment: Option<String> = "$comment", optional, read::string;
            /// The executor's inputs, as written.
            inputs: Map<String, Value> = "inputs", optional, read::object;
            /// The declared products.
            produces: Option<Vec<Produced>> = "produces", optional, read::products;
            /// The maximum number of attempts.
            max_attempts: Option<u32> = "maxAttempts", optional, read::integer(1..=100);
            /// The executor.
            executor: String = "executor", required, read::text;
            /// The dependencies as written; see [`Item::dependencies`].
            depends_on: Vec<ItemId> = "depends_on", optional, read::strings, as Item::dependencies;
            /// The files that it must not change.
            protect: Vec<ProtectRule> = "protect", optional, read::protect, as Item::protect_rules;
            /// The effect of a change to a protected file, unless a setting says another.
            on_protected_change: Option<OnProtectedChange> = "onProtectedChange", optional, read::on_protected_change;
            /// Locks that it holds while running.
            resource_locks: Vec<String> = "resourceLocks", optional, read::locks;
            /// The registered shape of its inputs and products.
            subagent_shape: Option<String> = "subagentShape", optional, read::text;
            /// Needs by input key.
            needs: BTreeMap<FilePath, Need> = "needs", optional, read::needs;
            /// The time limit of an attempt in seconds.
            timeout: Option<u64> = "timeout", optional, read::integer(1..=read::MAX_TIMEOUT);
            /// The item that it replaces; only rules set it.
            replaces: Option<ItemId> = "replaces", optional, read::string;
            /// The item whose products its own replace; only rules set it.
            continues: Option<ItemId> = "continues", optional, read::string;
        }
    } };
}

pub(crate) use {item_fields, plan_fields};

/// Declares the type and known names for a table of fields.
macro_rules! declared {
    ($(#[$doc:meta])* $name:ident read as $draft:ident $(($(#[$id_doc:meta])* $id:ident: $id_type:ty))? {
        $($(#[$about:meta])* $field:ident: $type:ty = $key:literal, $presence:ident, $read:expr $(, as $write:path)?;)*
    }) => {
        $(#[$doc])*
        pub struct $name {
            $($(#[$id_doc])* pub $id: $id_type,)?
            $($(#[$about])* pub $field: $type,)*
        }

        impl $name {
            /// Its field names in JSON, starting with the id.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($id),)? $($key),*];
        }
    };
}

/// Serializes the type of a table of fields.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident read as $draft:ident $(($(#[$id_doc:meta])* $id:ident: $id_type:ty))? {
        $($(#[$about:meta])* $field:ident: $type:ty = $key:literal, $presence:ident, $read:expr $(, as $write:path)?;)*
    }) => {
        impl $name {
            /// Returns the fields with values, including defaults, by JSON name.
            fn written(&self) -> Value {
                let mut fields = Map::new();
                $(fields.insert(stringify!($id).to_owned(), json!(self.$id));)?
                $(fields.insert($key.to_owned(), json!(written!(@value self.$field $(, $write(self))?)));)*
                fields.retain(|_, value| !value.is_null());
                Value::Object(fields)
            }
        }
    };
    (@value $as_it_is:expr) => { $as_it_is };
    (@value $as_it_is:expr, $written:expr) => { $written };
}

plan_fields!(declared);
item_fields!(declared);
item_fields!(written);

/// The input key with the command that an item of the executor `command` runs.
pub const COMMAND: &str = "command";

/// The input key with the commit of an item of the executor `claimed`.
pub const COMMIT: &str = "commit";

/// The input key that makes an item of the executor `command` work in the user's own work tree.
pub const HERE: &str = "here";

/// The input key with the approvers' keys.
pub const APPROVERS: &str = "approvers";

impl Item {
    /// Returns true if this built-in executor has the item.
    pub fn is_for(&self, executor: BuiltIn) -> bool {
        self.executor == executor.name()
    }

    /// Returns true for an approval.
    pub fn is_for_people(&self) -> bool {
        self.is_for(BuiltIn::Approval)
    }

    /// Returns its goal, if the inputs give one.
    pub fn goal(&self) -> Option<&str> {
        self.inputs.get(GOAL).and_then(Value::as_str)
    }

    /// Returns true for a commit that was made before.
    pub fn is_claimed(&self) -> bool {
        self.is_for(BuiltIn::Claimed)
    }

    /// Returns the rules of protected files, or `None` if there are none.
    fn protect_rules(&self) -> Option<&[ProtectRule]> {
        (!self.protect.is_empty()).then_some(self.protect.as_slice())
    }

    /// Returns the keys that may decide, if limited.
    pub fn approvers(&self) -> Option<impl Iterator<Item = &str>> {
        let list = self.inputs.get(APPROVERS)?.as_array();
        Some(list.into_iter().flatten().filter_map(Value::as_str))
    }

    /// Returns all dependencies: `depends_on`, then the producers of its needs by key, without
    /// duplicates.
    pub fn dependencies(&self) -> Vec<ItemId> {
        let producers = self.needs.values().filter_map(|need| match &need.from {
            Source::Item(id) => Some(id),
            Source::Artifacts | Source::Documents | Source::Elsewhere(_) => None,
        });
        let mut distinct = BTreeSet::new();
        let every = self.depends_on.iter().chain(producers);
        every.filter(|id| distinct.insert(*id)).cloned().collect()
    }

    /// Returns the declared documents.
    pub fn documents(&self) -> impl Iterator<Item = Declared> + '_ {
        self.produces.iter().flatten().filter_map(|produced| match (&produced.select, &produced.path) {
            (Selector::Document { name, .. }, Some(path)) => {
                Some(Declared { name: name.clone(), path: path.clone(), schema: produced.schema.clone() })
            }
            _ => None,
        })
    }

    /// Returns the declared patch and outputs; for documents see [`Item::documents`].
    pub fn promised(&self) -> impl Iterator<Item = ProductKey> + '_ {
        let every = self.produces.iter().flatten().map(|produced| produced.select.product_key());
        every.filter(|key| !matches!(key, ProductKey::Document(_)))
    }

    /// Returns the pipeline's reference.
    pub fn pipeline(&self) -> Option<&str> {
        self.inputs.get(PIPELINE).and_then(Value::as_str)
    }

    /// Returns the item as in `item.json`: `depends_on` has every dependency once, and numbers are
    /// canonical.
    ///
    /// This is idempotent, and parsing `item.json` returns the same item. Added items are
    /// normalised first, so that recorded, executed and compared forms are equal.
    #[must_use]
    pub fn normalised(self) -> Self {
        let inputs = serde_json::from_slice(&format::canonical(&self.inputs)).expect("canonical JSON can be read");
        Self { inputs, depends_on: self.dependencies(), ..self }
    }

    /// Returns the normalised item as JSON: defaults are explicit, and `depends_on` is complete.
    ///
    /// Fields without a default (shape, products, timeout, attempts) are present only if set.
    /// Parsing the result returns the same item.
    pub fn to_json(&self) -> Value {
        self.written()
    }
}
