//! The inputs of items, held against the JSON Schemas of their shapes: those of one shape together, each schema by itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::catalog::Catalog;
use crate::model::causes::in_words;
use crate::model::json::JsonPath;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::schemas::{self, Answer, Failed};
use crate::plan::{DraftItem, ItemPath};

/// What the schema of a shape says of the items of that shape.
pub(super) struct HeldShape<'d> {
    shape: &'d str,
    usable: Result<(), String>,
    /// By the item's place.
    answers: BTreeMap<usize, Answer>,
    /// The first item that was not answered, and why; nothing is known of those after it.
    failed: Option<(usize, Failed)>,
}

/// Holds the inputs of all items of each shape against its schema; shapes are told by their names.
pub(super) fn hold<'d>(
    items: impl Iterator<Item = &'d DraftItem>,
    catalog: &Catalog,
) -> BTreeMap<&'d str, HeldShape<'d>> {
    let mut inputs: BTreeMap<&String, Vec<(usize, Vec<u8>)>> = BTreeMap::new();
    for (at, item) in items.enumerate() {
        let Some((name, value)) = item.subagent_shape.as_ref().zip(item.inputs.as_ref()) else { continue };
        if schema(catalog, name).is_none() {
            continue;
        }
        let value = serde_json::to_vec(value).expect("what was read as JSON can be written");
        inputs.entry(name).or_default().push((at, value));
    }
    let held = inputs.into_iter().filter_map(|(name, inputs)| {
        let schema = schema(catalog, name)?;
        let values: Vec<&[u8]> = inputs.iter().map(|(_, value)| value.as_slice()).collect();
        let held = schemas::hold(catalog.checker.as_deref(), schema, &values);
        let places = inputs.iter().map(|(at, _)| *at);
        let failed = held.failed.zip(places.clone().nth(held.answers.len())).map(|(failed, at)| (at, failed));
        let answers = places.zip(held.answers).collect();
        Some((name.as_str(), HeldShape { shape: name, usable: held.usable, answers, failed }))
    });
    held.collect()
}

/// Returns what a shape says of inputs, if it is registered and says anything.
fn schema<'c>(catalog: &'c Catalog, shape: &String) -> Option<&'c Value> {
    catalog.shapes.get(shape)?.ok()?.input_schema.as_ref()
}

impl HeldShape<'_> {
    /// Reports what is wrong with the inputs of the item at a place.
    pub(super) fn report(&self, place: usize, item: &DraftItem, problems: &mut Problems) {
        let shape = self.shape;
        if let Err(why) = &self.usable {
            let message = format!("the schema of the shape {shape:?} is not valid: {why}");
            return problems.push(Problem::new(Code::InputsSchema, &item.path.key("subagentShape"), message));
        }
        if let Some((_, failed)) = self.failed.as_ref().filter(|(at, _)| *at == place) {
            let message =
                format!("it could not be checked against the schema of the shape {shape:?}: {}", in_words(failed));
            return problems.push(Problem::new(Code::InputsSchema, &item.path.key("inputs"), message));
        }
        let Some(Answer::Refused { wrong, more }) = self.answers.get(&place) else { return };
        for wrong in wrong {
            let message = format!("the shape {shape:?} refuses it: {}", wrong.why);
            problems.push(Problem::new(Code::InputsSchema, &path(&item.path, &wrong.at), message));
        }
        problems.count_more(more.unwrap_or(0));
    }
}

fn path(item: &ItemPath, at: &[Value]) -> JsonPath {
    at.iter().fold(item.key("inputs"), |path, step| match step {
        Value::Number(index) => path.index(index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0)),
        key => path.key(key.as_str().unwrap_or_default()),
    })
}
