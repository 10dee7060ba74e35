//! Unusable registrations: a schema, shape or pipeline fails only when it is needed.

use super::{Finding, Patient};
use crate::model::hints;
use crate::model::registered::RegisteredBy;
use crate::plan::schemas::{self, Unfit};
use crate::repository::config::Unregistered;

pub(super) fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let repository = patient.repository;
    let (schemas, shapes, pipelines) = (&repository.schemas(), repository.shapes(), repository.pipelines().known);
    let bad_schemas = schemas.names().filter_map(|schema| {
        let unfit = schemas::usable(schemas, schema).err()?;
        let found = finding("schema-unusable", unfit.to_string(), schemas.place(schema)?);
        Some(if matches!(unfit, Unfit::LeftOut(..)) { found.hint(hints::build_whole()) } else { found })
    });
    let bad_shapes = shapes.names().filter_map(|shape| {
        let why = shapes.get(shape)?.err()?;
        Some(finding("shape-unusable", format!("the shape {shape:?} {why}"), shapes.place(shape)?))
    });
    let bad_pipelines = pipelines.names().filter_map(|id| {
        let why = pipelines.get(id)?.err()?;
        Some(finding("pipeline-unusable", format!("the pipeline {id:?} {why}"), pipelines.place(id)?))
    });
    let unregistered = repository.config.unregistered();
    let without_effect = unregistered.iter().map(without_effect);
    bad_schemas.chain(bad_shapes).chain(bad_pipelines).chain(without_effect).collect()
}

/// Reports settings without effect. They are a problem only if their name resembles a registered
/// one; otherwise the command may be registered for another repository.
fn without_effect(unregistered: &Unregistered) -> Finding {
    let found = match unregistered.nearest {
        Some(_) => Finding::problem("setting-without-effect", unregistered.to_string()),
        None => Finding::note("setting-without-effect", unregistered.to_string()),
    };
    match unregistered.keys.first() {
        Some(key) => found.hint(hints::setting(key)),
        None => found,
    }
}

fn finding(code: &'static str, message: String, place: &RegisteredBy) -> Finding {
    Finding::problem(code, message).hint(hints::set_file(&place.key))
}
