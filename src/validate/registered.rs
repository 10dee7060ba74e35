//! Whether what an item refers to is registered here, and whether its inputs are what that takes.

use jsonschema::Validator;
use jsonschema::paths::LocationSegment;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use crate::model::catalog::Catalog;
use crate::model::json::JsonPath;
use crate::model::problem::{Code, Problem};
use crate::model::read::{Fields, wrong_type};
use crate::plan::DraftItem;
use crate::schemas::{self, Unfit};

/// Checks executors, subagents, shapes, pipelines and inputs.
pub(super) fn check<'d>(items: impl Iterator<Item = &'d DraftItem>, catalog: &Catalog, problems: &mut Vec<Problem>) {
    let mut schemas = BTreeMap::new();
    for item in items {
        let path = &item.path;
        if let Some(name) = &item.executor {
            let wanted = Wanted { what: "executor", unknown: Code::UnknownExecutor, name };
            wanted.check(&catalog.executors, &path.key("executor"), problems);
        }
        if let Some(inputs) = &item.inputs {
            let inputs = Fields::open(inputs, path.key("inputs"));
            check_inputs(item.executor.as_deref(), &inputs, catalog, problems);
        }
        check_document_schemas(item, catalog, problems);
        if let Some(name) = &item.subagent_shape {
            check_shape(name, item, catalog, &mut schemas, problems);
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
    fn check(&self, known: &BTreeSet<String>, at: &JsonPath, problems: &mut Vec<Problem>) {
        if known.contains(self.name) {
            return;
        }
        let message = format!("no {} {:?} is registered here", self.what, self.name);
        let problem = Problem::new(self.unknown, at, message);
        problems.push(problem.nearest(self.name, known.iter().map(String::as_str)));
    }
}

/// Checks that the documents that an item makes can be held against what it says they are.
fn check_document_schemas(item: &DraftItem, catalog: &Catalog, problems: &mut Vec<Problem>) {
    for (index, product) in item.produces.iter().flatten().enumerate() {
        let Some(schema) = &product.schema else { continue };
        let Err(unfit) = schemas::usable(&catalog.schemas, schema) else { continue };
        let at = item.path.key("produces").index(index).key("schema");
        let problem = |code| Problem::new(code, &at, unfit.to_string());
        problems.push(match unfit {
            Unfit::Unknown(_) => {
                let known: Vec<String> = catalog.schemas.names().map(ToString::to_string).collect();
                let problem =
                    problem(Code::UnknownShape).nearest(&schema.to_string(), known.iter().map(String::as_str));
                if problem.hint.is_some() {
                    problem
                } else {
                    problem.hint(format!("git config handoff.schema.{schema}.path <file>"))
                }
            }
            _ => problem(Code::InputsSchema),
        });
    }
}

/// Checks the keys of `inputs` that mean something to the tool.
fn check_inputs(executor: Option<&str>, inputs: &Fields<'_>, catalog: &Catalog, problems: &mut Vec<Problem>) {
    if inputs.get("inputRefs").is_some() {
        let message = "`inputRefs` is set by the tool alone; bind products with `needs`";
        let at = inputs.at("inputRefs");
        problems.push(Problem::new(Code::ReservedKey, &at, message));
    }
    if let Some(name) = inputs.string("pipeline", problems) {
        let wanted = Wanted { what: "pipeline", unknown: Code::UnknownPipeline, name };
        wanted.check(&catalog.pipelines, &inputs.at("pipeline"), problems);
    }
    if executor == Some("dispatch") {
        inputs.required("subagent", problems);
        if let Some(name) = inputs.string("subagent", problems) {
            let wanted = Wanted { what: "subagent", unknown: Code::UnknownSubagent, name };
            wanted.check(&catalog.subagents, &inputs.at("subagent"), problems);
        }
    }
    if executor == Some("command") {
        let command = inputs.required("command", problems);
        if let Some(command) = command.filter(|command| !is_command(command)) {
            let wanted = "a command: an array of strings (program and arguments) or one string for `sh -c`, \
                          not empty and without NUL";
            problems.push(wrong_type(&inputs.at("command"), wanted, command));
        }
    }
}

/// Whether something can be executed by this value.
fn is_command(command: &Value) -> bool {
    let passable = |text: &str| !text.contains('\0');
    match command {
        Value::String(script) => !script.trim().is_empty() && passable(script),
        Value::Array(argv) => {
            argv.first().and_then(Value::as_str).is_some_and(|program| !program.is_empty())
                && argv.iter().all(|word| word.as_str().is_some_and(passable))
        }
        _ => false,
    }
}

/// Checks an item against its shape, whose schema is compiled once.
fn check_shape<'d>(
    name: &'d String,
    item: &DraftItem,
    catalog: &Catalog,
    schemas: &mut BTreeMap<&'d str, Result<Validator, String>>,
    problems: &mut Vec<Problem>,
) {
    let at = item.path.key("subagentShape");
    let Some(shape) = catalog.shapes.get(name) else {
        let message = format!("no shape {name:?} is registered here");
        let problem = Problem::new(Code::UnknownShape, &at, message);
        problems.push(problem.nearest(name, catalog.shapes.names().map(String::as_str)));
        return;
    };
    let shape = match shape {
        Ok(shape) => shape,
        Err(unreadable) => {
            problems.push(Problem::new(Code::UnknownShape, &at, format!("the shape {name:?} {unreadable}")));
            return;
        }
    };
    let Some((schema, inputs)) = shape.input_schema.as_ref().zip(item.inputs.as_ref()) else {
        return;
    };
    let compiled = schemas
        .entry(name)
        .or_insert_with(|| jsonschema::validator_for(schema).map_err(|error| error.masked().to_string()));
    match compiled {
        Ok(schema) => check_schema(name, schema, inputs, &item.path.key("inputs"), problems),
        Err(error) => {
            let message = format!("the schema of the shape {name:?} is not valid: {error}");
            problems.push(Problem::new(Code::InputsSchema, &at, message));
        }
    }
}

fn check_schema(
    shape: &str,
    schema: &Validator,
    inputs: &Map<String, Value>,
    at: &JsonPath,
    problems: &mut Vec<Problem>,
) {
    let inputs = Value::Object(inputs.clone());
    for error in schema.iter_errors(&inputs) {
        let place = error.instance_path().iter();
        let place = place.fold(at.clone(), |place, segment| match segment {
            LocationSegment::Property(key) => place.key(&key),
            LocationSegment::Index(index) => place.index(index),
        });
        let message = format!("the shape {shape:?} refuses it: {}", error.masked());
        problems.push(Problem::new(Code::InputsSchema, &place, message));
    }
}
