//! A plan as data: items, what each needs, and what each hands over.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::model::format;
use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, NameError, RunId};
use crate::model::problems::Problems;
use crate::model::read::read_selector;
use crate::model::rule::Rule;
use crate::model::schema::{Schema, Wanted};

/// A DAG of work items, as its author wrote it, with the defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The id of the run that it becomes.
    pub id: RunId,
    /// The queue that the run is placed on.
    pub queue: String,
    /// The revision that every attempt starts from; `HEAD` when absent.
    pub base: Option<String>,
    /// Whether items may be added after it is submitted.
    pub open_ended: bool,
    /// Its own rules; a queue may add some, see [`crate::model::rule`].
    pub rules: Vec<Rule>,
    /// Files to seal at submit: path to the file to read.
    pub artifacts: BTreeMap<FilePath, String>,
    /// The nodes, in the author's order.
    pub items: Vec<Item>,
}

/// One node of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The id, unique in the run.
    pub id: ItemId,
    /// The registered way to run it.
    pub executor: String,
    /// What the executor is given, as written.
    pub inputs: Map<String, Value>,
    /// The items that must be done before, as written; see [`Item::dependencies`].
    pub depends_on: Vec<ItemId>,
    /// Keys of which no other running item may hold one.
    pub resource_locks: Vec<String>,
    /// The registered shape that describes its inputs and products.
    pub subagent_shape: Option<String>,
    /// Input keys bound to products.
    pub needs: BTreeMap<FilePath, Need>,
    /// The products it declares.
    pub produces: Option<Vec<Produced>>,
    /// Seconds after which an attempt is ended.
    pub timeout: Option<u64>,
    /// How often it is dispatched at most.
    pub max_attempts: Option<u32>,
}

impl Item {
    /// All items that must be done before: `depends_on`, then the producers of its needs in the
    /// order of their keys, each once.
    pub fn dependencies(&self) -> Vec<ItemId> {
        let producers = self.needs.values().filter_map(|need| match &need.from {
            Source::Item(id) => Some(id),
            Source::Artifacts | Source::Documents => None,
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
        let needs: Map<String, Value> =
            self.needs.iter().map(|(key, need)| (key.to_string(), need.to_json())).collect();
        let mut item = json!({
            "id": self.id.as_str(),
            "executor": self.executor,
            "inputs": self.inputs,
            "depends_on": self.dependencies(),
            "resourceLocks": self.resource_locks,
            "needs": needs,
        });
        if let Some(shape) = &self.subagent_shape {
            item["subagentShape"] = json!(shape);
        }
        if let Some(produces) = &self.produces {
            item["produces"] = produces.iter().map(Produced::to_json).collect();
        }
        if let Some(timeout) = self.timeout {
            item["timeout"] = json!(timeout);
        }
        if let Some(attempts) = self.max_attempts {
            item["maxAttempts"] = json!(attempts);
        }
        item
    }
}

/// A binding of an input key to a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Where the product comes from.
    pub from: Source,
    /// Which of its products.
    pub select: Selector,
}

impl Need {
    /// The binding as it is written in a plan.
    pub fn to_json(&self) -> Value {
        json!({ "from": self.from.to_string(), "select": self.select.to_json() })
    }
}

/// Where a needed product comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Source {
    /// An item of the run.
    Item(ItemId),
    /// The files sealed at submit: `@artifacts`.
    Artifacts,
    /// The run's documents, whoever wrote them: `@documents`.
    Documents,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Item(id) => id.as_str(),
            Self::Artifacts => "@artifacts",
            Self::Documents => "@documents",
        })
    }
}

impl FromStr for Source {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text {
            "@artifacts" => Ok(Self::Artifacts),
            "@documents" => Ok(Self::Documents),
            id => ItemId::parse(id).map(Self::Item),
        }
    }
}

impl TryFrom<String> for Source {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

/// Which product of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Selector {
    /// The change it made to the worktree.
    Patch,
    /// A file it left under `outputs/`.
    Output {
        /// The file's path below `outputs/`.
        path: FilePath,
    },
    /// A document of the run.
    Document {
        /// The document's name.
        name: FilePath,
        /// The schema that the revision must be of.
        schema: Option<Wanted>,
    },
}

impl Selector {
    /// The key under which a run's records hold this product.
    pub fn product_key(&self) -> ProductKey {
        match self {
            Self::Patch => ProductKey::Patch,
            Self::Output { path } => ProductKey::Output(path.clone()),
            Self::Document { name, .. } => ProductKey::Document(name.clone()),
        }
    }

    /// The selector as it is written in a plan.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Patch => json!({ "kind": "patch" }),
            Self::Output { path } => json!({ "kind": "output", "path": path }),
            Self::Document { name, schema: None } => json!({ "kind": "document", "name": name }),
            Self::Document { name, schema: Some(schema) } => {
                json!({ "kind": "document", "name": name, "schema": schema.as_str() })
            }
        }
    }
}

impl TryFrom<Value> for Selector {
    type Error = SelectorError;

    fn try_from(value: Value) -> Result<Self, SelectorError> {
        let mut problems = Problems::default();
        let selector = read_selector(&value, &JsonPath::root(), &mut problems);
        match (selector, problems.into_iter().next()) {
            (Some(selector), None) => Ok(selector),
            (_, problem) => Err(SelectorError(problem.map_or_else(String::new, |it| it.message))),
        }
    }
}

impl From<Selector> for Value {
    fn from(selector: Selector) -> Self {
        selector.to_json()
    }
}

/// A product that an item or a shape declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Which product.
    pub select: Selector,
    /// Its type, compared with what a consumer's shape takes; `type` in JSON.
    pub kind_of_type: Option<String>,
    /// For a document, the file below `outputs/` that holds it.
    pub path: Option<FilePath>,
    /// For a document, what it claims to be.
    pub schema: Option<Schema>,
}

/// A document that an item declares to hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The document.
    pub name: FilePath,
    /// The file below `outputs/` that becomes its next revision.
    pub path: FilePath,
    /// What it claims to be.
    pub schema: Option<Schema>,
}

impl Produced {
    /// The declaration as it is written in a plan.
    pub fn to_json(&self) -> Value {
        let mut produced = self.select.to_json();
        if let Some(path) = &self.path {
            produced["path"] = json!(path);
        }
        if let Some(schema) = &self.schema {
            produced["schema"] = json!(schema.to_string());
        }
        if let Some(name) = &self.kind_of_type {
            produced["type"] = json!(name);
        }
        produced
    }
}

/// The name of a product in a run's records: `patch`, `outputs/<path>` or `documents/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ProductKey {
    /// The change to the worktree.
    Patch,
    /// A file under `outputs/`.
    Output(FilePath),
    /// A document of the run.
    Document(FilePath),
}

impl fmt::Display for ProductKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Patch => f.write_str("patch"),
            Self::Output(path) => write!(f, "outputs/{path}"),
            Self::Document(name) => write!(f, "documents/{name}"),
        }
    }
}

impl FromStr for ProductKey {
    type Err = ProductKeyError;

    fn from_str(text: &str) -> Result<Self, ProductKeyError> {
        if text == "patch" {
            return Ok(Self::Patch);
        }
        match text.split_once('/') {
            Some(("outputs", path)) => Ok(Self::Output(FilePath::parse(path)?)),
            Some(("documents", name)) => Ok(Self::Document(FilePath::parse_document(name)?)),
            _ => Err(ProductKeyError::Kind(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ProductKey {
    type Error = ProductKeyError;

    fn try_from(text: String) -> Result<Self, ProductKeyError> {
        text.parse()
    }
}

impl From<ProductKey> for String {
    fn from(key: ProductKey) -> Self {
        key.to_string()
    }
}

/// Why a value selects no product.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Why a text names no product.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductKeyError {
    /// Neither `patch` nor below `outputs/` or `documents/`.
    #[error("{0:?} is not a product: expected `patch`, `outputs/<path>` or `documents/<name>`")]
    Kind(String),
    /// The path or name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
}
