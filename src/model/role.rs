//! Authorization: keys and their roles, from entry 0 and later admissions.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::driver::Because;
use super::entry::Again;
use super::event::Event;
use super::name::ItemId;
use super::submitted::{RunSubmitted, fingerprint};
use super::words::words;

words! {
    word
    /// A role of a key in a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// Owns the run: admits keys, adds and cancels items, closes it.
        Own = "own",
        /// Drives the run: dispatches items and records results.
        Work = "work",
        /// Approves and rejects.
        Approve = "approve",
        /// Writes documents.
        Document = "document",
        /// Seals the run. In entry 0 part of `own` and `work`; later only an owner from entry 0 can
        /// give it.
        Seal = "seal",
    }
}

impl Role {
    /// The roles in entry 0 of an unrestricted key.
    pub const SUBMITTER: [Self; 4] = [Self::Own, Self::Work, Self::Approve, Self::Document];
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.word() == text);
        role.ok_or_else(|| format!("{text:?} is no role; the roles are own, work, approve, document and seal"))
    }
}

/// The fields of `run.admitted`: an additional role for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunAdmitted {
    /// The fingerprint of the key.
    #[serde(deserialize_with = "fingerprint")]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub key: String,
    /// The role.
    pub role: Role,
    /// The leaf hash of entry 0, only for the role `seal`, because a proof has this entry and none
    /// in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Digest>,
}

impl RunAdmitted {
    /// Returns the admission of a key to a role other than `seal`.
    pub fn new(key: String, role: Role) -> Self {
        Self { key, role, first: None }
    }

    /// Returns what people read of it.
    pub(super) fn details(&self) -> String {
        format!("the key {} has the role {}", self.key, self.role)
    }

    /// Returns true if entry 0 is named exactly for the role `seal`.
    pub(super) fn is_bound(&self) -> bool {
        self.first.is_some() == (self.role == Role::Seal)
    }
}

/// The fields of `run.dismissed`: a key has no role from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunDismissed {
    /// The fingerprint of the key.
    #[serde(deserialize_with = "fingerprint")]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub key: String,
}

impl RunDismissed {
    /// Returns the dismissal of a key.
    pub fn new(key: String) -> Self {
        Self { key }
    }

    /// Returns what people read of it.
    pub(super) fn details(&self) -> String {
        format!("the key {} has no role any more", self.key)
    }
}

/// The authorized keys at a point of a chain, with roles.
///
/// Computed from the entries; [`Keys::take`] applies the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    roles: BTreeMap<String, BTreeSet<Role>>,
    /// The owners in entry 0, who alone can give the role `seal`.
    owners: BTreeSet<String>,
    /// The keys in entry 0, which cannot be dismissed.
    initial: BTreeSet<String>,
    /// The running items that a driver holds, each with the key of its dispatch, if known.
    dispatchers: BTreeMap<ItemId, Option<String>>,
}

/// Returns keys with every role.
pub fn every_role(keys: impl IntoIterator<Item = String>) -> BTreeMap<String, BTreeSet<Role>> {
    keys.into_iter().map(|key| (key, BTreeSet::from(Role::ALL))).collect()
}

impl Keys {
    /// Returns the keys of entry 0.
    pub fn from_submitted(submitted: &RunSubmitted) -> Self {
        let mut roles = submitted.roles.clone();
        for key_roles in roles.values_mut().filter(|roles| roles.contains(&Role::Own) || roles.contains(&Role::Work)) {
            key_roles.insert(Role::Seal);
        }
        let owners = roles.iter().filter(|(_, roles)| roles.contains(&Role::Own)).map(|(key, _)| key.clone()).collect();
        let initial = roles.keys().cloned().collect();
        Self { roles, owners, initial, dispatchers: BTreeMap::new() }
    }

    /// Applies an authorized entry that `key` signed, if its signature was checked.
    pub fn take(&mut self, event: &Event, key: Option<&str>) {
        match event {
            Event::RunAdmitted(e) => self.admit(e),
            Event::RunDismissed(e) => drop(self.roles.remove(&e.key)),
            Event::ItemFired(e) if e.driver.is_some() => {
                self.dispatchers.insert(e.item.clone(), key.map(str::to_owned));
            }
            _ => {
                if let Some((item, _)) = event.item() {
                    self.dispatchers.remove(item);
                }
            }
        }
    }

    /// Returns true if a key can be dismissed: it has a role, and neither entry 0 nor the role
    /// `seal` protects it.
    pub(super) fn is_dismissable(&self, key: &str) -> bool {
        self.roles.contains_key(key) && !self.initial.contains(key) && !self.has(key, Role::Seal)
    }

    /// Returns the running items that a driver holds and whose dispatching key is unknown.
    pub fn unknown_dispatchers(&self) -> BTreeSet<ItemId> {
        self.dispatchers.iter().filter(|(_, key)| key.is_none()).map(|(item, _)| item.clone()).collect()
    }

    /// Names the key that dispatched the running attempt of an item.
    pub fn set_dispatcher(&mut self, item: ItemId, key: String) {
        self.dispatchers.insert(item, Some(key));
    }

    /// Returns the key of the dispatch of a running item that a driver holds, if known.
    pub fn dispatcher(&self, item: &ItemId) -> Option<&str> {
        self.dispatchers.get(item)?.as_deref()
    }

    /// Gives a key a role.
    pub(super) fn admit(&mut self, e: &RunAdmitted) {
        self.roles.entry(e.key.clone()).or_default().insert(e.role);
    }

    /// Returns true if a key has any role.
    pub fn knows(&self, key: &str) -> bool {
        self.roles.contains_key(key)
    }

    /// Returns true if a key has a role.
    pub fn has(&self, key: &str, role: Role) -> bool {
        self.roles.get(key).is_some_and(|roles| roles.contains(&role))
    }

    /// Returns the keys with their roles.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<Role>)> {
        self.roles.iter().map(|(key, roles)| (key.as_str(), roles))
    }

    /// Returns the reason why a key may not append an event, if any.
    pub fn refuse(&self, key: &str, event: &Event) -> Option<Refused> {
        let Some(roles) = self.roles.get(key) else { return Some(Refused::Stranger) };
        let required = self.required_roles(event);
        if !required.is_empty() && !required.iter().any(|role| roles.contains(role)) {
            return Some(Refused::Role(required));
        }
        let seals = matches!(event, Event::RunAdmitted(e) if e.role == Role::Seal);
        if seals && !self.owners.contains(key) {
            return Some(Refused::Admission);
        }
        let ends = self.held_by(event).and_then(Option::as_deref);
        if ends.is_some_and(|holder| holder != key) {
            return Some(Refused::Holder);
        }
        self.claims_dismissal_falsely(event).then_some(Refused::Dismissal)
    }

    /// Returns true if the event takes an attempt because its key was dismissed, and that key has a
    /// role.
    fn claims_dismissal_falsely(&self, event: &Event) -> bool {
        let Event::ItemRequeued(e) = event else { return false };
        e.because == Some(Because::Dismissed) && self.dispatcher(&e.item).is_some_and(|holder| self.knows(holder))
    }

    /// Returns the key of the holder whose attempt the event ends in the holder's name.
    fn held_by(&self, event: &Event) -> Option<&Option<String>> {
        let (item, driver) = match event {
            Event::ItemReconciled(e) => (&e.item, &e.driver),
            Event::ItemRetried(e) => (&e.item, &e.driver),
            Event::ItemRequeued(e) if e.reason != Again::Lost => (&e.item, &e.driver),
            _ => return None,
        };
        driver.as_ref().and_then(|_| self.dispatchers.get(item))
    }

    /// Returns the roles of which one is required for an event; empty if any key of the run may
    /// append it.
    ///
    /// Only an owner takes a running attempt from its driver without naming the driver.
    fn required_roles(&self, event: &Event) -> &'static [Role] {
        match event {
            Event::ItemRequeued(e) if e.reason == Again::Operator && e.driver.is_some() => &[Role::Work],
            Event::ItemRequeued(e) if e.reason == Again::Operator && self.dispatchers.contains_key(&e.item) => {
                &[Role::Own]
            }
            event => event.roles(),
        }
    }
}

errors! {
    /// The reason why a key may not append an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)] pub enum Refused;
    Stranger: "which is not among the run's writers";
    Role(&'static [Role]): "which does not have the role {}" [either(.0)];
    Admission: "which entry 0 does not name as an owner, and so cannot give the role seal";
    Holder: "which did not dispatch the attempt";
    Dismissal: "which takes an attempt as that of a dismissed key, and the key that dispatched it has a role";
}

fn either(roles: &[Role]) -> String {
    roles.iter().map(|role| role.word()).collect::<Vec<_>>().join(" or ")
}
