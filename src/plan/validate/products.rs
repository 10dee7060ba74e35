//! Validates needs: kind of source, declaration, and type.

use std::collections::BTreeMap;

use crate::model::catalog::{Catalog, Shape};
use crate::model::elsewhere::Elsewhere;
use crate::model::name::clashes;
use crate::model::pipeline::{CaptureKind, Spec};
use crate::model::plan::{BuiltIn, DraftNeed, Produced, ProductKey, Selector, Source};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::validate::graph::Graph;
use crate::plan::validate::{Scope, captured};
use crate::plan::{Draft, DraftItem};

/// The maximum number of products to search for a suggestion.
const MAX_MEANT: usize = 100;

/// Validates the needs and products of new items.
pub(super) fn check(scope: &Scope<'_>, graph: &Graph, catalog: &Catalog, problems: &mut Problems) {
    let draft = scope.draft;
    let declared = draft.items.iter().map(|item| match item {
        Some(item) => Declared::new(item, catalog),
        None => Declared::default(),
    });
    let declared: Vec<Declared<'_>> = declared.collect();
    for item in scope.new_items() {
        let shape = catalog.shape(item.subagent_shape.as_ref());
        let pipeline = captured::spec_of(item, catalog);
        captured::check(item, catalog, problems);
        for (key, need) in &item.needs {
            let edge = NeedEdge { item, key, need, shape, pipeline };
            let Some((from, select)) = need.from.as_deref().zip(need.select.as_ref()) else {
                continue;
            };
            if need.elsewhere {
                from_elsewhere(&edge, from, select, problems);
                continue;
            }
            match (from, graph.position(from)) {
                ("@artifacts", _) => from_artifacts(&edge, select, draft, problems),
                ("@documents", _) => from_documents(&edge, select, problems),
                (_, Some(producer)) if draft.items[producer].as_ref().is_some_and(is_decided) => {
                    let message =
                        format!("{from:?} is decided by people and hands nothing over: name it in `depends_on`");
                    problems.push(edge.problem(Code::UndeclaredProduct, "from", message));
                }
                (_, Some(producer)) => from_item(&edge, from, select, &declared[producer], problems),
                (_, None) => {}
            }
        }
    }
    check_document_names(scope, problems);
}

/// Returns true for an approval.
fn is_decided(item: &DraftItem) -> bool {
    item.is_for(BuiltIn::Approval)
}

/// A need with its consumer.
struct NeedEdge<'d> {
    item: &'d DraftItem,
    key: &'d str,
    need: &'d DraftNeed,
    shape: Option<&'d Shape>,
    pipeline: Option<&'d Spec>,
}

impl NeedEdge<'_> {
    fn problem(&self, code: Code, field: &str, message: impl Into<String>) -> Problem {
        let path = self.item.path.need(self.key, field);
        Problem::new(code, &path, message)
    }

    /// Returns the consumer's type: by its shape, else by its pipeline.
    fn takes(&self) -> Option<&String> {
        let by_shape = self.shape.and_then(|shape| shape.consumes.get(self.key));
        by_shape.or_else(|| self.pipeline?.input_edge_types.get(self.key))
    }

    /// Formats the edge: `edit-a -> apply-patch (patch)`.
    fn name(&self) -> String {
        let from = self.need.from.as_deref().unwrap_or_default();
        let to = self.item.id.as_deref().unwrap_or_default();
        format!("{from} -> {to} ({})", self.key)
    }
}

/// The declared products of an item, by itself or its shape.
#[derive(Default)]
struct Declared<'d> {
    products: BTreeMap<ProductKey, &'d Produced>,
    /// Whether the item declares its products, possibly none.
    is_listed: bool,
    /// The captures, if not everything.
    pipeline: Option<&'d Spec>,
    /// Whether some could not be parsed, so that none can be called undeclared.
    unread: bool,
}

impl<'d> Declared<'d> {
    /// Returns the type of a product: its own, else its pipeline's.
    fn makes(&self, product: Option<&'d Produced>) -> Option<&'d String> {
        let declared = product.and_then(|product| product.kind_of_type.as_ref());
        declared.or_else(|| self.pipeline?.output_edge_type.as_ref())
    }

    fn new(item: &'d DraftItem, catalog: &'d Catalog) -> Self {
        let by_shape = catalog.shape(item.subagent_shape.as_ref()).into_iter().flat_map(|shape| &shape.produces);
        // A shape is only known here, so documents must be declared in the plan.
        let by_shape = by_shape.filter(|product| !matches!(product.select, Selector::Document { .. }));
        // The item's declaration overrides its shape's.
        let by_item = item.produces.iter();
        let products = by_shape.chain(by_item);
        let mut declared = BTreeMap::new();
        for product in products {
            // The file of a document stays an output.
            if let Some(path) = &product.path {
                declared.entry(ProductKey::Output(path.clone())).or_insert(product);
            }
            declared.insert(product.select.product_key(), product);
        }
        Self {
            products: declared,
            is_listed: item.produces.read.is_some(),
            pipeline: captured::spec_of(item, catalog),
            unread: item.produces.unread
                || item.subagent_shape.is_some() && catalog.shape(item.subagent_shape.as_ref()).is_none(),
        }
    }
}

fn from_artifacts(edge: &NeedEdge<'_>, select: &Selector, draft: &Draft, problems: &mut Problems) {
    let Selector::Output { path } = select else {
        let message = "an artifact is selected by {\"kind\": \"output\", \"path\": …}";
        problems.push(edge.problem(Code::BadSelector, "select", message));
        return;
    };
    if !draft.artifacts.contains_key(path.as_str()) {
        let message = format!("the plan has no artifact {:?}", path.as_str());
        let problem = edge.problem(Code::UndeclaredProduct, "select", message);
        problems.push_near(problem, path.as_str(), draft.artifacts.keys().map(String::as_str));
    }
}

fn from_documents(edge: &NeedEdge<'_>, select: &Selector, problems: &mut Problems) {
    if !matches!(select, Selector::Document { .. }) {
        let message = "a document is selected by {\"kind\": \"document\", \"name\": …}";
        problems.push(edge.problem(Code::BadSelector, "select", message));
    }
}

fn from_elsewhere(edge: &NeedEdge<'_>, from: &str, select: &Selector, problems: &mut Problems) {
    let Ok(Source::Elsewhere(elsewhere)) = from.parse() else { return };
    if !elsewhere.can_have(select) {
        let message = match elsewhere {
            Elsewhere::Item { .. } => {
                "of which schema a document of another run is cannot be shown: leave `schema` out"
            }
            Elsewhere::Checkpoint { .. } => {
                "a checkpoint has {\"kind\": \"output\", \"path\": \"state\"}, and \"packet.json\""
            }
        };
        problems.push(edge.problem(Code::BadSelector, "select", message));
    }
}

/// Refuses needs from outside the run after submit, when nothing is sealed any more.
pub(super) fn refuse_elsewhere<'d>(items: impl Iterator<Item = &'d DraftItem>, problems: &mut Problems) {
    for item in items {
        for (key, _) in item.needs.iter().filter(|(_, need)| need.elsewhere) {
            let message = "what comes from outside the run is sealed at submit: only an item that stands in the plan has such a need";
            problems.push(Problem::new(Code::UnknownField, &item.path.key("needs").key(key), message));
        }
    }
}

fn from_item(edge: &NeedEdge<'_>, from: &str, select: &Selector, declared: &Declared<'_>, problems: &mut Problems) {
    let key = select.product_key();
    if let Some(why) = declared.pipeline.and_then(|spec| captured::refusal(spec, CaptureKind::from_key(&key))) {
        let message = format!("the item {from:?} does not hand over {key}: {why}");
        problems.push(edge.problem(Code::UndeclaredProduct, "select", message));
        return;
    }
    let product = declared.products.get(&key).copied();
    // A document needs a declaration.
    let must_declare = declared.is_listed || !declared.products.is_empty() || matches!(key, ProductKey::Document(_));
    if product.is_none() && !declared.unread && must_declare {
        let message = format!("the item {from:?} does not declare {key} among its products");
        let problem = edge.problem(Code::UndeclaredProduct, "select", message);
        // With very many products, a suggestion is pointless.
        let meant = declared.products.keys().take(if problems.keeps_more() { MAX_MEANT } else { 0 });
        let names: Vec<String> = meant.map(ToString::to_string).collect();
        problems.push_near(problem, &key.to_string(), names.iter().map(String::as_str));
        return;
    }
    let types = edge.takes().zip(declared.makes(product)).filter(|(takes, makes)| makes != takes);
    let types = types.map(|(takes, makes)| (makes.clone(), takes.clone()));
    if let Some((makes, takes)) = types.or_else(|| drift(product?, select)) {
        let message = format!("{}: {key} is {makes}, and {takes} is wanted", edge.name());
        let path = edge.item.path.key("needs").key(edge.key);
        problems.push(Problem::new(Code::TypeMismatch, &path, message));
    }
}

/// Returns a document's schema and the required one, if they do not match.
fn drift(product: &Produced, select: &Selector) -> Option<(String, String)> {
    let Selector::Document { schema: Some(required), .. } = select else { return None };
    let made = product.schema.as_ref();
    (!required.admits(made))
        .then(|| (made.map_or_else(|| "without a schema".to_owned(), ToString::to_string), required.to_string()))
}

/// Reports clashing document names.
///
/// Several items can write one document: each makes a revision.
fn check_document_names(scope: &Scope<'_>, problems: &mut Problems) {
    let mut writers: BTreeMap<&str, &DraftItem> = BTreeMap::new();
    // Existing ones come first, so that a new writer is blamed.
    for item in scope.known_items().chain(scope.new_items()) {
        for product in item.produces.iter() {
            if let Selector::Document { name, .. } = &product.select {
                writers.entry(name.as_str()).or_insert(item);
            }
        }
    }
    for (first, second) in clashes(writers.keys().copied()) {
        let at = writers[second.as_str()].path.key("produces");
        let message = format!("the documents {first:?} and {second:?} cannot stand side by side in a run");
        problems.push(Problem::new(Code::BadSelector, &at, message));
    }
}
