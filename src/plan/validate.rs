//! Decides whether a plan can be run here: [`Plan`] → [`ValidPlan`] or every [`Problem`].
//!
//! One pure function for `validate`, `submit` and every later extension, so that they cannot
//! disagree. A problem of form hides no problem of meaning that can still be told.

mod graph;
mod products;
mod registered;

pub use crate::model::problem::{Code, Problem};
pub use crate::model::problems::Problems;

use graph::Graph;

use crate::model::catalog::Catalog;
use crate::model::hints;
use crate::model::json::{self, JsonPath};
use crate::model::plan::{Item, Plan};
use crate::plan::{Draft, DraftItem, DraftRule, check_ids, read, read_rules};

/// A plan that was validated, with the bytes it was read from; only [`validate`] makes one.
#[derive(Clone, Debug)]
pub struct ValidPlan {
    plan: Plan,
    bytes: Vec<u8>,
    queue_rules: Option<Vec<u8>>,
}

impl ValidPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan byte for byte as it was given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The rules that the queue adds to the plan's, byte for byte; none where it adds none.
    pub fn queue_rules(&self) -> Option<&[u8]> {
        self.queue_rules.as_deref()
    }
}

/// Validates the bytes of a plan against what is registered, and reports all problems at once.
pub fn validate(bytes: &[u8], catalog: &Catalog) -> Result<ValidPlan, Problems> {
    let mut problems = Problems::default();
    let Some(draft) = crate::plan::draft(bytes, &mut problems) else {
        return Err(problems);
    };
    check_run(&draft, catalog, &mut problems);
    let added = read_queue_rules(&draft.rules, catalog, &mut problems);
    let created = draft.rules.iter().chain(&added).filter_map(|rule| rule.create.as_ref()).collect();
    check_items(&Scope { draft: &draft, added: draft.items.len(), created }, catalog, &mut problems);
    match draft.finish() {
        Some(plan) if problems.is_empty() => {
            let queue_rules = catalog.queue_rules.clone().filter(|_| !added.is_empty());
            Ok(ValidPlan { plan, bytes: bytes.to_vec(), queue_rules })
        }
        _ => Err(problems),
    }
}

/// Validates a plan whose items are to be added to those of a run, and gives the added items, normalised.
///
/// `existing` are all items the run has by now, its plan's own and those appended since. Of the new
/// plan only the items count: queue, base and artifacts were settled when the run was submitted.
pub fn validate_extension(
    submitted: &Plan,
    existing: &[Item],
    bytes: &[u8],
    catalog: &Catalog,
) -> Result<Vec<Item>, Problems> {
    let mut problems = Problems::default();
    let Some(mut draft) = crate::plan::draft(bytes, &mut problems) else {
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
    // What is written of an item is read as the same item, and nothing can be wrong with it.
    let known = existing.iter();
    draft.items.extend(known.map(|item| read::item(&item.to_json(), JsonPath::root(), &mut Problems::default())));
    check_items(&Scope { draft: &draft, added, created: Vec::new() }, catalog, &mut problems);
    draft.items.truncate(added);
    match draft.finish() {
        Some(plan) if problems.is_empty() => Ok(plan.items.into_iter().map(Item::normalised).collect()),
        _ => Err(problems),
    }
}

/// Reads the rules that the queue adds to those of the plan.
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

/// Where the problems of a queue's rules are said to be.
fn queue_rules() -> JsonPath {
    JsonPath::root().key("queue").key("rules")
}

/// The items to check, and what they are held against.
struct Scope<'d> {
    draft: &'d Draft,
    /// How many of the draft's items are new; those after them were checked before.
    added: usize,
    /// The items that rules create.
    created: Vec<&'d DraftItem>,
}

impl<'d> Scope<'d> {
    fn new_items(&self) -> impl Iterator<Item = &'d DraftItem> + Clone {
        self.draft.items[..self.added].iter().flatten().chain(self.created.iter().copied())
    }

    fn known_items(&self) -> impl Iterator<Item = &'d DraftItem> {
        self.draft.items[self.added..].iter().flatten()
    }
}

/// Checks what concerns the run as a whole.
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
        let tracked = |path: &String| {
            let rest = path.strip_prefix(folder.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if catalog.reserved_in_base.iter().any(tracked) {
            let at = JsonPath::root().key("base");
            let message = format!("the base tree tracks `{folder}`, which every attempt needs");
            problems.push(Problem::new(Code::ReservedPath, &at, message).hint(hints::workspace_folder(key)));
        }
    }
}

/// Checks the new items, and how they stand to all others.
fn check_items(scope: &Scope<'_>, catalog: &Catalog, problems: &mut Problems) {
    let items = &scope.draft.items;
    let count = items.len();
    if count > catalog.max_items {
        let at = JsonPath::root().key("items");
        let message = format!("{count} items; at most {} are allowed", catalog.max_items);
        problems.push(Problem::new(Code::TooManyItems, &at, message).hint(hints::max_items(count)));
    }
    let graph = Graph::check(items, scope.added, problems);
    scope.created.iter().for_each(|item| graph.check_created(item, problems));
    registered::check(scope.new_items(), catalog, problems);
    products::check(scope, &graph, catalog, problems);
}
