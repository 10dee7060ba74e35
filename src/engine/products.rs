//! What a finished attempt hands over: what capture took, and the outputs that the plan makes documents.

use std::collections::BTreeMap;

use crate::git::store::Kept;
use crate::model::causes::in_words;
use crate::model::entry::Product;
use crate::model::format;
use crate::model::name::{FilePath, ItemId, clashes};
use crate::model::plan::{ProductKey, ProductKind};
use crate::model::schema::Schema;
use crate::plan::schemas::{self, MAX_CHECKED, Unfit};
use crate::worker::capture::{self, Captured, large};
use crate::worker::host::Host;
use crate::worker::workspace::Workspace;

use super::attempt::{Job, Verdict};

/// How many of the repositories that were left out are named.
const MOST_NAMED: usize = 10;

/// The products of an attempt.
pub(super) struct Taken {
    pub(super) products: BTreeMap<ProductKey, Product>,
    /// Keeps them until a ref reaches them.
    pub(super) kept: Kept,
    /// The repositories in the worktree that are in none of them.
    pub(super) left_out: Vec<String>,
}

impl Taken {
    /// Says which repositories are in no product; nothing if there are none.
    pub(super) fn note(&self, item: &ItemId) -> Option<String> {
        let (named, more) = self.left_out.split_at(self.left_out.len().min(MOST_NAMED));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let named = named.join(", ");
        (!named.is_empty())
            .then(|| format!("{item}: left out of the patch, as git repositories of their own: {named}{more}"))
    }
}

/// Takes the products of an attempt, unless they were taken on the way; what is not as the plan says fails it.
pub(super) fn take(
    workspace: &Workspace,
    host: &Host,
    job: &Job,
    captured: Option<Captured>,
) -> Result<Taken, Verdict> {
    let captured = match captured {
        Some(captured) => captured,
        None => capture::capture(workspace, host).map_err(|error| not_taken(&error))?,
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
            ProductKind::Document => products.extend(documents(host, job, &outputs)?),
        }
    }
    expect_promised(host, job, &products)?;
    large::take_over(workspace, &captured.large).map_err(|error| not_taken(&error))?;
    Ok(Taken { products, kept: captured.kept, left_out: captured.left_out })
}

/// Refuses an output that a worker left where the change to a submodule belongs, whether there is one or not: only what we found
/// there is called that.
fn expect_none_of_submodules(
    workspace: &Workspace,
    host: &Host,
    outputs: &BTreeMap<FilePath, Product>,
) -> Result<(), Verdict> {
    if outputs.keys().all(|path| format::submodule_of(path).is_none()) {
        return Ok(());
    }
    let reserved = capture::submodule_outputs(workspace, host).map_err(|error| not_taken(&error))?;
    match outputs.keys().find(|path| reserved.contains(*path)) {
        Some(path) => {
            Err(Verdict::failed(format!("the item left the output `{path}`, where the change to a submodule belongs")))
        }
        None => Ok(()),
    }
}

/// Returns the outputs with the changes to submodules.
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

/// Returns whether products that another run has are what the item is to hand over: they are held against all that they would be
/// held against had it been run.
pub(super) fn fit(host: &Host, job: &Job, products: &BTreeMap<ProductKey, Product>) -> bool {
    let outputs = products.iter().filter_map(|(key, product)| Some((key.output()?.clone(), *product))).collect();
    let Ok(declared) = documents(host, job, &outputs) else { return false };
    let there = products.iter().filter(|(key, _)| matches!(key, ProductKey::Document(_)));
    let declared: BTreeMap<_, _> = declared.into_iter().collect();
    there.eq(&declared) && expect_promised(host, job, products).is_ok()
}

/// Checks that products are what the item, or its shape, declares, and that nothing is missing that others need.
fn expect_promised(host: &Host, job: &Job, products: &BTreeMap<ProductKey, Product>) -> Result<(), Verdict> {
    for (key, schema) in &job.promised {
        let Some(product) = products.get(key) else {
            return Err(Verdict::failed(format!("the product {key} is missing, which the item declares")));
        };
        if let Some(schema) = schema {
            check(host, job, schema, product)
                .map_err(|unfit| Verdict::failed(format!("the product {key} is not as declared: {unfit}")))?;
        }
    }
    match job.wanted.iter().find(|(key, _)| !products.contains_key(key)) {
        Some((key, by)) => Err(Verdict::failed(format!("the product {key} is missing, which {by} needs"))),
        None => Ok(()),
    }
}

/// Says what it means that products could not be taken.
pub(super) fn not_taken(error: &capture::Error) -> Verdict {
    match error {
        capture::Error::Refused(why) => Verdict::failed(why.clone()),
        capture::Error::Secret(secret) => Verdict::hopeless(secret.to_string()),
        error => Verdict::of("the products could not be taken: ", error, Verdict::failed),
    }
}

/// Returns the outputs that are documents as well; each is there, and what it is declared to be.
fn documents(
    host: &Host,
    job: &Job,
    outputs: &BTreeMap<FilePath, Product>,
) -> Result<Vec<(ProductKey, Product)>, Verdict> {
    let mut documents = Vec::new();
    for declared in &job.documents {
        let name = &declared.name;
        let product = outputs.get(&declared.path).ok_or_else(|| {
            let path = &declared.path;
            Verdict::failed(format!("the document {name:?} is missing: there is no output {path:?}"))
        })?;
        if let Some(schema) = &declared.schema {
            check(host, job, schema, product)
                .map_err(|unfit| Verdict::failed(format!("the document {name:?} is not as declared: {unfit}")))?;
        }
        documents.push((ProductKey::Document(name.clone()), *product));
    }
    Ok(documents)
}

fn check(host: &Host, job: &Job, schema: &Schema, product: &Product) -> Result<(), String> {
    if product.size > MAX_CHECKED {
        return Err(Unfit::TooLarge(schema.clone()).to_string());
    }
    let bytes = host.store.read_blob(product.oid).map_err(|error| in_words(&error))?;
    schemas::check(&job.schemas, schema, &bytes).map_err(|unfit| in_words(&unfit))
}
