//! Who may append what to a run: the keys that entry 0 names and those that were admitted since, each with its roles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::entry::Again;
use super::event::Event;
use super::extension::Cause;
use super::submitted::{RunSubmitted, fingerprint};

/// What a key may do in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decide about the run: admit keys, add and cancel items, close it.
    Own,
    /// Conduct it: dispatch items and record what came of them.
    Work,
    /// Decide about what waits for people.
    Approve,
    /// Put documents on it.
    Document,
    /// Seal it. Entry 0 gives this with `own` and with `work`; only a key that owns the run from entry 0 on gives it later.
    Seal,
}

impl Role {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 5] = [Self::Own, Self::Work, Self::Approve, Self::Document, Self::Seal];

    /// Those that entry 0 spells out for a key that may do everything.
    pub const SUBMITTER: [Self; 4] = [Self::Own, Self::Work, Self::Approve, Self::Document];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Work => "work",
            Self::Approve => "approve",
            Self::Document => "document",
            Self::Seal => "seal",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.word() == text);
        role.ok_or_else(|| format!("{text:?} is no role; the roles are own, work, approve, document and seal"))
    }
}

/// The fields of `run.admitted`: a key gets a role, besides those that it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAdmitted {
    /// The fingerprint of the key.
    #[serde(deserialize_with = "fingerprint")]
    pub key: String,
    /// The role.
    pub role: Role,
    /// The leaf hash of entry 0, for the role `seal` and no other: a proof shows this entry and none between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Digest>,
}

impl RunAdmitted {
    /// Returns true if the entry names entry 0 exactly where its role is `seal`.
    pub(super) fn is_bound(&self) -> bool {
        self.first.is_some() == (self.role == Role::Seal)
    }
}

/// The keys that may append to a run at some point of its chain, each with its roles.
///
/// It follows from the entries up to there; [`Keys::take`] goes on from one to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    roles: BTreeMap<String, BTreeSet<Role>>,
    /// The owners that entry 0 names: no other key admits one that seals.
    owners: BTreeSet<String>,
}

impl Keys {
    /// Returns those that entry 0 names. Where it says nothing of roles, each has every one.
    pub fn of(submitted: &RunSubmitted) -> Self {
        let every = || BTreeSet::from(Role::ALL);
        let of = |key: &String| match &submitted.roles {
            Some(roles) => roles.get(key).cloned().unwrap_or_default(),
            None => every(),
        };
        let mut roles: BTreeMap<String, BTreeSet<Role>> =
            submitted.writers.iter().map(|key| (key.clone(), of(key))).collect();
        for roles in roles.values_mut().filter(|roles| roles.contains(&Role::Own) || roles.contains(&Role::Work)) {
            roles.insert(Role::Seal);
        }
        let owns = |(key, roles): (&String, &BTreeSet<Role>)| roles.contains(&Role::Own).then(|| key.clone());
        let owners = roles.iter().filter_map(owns).collect();
        Self { roles, owners }
    }

    /// Takes in an entry that a key signed, which must be one that this key may append.
    pub fn take(&mut self, event: &Event) {
        if let Event::RunAdmitted(e) = event {
            self.admit(e);
        }
    }

    /// Takes in that a key got a role.
    pub(super) fn admit(&mut self, e: &RunAdmitted) {
        self.roles.entry(e.key.clone()).or_default().insert(e.role);
    }

    /// Returns whether a key has any role.
    pub fn knows(&self, key: &str) -> bool {
        self.roles.contains_key(key)
    }

    /// Returns whether a key has a role.
    pub fn has(&self, key: &str, role: Role) -> bool {
        self.roles.get(key).is_some_and(|roles| roles.contains(&role))
    }

    /// Returns the keys, each with its roles.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<Role>)> {
        self.roles.iter().map(|(key, roles)| (key.as_str(), roles))
    }

    /// Says why a key may not append an event; nothing where it may.
    pub fn refuse(&self, key: &str, event: &Event) -> Option<Refused> {
        let Some(roles) = self.roles.get(key) else { return Some(Refused::Stranger) };
        let wanted = wanted(event);
        if !wanted.is_empty() && !wanted.iter().any(|role| roles.contains(role)) {
            return Some(Refused::Role(wanted));
        }
        let seals = matches!(event, Event::RunAdmitted(e) if e.role == Role::Seal);
        (seals && !self.owners.contains(key)).then_some(Refused::Admission)
    }
}

/// Why a key may not append an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Refused {
    #[error("which is not among the run's writers")]
    Stranger,
    #[error("which does not have the role {}", either(.0))]
    Role(&'static [Role]),
    #[error("which entry 0 does not name as an owner, and so cannot give the role seal")]
    Admission,
}

fn either(roles: &[Role]) -> String {
    roles.iter().map(|role| role.word()).collect::<Vec<_>>().join(" or ")
}

/// Returns the roles of which one is needed to append an event; none where any key of the run may.
///
/// What a rule comes to is nobody's decision: whoever may append may ask the rules, and `verify` asks them again.
fn wanted(event: &Event) -> &'static [Role] {
    use Role::{Approve, Document, Own, Seal, Work};
    match event {
        Event::RunExtended(e) => match e.cause {
            Cause::Rule(_) => &[],
            Cause::Actor => &[Own],
        },
        Event::RunConcluded(_) => &[],
        Event::ItemFired(_) | Event::ItemReconciled(_) | Event::ItemRetried(_) => &[Work],
        // Somebody's statement that was taken in is appended by whoever conducts; who made it is looked at besides.
        Event::ItemDecided(e) => {
            if e.said.is_some() {
                &[Own, Work]
            } else {
                &[Approve]
            }
        }
        Event::DocumentWritten(e) => {
            if e.said.is_some() {
                &[Own, Work]
            } else {
                &[Document]
            }
        }
        Event::ItemRequeued(e) if e.reason == Again::Crash => &[Work],
        Event::ItemRequeued(_) | Event::ItemSkipped(_) | Event::RunClosed(_) => &[Own, Work],
        Event::RunSealed(_) => &[Seal],
        // Whoever owns the run; the others stand in no chain of a run.
        Event::RunSubmitted(_)
        | Event::RunAdmitted(_)
        | Event::RunCancelled(_)
        | Event::ItemCancelled(_)
        | Event::LogSubmitted(_)
        | Event::LogSealed(_)
        | Event::LogThread(_)
        | Event::LogDecided(_)
        | Event::LogWritten(_)
        | Event::ThreadCheckpointed(_)
        | Event::ThreadAdopted(_)
        | Event::ThreadForked(_)
        | Event::ThreadRolledBack(_)
        | Event::ThreadResumed(_)
        | Event::ArchiveAdded(_) => &[Own],
    }
}
