//! Takes the products of a finished attempt: the captured files, and the outputs that become
//! documents.

use std::collections::BTreeMap;

use crate::git::store::KeepGuard;
use crate::model::causes::in_words;
use crate::model::entry::Product;
use crate::model::format;
use crate::model::name::{FilePath, clashes};
use crate::model::plan::{ProductKey, ProductKind};
use crate::model::printable;
use crate::model::schema::Schema;
use crate::plan::schemas::{self, MAX_CHECKED, Schemas, Unfit};
use crate::worktree::capture::{self, Captured, large};
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

use super::attempt::{Job, Promised, Verdict};

/// The most paths that a note names.
pub(super) const MOST_NAMED: usize = 10;

pub(super) struct Taken {
    pub(super) products: BTreeMap<ProductKey, Product>,
    /// Keeps the objects until a ref reaches them.
    pub(super) guard: KeepGuard,
    /// Repositories in the worktree that no product includes.
    pub(super) left_out: Vec<String>,
    /// Paths that the agent left behind and the patch omits.
    pub(super) excluded: Vec<String>,
}

impl Taken {
    /// Returns notes about paths that no product includes.
    pub(super) fn notes(&self, job: &Job) -> Vec<String> {
        let agent = job.preset.map_or("the agent", |preset| &preset.title);
        let left = format!("as files that {agent} leaves behind");
        let repositories = left_out_note(job, &self.left_out, "as git repositories of their own");
        repositories.into_iter().chain(left_out_note(job, &self.excluded, &left)).collect()
    }
}

/// Reports paths that the patch omits, or returns `None` if there are none.
fn left_out_note(job: &Job, paths: &[String], what: &str) -> Option<String> {
    (!paths.is_empty()).then(|| {
        format!("{}: left out of the patch, {what}: {}", job.spec.item, printable::first_of(paths, MOST_NAMED))
    })
}

/// Takes the products of an attempt, or those captured by its pipeline. Fails the attempt if they
/// do not match the plan.
pub(super) fn take(
    workspace: &Workspace,
    host: &Host,
    job: &Job,
    captured: Option<Captured>,
) -> Result<Taken, Verdict> {
    let captured = match captured {
        Some(captured) => captured,
        None => capture::capture(workspace, host).map_err(|error| capture_failed(&error))?,
    };
    expect_none_of_submodules(workspace, host, &captured.outputs)?;
    let outputs = with_submodules(captured.outputs, captured.submodules)?;
    let mut products = BTreeMap::new();
    for kind in ProductKind::ALL {
        match kind {
            ProductKind::Patch => products.extend(captured.patch.map(|patch| (ProductKey::Patch, patch))),
            ProductKind::Output => {
                products.extend(outputs.iter().map(|(path, product)| (ProductKey::Output(path.clone()), *product)));
            }
            ProductKind::Document => {
                products.extend(documents(host, &job.handles.schemas, &job.spec.promised, &outputs)?);
            }
        }
    }
    expect_promised(host, &job.handles.schemas, &job.spec.promised, &products)?;
    large::take_over(workspace, &captured.large).map_err(|error| capture_failed(&error))?;
    Ok(Taken { products, guard: captured.guard, left_out: captured.left_out, excluded: captured.excluded })
}

/// Rejects an output at a path that is reserved for the changes to a submodule.
fn expect_none_of_submodules(
    workspace: &Workspace,
    host: &Host,
    outputs: &BTreeMap<FilePath, Product>,
) -> Result<(), Verdict> {
    if outputs.keys().all(|path| format::submodule_of(path).is_none()) {
        return Ok(());
    }
    let reserved = capture::submodule_outputs(workspace, host).map_err(|error| capture_failed(&error))?;
    match outputs.keys().find(|path| reserved.contains(*path)) {
        Some(path) => {
            Err(Verdict::failed(format!("the item left the output `{path}`, where the change to a submodule belongs")))
        }
        None => Ok(()),
    }
}

fn with_submodules(
    mut outputs: BTreeMap<FilePath, Product>,
    submodules: BTreeMap<FilePath, Product>,
) -> Result<BTreeMap<FilePath, Product>, Verdict> {
    outputs.extend(submodules);
    if let Some((one, other)) = clashes(outputs.keys().map(FilePath::as_str)).first() {
        return Err(Verdict::failed(format!("the outputs `{one}` and `{other}` cannot stand side by side")));
    }
    Ok(outputs)
}

/// Returns true if the products of another run pass all checks that this item's own products would
/// have to pass.
pub(super) fn fit(
    host: &Host,
    schemas: &Schemas,
    promised: &Promised,
    products: &BTreeMap<ProductKey, Product>,
) -> bool {
    let outputs = products.iter().filter_map(|(key, product)| Some((key.output()?.clone(), *product))).collect();
    let Ok(declared) = documents(host, schemas, promised, &outputs) else { return false };
    let there = products.iter().filter(|(key, _)| matches!(key, ProductKey::Document(_)));
    let declared: BTreeMap<_, _> = declared.into_iter().collect();
    there.eq(&declared) && expect_promised(host, schemas, promised, products).is_ok()
}

/// Checks that all promised products exist and match their schemas, and that no product is missing
/// that another item needs.
fn expect_promised(
    host: &Host,
    schemas: &Schemas,
    promised: &Promised,
    products: &BTreeMap<ProductKey, Product>,
) -> Result<(), Verdict> {
    for (key, schema) in &promised.products {
        let Some(product) = products.get(key) else {
            return Err(Verdict::failed(format!("the product {key} is missing, which the item declares")));
        };
        if let Some(schema) = schema {
            check(host, schemas, schema, product)
                .map_err(|unfit| Verdict::failed(format!("the product {key} is not as declared: {unfit}")))?;
        }
    }
    match promised.required.iter().find(|(key, _)| !products.contains_key(key)) {
        Some((key, by)) => Err(Verdict::failed(format!("the product {key} is missing, which {by} needs"))),
        None => Ok(()),
    }
}

/// Returns the verdict for a failed capture.
pub(super) fn capture_failed(error: &capture::Error) -> Verdict {
    match error {
        capture::Error::Refused(why) => Verdict::failed(why.clone()),
        capture::Error::Secret(secret) => Verdict::hopeless(secret.to_string()),
        error => Verdict::from_error("the products could not be taken: ", error, Verdict::failed),
    }
}

/// Returns the outputs that become documents. Each must exist and match its schema.
fn documents(
    host: &Host,
    schemas: &Schemas,
    promised: &Promised,
    outputs: &BTreeMap<FilePath, Product>,
) -> Result<Vec<(ProductKey, Product)>, Verdict> {
    let mut documents = Vec::new();
    for declared in &promised.documents {
        let name = &declared.name;
        let product = outputs.get(&declared.path).ok_or_else(|| {
            let path = &declared.path;
            Verdict::failed(format!("the document {name:?} is missing: there is no output {path:?}"))
        })?;
        if let Some(schema) = &declared.schema {
            check(host, schemas, schema, product)
                .map_err(|unfit| Verdict::failed(format!("the document {name:?} is not as declared: {unfit}")))?;
        }
        documents.push((ProductKey::Document(name.clone()), *product));
    }
    Ok(documents)
}

fn check(host: &Host, schemas: &Schemas, schema: &Schema, product: &Product) -> Result<(), String> {
    if product.size > MAX_CHECKED {
        return Err(Unfit::TooLarge(schema.clone()).to_string());
    }
    let bytes = host.store.read_blob(product.oid).map_err(|error| in_words(&error))?;
    schemas::check(schemas, schema, &bytes).map_err(|unfit| in_words(&unfit))
}
