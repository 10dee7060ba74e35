//! Registered names and limits as plain data, so that validation needs no configuration.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::json::JsonPath;
use crate::model::pipeline::Pipelines;
use crate::model::plan::{BuiltIn, Produced, read_products};
use crate::model::problems::Problems;
use crate::model::read::Fields;
use crate::model::registered::Registered;
use crate::model::schema::Schema;

/// Everything a plan may refer to, and the limits that apply to it.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The registered executors.
    pub executors: BTreeSet<String>,
    /// The registered subagents of the executor `dispatch`.
    pub subagents: BTreeSet<String>,
    /// The queues that runs may be placed on.
    pub queues: BTreeSet<String>,
    /// The queue's file of rules, if any.
    pub queue_rules: Option<Vec<u8>>,
    /// The queue's pattern, if any; the plan's own takes precedence.
    pub pattern: Option<String>,
    /// The registered shapes.
    pub shapes: Registered<String, Shape>,
    /// The registered schemas of documents.
    pub schemas: Registered<Schema, Value>,
    /// The registered pipelines.
    pub pipelines: Pipelines,
    /// The maximum number of items of a plan.
    pub max_items: usize,
    /// The inputs folder of a worktree.
    pub inputs_dir: String,
    /// The outputs folder of a worktree.
    pub outputs_dir: String,
    /// The paths tracked by the base tree, at least those in these two folders.
    pub reserved_in_base: Vec<String>,
    /// Whether an item may carry the sealed settings of a recording.
    pub allows_recorded: bool,
}

impl Catalog {
    /// Returns the default subagent of the executor `dispatch`.
    pub fn default_subagent(&self) -> Option<&str> {
        default_subagent(self.subagents.iter().map(String::as_str))
    }

    /// Returns a registered, readable shape.
    pub fn shape(&self, name: Option<&String>) -> Option<&Shape> {
        self.shapes.get(name?)?.ok()
    }
}

/// Returns the default subagent: the only registered one, or the one named `default`.
pub fn default_subagent<'n>(mut names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let called = names.clone().find(|name| *name == "default");
    let (first, second) = (names.next(), names.next());
    called.or(first.filter(|_| second.is_none()))
}

impl Default for Catalog {
    /// The catalog without any configuration.
    fn default() -> Self {
        Self {
            executors: BuiltIn::in_plans().map(|executor| executor.name().to_owned()).collect(),
            subagents: BTreeSet::new(),
            queues: ["default".to_owned()].into(),
            queue_rules: None,
            pattern: None,
            shapes: Registered::default(),
            schemas: Registered::default(),
            pipelines: Pipelines::default(),
            max_items: 10_000,
            inputs_dir: "inputs".to_owned(),
            outputs_dir: "outputs".to_owned(),
            reserved_in_base: Vec::new(),
            allows_recorded: false,
        }
    }
}

/// The inputs and products of items of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// The JSON Schema of `inputs`.
    pub input_schema: Option<Value>,
    /// The products, with their types.
    pub produces: Vec<Produced>,
    /// The type of each input key.
    pub consumes: BTreeMap<String, String>,
}

impl Shape {
    /// Parses a shape's file. Its schema is compiled when an item uses the shape.
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
    let fields = Fields::read(value, JsonPath::root(), &known, problems)?;
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
