//! Validates references to registered things, and inputs.

mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::catalog::Catalog;
use crate::model::causes::in_words;
use crate::model::hints;
use crate::model::json::JsonPath;
use crate::model::log_name::is_fingerprint;
use crate::model::name::FilePath;
use crate::model::pipeline::Unusable;
use crate::model::plan::{
    AGENT, APPROVERS, BuiltIn, CHECK, DIRECTORY, ENV, HERE, NO_STDIN, PIPELINE, RECORDED, STDIN, is_line,
};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, wrong_type};
use crate::model::schema::Schema;
use crate::plan::schemas::{self, Unfit};
use crate::plan::{DraftItem, ItemPath};
use shapes::ShapeSchemas;

/// Validates executors, subagents, shapes, pipelines and inputs.
pub(super) fn check<'d>(
    items: impl Iterator<Item = &'d DraftItem> + Clone,
    catalog: &'d Catalog,
    problems: &mut Problems,
) {
    let documents = DocumentSchemas::look_up(items.clone(), catalog);
    let mut shapes = ShapeSchemas::default();
    for item in items {
        let path = &item.path;
        if let Some(name) = &item.executor {
            let executor = Wanted { what: "executor", unknown: Code::UnknownExecutor, name };
            executor.check(&catalog.executors, &path.key("executor"), problems);
        }
        if let Some(inputs) = &item.inputs {
            let inputs = Fields::open(inputs, path.key("inputs"));
            check_inputs(item.executor.as_deref().and_then(BuiltIn::from_name), &inputs, catalog, problems);
        }
        check_people(item, problems);
        documents.check(item, catalog, problems);
        if let Some(name) = &item.subagent_shape {
            check_shape(name, path, catalog, problems);
            shapes.check(name, item, catalog, problems);
        }
    }
}

/// A reference to something registered.
struct Wanted<'n> {
    what: &'static str,
    unknown: Code,
    name: &'n str,
}

impl Wanted<'_> {
    fn check(&self, known: &BTreeSet<String>, at: &JsonPath, problems: &mut Problems) {
        if known.contains(self.name) {
            return;
        }
        let message = format!("no {} {:?} is registered here", self.what, self.name);
        let problem = Problem::new(self.unknown, at, message);
        problems.push_near(problem, self.name, known.iter().map(String::as_str));
    }
}

/// The declared schemas of documents; each is checked once.
struct DocumentSchemas<'d> {
    unfit: BTreeMap<&'d Schema, Unfit>,
    /// All registered names, for suggestions.
    known: Vec<String>,
}

impl<'d> DocumentSchemas<'d> {
    /// Checks that each schema is usable.
    fn look_up(items: impl Iterator<Item = &'d DraftItem> + Clone, catalog: &'d Catalog) -> Self {
        let of_shape = |item: &&'d DraftItem| {
            catalog.shape(item.subagent_shape.as_ref()).map(|shape| &shape.produces[..]).unwrap_or_default()
        };
        let by_shapes = items.clone().flat_map(|item| of_shape(&item));
        let distinct = items.flat_map(|item| item.produces.iter()).chain(by_shapes);
        let distinct: BTreeSet<&Schema> = distinct.filter_map(|product| product.schema.as_ref()).collect();
        let unfit =
            distinct.into_iter().filter_map(|schema| Some((schema, schemas::usable(&catalog.schemas, schema).err()?)));
        Self { unfit: unfit.collect(), known: catalog.schemas.names().map(ToString::to_string).collect() }
    }

    /// Checks that an item's documents have usable schemas.
    fn check(&self, item: &DraftItem, catalog: &Catalog, problems: &mut Problems) {
        let own = item.produces.iter().enumerate();
        let own = own.map(|(index, product)| (product, item.path.key("produces").index(index).key("schema")));
        let by_shape = catalog.shape(item.subagent_shape.as_ref()).into_iter().flat_map(|shape| &shape.produces);
        let by_shape = by_shape.map(|product| (product, item.path.key("subagentShape")));
        for (product, at) in own.chain(by_shape) {
            let Some((schema, unfit)) = product.schema.as_ref().and_then(|schema| self.unfit.get_key_value(schema))
            else {
                continue;
            };
            let problem = |code| Problem::new(code, &at, in_words(unfit));
            if matches!(unfit, Unfit::Unknown(_)) {
                let problem = problem(Code::UnknownShape).hint(hints::register_schema_in_plan(schema));
                problems.push_near(problem, &schema.to_string(), self.known.iter().map(String::as_str));
            } else if matches!(unfit, Unfit::LeftOut(..)) {
                problems.push(problem(Code::InputsSchema).hint(hints::build_whole()));
            } else {
                problems.push(problem(Code::InputsSchema));
            }
        }
    }
}

/// Refuses fields of an approval that need a worker.
fn check_people(item: &DraftItem, problems: &mut Problems) {
    if !item.is_for(BuiltIn::Approval) {
        return;
    }
    let given = [
        ("produces", item.produces.unread || item.produces.iter().next().is_some()),
        ("timeout", item.timeout.is_some()),
        ("maxAttempts", item.max_attempts.is_some()),
        ("resourceLocks", !item.resource_locks.is_empty()),
        ("subagentShape", item.subagent_shape.is_some()),
    ];
    for (field, _) in given.iter().filter(|(_, given)| *given) {
        let message = format!("people decide about the item and nothing runs: `{field}` means nothing here");
        problems.push(Problem::new(Code::UnknownField, &item.path.key(field), message));
    }
}

/// Validates the reserved keys of `inputs`.
fn check_inputs(executor: Option<BuiltIn>, inputs: &Fields<'_>, catalog: &Catalog, problems: &mut Problems) {
    if inputs.get("inputRefs").is_some() {
        let message = "`inputRefs` is set by the tool alone; bind products with `needs`";
        let at = inputs.at("inputRefs");
        problems.push(Problem::new(Code::ReservedKey, &at, message));
    }
    if inputs.get(RECORDED).is_some() && !catalog.allows_recorded {
        let message = format!("`{RECORDED}` is set by `git handoff record` alone");
        problems.push(Problem::new(Code::ReservedKey, &inputs.at(RECORDED), message));
    }
    if executor == Some(BuiltIn::Approval) && inputs.get(PIPELINE).is_some() {
        let message = format!("people decide about the item and nothing runs: `inputs.{PIPELINE}` means nothing here");
        problems.push(Problem::new(Code::UnknownField, &inputs.at(PIPELINE), message));
    } else if let Some(name) = inputs.string(PIPELINE, problems)
        && let Some(why) = catalog.pipelines.refusal(name)
    {
        let problem = Problem::new(Code::UnknownPipeline, &inputs.at(PIPELINE), why.to_string());
        if matches!(why, Unusable::Unknown(_)) {
            let id = name.split('@').next().unwrap_or(name);
            problems.push_near(
                problem.hint(hints::add_pipeline()),
                id,
                catalog.pipelines.known.names().map(String::as_str),
            );
        } else {
            problems.push(problem.hint(hints::add_pipeline()));
        }
    }
    if executor == Some(BuiltIn::Dispatch) {
        if inputs.get(ENV).is_some() {
            let message = "a plan does not set the variables of an agent, because they can send its key elsewhere; \
                           the subagent's settings do: `handoff.subagent.NAME.env`";
            problems.push(Problem::new(Code::ReservedKey, &inputs.at(ENV), message));
        }
        if inputs.get("subagent").is_none() && catalog.default_subagent().is_none() {
            problems.push(no_subagent(inputs, catalog));
        }
        if let Some(name) = inputs.string("subagent", problems) {
            let expected = Wanted { what: "subagent", unknown: Code::UnknownSubagent, name };
            expected.check(&catalog.subagents, &inputs.at("subagent"), problems);
        }
    }
    if executor == Some(BuiltIn::Approval)
        && let Some(approvers) = inputs.get(APPROVERS).filter(|approvers| !are_keys(approvers))
    {
        let expected = "an array of fingerprints, `SHA256:…`, as `git handoff key` prints yours";
        problems.push(wrong_type(&inputs.at(APPROVERS), expected, approvers));
    }
    if let Some(line) = executor.and_then(BuiltIn::line) {
        let input = inputs.required(line.key, problems);
        if let Some(input) = input.filter(|input| line.argv(input).is_none()) {
            problems.push(wrong_type(&inputs.at(line.key), &line.expected(), input));
        }
    }
    if executor == Some(BuiltIn::Command) {
        check_variables(inputs, problems);
        check_surroundings(inputs, problems);
    }
}

/// Reports a missing subagent without a default.
fn no_subagent(inputs: &Fields<'_>, catalog: &Catalog) -> Problem {
    let names: Vec<&str> = catalog.subagents.iter().map(String::as_str).collect();
    let (message, hint) = match names.first() {
        None => {
            let message = "`subagent` is missing, and no subagent is registered here that could be meant";
            (message.to_owned(), hints::register_subagent())
        }
        Some(first) => {
            let message = format!("`subagent` is missing, and several are registered here: {}", names.join(", "));
            (message, hints::did_you_mean_in_plan(first))
        }
    };
    Problem::new(Code::MissingField, &inputs.at("subagent"), message).hint(hint)
}

/// Validates the environment variables of an item's command.
fn check_variables(inputs: &Fields<'_>, problems: &mut Problems) {
    let Some(set) = inputs.object(ENV, problems) else { return };
    let at = inputs.at(ENV);
    for (name, value) in set {
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            || name.starts_with(|c: char| c.is_ascii_digit())
        {
            let message = format!("{name:?} is not the name of an environment variable");
            problems.push(Problem::new(Code::BadInputKey, &at.key(name), message));
        } else if name.starts_with("HANDOFF_") || matches!(name.as_str(), "HOME" | "TMPDIR") {
            let message = format!("`{name}` is set by the tool alone");
            problems.push(Problem::new(Code::ReservedKey, &at.key(name), message));
        } else if value.as_str().is_none_or(|value| value.contains('\0')) {
            problems.push(wrong_type(&at.key(name), "a string without NUL", value));
        }
    }
}

/// Validates the check, the standard input and the folder of an item's command.
fn check_surroundings(inputs: &Fields<'_>, problems: &mut Problems) {
    if let Some(check) = inputs.get(CHECK).filter(|check| !check.as_str().is_some_and(is_line)) {
        problems.push(wrong_type(&inputs.at(CHECK), "a string for `sh -c`, not empty and without NUL", check));
    }
    if let Some(stdin) = inputs.get(STDIN).filter(|stdin| stdin.as_str() != Some(NO_STDIN)) {
        problems.push(wrong_type(&inputs.at(STDIN), "`none`, or absent for the task", stdin));
    }
    if let Some(here) = inputs.get(HERE).filter(|here| here.as_bool() != Some(true)) {
        problems.push(wrong_type(&inputs.at(HERE), "`true`, or absent for a worktree of its own", here));
    }
    if let Some(agent) = inputs.get(AGENT).filter(|agent| !agent.is_string()) {
        problems.push(wrong_type(&inputs.at(AGENT), "the name of an agent", agent));
    }
    if let Some(directory) =
        inputs.get(DIRECTORY).filter(|directory| directory.as_str().is_none_or(|path| FilePath::parse(path).is_err()))
    {
        problems.push(wrong_type(&inputs.at(DIRECTORY), "a relative path below the worktree", directory));
    }
}

/// Returns true if a value is a non-empty list of keys.
fn are_keys(value: &Value) -> bool {
    let list = value.as_array().filter(|keys| !keys.is_empty());
    list.is_some_and(|keys| keys.iter().all(|key| key.as_str().is_some_and(is_fingerprint)))
}

/// Checks that an item's shape is registered and readable.
fn check_shape(name: &String, path: &ItemPath, catalog: &Catalog, problems: &mut Problems) {
    let at = path.key("subagentShape");
    match catalog.shapes.get(name) {
        None => {
            let problem = Problem::new(Code::UnknownShape, &at, format!("no shape {name:?} is registered here"));
            problems.push_near(problem, name, catalog.shapes.names().map(String::as_str));
        }
        Some(Err(why)) => problems.push(Problem::new(Code::UnknownShape, &at, format!("the shape {name:?} {why}"))),
        Some(Ok(_)) => {}
    }
}
