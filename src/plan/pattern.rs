//! Patterns: they compile reserved payloads of items into rules.
//!
//! A pattern compiles its rules at submit, from the plan alone, and they are sealed with it; the
//! pattern has no later effect. Created ids follow from the plan, so conflicting ids of the author
//! are reported here.

mod map_reduce;
mod pipeline;
mod quorum;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::model::json::JsonPath;
use crate::model::name::fold;
use crate::model::plan::Item;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::Fields;
use crate::plan::draft::{Draft, DraftItem};
use crate::plan::{near, read};

/// The patterns, by name.
const PATTERNS: [&str; 5] = ["dag", "static-dag", "pipeline", "map-reduce", "quorum"];

/// The payloads with their patterns. Every pattern except `dag` reads all of them, so that they can
/// be combined.
const PAYLOADS: [(&str, &str); 3] = [("gate", "pipeline"), ("mapReduce", "map-reduce"), ("quorum", "quorum")];

/// The fields that templates share with items.
const TEMPLATE: [&str; 7] =
    ["executor", "inputs", "subagentShape", "resourceLocks", "produces", "maxAttempts", "timeout"];

/// The result of compiling a plan.
#[derive(Default)]
pub(crate) struct Compiled {
    /// The rules, as written.
    pub(crate) rules: Vec<Value>,
    /// The templates, to be checked at their place in the plan.
    pub(crate) templates: Vec<DraftItem>,
    /// Warnings about unused payloads.
    pub(crate) warnings: Vec<String>,
    /// Additional dependencies, by position.
    pub(crate) order: Vec<(usize, usize)>,
}

/// Compiles the payloads of a plan.
pub(crate) fn compile(pattern: &str, at: &JsonPath, draft: &Draft, problems: &mut Problems) -> Compiled {
    let mut plan = Plan { draft, problems, made: Compiled::default() };
    match pattern {
        "dag" | "static-dag" => warn_of_payloads(&mut plan, pattern),
        "pipeline" | "map-reduce" | "quorum" => {
            if pattern == "pipeline" {
                pipeline::chain(&mut plan);
            }
            pipeline::compile(&mut plan);
            map_reduce::compile(&mut plan);
            quorum::compile(&mut plan);
        }
        other => {
            let message = format!("there is no pattern {other:?}; the patterns are {}", PATTERNS.join(", "));
            plan.problems.push_near(Problem::new(Code::BadPattern, at, message), other, PATTERNS);
        }
    }
    plan.made.warnings.extend(near::misses(draft));
    plan.made
}

/// Warns about payloads in a plan without a pattern.
fn warn_of_payloads(plan: &mut Plan<'_>, pattern: &str) {
    for (index, item) in plan.draft.items.iter().enumerate() {
        let inputs = item.as_ref().and_then(|item| item.inputs.as_ref());
        for (payload, of) in PAYLOADS {
            if inputs.is_some_and(|inputs| inputs.contains_key(payload)) {
                let warning = format!(
                    "nothing reads items[{index}].inputs.{payload}: this is {pattern}, and no pattern such as {of}"
                );
                plan.made.warnings.push(warning);
            }
        }
    }
}

/// Returns the problems of payloads in added items: the run's rules are sealed and ignore them.
/// `is_new` tests for new items.
pub(crate) fn unread(pattern: &str, items: &[Item], is_new: impl Fn(&Item) -> bool) -> Problems {
    let mut problems = Problems::default();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_new(item)) {
        let reads = !matches!(pattern, "dag" | "static-dag");
        let read = PAYLOADS.iter().filter(|(payload, _)| reads && item.inputs.contains_key(*payload));
        for (payload, _) in read {
            let at = JsonPath::root().key("items").index(index).key("inputs").key(payload);
            let message = format!(
                "{pattern} made its rules when the run was submitted, and makes none of what is added: submit a run of its own with this \
                 item, or leave {payload:?} out"
            );
            problems.push(Problem::new(Code::BadPattern, &at, message));
        }
    }
    problems
}

/// A plan while it is compiled.
struct Plan<'a> {
    draft: &'a Draft,
    problems: &'a mut Problems,
    made: Compiled,
}

impl<'a> Plan<'a> {
    /// Returns the items with a payload, with payload and path.
    fn payloads(&self, key: &str) -> Vec<(&'a str, &'a Value, JsonPath)> {
        let draft: &'a Draft = self.draft;
        let items = draft.items.iter().flatten().filter_map(|item| {
            let payload = item.inputs.as_ref()?.get(key)?;
            Some((item.id.as_deref()?, payload, item.path.key("inputs").key(key)))
        });
        items.collect()
    }

    fn bad<T>(&mut self, at: &JsonPath, message: impl Into<String>) -> Option<T> {
        self.problems.push(Problem::new(Code::BadPattern, at, message));
        None
    }

    fn has(&self, id: &str) -> bool {
        self.draft.items.iter().flatten().any(|item| item.id.as_deref() == Some(id))
    }

    /// Parses a template; `more` are its additional fields. Returns the item's fields.
    fn template(&mut self, value: Option<&Value>, at: &JsonPath, more: &[&str]) -> Option<Map<String, Value>> {
        let known: Vec<&str> = TEMPLATE.iter().chain(more).copied().collect();
        let Some(value) = value else {
            self.problems.push(Problem::new(Code::MissingField, at, "a template is missing here"));
            return None;
        };
        let fields = Fields::read(value, at.clone(), &known, self.problems)?;
        let own: Map<String, Value> = fields
            .map()
            .iter()
            .filter(|(key, _)| !more.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        fields.required("inputs", self.problems);
        let item = read::template(&Value::Object(own.clone()), at.clone(), None, self.problems);
        self.made.templates.extend(item);
        Some(own)
    }

    /// Refuses ids of the author that a created item may have; `may` tests an id, ignoring case.
    fn reserve(&mut self, whose: &str, may: impl Fn(&str) -> bool) {
        let reserved: Vec<(JsonPath, String)> = self
            .draft
            .items
            .iter()
            .flatten()
            .filter_map(|item| Some((item.path.key("id"), item.id.clone().filter(|id| may(&fold(id)))?)))
            .collect();
        for (at, id) in reserved {
            self.bad::<()>(
                &at,
                format!("the pattern may create an item {id:?} for {whose:?}, so no other can have that id"),
            );
        }
    }

    fn rule(&mut self, rule: Value) {
        self.made.rules.push(rule);
    }
}

/// Returns a template's item with an id and additional fields.
fn item(template: &Map<String, Value>, id: &str, more: Value) -> Value {
    let mut item = template.clone();
    item.insert("id".to_owned(), id.into());
    if let Value::Object(more) = more {
        item.extend(more);
    }
    Value::Object(item)
}

/// Returns a need of an item's patch.
fn patch_of(id: &str) -> Value {
    json!({ "from": id, "select": { "kind": "patch" } })
}

/// Returns a need of an item's output.
fn output_of(id: &str, path: &str) -> Value {
    json!({ "from": id, "select": { "kind": "output", "path": path } })
}

/// Returns a case-insensitive set of ids.
fn folded<'i>(ids: impl Iterator<Item = &'i str>) -> BTreeSet<String> {
    ids.map(fold).collect()
}
