//! A plan as data: items, what each needs, and what each hands over.

mod need;
mod product;

pub(crate) use need::{DraftNeed, read_need};
pub use need::{Need, Source};
pub use product::{Declared, Produced, ProductKey, ProductKeyError, ProductKind, Selector, SelectorError};
pub(crate) use product::{read_products, read_selector};

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

use crate::model::format;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::rule::Rule;

/// The key of an item's inputs that names its pipeline.
pub const PIPELINE: &str = "pipeline";

/// The key of the inputs of an item of the executor `command` that sets environment variables.
pub const ENV: &str = "env";

/// The fields of a plan: `name: type = "name in JSON", presence, reader [, as what is written];`, the whole of what the tool knows of one.
///
/// From these tables come the data (here), what is written of it (here), what is known of it when it is read, and how it is read
/// (`plan::draft`). They stand in the order in which the fields are read, and so in which what is wrong with them is reported.
///
/// The presence is `optional`, `required`, whose absence is reported before anything is read, or `late`, in whose turn it is.
/// What a reader gives is the drafted form of the type (`plan::draft`). What has no value is not written.
macro_rules! plan_fields {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
        /// A DAG of work items, as its author wrote it, with the defaults filled in.
        #[derive(Clone, Debug, PartialEq)]
        Plan read as Draft (
            /// The id of the run that it becomes.
            id: RunId
        ) {
            /// What an editor holds the file against; it means nothing.
            schema: Option<String> = "$schema", optional, read::string;
            /// What its author says to whoever reads the file; it means nothing.
            comment: Option<String> = "$comment", optional, read::string;
            /// The queue that the run is placed on.
            queue: String = "queue", optional, read::text_or("default");
            /// How it grows, where its queue does not say so: see [`crate::plan`].
            pattern: Option<String> = "pattern", optional, read::text;
            /// Its own rules; a queue may add some, see [`crate::model::rule`].
            rules: Vec<Rule> = "rules", optional, read::rules;
            /// The revision that every attempt starts from; `HEAD` when absent.
            base: Option<String> = "base", optional, read::text;
            /// Whether items may be added after it is submitted.
            open_ended: bool = "openEnded", optional, read::boolean;
            /// Files to seal at submit: path to the file to read.
            artifacts: BTreeMap<FilePath, String> = "artifacts", optional, read::artifacts;
            /// The nodes, in the author's order.
            items: Vec<Item> = "items", late, read::items;
        }
    } };
}

/// The fields of an item, as [`plan_fields`].
macro_rules! item_fields {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
        /// One node of the plan.
        #[derive(Clone, Debug, PartialEq)]
        Item read as DraftItem (
            /// The id, unique in the run.
            id: ItemId
        ) {
            /// What its author says to whoever reads the file; it means nothing.
            comment: Option<String> = "$comment", optional, read::string;
            /// What the executor is given, as written.
            inputs: Map<String, Value> = "inputs", optional, read::object;
            /// The products it declares.
            produces: Option<Vec<Produced>> = "produces", optional, read::products;
            /// How often it is dispatched at most.
            max_attempts: Option<u32> = "maxAttempts", optional, read::integer(1..=100);
            /// The registered way to run it.
            executor: String = "executor", required, read::text;
            /// The items that must be done before, as written; see [`Item::dependencies`].
            depends_on: Vec<ItemId> = "depends_on", optional, read::strings, as Item::dependencies;
            /// Keys of which no other running item may hold one.
            resource_locks: Vec<String> = "resourceLocks", optional, read::locks;
            /// The registered shape that describes its inputs and products.
            subagent_shape: Option<String> = "subagentShape", optional, read::text;
            /// Input keys bound to products.
            needs: BTreeMap<FilePath, Need> = "needs", optional, read::needs;
            /// Seconds after which an attempt is ended.
            timeout: Option<u64> = "timeout", optional, read::integer(1..=read::MAX_TIMEOUT);
            /// The item that it takes the place of, which does not count any more; only what rules create has one.
            replaces: Option<ItemId> = "replaces", optional, read::string;
            /// The item whose products its own stand for from now on; only what rules create has one.
            continues: Option<ItemId> = "continues", optional, read::string;
        }
    } };
}

pub(crate) use {item_fields, plan_fields};

/// Declares the data of a table of fields, and the names that are known.
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
            /// The names of its fields in JSON, that of its id first.
            pub(crate) const FIELDS: &'static [&'static str] = &[$(stringify!($id),)? $($key),*];
        }
    };
}

/// Writes the data of a table of fields.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident read as $draft:ident $(($(#[$id_doc:meta])* $id:ident: $id_type:ty))? {
        $($(#[$about:meta])* $field:ident: $type:ty = $key:literal, $presence:ident, $read:expr $(, as $write:path)?;)*
    }) => {
        impl $name {
            /// The fields that have a value, defaults included, under their names in JSON.
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

/// The built-in executor that runs `inputs.command`.
pub const COMMAND: &str = "command";

/// The built-in executor that runs the subagent that `inputs.subagent` names.
pub const DISPATCH: &str = "dispatch";

/// The built-in executor that waits for people: nothing is run, somebody approves or rejects.
pub const APPROVAL: &str = "approval";

/// The executors that exist without any configuration.
pub const BUILT_IN: [&str; 3] = [COMMAND, DISPATCH, APPROVAL];

/// The input of such an item that names the keys of which one is to decide.
pub const APPROVERS: &str = "approvers";

impl Item {
    /// Returns whether people decide about it, and nothing is run.
    pub fn is_for_people(&self) -> bool {
        self.executor == APPROVAL
    }

    /// Returns the fingerprints of the keys that may decide about it, where it names some.
    pub fn approvers(&self) -> Option<impl Iterator<Item = &str>> {
        let named = self.inputs.get(APPROVERS)?.as_array();
        Some(named.into_iter().flatten().filter_map(Value::as_str))
    }

    /// All items that must be done before: `depends_on`, then the producers of its needs in the
    /// order of their keys, each once.
    pub fn dependencies(&self) -> Vec<ItemId> {
        let producers = self.needs.values().filter_map(|need| match &need.from {
            Source::Item(id) => Some(id),
            Source::Artifacts | Source::Documents | Source::Elsewhere(_) => None,
        });
        let mut seen = BTreeSet::new();
        let every = self.depends_on.iter().chain(producers);
        every.filter(|id| seen.insert(*id)).cloned().collect()
    }

    /// The documents it hands over when it is done; only the item's own word makes a file one.
    pub fn documents(&self) -> impl Iterator<Item = Declared> + '_ {
        self.produces.iter().flatten().filter_map(|produced| match (&produced.select, &produced.path) {
            (Selector::Document { name, .. }, Some(path)) => {
                Some(Declared { name: name.clone(), path: path.clone(), schema: produced.schema.clone() })
            }
            _ => None,
        })
    }

    /// The patch and the outputs that it hands over when it is done, by its own word; for documents see [`Item::documents`].
    pub fn promised(&self) -> impl Iterator<Item = ProductKey> + '_ {
        let every = self.produces.iter().flatten().map(|produced| produced.select.product_key());
        every.filter(|key| !matches!(key, ProductKey::Document(_)))
    }

    /// The pipeline that it runs, as the plan names it.
    pub fn pipeline(&self) -> Option<&str> {
        self.inputs.get(PIPELINE).and_then(Value::as_str)
    }

    /// The item as `item.json` keeps it: every dependency in `depends_on`, each once, and the numbers of its inputs as
    /// canonical JSON has them.
    ///
    /// Normalising the result, or reading its `item.json`, gives the same item again. So whatever is added to a run is taken in
    /// in this form: what is recorded, run and compared later is then one and the same.
    #[must_use]
    pub fn normalised(self) -> Self {
        let inputs = serde_json::from_slice(&format::canonical(&self.inputs)).expect("canonical JSON can be read");
        Self { inputs, depends_on: self.dependencies(), ..self }
    }

    /// The normalised item: defaults stand explicitly and `depends_on` holds every dependency.
    ///
    /// What has no default of its own (shape, products, timeout, attempts) stands only if set.
    /// Reading the result as an item gives the same result again.
    pub fn to_json(&self) -> Value {
        self.written()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the first cells of the rows below a heading of a table.
    fn rows(text: &'static str, heading: &str) -> BTreeSet<&'static str> {
        let (_, table) = text.split_once(heading).expect("the documentation has the table");
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect()
    }

    #[test]
    fn the_documentation_has_every_field() {
        let text = include_str!("../../docs/format.md");
        for (heading, fields) in [("| field of a plan |", Plan::FIELDS), ("| field of an item |", Item::FIELDS)] {
            assert_eq!(
                rows(text, heading),
                fields.iter().copied().collect(),
                "docs/format.md has other fields: {heading}"
            );
            assert_eq!(fields[0], "id", "a rule's item has all fields but the first");
        }
    }
}
