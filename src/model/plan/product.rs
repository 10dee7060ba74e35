//! Products: their kinds, selectors, declarations and keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, NameError};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, wrong_type};
use crate::model::schema::{Schema, SchemaError, Wanted};
use crate::model::words::as_text;

/// Lists the kinds with word, selector fields and further declaration fields.
macro_rules! product_kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal, $selected:tt + $declared:tt;)*) => {
        /// The kinds of products.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ProductKind { $($(#[$doc])* $kind,)* }

        impl ProductKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Returns the word in plans.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// Returns the fields of its selector.
            fn selected(self) -> &'static [&'static str] {
                match self { $(Self::$kind => product_kinds!(@fields $selected []),)* }
            }

            /// Returns the fields of its declaration.
            fn declared(self) -> &'static [&'static str] {
                match self { $(Self::$kind => product_kinds!(@fields $selected $declared),)* }
            }
        }
    };
    (@fields [$($selected:literal),*] [$($declared:literal),*]) => { &["kind", $($selected,)* $($declared),*] };
}

product_kinds! {
    /// The change to the worktree.
    Patch = "patch", [] + ["type"];
    /// A file under `outputs/`.
    Output = "output", ["path"] + ["type", "schema"];
    /// A document of the run.
    Document = "document", ["name", "schema"] + ["path", "type"];
}

/// A selector of a product.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Selector {
    /// The change to the worktree.
    Patch,
    /// A file under `outputs/`.
    Output {
        /// The path below `outputs/`.
        path: FilePath,
    },
    /// A document of the run.
    Document {
        /// The document's name.
        name: FilePath,
        /// The required schema.
        schema: Option<Wanted>,
    },
}

impl Selector {
    /// Returns the product's key in records.
    pub fn product_key(&self) -> ProductKey {
        match self {
            Self::Patch => ProductKey::Patch,
            Self::Output { path } => ProductKey::Output(path.clone()),
            Self::Document { name, .. } => ProductKey::Document(name.clone()),
        }
    }

    /// Returns the selector as in a plan.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Patch => json!({ "kind": "patch" }),
            Self::Output { path } => json!({ "kind": "output", "path": path }),
            Self::Document { name, schema: None } => json!({ "kind": "document", "name": name }),
            Self::Document { name, schema: Some(schema) } => {
                json!({ "kind": "document", "name": name, "schema": schema.to_string() })
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

/// A declared product of an item or shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The product.
    pub select: Selector,
    /// Its type, which must match the consumer's shape; `type` in JSON.
    pub kind_of_type: Option<String>,
    /// For a document: its file below `outputs/`.
    pub path: Option<FilePath>,
    /// For a document or output: its schema.
    pub schema: Option<Schema>,
}

/// A declared document of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The document.
    pub name: FilePath,
    /// The file below `outputs/` with its next revision.
    pub path: FilePath,
    /// Its schema.
    pub schema: Option<Schema>,
}

impl Produced {
    /// Returns the declaration as in a plan.
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

impl Serialize for Produced {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// The key of a product in records: `patch`, `outputs/<path>` or `documents/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProductKey {
    /// The change to the worktree.
    Patch,
    /// A file under `outputs/`.
    Output(FilePath),
    /// A document of the run.
    Document(FilePath),
}

as_text!(ProductKey);

impl ProductKey {
    /// Parses a product's key, or the path of an output alone.
    pub fn from_name(text: &str) -> Result<Self, ProductKeyError> {
        text.parse().or_else(|_| Ok(Self::Output(FilePath::parse(text)?)))
    }

    /// Returns the path below `outputs/`, for an output.
    pub fn output(&self) -> Option<&FilePath> {
        match self {
            Self::Output(path) => Some(path),
            Self::Patch | Self::Document(_) => None,
        }
    }
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

/// Parses a need's selector.
pub(crate) fn read_selector(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<Selector> {
    let kind = selector_kind(value, at, problems)?;
    let fields = Fields::read(value, at.clone(), kind.selected(), problems)?;
    selector(kind, &fields, problems)
}

/// Parses declared products; reports and skips invalid ones.
pub(crate) fn read_products(list: &[Value], at: &JsonPath, problems: &mut Problems) -> Vec<Produced> {
    let mut products = Vec::new();
    for (index, value) in list.iter().enumerate() {
        products.extend(read_produced(value, &at.index(index), problems));
    }
    products
}

fn read_produced(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<Produced> {
    let kind = selector_kind(value, at, problems)?;
    let fields = Fields::read(value, at.clone(), kind.declared(), problems)?;
    let kind_of_type = fields.text("type", problems).map(str::to_owned);
    let schema = schema(&fields, problems);
    if kind != ProductKind::Document {
        let select = selector(kind, &fields, problems)?;
        return Some(Produced { select, kind_of_type, path: None, schema });
    }
    let path = name(&fields, "path", FilePath::parse, problems);
    let name = name(&fields, "name", FilePath::parse_document, problems)?;
    // A declaration names a schema version; a selector may leave the version out.
    let select = Selector::Document { name, schema: None };
    Some(Produced { select, kind_of_type, path: Some(path?), schema })
}

fn selector_kind(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<ProductKind> {
    let Value::Object(map) = value else {
        problems.push_with(|| wrong_type(at, "an object", value));
        return None;
    };
    let word = map.get("kind").and_then(Value::as_str);
    let kind = ProductKind::ALL.iter().copied().find(|kind| Some(kind.as_str()) == word);
    if kind.is_none() {
        let mut known: Vec<String> = kind_words().map(|known_word| format!("{known_word:?}")).collect();
        let last = known.pop().expect("there are kinds");
        let message = format!("a selector's `kind` is {} or {last}", known.join(", "));
        let problem = Problem::new(Code::BadSelector, &at.key("kind"), message);
        problems.push_near(problem, word.unwrap_or_default(), kind_words());
    }
    kind
}

fn kind_words() -> impl Iterator<Item = &'static str> + Clone {
    ProductKind::ALL.iter().map(|kind| kind.as_str())
}

fn selector(kind: ProductKind, fields: &Fields<'_>, problems: &mut Problems) -> Option<Selector> {
    match kind {
        ProductKind::Patch => Some(Selector::Patch),
        ProductKind::Output => Some(Selector::Output { path: name(fields, "path", FilePath::parse, problems)? }),
        ProductKind::Document => {
            let schema = schema(fields, problems);
            let name = name(fields, "name", FilePath::parse_document, problems)?;
            Some(Selector::Document { name, schema })
        }
    }
}

/// Parses a selector's required path or name.
fn name<E: std::fmt::Display>(
    fields: &Fields<'_>,
    key: &str,
    parse: fn(&str) -> Result<FilePath, E>,
    problems: &mut Problems,
) -> Option<FilePath> {
    let message = match fields.get(key).map(|value| value.as_str().map(parse)) {
        Some(Some(Ok(name))) => return Some(name),
        Some(Some(Err(error))) => error.to_string(),
        Some(None) => format!("the selector's `{key}` must be a string"),
        None => format!("the selector lacks its `{key}`"),
    };
    problems.push(Problem::new(Code::BadSelector, &fields.at(key), message));
    None
}

/// Parses a document's optional schema.
fn schema<T: FromStr<Err = SchemaError>>(fields: &Fields<'_>, problems: &mut Problems) -> Option<T> {
    let read: Result<T, SchemaError> = fields.text("schema", problems)?.parse();
    read.map_err(|error| problems.push(Problem::new(Code::BadSelector, &fields.at("schema"), error.to_string()))).ok()
}

/// The reason why a selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub(super) String);

errors! {
    /// The reason why a text names no product.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum ProductKeyError;
    Kind(String): "{0:?} is not a product: expected `patch`, `outputs/<path>` or `documents/<name>`";
    #[from] Name(NameError);
}
