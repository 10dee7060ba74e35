//! Validates plans: [`Plan`] → [`ValidPlan`] or every [`Problem`].
//!
//! One pure function for `validate`, `submit` and extensions, so that they agree. Problems of form
//! do not hide problems of meaning.

mod captured;
mod graph;
mod products;
mod registered;

pub use crate::model::problem::{Code, Problem};
pub use crate::model::problems::Problems;

use std::collections::{BTreeMap, BTreeSet};

use graph::Graph;

use crate::model::catalog::Catalog;
use serde_json::Value;

use crate::model::format;
use crate::model::hints;
use crate::model::json::{self, JsonPath};
use crate::model::pipeline::Spec;
use crate::model::plan::{Item, PIPELINE, Plan};
use crate::model::rule::Rule;
use crate::plan::pattern::{Compiled, compile};
use crate::plan::{Draft, DraftItem, DraftRule, MAX_PLAN_ITEMS, check_ids, read, read_rules};

/// A valid plan with its bytes; only [`validate`] creates one.
#[derive(Clone, Debug)]
pub struct ValidPlan {
    plan: Plan,
    bytes: Vec<u8>,
    added_rules: Option<Vec<u8>>,
    pattern: String,
    compiled: Vec<Value>,
    pipelines: BTreeMap<String, Spec>,
    warnings: Vec<String>,
}

impl ValidPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the plan's exact bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the rules of queue and pattern in canonical form, or `None`.
    pub fn added_rules(&self) -> Option<&[u8]> {
        self.added_rules.as_deref()
    }

    /// Returns the pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the pattern's rules, as sealed.
    pub fn compiled(&self) -> &[Value] {
        &self.compiled
    }

    /// Returns the pattern's rules in words.
    pub fn compiled_in_words(&self) -> Vec<String> {
        let drafts = read_rules(&Value::Array(self.compiled.clone()), &JsonPath::root(), &mut Problems::default());
        drafts.into_iter().filter_map(DraftRule::finish).map(|rule| rule.to_string()).collect()
    }

    /// Returns the pipelines of items and rules, by reference.
    pub fn pipelines(&self) -> &BTreeMap<String, Spec> {
        &self.pipelines
    }

    /// Returns the executors of items, and of items that rules and pattern create.
    pub fn executors(&self) -> BTreeSet<String> {
        let of_pattern = read_rules(&Value::Array(self.compiled.clone()), &JsonPath::root(), &mut Problems::default());
        let of_pattern: Vec<Rule> = of_pattern.into_iter().filter_map(DraftRule::finish).collect();
        let created = self.plan.rules.iter().chain(&of_pattern).flat_map(Rule::written_items);
        self.plan.items.iter().chain(created).map(|item| item.executor.clone()).collect()
    }

    /// Adds warnings about parts that have no effect in a repository.
    pub(crate) fn add_warnings(&mut self, warnings: Vec<String>) {
        self.warnings.extend(warnings);
    }

    /// Returns warnings about unused parts.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Validates a plan against registered names, and reports all problems.
pub fn validate(bytes: &[u8], catalog: &Catalog) -> Result<ValidPlan, Problems> {
    let mut problems = Problems::default();
    let Some(draft) = crate::plan::draft(bytes, most(catalog), &mut problems) else {
        return Err(problems);
    };
    check_run(&draft, catalog, &mut problems);
    let pattern = draft.pattern.clone().or_else(|| catalog.pattern.clone()).unwrap_or_else(|| "dag".to_owned());
    let at = if draft.pattern.is_some() { JsonPath::root().key("pattern") } else { JsonPath::root().key("queue") };
    let Compiled { rules: compiled, templates, warnings, mut order } = compile(&pattern, &at, &draft, &mut problems);
    let mut added = read_queue_rules(&draft.rules, catalog, &mut problems);
    let mut derived = Problems::default();
    let of_pattern = read_rules(&Value::Array(compiled.clone()), &at, &mut derived);
    check_ids(&draft.rules, &of_pattern, &mut problems);
    let rules = draft.rules.iter().chain(&added);
    order.extend(ordered(&draft, rules.clone()));
    let created = rules.clone().flat_map(|rule| &rule.create).chain(&templates).collect();
    let anonymous = rules.clone().filter(|rule| !rule.names_items()).flat_map(|rule| &rule.create).collect();
    let named_items = rules.filter(|rule| rule.names_items()).flat_map(|rule| &rule.create).collect();
    let scope = Scope { draft: &draft, added: draft.items.len(), created, anonymous, named_items, order: &order };
    products::refuse_elsewhere(scope.created.iter().copied(), &mut problems);
    check_items(&scope, catalog, &mut problems);
    if problems.is_empty() {
        // Mistakes of a template were reported at its place. What is left are names that became
        // too long.
        derived.iter().for_each(|problem| problems.push(Problem { path: at.to_string(), ..problem.clone() }));
    }
    added.extend(of_pattern);
    let created_items = draft.rules.iter().chain(&added).flat_map(|rule| &rule.create);
    let pipelines = named_pipelines(draft.items.iter().flatten().chain(created_items), catalog);
    match draft.finish() {
        Some(plan) if problems.is_empty() => {
            let written: Vec<&Value> = added.iter().map(DraftRule::written).collect();
            let added_rules = (!written.is_empty()).then(|| format::canonical(&written));
            Ok(ValidPlan { plan, bytes: bytes.to_vec(), added_rules, pattern, compiled, pipelines, warnings })
        }
        _ => Err(problems),
    }
}

/// Returns the maximum number of items.
fn most(catalog: &Catalog) -> usize {
    catalog.max_items.min(MAX_PLAN_ITEMS)
}

/// Returns the distinct pipelines of items; missing ones are reported elsewhere.
fn named_pipelines<'d>(items: impl Iterator<Item = &'d DraftItem>, catalog: &Catalog) -> BTreeMap<String, Spec> {
    let names = items.filter_map(|item| item.inputs.as_ref()?.get(PIPELINE)?.as_str());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().filter_map(|name| Some((name.to_owned(), catalog.pipelines.find(name).ok()?.clone()))).collect()
}

/// Validates the items of a plan for addition to a run, and returns them normalised.
///
/// `existing` are all items of the run. Queue, base and artifacts of the new plan are ignored.
pub fn validate_extension(
    submitted: &Plan,
    existing: &[Item],
    bytes: &[u8],
    catalog: &Catalog,
) -> Result<Vec<Item>, Problems> {
    let mut problems = Problems::default();
    let Some(mut draft) = crate::plan::draft(bytes, most(catalog), &mut problems) else {
        return Err(problems);
    };
    if !draft.artifacts.is_empty() {
        let at = JsonPath::root().key("artifacts");
        let message = "artifacts are sealed at submit; an extension brings none";
        problems.push(Problem::new(Code::UnknownField, &at, message));
    }
    if !draft.rules.is_empty() {
        let at = JsonPath::root().key("rules");
        let message = "rules are sealed at submit; an extension brings none";
        problems.push(Problem::new(Code::UnknownField, &at, message));
        draft.rules.clear();
    }
    let artifacts = submitted.artifacts.iter();
    draft.artifacts = artifacts.map(|(path, file)| (path.to_string(), Some(file.clone()))).collect();
    let added = draft.items.len();
    // The written form of an item parses to the same valid item.
    let known = existing.iter();
    draft.items.extend(known.map(|item| read::item(&item.to_json(), JsonPath::root(), &mut Problems::default())));
    let (created, anonymous, named_items) = (Vec::new(), Vec::new(), Vec::new());
    products::refuse_elsewhere(draft.items[..added].iter().flatten(), &mut problems);
    check_items(&Scope { draft: &draft, added, created, anonymous, named_items, order: &[] }, catalog, &mut problems);
    draft.items.truncate(added);
    match draft.finish() {
        Some(plan) if problems.is_empty() => Ok(plan.items.into_iter().map(Item::normalised).collect()),
        _ => Err(problems),
    }
}

/// Returns the dependencies added by rules, by position; ignores missing items.
fn ordered<'d>(draft: &Draft, rules: impl Iterator<Item = &'d DraftRule>) -> Vec<(usize, usize)> {
    let ids = draft.items.iter().enumerate().filter_map(|(at, item)| Some((item.as_ref()?.id.as_deref()?, at)));
    let places: BTreeMap<&str, usize> = ids.collect();
    rules
        .flat_map(DraftRule::order)
        .filter_map(|(item, on)| Some((places.get(item.as_str()).copied()?, places.get(on.as_str()).copied()?)))
        .collect()
}

/// Parses the queue's rules.
fn read_queue_rules(own: &[DraftRule], catalog: &Catalog, problems: &mut Problems) -> Vec<DraftRule> {
    let Some(bytes) = &catalog.queue_rules else { return Vec::new() };
    let mut found = Problems::default();
    let value = json::read(bytes, &mut found);
    if !found.is_empty() {
        let what = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let message = format!("the file of the queue's rules: {what}");
        problems.push(Problem::new(Code::BadRule, &queue_rules(), message));
    }
    let added = value.map_or_else(Vec::new, |value| read_rules(&value, &queue_rules(), problems));
    check_ids(own, &added, problems);
    added
}

/// The path prefix of problems in a queue's rules.
fn queue_rules() -> JsonPath {
    JsonPath::root().key("queue").key("rules")
}

/// The items to validate, with their context.
struct Scope<'d> {
    draft: &'d Draft,
    /// The number of new items; those after them are already valid.
    added: usize,
    /// The items that rules create.
    created: Vec<&'d DraftItem>,
    /// Those with generated ids, which cannot be referenced.
    anonymous: Vec<&'d DraftItem>,
    /// Those with ids of their own.
    named_items: Vec<&'d DraftItem>,
    /// Additional dependencies.
    order: &'d [(usize, usize)],
}

impl<'d> Scope<'d> {
    fn new_items(&self) -> impl Iterator<Item = &'d DraftItem> + Clone {
        self.draft.items[..self.added].iter().flatten().chain(self.created.iter().copied())
    }

    fn known_items(&self) -> impl Iterator<Item = &'d DraftItem> {
        self.draft.items[self.added..].iter().flatten()
    }
}

/// Validates the plan as a whole.
fn check_run(draft: &Draft, catalog: &Catalog, problems: &mut Problems) {
    let queues = &catalog.queues;
    if let Some(queue) = draft.queue.as_ref().filter(|queue| !queues.contains(*queue)) {
        let at = JsonPath::root().key("queue");
        let message = format!("no queue {queue:?} is registered here");
        let problem = Problem::new(Code::UnknownQueue, &at, message);
        problems.push_near(problem, queue, queues.iter().map(String::as_str));
    }
    let folders = [(&catalog.inputs_dir, "inputs"), (&catalog.outputs_dir, "outputs")];
    for (folder, key) in folders {
        if catalog.reserved_in_base.iter().any(|path| {
            let rest = path.strip_prefix(folder.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) {
            let at = JsonPath::root().key("base");
            let message = format!("the base tree tracks `{folder}`, which every attempt needs");
            problems.push(Problem::new(Code::ReservedPath, &at, message).hint(hints::workspace_folder(key)));
        }
    }
}

/// Validates the new items and their relations.
fn check_items(scope: &Scope<'_>, catalog: &Catalog, problems: &mut Problems) {
    let items = &scope.draft.items;
    let count = items.len();
    if count > catalog.max_items {
        let at = JsonPath::root().key("items");
        let message = format!("{count} items; at most {} are allowed", catalog.max_items);
        problems.push(Problem::new(Code::TooManyItems, &at, message).hint(hints::max_items(count)));
    }
    let graph = Graph::check(items, scope.added, scope.order, problems);
    scope.anonymous.iter().for_each(|item| graph.check_created(item, &BTreeSet::new(), problems));
    let known: BTreeSet<&str> = scope.named_items.iter().filter_map(|item| item.id.as_deref()).collect();
    scope.named_items.iter().for_each(|item| graph.check_created(item, &known, problems));
    items[..scope.added].iter().flatten().for_each(|item| item.check_replaces_nothing(problems));
    registered::check(scope.new_items(), catalog, problems);
    products::check(scope, &graph, catalog, problems);
}
