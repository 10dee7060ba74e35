//! Checks what entries record about protected files: recomputes the reference state and the changes
//! from the base and the consumed patches, if the base is here.

mod by_base;
mod by_patch;
mod not_recomputed;

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, counted};
use super::objects::Objects;
use super::render::OWN_KEY;
use crate::git::merge::Scratch;
use crate::git::patch_paths::{self, Changes, Side};
use crate::git::protected::Protection;
use crate::git::verified_stream;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::entry::{Event, ItemReconciled, Outcome, Product};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::outcome::PASSED;
use crate::model::plan::ProductKey;
use crate::model::protect_rule::{ProtectRule, are_bounded};
use crate::model::protected::{
    OnProtectedChange, ProtectedChange, allowed_in_words, in_words as changes_in_words, judged_in_words, pathspec_fault,
};
use crate::model::state::RunState;

use by_patch::Patched;
pub use not_recomputed::NotRecomputed;

/// An item whose patch changes protected files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProtectedItem {
    /// The item.
    pub item: ItemId,
    /// The changes.
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub changes: Vec<ProtectedChange>,
    /// True if the settings allowed the changes; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
    /// The key or the actor whose settings allowed the changes; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// True if a check that passed judged the changes; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The key that approved the changes; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    pub approved_by: Option<String>,
}

impl ProtectedItem {
    /// Returns the item of an entry, if that changes protected files.
    pub(super) fn from_entry(e: &ItemReconciled) -> Option<Self> {
        let (item, changes) = (e.item.clone(), e.protected.clone());
        let (allowed, judged) = (e.protected_allowed, e.protected_judged);
        (!changes.is_empty()).then_some(Self { item, changes, allowed, allowed_by: None, judged, approved_by: None })
    }

    /// Returns all items of a run, with the approvals of its final state.
    pub(super) fn all(case: &Case<'_>, state: Option<&RunState>) -> Vec<Self> {
        let ends = case.chain.links.iter().filter_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) => Self::from_entry(e),
            _ => None,
        });
        ends.map(|item| {
            let at = state.and_then(|state| state.graph.position(&item.item).map(|at| &state.items[at]));
            let approved_by = at.and_then(|item_state| item_state.approved_by.clone());
            let allowed_by = at.filter(|_| item.allowed).and_then(|item_state| item_state.allowed_by.clone());
            Self { allowed_by, approved_by, ..item }
        })
        .collect()
    }

    /// Returns true if the changes make the item red.
    pub fn is_red(&self) -> bool {
        !self.allowed && !self.judged && self.approved_by.is_none()
    }

    /// Describes the changes; `whose` names a key.
    pub(super) fn in_words(&self, whose: impl Fn(&str) -> String) -> String {
        let changes = changes_in_words(&self.changes);
        if self.judged {
            return format!("{}: {}: {changes}", judged_in_words(self.changes.len()), self.item);
        }
        let end = match &self.approved_by {
            Some(key) => format!(", approved by {}", whose(key)),
            None if self.allowed => {
                let whose = self.allowed_by.as_deref().map_or_else(|| "the driver".to_owned(), whose);
                if whose == OWN_KEY {
                    ", allowed by your settings".to_owned()
                } else {
                    format!(", {}", allowed_in_words(&whose))
                }
            }
            None => String::new(),
        };
        format!("{}: {changes}{end}", self.item)
    }
}

/// Checks the protected files of a run's items.
pub(super) struct ProtectedFiles<'c> {
    case: &'c Case<'c>,
    /// The manifest of the latest attempt of each item.
    manifests: HashMap<&'c ItemId, &'c Product>,
    /// A temporary index of the base, once one is needed, or the reason why there is none.
    scratch: OnceCell<Result<Scratch, &'static str>>,
    /// The paths of the base times the patches that were applied to it, if the base is not ours.
    work: Cell<u64>,
    /// A temporary index for selecting paths, once one is needed.
    selector: OnceCell<Result<Scratch, String>>,
    /// The patches of items that protect files.
    patched: Vec<Patched<'c>>,
    recomputed: usize,
    not_recomputed: Vec<NotRecomputed>,
    /// Items whose rules select no file.
    unmatched: Vec<&'c ItemId>,
}

impl<'c> ProtectedFiles<'c> {
    pub(super) fn new(case: &'c Case<'c>) -> Self {
        Self {
            case,
            manifests: HashMap::new(),
            scratch: OnceCell::new(),
            work: Cell::new(0),
            selector: OnceCell::new(),
            patched: Vec::new(),
            recomputed: 0,
            not_recomputed: Vec::new(),
            unmatched: Vec::new(),
        }
    }

    /// Notes the manifest of a dispatch.
    pub(super) fn note_manifest(&mut self, item: &'c ItemId, manifest: &'c Product) {
        self.manifests.insert(item, manifest);
    }

    /// Checks the end of an item, in the state after it.
    pub(super) fn check(&mut self, state: &RunState, seq: u64, e: &'c ItemReconciled, findings: &mut Findings) {
        if e.status != Outcome::Done || e.reused.is_some() {
            return;
        }
        let objects = Objects::new(self.case.store);
        let bytes = self
            .manifests
            .get(&e.item)
            .and_then(|product| objects.read_product(product, self.case.lazy, bounds::MANIFEST).ok());
        // The row `manifest` reports a missing or invalid one.
        let Some(manifest) = bytes.and_then(|bytes| Manifest::parse(&bytes).ok()) else { return };
        let mut report = |why: String| report_at(findings, seq, e, &why);
        let mut start_is_open = None;
        if manifest.start.is_some() {
            match self.recompute_start(state, &e.item) {
                Ok(Err(reason)) => start_is_open = Some(reason),
                Ok(Ok(start)) if Some(start) == manifest.start => {}
                Ok(Ok(_)) => return report("the manifest names another tree than the item begins on".to_owned()),
                Err(why) => return report(why),
            }
        }
        if manifest.protect.is_empty() {
            if e.reference.is_some() || !e.protected.is_empty() || e.protected_allowed || e.protected_judged {
                report("the manifest protects none".to_owned());
            }
            return;
        }
        let pathspecs = manifest.protect.iter().flat_map(ProtectRule::pathspecs);
        if pathspecs.into_iter().any(|it| pathspec_fault(it).is_some()) || !are_bounded(&manifest.protect) {
            return report("the manifest has rules that cannot protect files".to_owned());
        }
        let effect = manifest.on_protected_change;
        let is_withheld = match self.is_withheld(state, e, effect) {
            Ok(is_withheld) => is_withheld,
            Err(why) => return report(why),
        };
        let passes = |by: OnProtectedChange| effect == by && !e.protected.is_empty();
        let is_judged = passes(OnProtectedChange::Judge) && e.verify == Some(PASSED);
        if e.protected_allowed != (passes(OnProtectedChange::Allow) && !is_withheld) {
            report("the manifest and the entry disagree on whether changes are allowed".to_owned());
        } else if e.protected_judged != is_judged {
            report("the manifest, the check and the entry disagree on whether changes are judged".to_owned());
        } else if e.reference.is_none() {
            report("the entry names no reference state".to_owned());
        } else {
            let recomputed = start_is_open.map_or_else(|| self.recompute(state, e, &manifest), |why| Ok(Err(why)));
            match recomputed {
                Ok(Ok(files)) => {
                    self.recomputed += 1;
                    self.unmatched.extend((files == 0).then_some(&e.item));
                }
                Ok(Err(reason)) => self.not_recomputed.push(NotRecomputed { item: e.item.clone(), reason }),
                Err(why) => report(why),
            }
            match self.patched(state, (seq, e), manifest.protect) {
                Ok(patched) => self.patched.extend(patched),
                Err(malformed) => report(malformed.to_string()),
            }
        }
    }

    /// Compares the collected patches with their entries.
    fn compare(&mut self, findings: &mut Findings) {
        let patched = std::mem::take(&mut self.patched);
        if patched.is_empty() {
            return;
        }
        match self.selector() {
            Ok(scratch) => {
                by_patch::compare(scratch, &patched, &mut |one, why| report_at(findings, one.seq, one.end, &why));
            }
            Err(error) => patched.iter().for_each(|one| report_at(findings, one.seq, one.end, error)),
        }
    }

    /// Returns a temporary index for asking git which paths pathspecs select.
    fn selector(&self) -> Result<&Scratch, &str> {
        let scratch = self.selector.get_or_init(|| {
            let last = self.case.chain.links.last().expect("an item ended");
            Scratch::isolated(self.case.store, last.commit).map_err(|error| in_words(&error))
        });
        scratch.as_ref().map_err(String::as_str)
    }

    /// Returns true if settings would allow changes to files that the plan protects, which they
    /// cannot.
    fn is_withheld(&self, state: &RunState, e: &ItemReconciled, effect: OnProtectedChange) -> Result<bool, String> {
        let item = state.graph.item(state.graph.position(&e.item).ok_or("the item is unknown")?);
        if effect != OnProtectedChange::Allow || item.protect.is_empty() || e.protected.is_empty() {
            return Ok(false);
        }
        let protection = Protection::new(self.selector()?, &item.protect);
        protection.selects_any_of(&e.protected).map_err(|error| in_words(&error))
    }

    /// Returns the paths that an item's patch changes, or `None` if the patch is not here.
    fn patched(
        &self,
        state: &RunState,
        (seq, e): (u64, &'c ItemReconciled),
        protect: BTreeSet<ProtectRule>,
    ) -> Result<Option<Patched<'c>>, patch_paths::Malformed> {
        let read = |patch: &Product| verified_stream::read(self.case.store, patch.oid, &[patch.sha256]);
        let changes = match e.products.get(&ProductKey::Patch).map(read) {
            None => Changes::new(),
            // The row `content` reports a missing or wrong patch.
            Some(Err(_)) => return Ok(None),
            Some(Ok(patch)) => patch_paths::read(&patch)?,
        };
        let mut others: BTreeMap<_, Vec<Side>> = BTreeMap::new();
        let at = state.graph.position(&e.item).expect("an item that ended is in the run");
        let applied = state.applied(at).into_iter().filter_map(|on| state.items[on].products.get(&ProductKey::Patch));
        let before = state.items[at].reference.values().chain(applied).filter(|_| !changes.is_empty());
        // An unreadable patch changes nothing here: the row `content` or its own item reports it.
        for other in before.filter_map(|patch| patch_paths::read(&read(patch).ok()?).ok()) {
            for (path, change) in other.into_iter().filter(|(path, _)| changes.contains_key(path)) {
                others.entry(path).or_default().extend([change.old, change.new]);
            }
        }
        Ok(Some(Patched { seq, end: e, protect, changes, others }))
    }

    /// Compares the patches of all items with their entries. Returns the end of the row's detail,
    /// and the items that were not recomputed.
    pub(super) fn conclude(mut self, findings: &mut Findings) -> (String, Vec<NotRecomputed>) {
        self.compare(findings);
        let recomputed = match self.recomputed {
            0 => String::new(),
            count => format!(", protected files of {} recomputed", counted(count, "item", "items")),
        };
        let unmatched = match &self.unmatched[..] {
            [] => String::new(),
            [item] => format!(", {item} protects 0 files"),
            [first, others @ ..] => format!(", {first} and {} more protect 0 files", others.len()),
        };
        let open = NotRecomputed::in_words(&self.not_recomputed);
        let open = open.map(|items| format!(", protected files of {items}")).unwrap_or_default();
        (recomputed + &unmatched + &open, self.not_recomputed)
    }
}

fn report_at(findings: &mut Findings, seq: u64, e: &ItemReconciled, why: &str) {
    let why = format!("the protected files of {} #{}: {why}", e.item, e.attempt);
    findings.report_at(At::entry(seq).for_item(&e.item), Code::Protected, why);
}
