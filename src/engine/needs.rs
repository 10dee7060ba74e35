//! What an item's needs come to at the moment it is dispatched. Pure but for looking up artifacts' blobs.

use std::collections::BTreeMap;

use crate::model::digest::{Digest, Oid};
use crate::model::document::Drift;
use crate::model::entry::InputRef;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Need, ProductKey, Selector, Source};
use crate::run::OpenRun;

/// The inputs of one dispatch: what the entry records, and where the bytes are.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// What each key was resolved to.
    pub refs: BTreeMap<FilePath, InputRef>,
    /// The blob behind each key, with the digest its bytes must have.
    pub blobs: BTreeMap<FilePath, (Oid, Digest)>,
}

/// Resolves all needs of the item at a position; its dependencies are done.
pub fn resolve(run: &OpenRun, at: usize) -> Result<Resolved, Unmet> {
    let mut resolved = Resolved::default();
    for (key, need) in &run.state.graph.item(at).needs {
        let (oid, digest) = find(run, key, need)?;
        let input = InputRef { from: need.from.clone(), select: need.select.clone(), digest };
        resolved.refs.insert(key.clone(), input);
        resolved.blobs.insert(key.clone(), (oid, digest));
    }
    Ok(resolved)
}

fn find(run: &OpenRun, key: &FilePath, need: &Need) -> Result<(Oid, Digest), Unmet> {
    match (&need.from, &need.select) {
        (Source::Documents, Selector::Document { name, schema }) => {
            let documents = &run.state.documents;
            let revision = documents.latest(name).ok_or_else(|| Unmet::Document(key.clone(), name.clone()))?;
            let drift = schema.as_ref().and_then(|wanted| documents.drift(name, revision.number, wanted));
            match drift {
                Some(drift) => Err(Unmet::Drift(key.clone(), Box::new(drift))),
                None => Ok((revision.product.oid, revision.product.sha256)),
            }
        }
        (Source::Item(id), select) => {
            let missing = || Unmet::Product(key.clone(), id.clone(), select.product_key());
            let at = run.state.graph.position(id).ok_or_else(missing)?;
            let product = run.state.items[at].products.get(&select.product_key()).ok_or_else(missing)?;
            Ok((product.oid, product.sha256))
        }
        (Source::Artifacts, Selector::Output { path }) => {
            let missing = || Unmet::Artifact(key.clone(), path.clone());
            let digest = run.state.submitted.artifacts.get(path).ok_or_else(missing)?;
            Ok((run.artifact(path).ok_or_else(missing)?, *digest))
        }
        (Source::Elsewhere(_), select) => {
            let missing = || Unmet::Import(key.clone(), Box::new(need.from.clone()), select.product_key());
            let product = run.state.submitted.import(need).ok_or_else(missing)?.product;
            Ok((product.oid, product.sha256))
        }
        (Source::Artifacts | Source::Documents, select) => {
            Err(Unmet::Source(key.clone(), Box::new(need.from.clone()), select.product_key()))
        }
    }
}

/// Why a need cannot be met, in the words of the entry that records it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unmet {
    #[error("the need {0:?} cannot be met: {1:?} is done without the product {2}")]
    Product(FilePath, ItemId, ProductKey),
    #[error("the need {0:?} cannot be met: there is no artifact {1:?}")]
    Artifact(FilePath, FilePath),
    #[error("the need {0:?} cannot be met: the run holds no document {1:?} yet")]
    Document(FilePath, FilePath),
    #[error("the need {0:?} cannot be met: {1}")]
    Drift(FilePath, Box<Drift>),
    #[error("the need {0:?} cannot be met: nothing was sealed of {1} as {2}")]
    Import(FilePath, Box<Source>, ProductKey),
    #[error("the need {0:?} cannot be met: {1} has no product {2}")]
    Source(FilePath, Box<Source>, ProductKey),
}
