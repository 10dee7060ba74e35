//! Resolves the needs of an item when it is dispatched. Pure, except for looking up blobs.

use std::collections::BTreeMap;

use crate::model::digest::{Digest, Oid};
use crate::model::entry::InputRef;
use crate::model::item_index::ItemIndex;
use crate::model::name::FilePath;
use crate::model::plan::{Need, Selector, Source};
use crate::run::operate::OpenRun;

/// The resolved inputs of one dispatch.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolved {
    /// The inputs as the entry records them.
    pub(super) refs: BTreeMap<FilePath, InputRef>,
    /// The blob of each input, with the digest of its bytes.
    pub(super) blobs: BTreeMap<FilePath, (Oid, Digest)>,
}

/// Resolves all needs of an item whose dependencies are done, or returns the reason why a need
/// cannot be met.
pub(super) fn resolve(run: &OpenRun, at: ItemIndex) -> Result<Resolved, String> {
    let mut resolved = Resolved::default();
    for (key, need) in &run.state.graph.item(at).needs {
        let found = find(run, need).map_err(|why| format!("the need {key:?} cannot be met: {why}"));
        let (oid, digest) = found?;
        let input = InputRef { from: need.from.clone(), select: need.select.clone(), digest };
        resolved.refs.insert(key.clone(), input);
        resolved.blobs.insert(key.clone(), (oid, digest));
    }
    Ok(resolved)
}

fn find(run: &OpenRun, need: &Need) -> Result<(Oid, Digest), String> {
    let state = &run.state;
    let key = need.select.product_key();
    let product = match (&need.from, &need.select) {
        (Source::Documents, Selector::Document { name, schema }) => {
            let latest = state.documents.latest(name);
            let revision = latest.ok_or_else(|| format!("the run holds no document {name:?} yet"))?;
            let drift = schema.as_ref().and_then(|required| state.documents.drift(name, revision.number, required));
            match drift {
                Some(drift) => return Err(drift.to_string()),
                None => revision.product,
            }
        }
        (Source::Item(id), _) => {
            let product = state.graph.position(id).and_then(|at| state.items[at].products.get(&key));
            *product.ok_or_else(|| format!("{id:?} is done without the product {key}"))?
        }
        (Source::Artifacts, Selector::Output { path }) => {
            let sealed = state.submitted.artifacts.get(path);
            *sealed.ok_or_else(|| format!("there is no artifact {path:?}"))?
        }
        (Source::Elsewhere(_), _) => {
            let import = state.submitted.import(need);
            import.ok_or_else(|| format!("nothing was sealed of {} as {key}", need.from))?.product
        }
        (from @ (Source::Artifacts | Source::Documents), _) => return Err(format!("{from} has no product {key}")),
    };
    Ok((product.oid, product.sha256))
}
