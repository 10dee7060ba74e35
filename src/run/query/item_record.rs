//! Shows everything that is recorded about an item.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Cause, Event, InputRef, Product};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, RunId};
use crate::model::plan::{Item, ProductKey};

use super::View;
use super::list::ItemStatus;
use super::saved::Saved;
use super::show::{Step, manifest};

/// All that is recorded about an item, as `show RUN/ITEM --json` prints it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Record<'a> {
    pub view: &'a View,
    pub at: ItemIndex,
    /// The manifest of its last attempt, if it is here.
    pub manifest: Option<Manifest>,
    /// The entries about it, oldest first.
    pub steps: Vec<Step<'a>>,
    /// The work of its failed and interrupted attempts that is saved beside the run.
    pub saved: Vec<Saved>,
}

impl<'a> Record<'a> {
    /// Collects what is recorded about an item.
    pub fn gather(store: &Store, view: &'a View, at: ItemIndex) -> Result<Self, AnyError> {
        let id = &view.state.graph.item(at).id;
        let dispatched = view.state.items[at].manifest.as_ref();
        let manifest = dispatched.map(|product| manifest(store, product)).transpose()?.flatten();
        let steps = view.links.iter().filter_map(|link| Step::from_link(link, id, &view.state)).collect();
        let saved = Saved::all(store, view)?.into_iter().filter(|saved| saved.item == *id).collect();
        Ok(Self { view, at, manifest, steps, saved })
    }

    /// Returns the item.
    pub fn item(&self) -> &'a Item {
        self.view.state.graph.item(self.at)
    }

    /// Returns the entry that added the item, with the cause. Returns `None` for an item of the
    /// plan.
    pub fn added(&self) -> Option<(&'a Link, &'a Cause)> {
        self.view.links.iter().find_map(|link| match &link.entry.event {
            Event::RunExtended(e) => e.items.contains_key(&self.item().id).then_some((link, &e.cause)),
            _ => None,
        })
    }

    /// Returns its products.
    pub fn products(&self) -> &'a BTreeMap<ProductKey, Product> {
        &self.view.state.items[self.at].products
    }

    /// Returns its consumed inputs.
    pub fn consumed(&self) -> &'a BTreeMap<FilePath, InputRef> {
        &self.view.state.items[self.at].inputs
    }
}

/// An item: its status, and all that is recorded about it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ItemDocument<'a> {
    /// The status.
    #[serde(flatten)]
    status: ItemStatus,
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.show/1")))]
    schema: &'static str,
    /// The run.
    run: &'a RunId,
    /// The commit that items of the run start from.
    base: Oid,
    /// The addition of the item after the run was submitted; absent for an item of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Added<'a>>,
    /// The executor.
    executor: &'a str,
    /// The inputs.
    inputs: &'a Map<String, Value>,
    /// The needed products of others, each with the digest that was consumed.
    needs: BTreeMap<&'a FilePath, NeedShown>,
    /// The products.
    products: &'a BTreeMap<ProductKey, Product>,
    /// The manifest of its last attempt.
    manifest: Option<&'a Manifest>,
    /// The entries about it, oldest first.
    entries: &'a [Step<'a>],
    /// The work of its failed and interrupted attempts that is saved beside the run; absent if
    /// there is none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    saved: &'a [Saved],
}

/// The entry that added an item.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Added<'a> {
    /// The number of the entry.
    entry: u64,
    /// The cause.
    cause: &'a Cause,
}

/// A need of the plan, with the digest that was consumed.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NeedShown {
    /// The need as in the plan.
    #[serde(flatten)]
    #[cfg_attr(feature = "schemas", schemars(with = "NeedFields"))]
    need: Value,
    /// The digest of the consumed product.
    #[serde(rename = "ref")]
    digest: Option<Digest>,
}

/// The fields of a need.
#[cfg(feature = "schemas")]
#[derive(Serialize, schemars::JsonSchema)]
struct NeedFields {
    /// The run that `from` is an item of, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The thread that `from` is a checkpoint of.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    /// The source of the product.
    from: String,
    /// The product of the source.
    select: crate::model::plan::Selector,
    /// True if the worktree starts with the patch applied; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    apply: Option<bool>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (item, consumed) = (self.item(), self.consumed());
        let digest = |key: &FilePath| consumed.get(key).map(|input| input.digest);
        let needs = item.needs.iter().map(|(key, need)| (key, NeedShown { need: need.to_json(), digest: digest(key) }));
        let answer = ItemDocument {
            status: ItemStatus::from_view(self.view, self.at),
            schema: "git-handoff.show/1",
            run: &self.view.run,
            base: self.view.state.submitted.base,
            added: self.added().map(|(link, cause)| Added { entry: link.entry.seq, cause }),
            executor: &item.executor,
            inputs: &item.inputs,
            needs: needs.collect(),
            products: self.products(),
            manifest: self.manifest.as_ref(),
            entries: &self.steps,
            saved: &self.saved,
        };
        // The fields come in the order of their names.
        serde_json::to_value(answer).map_err(S::Error::custom)?.serialize(serializer)
    }
}
