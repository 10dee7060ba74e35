//! What is registered here, as plain data, so that validation needs no configuration at hand.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::model::json::JsonPath;
use crate::model::pipeline::Pipelines;
use crate::model::plan::{BUILT_IN, Produced, read_products};
use crate::model::problems::Problems;
use crate::model::read::Fields;
use crate::model::registered::Registered;
use crate::model::schema::Schema;

/// Everything a plan may refer to, and the limits it is held to.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The registered executors.
    pub executors: BTreeSet<String>,
    /// The registered subagents of the executor `dispatch`.
    pub subagents: BTreeSet<String>,
    /// The queues that runs may be placed on.
    pub queues: BTreeSet<String>,
    /// The file of rules of the queue that the run is to be placed on, if it has one.
    pub queue_rules: Option<Vec<u8>>,
    /// The pattern of that queue, if it has one; a plan's own comes first.
    pub pattern: Option<String>,
    /// The registered shapes.
    pub shapes: Registered<String, Shape>,
    /// The registered schemas of documents.
    pub schemas: Registered<Schema, Value>,
    /// The program that is started to hold values against schemas, see [`crate::plan::schemas::Schemas::checker`].
    pub checker: Option<PathBuf>,
    /// The registered pipelines.
    pub pipelines: Pipelines,
    /// The most items of a plan.
    pub max_items: usize,
    /// The folder of an attempt's worktree that its inputs are staged in.
    pub inputs_dir: String,
    /// The folder of an attempt's worktree that its outputs are taken from.
    pub outputs_dir: String,
    /// The paths that the base tree tracks, at least those below the two folders.
    pub reserved_in_base: Vec<String>,
}

impl Catalog {
    /// Returns the subagent of an item of the executor `dispatch` that names none.
    pub fn default_subagent(&self) -> Option<&str> {
        default_subagent(self.subagents.iter().map(String::as_str))
    }

    /// Returns a shape that is registered and can be read.
    pub fn shape(&self, name: Option<&String>) -> Option<&Shape> {
        self.shapes.get(name?)?.ok()
    }
}

/// Returns the subagent that is meant where none is named, of all that are registered: the only one, or the one called `default`.
pub fn default_subagent<'n>(mut names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let called = names.clone().find(|name| *name == "default");
    let (first, second) = (names.next(), names.next());
    called.or(first.filter(|_| second.is_none()))
}

impl Default for Catalog {
    /// What is there without any configuration.
    fn default() -> Self {
        Self {
            executors: BUILT_IN.map(str::to_owned).into(),
            subagents: BTreeSet::new(),
            queues: ["default".to_owned()].into(),
            queue_rules: None,
            pattern: None,
            shapes: Registered::default(),
            schemas: Registered::default(),
            checker: None,
            pipelines: Pipelines::default(),
            max_items: 10_000,
            inputs_dir: "inputs".to_owned(),
            outputs_dir: "outputs".to_owned(),
            reserved_in_base: Vec::new(),
        }
    }
}

/// What items of one kind take and hand over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// The JSON Schema of `inputs`.
    pub input_schema: Option<Value>,
    /// The products, with their types.
    pub produces: Vec<Produced>,
    /// The type each input key takes.
    pub consumes: BTreeMap<String, String>,
}

impl Shape {
    /// Reads a shape's file; whether its schema compiles shows when an item uses it.
    pub fn from_json(value: &Value) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let shape = read_shape(value, &mut problems);
        match shape {
            Some(shape) if problems.is_empty() => Ok(shape),
            _ => Err(problems),
        }
    }
}

fn read_shape(value: &Value, problems: &mut Problems) -> Option<Shape> {
    let known = ["inputSchema", "produces", "consumes"];
    let fields = Fields::of(value, JsonPath::root(), &known, problems)?;
    let mut shape = Shape { input_schema: fields.get("inputSchema").cloned(), ..Shape::default() };
    if let Some(list) = fields.list("produces", problems) {
        shape.produces = read_products(list, &fields.at("produces"), problems);
    }
    if let Some(map) = fields.object("consumes", problems) {
        let consumes = Fields::open(map, fields.at("consumes"));
        for key in map.keys() {
            if let Some(name) = consumes.text(key, problems) {
                shape.consumes.insert(key.clone(), name.to_owned());
            }
        }
    }
    Some(shape)
}
