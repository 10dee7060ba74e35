//! The row `handoff`: each attempt consumed the products that the plan binds its needs to.

use crate::model::digest::Digest;
use crate::model::document::Author;
use crate::model::entry::{InputRef, ItemFired};
use crate::model::plan::{Need, Selector, Source};
use crate::model::state::{Phase, RunState};

use super::codes::Code;
use super::findings::{At, Findings, Verdict, counted};
use super::imports::{ImportKind, Imported, Invalid};

#[derive(Default)]
pub(super) struct Handoff {
    findings: Findings,
    refs: usize,
    /// The number of items with proven products of other runs.
    reused: usize,
    /// The number of proven products from other runs and threads.
    imported: usize,
    /// True in a partial or shallow clone.
    shallow: bool,
}

impl Handoff {
    pub(super) fn new(shallow: bool) -> Self {
        Self { shallow, ..Self::default() }
    }

    /// Checks a dispatch; `state` is the run's state before it.
    pub(super) fn check_dispatch(&mut self, state: &RunState, seq: u64, fired: &ItemFired) {
        self.refs += fired.input_refs.len();
        let item = &fired.item;
        let Some(at) = state.graph.position(item) else {
            let refs: Vec<_> =
                fired.input_refs.iter().map(|(key, it)| format!("{key} ({})", it.digest.short())).collect();
            let refs = if refs.is_empty() { "no refs".to_owned() } else { refs.join(", ") };
            let why = format!("item {item} is not in the plan and consumed {refs}");
            return self.findings.report_at(At::entry(seq).for_item(item), Code::UnknownItem, why);
        };
        let needs = &state.graph.item(at).needs;
        for (key, need) in needs {
            match fired.input_refs.get(key) {
                None => {
                    let why = format!("item {item}, attempt {}: need {key} was not consumed", fired.attempt);
                    self.findings.report_at(At::entry(seq).for_item(item).path(key.as_str()), Code::Need, why);
                }
                Some(input) => {
                    if let Err((code, why)) = check_input(state, need, input) {
                        let (place, digest) = (At::entry(seq).for_item(item).path(key.as_str()), input.digest.short());
                        let why = format!("item {item}, input {key}: {digest} was consumed, but {why}");
                        self.findings.report_at(place, code, why);
                    }
                }
            }
        }
        for (key, input) in fired.input_refs.iter().filter(|(key, _)| !needs.contains_key(*key)) {
            let digest = input.digest.short();
            let why = format!("item {item}, input {key}: {digest} was consumed, but {key} belongs to no need");
            self.findings.report_at(At::entry(seq).for_item(item).path(key.as_str()), Code::Input, why);
        }
    }

    pub(super) fn add_imports(&mut self, imports: &[Imported]) {
        for Imported { seq, label, kind, found } in imports {
            let at = At::entry(*seq);
            match found {
                Ok(_) => match kind {
                    ImportKind::Product => self.imported += 1,
                    ImportKind::Item => self.reused += 1,
                    ImportKind::Run => {}
                },
                Err(Invalid::Differs(why)) => {
                    self.findings.report_at(at, Code::Proof, format!("{label} does not hold: {why}"));
                }
                Err(Invalid::Fault(fault)) => self.findings.report_fault_at(at, Code::Proof, label, fault),
            }
        }
    }

    pub(super) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Returns true if a dispatch so far contradicts the plan.
    pub(super) fn is_contradicted(&self) -> bool {
        self.findings.is_contradicted()
    }

    pub(super) fn verdict(self) -> Verdict {
        let refs = counted(self.refs, "input ref", "input refs");
        let tail = if self.refs == 0 { "" } else { " accounted for" };
        let reused = match self.reused {
            0 => String::new(),
            count => format!(", {} of other runs proven", counted(count, "item", "items")),
        };
        let imported = match self.imported {
            0 => String::new(),
            count => format!(", {} from elsewhere proven", counted(count, "product", "products")),
        };
        self.findings.verdict(self.shallow, || refs + tail + &imported + &reused)
    }
}

fn check_input(state: &RunState, need: &Need, input: &InputRef) -> Result<(), (Code, String)> {
    if (&input.from, &input.select) != (&need.from, &need.select) {
        let why = format!("the plan binds it to {} of {}", need.select.product_key(), need.from);
        return Err((Code::Input, why));
    }
    let bound = bound_digest(state, need).map_err(|why| (Code::InputBytes, why))?;
    if bound == input.digest {
        return Ok(());
    }
    Err((Code::InputBytes, format!("{} of {} is {}", need.select.product_key(), need.from, bound.short())))
}

/// Returns the digest to which a need is bound at this point of the run.
fn bound_digest(state: &RunState, need: &Need) -> Result<Digest, String> {
    match (&need.from, &need.select) {
        (Source::Documents, Selector::Document { name, schema }) => {
            let revision = state.documents.latest(name).ok_or_else(|| format!("there was no document {name} yet"))?;
            if let Some(required) = schema.as_ref().filter(|required| !required.admits(revision.schema.as_ref())) {
                return Err(format!("revision {} of document {name} is not {required}", revision.number));
            }
            Ok(revision.product.sha256)
        }
        (Source::Item(producer), select) => {
            let done =
                state.graph.position(producer).map(|at| &state.items[at]).filter(|item| item.phase == Phase::Done);
            let done = done.ok_or_else(|| format!("{producer} was not done"))?;
            let product = done.products.get(&select.product_key());
            if let Selector::Document { name, schema: Some(required) } = select {
                let mut revisions = state.documents.revisions(name).iter();
                let own = revisions.find(|revision| revision.author == Author::Item(producer.clone()));
                if !required.admits(own.and_then(|revision| revision.schema.as_ref())) {
                    return Err(format!("document {name} of {producer} is not {required}"));
                }
            }
            product
                .map(|product| product.sha256)
                .ok_or_else(|| format!("{producer} did not produce {}", select.product_key()))
        }
        (Source::Artifacts, Selector::Output { path }) => {
            let sealed = state.submitted.artifacts.get(path).map(|sealed| sealed.sha256);
            sealed.ok_or_else(|| format!("no artifact {path} was sealed at submit"))
        }
        (Source::Elsewhere(_), _) => {
            let sealed = state.submitted.import(need).map(|import| import.product.sha256);
            sealed.ok_or_else(|| format!("no {} of {} was sealed at submit", need.select.product_key(), need.from))
        }
        (Source::Artifacts | Source::Documents, _) => Err(format!("{} has no such product", need.from)),
    }
}
