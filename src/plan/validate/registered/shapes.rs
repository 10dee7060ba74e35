//! Validates inputs against the JSON Schemas of shapes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::catalog::Catalog;
use crate::model::hints;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::DraftItem;
use crate::plan::schemas::{Compiled, Unusable};

/// The schemas of shapes, compiled on first use.
#[derive(Default)]
pub(super) struct ShapeSchemas<'c>(BTreeMap<&'c str, Result<Compiled, Unusable>>);

impl<'c> ShapeSchemas<'c> {
    /// Reports the problems of an item's inputs.
    pub(super) fn check(&mut self, shape: &'c String, item: &DraftItem, catalog: &'c Catalog, problems: &mut Problems) {
        let schema = catalog.shape(Some(shape)).and_then(|shape| shape.input_schema.as_ref());
        let Some((schema, inputs)) = schema.zip(item.inputs.clone().map(Value::Object)) else { return };
        match self.0.entry(shape).or_insert_with(|| Compiled::new(schema)) {
            Err(unusable) => {
                let message = format!("the schema of the shape {shape:?} {unusable}");
                let problem = Problem::new(Code::InputsSchema, &item.path.key("subagentShape"), message);
                let is_left_out = matches!(unusable, Unusable::LeftOut(_));
                problems.push(if is_left_out { problem.hint(hints::build_whole()) } else { problem });
            }
            Ok(compiled) => {
                let Some(refusal) = compiled.refusal(&inputs, inputs.to_string().len()) else { return };
                for wrong in refusal.wrong {
                    problems.push_with(|| {
                        let message = format!("the shape {shape:?} refuses it: {}", wrong.why);
                        Problem::new(Code::InputsSchema, &wrong.below(item.path.key("inputs")), message)
                    });
                }
                problems.count_more(refusal.more.unwrap_or(0));
            }
        }
    }
}
