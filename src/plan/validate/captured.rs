//! Validates that an item's pipeline captures its declared products.

use crate::model::catalog::Catalog;
use crate::model::json::JsonPath;
use crate::model::pipeline::{CaptureKind, Spec};
use crate::model::plan::{PIPELINE, Produced};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::DraftItem;

/// Returns an item's pipeline, if known; in a run to extend, the sealed one.
pub(super) fn spec_of<'c>(item: &DraftItem, catalog: &'c Catalog) -> Option<&'c Spec> {
    let name = item.inputs.as_ref()?.get(PIPELINE)?.as_str()?;
    let sealed = catalog.pipelines.sealed.get(name);
    catalog.pipelines.find(name).ok().filter(|spec| sealed.is_none_or(|sealed| sealed.sha256 == spec.digest()))
}

/// Checks that an item's pipeline captures every product declared by item or shape.
pub(super) fn check(item: &DraftItem, catalog: &Catalog, problems: &mut Problems) {
    let Some(spec) = spec_of(item, catalog) else { return };
    let mut hold = |produced: &Produced, at: &JsonPath| {
        let key = produced.select.product_key();
        if let Some(why) = refusal(spec, CaptureKind::from_key(&key)) {
            problems.push(Problem::new(Code::UndeclaredProduct, at, format!("{key} is declared, and {why}")));
        }
    };
    let own = item.produces.iter().enumerate();
    own.for_each(|(index, produced)| hold(produced, &item.path.key("produces").index(index)));
    let by_shape = catalog.shape(item.subagent_shape.as_ref()).into_iter().flat_map(|shape| &shape.produces);
    by_shape.for_each(|produced| hold(produced, &item.path.key("subagentShape")));
}

/// Returns the reason why a pipeline does not capture a kind of product, if so.
pub(super) fn refusal(spec: &Spec, kind: CaptureKind) -> Option<String> {
    let word = if kind == CaptureKind::Patch { "patch" } else { "outputs" };
    (!spec.captures(kind)).then(|| format!("no block of the pipeline {:?} is `capture` of `{word}`", spec.id))
}
