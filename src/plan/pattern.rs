//! Patterns: what the reserved payloads of items come to, which is rules and nothing else.
//!
//! A pattern writes its rules when a run is submitted, from the plan alone; they are sealed with it, and from then on nobody knows
//! of the pattern. Everything that it can create has an id that follows from the plan, so that an author's id in its way is told here.

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

/// The patterns by their names.
const PATTERNS: [&str; 5] = ["dag", "static-dag", "pipeline", "map-reduce", "quorum"];

/// The payloads, each with the pattern that it is of. Every pattern but `dag` reads all of them, so that they can stand in one plan.
const PAYLOADS: [(&str, &str); 3] = [("gate", "pipeline"), ("mapReduce", "map-reduce"), ("quorum", "quorum")];

/// The fields of a template that an item has as well.
const TEMPLATE: [&str; 7] =
    ["executor", "inputs", "subagentShape", "resourceLocks", "produces", "maxAttempts", "timeout"];

/// What a pattern makes of a plan.
#[derive(Default)]
pub(crate) struct Compiled {
    /// The rules, as they are written.
    pub(crate) rules: Vec<Value>,
    /// The templates of the payloads, to be checked where they stand.
    pub(crate) templates: Vec<DraftItem>,
    /// What nobody reads.
    pub(crate) warnings: Vec<String>,
    /// Which items wait for which besides what they say, by position.
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

/// Warns of payloads in a plan without a pattern, which reads none.
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

/// Returns what is wrong with the payloads of items that are added to a run of a pattern: its rules are sealed, and say nothing of them.
/// `is_new` says which of the items are not there yet.
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

/// A plan that is being compiled.
struct Plan<'a> {
    draft: &'a Draft,
    problems: &'a mut Problems,
    made: Compiled,
}

impl<'a> Plan<'a> {
    /// Returns the items that have a payload, each with the payload and its place.
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

    /// Reads a template; `more` are the fields that it has besides those of an item. Returns the fields of the item.
    fn template(&mut self, value: Option<&Value>, at: &JsonPath, more: &[&str]) -> Option<Map<String, Value>> {
        let known: Vec<&str> = TEMPLATE.iter().chain(more).copied().collect();
        let Some(value) = value else {
            self.problems.push(Problem::new(Code::MissingField, at, "a template is missing here"));
            return None;
        };
        let fields = Fields::of(value, at.clone(), &known, self.problems)?;
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

    /// Refuses ids of the author's that a created item may have; `may` says so of an id, letter case aside.
    fn reserve(&mut self, whose: &str, may: impl Fn(&str) -> bool) {
        let taken: Vec<(JsonPath, String)> = self
            .draft
            .items
            .iter()
            .flatten()
            .filter_map(|item| Some((item.path.key("id"), item.id.clone().filter(|id| may(&fold(id)))?)))
            .collect();
        for (at, id) in taken {
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

/// Returns the item of a template, under an id and with more fields.
fn item(template: &Map<String, Value>, id: &str, more: Value) -> Value {
    let mut item = template.clone();
    item.insert("id".to_owned(), id.into());
    if let Value::Object(more) = more {
        item.extend(more);
    }
    Value::Object(item)
}

/// Returns the need of an item's patch.
fn patch_of(id: &str) -> Value {
    json!({ "from": id, "select": { "kind": "patch" } })
}

/// Returns the need of an item's output.
fn output_of(id: &str, path: &str) -> Value {
    json!({ "from": id, "select": { "kind": "output", "path": path } })
}

/// Returns a set of ids without regard to letter case.
fn folded<'i>(ids: impl Iterator<Item = &'i str>) -> BTreeSet<String> {
    ids.map(fold).collect()
}
