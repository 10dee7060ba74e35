//! Checks what entries record about protected files: recomputes the reference state and the changes
//! from the base and the consumed patches, if the base is here.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde::Serialize;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, counted};
use super::objects::Objects;
use super::tree::Slot;
use crate::git::merge::Scratch;
use crate::git::protected::{Consumed, Protection};
use crate::git::start::{self, Starts};
use crate::git::verified_stream;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::{Event, ItemReconciled, Outcome, Product};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::outcome::PASSED;
use crate::model::plan::ProductKey;
use crate::model::protected::{OnProtectedChange, ProtectedChange, in_words as changes_in_words, judged_in_words};
use crate::model::state::RunState;

/// An item whose patch changes protected files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "docs/schema/verify.json describes the fields")]
pub struct ProtectedItem {
    pub item: ItemId,
    pub changes: Vec<ProtectedChange>,
    /// True if the settings allowed the changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
    /// True if a check that passed judged the changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The key that approved the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

impl ProtectedItem {
    /// Returns the item of an entry, if that changes protected files.
    pub(super) fn of(e: &ItemReconciled) -> Option<Self> {
        let (item, changes) = (e.item.clone(), e.protected.clone());
        let (allowed, judged) = (e.protected_allowed, e.protected_judged);
        (!changes.is_empty()).then_some(Self { item, changes, allowed, judged, approved_by: None })
    }

    /// Returns all items of a run, with the approvals of its final state.
    pub(super) fn all(case: &Case<'_>, state: Option<&RunState>) -> Vec<Self> {
        let ends = case.chain.links.iter().filter_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) => Self::of(e),
            _ => None,
        });
        let with_approval = |item: Self| {
            let at = state.and_then(|state| state.graph.position(&item.item).map(|at| &state.items[at]));
            Self { approved_by: at.and_then(|state| state.approved_by.clone()), ..item }
        };
        ends.map(with_approval).collect()
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
            None if self.allowed => ", allowed by the settings".to_owned(),
            None => String::new(),
        };
        format!("{}: {changes}{end}", self.item)
    }
}

/// Checks the protected files of a run's items.
pub(super) struct ProtectedFiles<'c> {
    case: &'c Case<'c>,
    /// The manifest of the latest attempt of each item.
    manifests: HashMap<&'c ItemId, &'c Slot>,
    /// A temporary index of the base, once one is needed; `None` inside if the base is missing.
    scratch: OnceCell<Option<Scratch>>,
    recomputed: usize,
    unknown: usize,
    /// Items whose pathspecs select no file.
    unmatched: Vec<&'c ItemId>,
}

impl<'c> ProtectedFiles<'c> {
    pub(super) fn new(case: &'c Case<'c>) -> Self {
        Self {
            case,
            manifests: HashMap::new(),
            scratch: OnceCell::new(),
            recomputed: 0,
            unknown: 0,
            unmatched: Vec::new(),
        }
    }

    /// Notes the manifest of a dispatch.
    pub(super) fn note_manifest(&mut self, item: &'c ItemId, manifest: &'c Slot) {
        self.manifests.insert(item, manifest);
    }

    /// Checks the end of an item, in the state after it.
    pub(super) fn check(&mut self, state: &RunState, e: &'c ItemReconciled, findings: &mut Findings) {
        if e.status != Outcome::Done || e.reused.is_some() {
            return;
        }
        let objects = Objects::new(self.case.store);
        let held = self.manifests.get(&e.item).and_then(|slot| slot.read(&objects, self.case.lazy, bounds::MANIFEST));
        // The row `manifest` reports a missing or invalid one.
        let Some(manifest) = held.and_then(Result::ok).and_then(|bytes| Manifest::parse(&bytes).ok()) else { return };
        let mut report = |why: String| {
            let why = format!("the protected files of {} #{}: {why}", e.item, e.attempt);
            findings.report_at(At::item(&e.item), Code::Protected, why);
        };
        let mut is_start_here = true;
        if manifest.start.is_some() {
            match self.recompute_start(state, &e.item, &manifest) {
                Ok(None) => is_start_here = false,
                Ok(start) if start == manifest.start => {}
                Ok(_) => return report("the manifest names another tree than the item begins on".to_owned()),
                Err(why) => return report(why),
            }
        }
        if manifest.protect.is_empty() {
            if e.reference.is_some() || !e.protected.is_empty() || e.protected_judged {
                report("the manifest protects none".to_owned());
            }
            return;
        }
        let effect = manifest.on_protected_change;
        let passes = |by: OnProtectedChange| effect == by && !e.protected.is_empty();
        let is_judged = passes(OnProtectedChange::Judge) && e.verify == Some(PASSED);
        if e.protected_allowed != passes(OnProtectedChange::Allow) {
            report("the manifest and the entry disagree on whether changes are allowed".to_owned());
        } else if e.protected_judged != is_judged {
            report("the manifest, the check and the entry disagree on whether changes are judged".to_owned());
        } else if e.reference.is_none() {
            report("the entry names no reference state".to_owned());
        } else if !is_start_here {
            self.unknown += 1;
        } else {
            match self.recompute(state, e, &manifest) {
                Ok(Some(files)) => {
                    self.recomputed += 1;
                    self.unmatched.extend((files == 0).then_some(&e.item));
                }
                Ok(None) => self.unknown += 1,
                Err(why) => report(why),
            }
        }
    }

    /// Returns the temporary index of the base, or `None` if the base is missing.
    fn scratch(&self, manifest: &Manifest) -> Option<&Scratch> {
        let store = self.case.store;
        let scratch = self.scratch.get_or_init(|| {
            let is_here = store.contains(manifest.base);
            is_here.then(|| Scratch::apart(store, manifest.base).ok()).flatten()
        });
        scratch.as_ref()
    }

    /// Returns the base with the patches that an item's needs apply, or `None` if objects are
    /// missing.
    fn recompute_start(&self, state: &RunState, item: &ItemId, manifest: &Manifest) -> Result<Option<Oid>, String> {
        let Some(scratch) = self.scratch(manifest) else { return Ok(None) };
        let at = state.graph.position(item).ok_or("the item is unknown")?;
        let store = self.case.store;
        let read = |_, patch: Product| verified_stream::read(store, patch.oid, &[patch.sha256]);
        match Starts::new(scratch, state).start(at, &read) {
            Ok(start) => Ok(Some(start)),
            Err(start::Error::Read(_)) => Ok(None),
            Err(error) => Err(in_words(&error)),
        }
    }

    /// Compares an entry with the recomputed state. Returns the number of protected files, or
    /// `None` if objects are missing.
    fn recompute(&self, state: &RunState, e: &ItemReconciled, manifest: &Manifest) -> Result<Option<usize>, String> {
        let store = self.case.store;
        let Some(scratch) = self.scratch(manifest) else { return Ok(None) };
        let at = state.graph.position(&e.item).ok_or("the item is unknown")?;
        // The row `content` reports a missing or wrong patch.
        let read = |patch: Product| verified_stream::read(store, patch.oid, &[patch.sha256]);
        let mut starts = Starts::new(scratch, state);
        let mut patches = Vec::new();
        for (on, patch, includes) in state.in_order(&state.items[at].reference) {
            match starts.start(on, &|_, patch| read(patch)) {
                Ok(start) => patches.push((patch, Some(start), includes)),
                Err(start::Error::Read(_)) => return Ok(None),
                Err(error) => return Err(in_words(&error)),
            }
        }
        let Ok(consumed) = Consumed::read(patches, read) else { return Ok(None) };
        let protection = Protection::new(scratch, &manifest.protect);
        let start = manifest.start.unwrap_or(scratch.base());
        let reference = protection.reference(start, &consumed).map_err(|error| in_words(&error))?;
        if Some(protection.tree(&reference).map_err(|error| in_words(&error))?) != e.reference {
            return Err("the entry names another reference state".to_owned());
        }
        let product = match e.products.get(&ProductKey::Patch) {
            None => start,
            Some(patch) => {
                let Ok(patch) = read(*patch) else { return Ok(None) };
                scratch.patched_on(start, patch).map_err(|error| in_words(&error))?
            }
        };
        let changes = protection.changes(&reference, product).map_err(|error| in_words(&error))?;
        if changes == e.protected {
            return Ok(Some(reference.files.len().max(reference.base.len())));
        }
        let (found, recorded) = (changes.len(), e.protected.len());
        Err(format!("the patch changes {found}, and the entry lists {recorded} or others"))
    }

    /// Returns the end of the row's detail.
    pub(super) fn detail(&self) -> String {
        let of = |count| counted(count, "item", "items");
        let recomputed = match (self.recomputed, self.unknown) {
            (0, 0) => String::new(),
            (recomputed, 0) => format!(", protected files of {} recomputed", of(recomputed)),
            (0, unknown) => format!(", protected files of {} not recomputed without the base", of(unknown)),
            (recomputed, unknown) => {
                format!(
                    ", protected files of {} recomputed, of {} not without all objects",
                    of(recomputed),
                    of(unknown)
                )
            }
        };
        let unmatched = match &self.unmatched[..] {
            [] => String::new(),
            [item] => format!(", {item} protects 0 files"),
            [first, others @ ..] => format!(", {first} and {} more protect 0 files", others.len()),
        };
        recomputed + &unmatched
    }
}
