//! Imports: products of other runs and states of threads that a plan uses. They are verified and
//! copied before the run is created, so that it depends only on itself.
//!
//! Sources must verify: a run must be sealed, a thread must be intact, and the reader's signers
//! must not have revoked either.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Seek as _;

use crate::git::store::Store;
use crate::ledger::prove;
use crate::model::catalog::Catalog;
use crate::model::causes::in_words;
use crate::model::continued::Continues;
use crate::model::credential::gate::Gate;
use crate::model::elsewhere::{Elsewhere, of_checkpoint};
use crate::model::entry::Product;
use crate::model::evidence::Evidence;
use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, ThreadId};
use crate::model::place::Place;
use crate::model::plan::{Item, Need, Plan, Produced, ProductKey, Selector, Source};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::thread::{CheckpointId, STATE};
use crate::repository::{Repository, Trust};
use crate::verify::{
    AtHand, HOW_TO_KNOW, LocalCopies, Logs, Options, Report, SignerSeen, Standpoint, State, ThreadSnapshot, Unproven,
    thread_at, verify_beside,
};

use crate::run::query::target::{self, Target, located};
use crate::run::query::view::View;

/// A product to seal with a run, with the evidence of its origin.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Found {
    pub product: Product,
    pub evidence: Vec<u8>,
}

/// The files of a continued run that the new run seals.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Carried {
    /// The artifacts.
    pub artifacts: BTreeMap<FilePath, Product>,
    pub continues: Continues,
    pub evidence: Vec<u8>,
}

/// All imports of a plan, by [`Need::import`].
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Imports {
    pub found: BTreeMap<String, Found>,
    /// Warnings about unknown keys.
    pub warnings: Vec<String>,
    /// The files of the run that this one continues.
    pub carried: Option<Carried>,
}

/// The reason why an import is rejected, and the field of the need that is wrong.
struct Refusal {
    field: &'static str,
    code: Code,
    why: String,
    near: Option<String>,
}

/// Finds the products that needs name. Each source is verified once.
struct Search<'r> {
    store: &'r Store,
    options: Options,
    logs: Logs,
    copies: LocalCopies,
    gate: Gate,
    runs: BTreeMap<String, Result<View, String>>,
    threads: BTreeMap<String, Result<ThreadSnapshot, String>>,
    warnings: Vec<String>,
}

impl Repository {
    /// Finds all imports of a plan.
    pub(crate) fn imports(&self, plan: &Plan, catalog: &Catalog) -> Result<Imports, Problems> {
        let mut problems = Problems::default();
        if plan.items.iter().flat_map(Item::elsewhere).next().is_none() {
            return Ok(Imports::default());
        }
        let options = self.options(&Trust::default(), &mut |_| ());
        let mut search = Search {
            store: &self.store,
            options: options.map_err(|error| unreadable_source(in_words(&error)))?,
            logs: Logs::read(&self.store).map_err(|error| unreadable_source(in_words(&error)))?,
            copies: LocalCopies::new(&self.store),
            gate: self.gate(),
            runs: BTreeMap::new(),
            threads: BTreeMap::new(),
            warnings: Vec::new(),
        };
        let mut found = BTreeMap::new();
        for (index, item) in plan.items.iter().enumerate() {
            let shape = catalog.shape(item.subagent_shape.as_ref());
            let pipeline = item.pipeline().and_then(|name| catalog.pipelines.find(name).ok());
            for (key, need, from) in item.elsewhere() {
                let at = JsonPath::root().key("items").index(index).key("needs").key(key.as_str());
                let by_shape = shape.and_then(|shape| shape.consumes.get(key.as_str()));
                let expected_type = by_shape.or_else(|| pipeline?.input_edge_types.get(key.as_str()));
                match search.find(from, &need.select, expected_type.map(String::as_str)) {
                    Ok(one) => drop(found.insert(from.import(&need.select), one)),
                    Err(Refusal { field, code, why, near }) => {
                        let at = if field.is_empty() { at } else { at.key(field) };
                        let problem = Problem::new(code, &at, why);
                        problems.push_near(problem, near.as_deref().unwrap_or_default(), near.as_deref());
                    }
                }
            }
        }
        if problems.is_empty() {
            Ok(Imports { found, warnings: search.warnings, carried: None })
        } else {
            Err(problems)
        }
    }
}

fn bad_source(why: String) -> Refusal {
    refused("", Code::BadSource, why)
}

/// Describes a source that cannot be read.
fn unreadable_source(why: String) -> Problems {
    Problems::from(Problem::new(Code::BadSource, &JsonPath::root(), why))
}

impl Search<'_> {
    fn find(&mut self, from: &Elsewhere, select: &Selector, expected_type: Option<&str>) -> Result<Found, Refusal> {
        let found = match from {
            Elsewhere::Item { item, .. } => self.of_item(&from.place(), item, select, expected_type)?,
            Elsewhere::Checkpoint { remote, thread, at } => {
                self.of_checkpoint(remote.as_ref(), thread, at.as_ref(), select)?
            }
        };
        self.check_bytes(&from.import(select), &found.product)?;
        Ok(found)
    }

    fn of_item(
        &mut self,
        place: &str,
        item: &ItemId,
        select: &Selector,
        expected_type: Option<&str>,
    ) -> Result<Found, Refusal> {
        let target = match Target::find(self.store, place) {
            Ok(target) => target,
            Err(target::Error::Unknown { name, near }) => {
                let why = format!("there is no run {name:?} here");
                return Err(Refusal { near, ..refused("run", Code::UnknownProducer, why) });
            }
            Err(other) => return Err(refused("run", Code::UnknownProducer, other.to_string())),
        };
        if !self.runs.contains_key(&target.reference) {
            let read = self.read_run(&target, place);
            self.runs.insert(target.reference.clone(), read);
        }
        let view = self.runs[&target.reference].as_ref().map_err(|why| refused("run", Code::BadSource, why.clone()))?;
        let at = target::item(view, item.as_str()).map_err(|error| {
            let near = match &error {
                target::Error::UnknownItem { near, .. } => near.clone(),
                _ => None,
            };
            Refusal { near, ..refused("from", Code::UnknownProducer, error.to_string()) }
        })?;
        let newest = view.state.newest_id(item);
        if newest != item {
            return Err(unusable_item(item, place, &format!("was replaced by {newest}: name that one")));
        }
        if view.state.items[at].red {
            return Err(unusable_item(item, place, "is red: its check did not pass"));
        }
        let key = select.product_key();
        // A patch contains the patches that it was built on.
        let below = if key == ProductKey::Patch { view.state.built_upon(at) } else { BTreeSet::new() };
        if let Some(red) = below.into_iter().find(|below| view.state.items[*below].red) {
            let red = &view.state.graph.item(red).id;
            return Err(unusable_item(
                item,
                place,
                &format!("builds on the patch of {red}, which is red: its check did not pass"),
            ));
        }
        check_type(view.state.graph.item(at), &key, expected_type)?;
        let proof = prove::item_of(self.store, &view.links, item, Some(&key)).map_err(|error| match error {
            prove::Error::NoProduct(..) => refused("select", Code::UndeclaredProduct, error.to_string()),
            other => unusable_item(item, place, &format!("cannot be proven: {other}")),
        })?;
        let product = proof
            .product
            .as_ref()
            .map(|handed| handed.is)
            .ok_or_else(|| refused("select", Code::UndeclaredProduct, format!("{item} has no product {key}")))?;
        Ok(Found { product, evidence: Evidence::Proof(Box::new(proof)).canonical() })
    }

    /// Reads a run if it is sealed and verifies.
    fn read_run(&mut self, target: &Target, place: &str) -> Result<View, String> {
        let at_hand = AtHand::logs(&self.logs);
        let report = verify_beside(&mut self.copies, &at_hand, &target.run, &target.reference, &self.options);
        let report = report.map_err(|e| e.to_string())?;
        if !report.sealed {
            return Err(format!("the run {place} is not sealed: its products are not signed yet"));
        }
        if let Some(why) = finding(&report) {
            return Err(format!("the run {place} does not verify: {why}"));
        }
        self.warn(&format!("the run {place}"), &report.signers);
        target.view(self.store).map_err(|error| error.to_string())
    }

    fn of_checkpoint(
        &mut self,
        remote: Option<&FilePath>,
        thread: &ThreadId,
        at: Option<&CheckpointId>,
        select: &Selector,
    ) -> Result<Found, Refusal> {
        let place = remote.map_or_else(|| thread.to_string(), |remote| format!("{remote}/{thread}"));
        if !self.threads.contains_key(&place) {
            let read = self.read_thread(remote, thread, &place)?;
            self.threads.insert(place.clone(), read);
        }
        let sound = self.threads[&place].as_ref().map_err(|why| refused("thread", Code::BadSource, why.clone()))?;
        let found = match at {
            Some(id) => sound.trail.find(id),
            None => sound.trail.latest(),
        };
        let checkpoint = found.ok_or_else(|| {
            refused("from", Code::UnknownProducer, format!("the thread {place} has no such checkpoint"))
        })?;
        let product = match of_checkpoint(&select.product_key()) {
            Some(STATE) => Some(checkpoint.content().state),
            Some(_) => checkpoint.content().packet,
            None => None,
        };
        let product = product
            .ok_or_else(|| refused("select", Code::UndeclaredProduct, format!("{} has no packet", checkpoint.id)))?;
        let (_, raw) = self
            .store
            .read(checkpoint.commit)
            .map_err(|error| refused("thread", Code::BadSource, error.to_string()))?;
        let commit = String::from_utf8(raw).map_err(|error| refused("thread", Code::BadSource, error.to_string()))?;
        Ok(Found { product, evidence: Evidence::Commits(vec![commit]).canonical() })
    }

    /// Reads a thread if it verifies.
    fn read_thread(
        &mut self,
        remote: Option<&FilePath>,
        thread: &ThreadId,
        place: &str,
    ) -> Result<Result<ThreadSnapshot, String>, Refusal> {
        let found = located(self.store, &Place::of_thread(thread), remote.map(FilePath::as_str));
        let found = found.map_err(|error| refused("thread", Code::UnknownProducer, error.to_string()))?;
        let (reference, tip) = found
            .ok_or_else(|| refused("thread", Code::UnknownProducer, format!("there is no thread {place:?} here")))?;
        let at =
            Standpoint { objects: self.store, home: self.store, thread, reference: &reference, place: &reference, tip };
        let examined = thread_at(&at, &self.logs, &self.options);
        let signers = examined.report.signers.clone();
        Ok(match examined.proven(false) {
            Ok(sound) => {
                self.warn(&format!("the thread {place}"), &signers);
                Ok((*sound).clone())
            }
            Err(Unproven::Tampered(why) | Unproven::Untrusted(why)) => {
                Err(format!("the thread {place} does not verify: {why}"))
            }
            Err(Unproven::Unread) => Err(format!("cannot read the thread {place} to its first entry")),
        })
    }

    /// Adds warnings about unknown keys.
    fn warn(&mut self, what: &str, signers: &[SignerSeen]) {
        for signer in signers.iter().filter(|signer| !signer.trusted) {
            let key = &signer.fingerprint;
            self.warnings.push(format!("{what} is by a key that is not known here: {key}; {HOW_TO_KNOW}"));
        }
    }

    /// Checks that the bytes are here, match the product, and contain no secret.
    fn check_bytes(&self, name: &str, product: &Product) -> Result<(), Refusal> {
        if !self.store.contains(product.oid) {
            return Err(bad_source(
                "the bytes are not here: fetch them first, because they are sealed with this run".to_owned(),
            ));
        }
        let mut copy = tempfile::tempfile().map_err(|error| bad_source(error.to_string()))?;
        let is = self.store.copy_blob(product.oid, &mut copy).map_err(|error| bad_source(error.to_string()))?;
        if is != (product.sha256, product.size) {
            return Err(bad_source("the bytes that are here do not match the product".to_owned()));
        }
        let scanned = copy.rewind().and_then(|()| self.gate.check_reader(name, &mut copy));
        match scanned.map_err(|error| bad_source(error.to_string()))? {
            Ok(()) => Ok(()),
            Err(secret) => Err(bad_source(secret.to_string())),
        }
    }
}

/// Refuses an item of a run.
fn unusable_item(item: &ItemId, place: &str, why: &str) -> Refusal {
    refused("from", Code::BadSource, format!("{item} of run {place} {why}"))
}

impl Item {
    /// Returns the needs for products from outside the run.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = (&FilePath, &Need, &Elsewhere)> {
        self.needs.iter().filter_map(|(key, need)| match &need.from {
            Source::Elsewhere(from) => Some((key, need, from)),
            _ => None,
        })
    }
}

/// Returns an error if the producer declares another type than the consumer takes.
fn check_type(producer: &Item, key: &ProductKey, expected_type: Option<&str>) -> Result<(), Refusal> {
    let mut declared = producer.produces.iter().flatten();
    let is = declared.find(|produced: &&Produced| produced.select.product_key() == *key);
    match is.and_then(|produced| produced.kind_of_type.as_deref()).zip(expected_type) {
        Some((makes, takes)) if makes != takes => {
            let why = format!("{} -> {key}: it is {makes}, and {takes} is wanted", producer.id);
            Err(refused("", Code::TypeMismatch, why))
        }
        _ => Ok(()),
    }
}

/// Returns the first failure of a report. Missing bytes are not a failure.
fn finding(report: &Report) -> Option<String> {
    let failed = report.rows.iter().find(|row| row.state == State::Failed);
    failed.map(|row| format!("{}: {}", row.name, row.detail))
}

fn refused(field: &'static str, code: Code, why: String) -> Refusal {
    Refusal { field, code, why, near: None }
}
