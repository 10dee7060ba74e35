//! What a finished attempt hands over: what capture took, and the outputs that the plan makes documents.

use std::collections::BTreeMap;

use super::attempt::{Job, Verdict, chain_of};
use crate::model::entry::Product;
use crate::model::plan::ProductKey;
use crate::worker::capture::{self, Captured};
use crate::worker::site::Site;
use crate::worker::workspace::Workspace;

/// Takes the products of an attempt; what is not as the plan says fails it.
pub(super) fn take(workspace: &Workspace, site: &Site, job: &Job) -> Result<BTreeMap<ProductKey, Product>, Verdict> {
    let captured = capture::capture(workspace, site).map_err(|error| match error {
        capture::Error::Refused(why) => Verdict::failed(why),
        error => Verdict::failed(format!("the products could not be taken: {}", chain_of(&error))),
    })?;
    let documents = documents(job, &captured).map_err(Verdict::failed)?;
    let outputs = captured.outputs.into_iter().map(|(path, product)| (ProductKey::Output(path), product));
    let patch = captured.patch.map(|patch| (ProductKey::Patch, patch));
    Ok(outputs.chain(patch).chain(documents).collect())
}

/// Returns the outputs that are documents as well.
fn documents(job: &Job, captured: &Captured) -> Result<Vec<(ProductKey, Product)>, String> {
    let mut documents = Vec::new();
    for declared in &job.documents {
        let name = &declared.name;
        let product = captured.outputs.get(&declared.path).ok_or_else(|| {
            format!("it did not leave {:?} among its outputs, which is to be the document {name:?}", declared.path)
        })?;
        documents.push((ProductKey::Document(name.clone()), *product));
    }
    Ok(documents)
}
