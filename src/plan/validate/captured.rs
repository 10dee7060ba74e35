//! Whether the pipeline of an item takes what the item is to hand over.

use crate::model::catalog::Catalog;
use crate::model::json::JsonPath;
use crate::model::pipeline::{Spec, What};
use crate::model::plan::{PIPELINE, Produced};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::DraftItem;

/// Returns the pipeline that an item names, as far as it is known what that means: in a run that is extended, what it was sealed as.
pub(super) fn spec_of<'c>(item: &DraftItem, catalog: &'c Catalog) -> Option<&'c Spec> {
    let name = item.inputs.as_ref()?.get(PIPELINE)?.as_str()?;
    let sealed = catalog.pipelines.sealed.get(name);
    catalog.pipelines.find(name).ok().filter(|spec| sealed.is_none_or(|sealed| *sealed == spec.digest()))
}

/// Checks that the pipeline of an item takes every product that the item or its shape declares.
pub(super) fn check(item: &DraftItem, catalog: &Catalog, problems: &mut Problems) {
    let Some(spec) = spec_of(item, catalog) else { return };
    let mut hold = |produced: &Produced, at: &JsonPath| {
        let key = produced.select.product_key();
        if let Some(why) = refusal(spec, What::that_takes(&key)) {
            problems.push(Problem::new(Code::UndeclaredProduct, at, format!("{key} is declared, and {why}")));
        }
    };
    let own = item.produces.iter().enumerate();
    own.for_each(|(index, produced)| hold(produced, &item.path.key("produces").index(index)));
    let by_shape = catalog.shape(item.subagent_shape.as_ref()).into_iter().flat_map(|shape| &shape.produces);
    by_shape.for_each(|produced| hold(produced, &item.path.key("subagentShape")));
}

/// Returns why a pipeline hands nothing over of a kind; nothing where it does.
pub(super) fn refusal(spec: &Spec, what: What) -> Option<String> {
    let word = if what == What::Patch { "patch" } else { "outputs" };
    (!spec.captures(what)).then(|| format!("no block of the pipeline {:?} is `capture` of `{word}`", spec.id))
}
