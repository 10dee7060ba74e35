//! Decisions and admissions: people approve or reject items, and owners give roles to other keys.
//!
//! On a run of this repository this appends an entry. On a fetched run it appends to the log of our
//! own key, which `push` publishes. The run's driver accepts it from there (`statements`).

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::ledger::{log, sign};
use crate::model::any_error::AnyError;
use crate::model::decision::About;
use crate::model::digest::Digest;
use crate::model::entry::{Decision, Event, ItemDecided, LogDecided, Role, RunAdmitted};
use crate::model::item_index::ItemIndex;
use crate::model::log_name::is_fingerprint;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::plan::Source;
use crate::model::role::RunDismissed;
use crate::model::state::{Illegal, Phase, RunState};
use crate::repository::Repository;
use crate::run::query::VerifiedRun;
use crate::run::query::target::{self, Target};

use super::{NewEntry, steer};

/// The most bytes of a message.
const MAX_MESSAGE: usize = 4000;

/// A decision, as `approve` and `reject` print it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.decision/1")]
pub struct Decided {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The decision.
    pub decision: Decision,
    /// The products that it is about.
    pub about: About,
    /// The key that decided.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub by: String,
    /// Whether it is an entry of the run, not of the key's log.
    pub recorded: bool,
}

/// The key that lost its roles, as `dismiss` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.dismiss/1")]
pub struct Dismissal {
    /// The run.
    pub run: RunId,
    /// The key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub key: String,
}

/// The roles that a key got, as `admit` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.admit/1")]
pub struct Admittance {
    /// The run.
    pub run: RunId,
    /// The key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub key: String,
    /// The role, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The roles in their fixed order, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
}

impl Repository {
    /// Decides on an item of a run of this repository.
    pub fn decide(&self, text: &str, decision: Decision, message: Option<&str>) -> Result<Decided, AnyError> {
        let message = self.message(message)?;
        let (target, rest) = Target::with_rest(&self.store, text)?;
        let rest = rest.ok_or(Error::NoItem)?;
        let mut open = self.opened_by_anyone(&target.run).map_err(|denied| denied.lacking(&[Role::Approve]))?;
        let by = open.writer().signer.fingerprint();
        loop {
            let at = target::item_of(open.id(), &open.state, rest)?;
            expect_open(&open.state, at, &by)?;
            let item = open.state.graph.item(at).id.clone();
            let about = open.state.decided_about(at);
            let event = ItemDecided {
                attempt: open.state.items[at].attempts,
                message: message.clone(),
                ..ItemDecided::new(
                    item.clone(),
                    decision,
                    open.state.decided_status(at, decision),
                    about.clone(),
                    by.clone(),
                )
            };
            // If another writer appended first, the products may have changed.
            if open.propose(&[NewEntry::plain(Event::ItemDecided(event))])?.is_some() {
                let run = open.id().clone();
                return Ok(Decided { run, item, decision, about, by, recorded: true });
            }
        }
    }

    /// Decides on an item of a fetched and verified run, in the log of our own key.
    pub fn decide_elsewhere(
        &self,
        run: &VerifiedRun,
        item: &str,
        decision: Decision,
        message: Option<&str>,
    ) -> Result<Decided, AnyError> {
        let message = self.message(message)?;
        if run.state.sealed {
            return Err(steer::Error::Sealed(run.run.clone()).into());
        }
        let at = target::item(run, item)?;
        let writer = self.writer()?;
        let by = writer.signer.fingerprint();
        expect_role(&run.state, &run.run, &by, Role::Approve)?;
        expect_open(&run.state, at, &by)?;
        let (id, about) = (run.state.graph.item(at).id.clone(), run.state.decided_about(at));
        let first = run.links[0].hash;
        // Earlier votes of our key may be in its log only.
        let mut others = run.state.votes_beside(at);
        if let Some(other) = others.find(|other| self.decided_elsewhere(&by, run, *other).is_some()) {
            return Err(Error::Illegal(Illegal::SecondVote(
                run.state.graph.item(at).id.clone(),
                run.state.graph.item(other).id.clone(),
                by,
            ))
            .into());
        }
        let vote = LogDecided { message, ..LogDecided::new(by.clone(), first, id.clone(), decision, about.clone()) };
        log::record_statement(&writer, &run.run, &Event::LogDecided(vote))?;
        let run = run.run.clone();
        Ok(Decided { run, item: id, decision, about, by, recorded: false })
    }

    /// Gives roles to a key in a run of this repository, all or none. Roles that the key has are
    /// left out.
    pub fn admit(&self, run: &str, key: &str, roles: &BTreeSet<Role>) -> Result<Admittance, AnyError> {
        let key = self.key_of(key)?;
        let (mut open, item) = self.open_run(run, &[Role::Own])?;
        if item.is_some() {
            return Err(Error::WholeRun.into());
        }
        loop {
            let mut missing: Vec<Role> =
                roles.iter().copied().filter(|role| !open.state.keys.has(&key, *role)).collect();
            if missing.is_empty() {
                return Err(Error::HasRoles { key, roles: roles.iter().copied().collect() }.into());
            }
            let first = open.first();
            // If another writer appended first, it may have admitted the key.
            if open
                .propose(
                    &missing
                        .iter()
                        .map(|role| {
                            let first = (*role == Role::Seal).then_some(first);
                            NewEntry::plain(Event::RunAdmitted(RunAdmitted {
                                first,
                                ..RunAdmitted::new(key.clone(), *role)
                            }))
                        })
                        .collect::<Vec<_>>(),
                )?
                .is_some()
            {
                let role = if missing.len() == 1 { missing.pop() } else { None };
                let run_id = open.id().clone();
                return Ok(Admittance { run: run_id, key, role, roles: missing });
            }
        }
    }

    /// Takes all roles from a key that was admitted to a run.
    pub fn dismiss(&self, run: &str, key: &str) -> Result<Dismissal, AnyError> {
        let key = self.key_of(key)?;
        let (mut open, item) = self.open_run(run, &[Role::Own])?;
        if item.is_some() {
            return Err(Error::WholeRun.into());
        }
        open.record(&[NewEntry::plain(Event::RunDismissed(RunDismissed::new(key.clone())))])?;
        Ok(Dismissal { run: open.id().clone(), key })
    }

    /// Returns the fingerprint of a key, given as a fingerprint, a public key, or a file with one
    /// of these.
    pub fn key_of(&self, text: &str) -> Result<String, AnyError> {
        let text = text.trim();
        if is_fingerprint(text) {
            return Ok(text.to_owned());
        }
        if let Some(key) = sign::public_in(text) {
            return Ok(key.map_err(Error::BadKey)?);
        }
        let path = self.environment.expand(Path::new(text));
        let content = std::fs::read_to_string(&path).map_err(|_| Error::NoKey(text.to_owned()))?;
        let mut keys = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (keys.next(), keys.next()) {
            (Some(line), None) if is_fingerprint(line) => Ok(line.to_owned()),
            (Some(line), None) => match sign::public_in(line) {
                Some(key) => Ok(key.map_err(|source| Error::Key { file: path, source })?),
                None => Err(Error::Keyless(path).into()),
            },
            (Some(line), Some(_)) if line.starts_with("-----BEGIN ") => Err(Error::Private(path).into()),
            (Some(_), Some(_)) => Err(Error::SeveralKeys(path).into()),
            (None, _) => Err(Error::Keyless(path).into()),
        }
    }

    /// Returns the trimmed message, or an error if it is too long or contains a secret.
    pub(super) fn message(&self, message: Option<&str>) -> Result<Option<String>, AnyError> {
        let Some(message) = message.map(str::trim).filter(|message| !message.is_empty()) else { return Ok(None) };
        if message.len() > MAX_MESSAGE {
            return Err(Error::Long(message.len()).into());
        }
        self.free_of_secrets("the message", message)?;
        Ok(Some(message.to_owned()))
    }
}

/// Returns an error if a key lacks a role in a run.
pub(super) fn expect_role(state: &RunState, run: &RunId, key: &str, role: Role) -> Result<(), AnyError> {
    if state.keys.has(key, role) {
        return Ok(());
    }
    Err(Error::NoRole { run: run.clone(), key: key.to_owned(), role }.into())
}

/// Returns an error if a key cannot decide on an item now, apart from its role.
fn expect_open(state: &RunState, at: ItemIndex, by: &str) -> Result<(), AnyError> {
    let item = state.graph.item(at).id.clone();
    if !state.graph.item(at).is_for_people() {
        return Err(Error::NotForPeople(item).into());
    }
    if state.items[at].phase != Phase::Waiting {
        return Err(Error::Decided { item, status: state.status(at) }.into());
    }
    if let Some(on) = state.blocked_by(at).next() {
        let status = state.status(on);
        return Err(Error::TooEarly { item, on: state.graph.item(on).id.clone(), status }.into());
    }
    if let Some(document) = state.lacks_document(at) {
        return Err(Error::NoDocument { item, document: document.clone() }.into());
    }
    Ok(state.expect_decider(at, by).map_err(Error::Illegal)?)
}

/// Returns the digests of the products that a decision is about, each with its source and its name,
/// in order.
pub fn products(about: &About) -> impl Iterator<Item = (&Source, String, &Digest)> {
    about.iter().flat_map(|(from, products)| products.iter().map(move |(key, digest)| (from, key.to_string(), digest)))
}

errors! {
    /// Failures to decide or to admit a key.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NoItem "usage" 2: "say which item: RUN/ITEM";
    WholeRun "usage" 2: "keys are admitted to a whole run";
    NotForPeople(ItemId) "not-for-people": "item {0:?} needs no decision: its executor is not `approval`";
    Decided { item: ItemId, status: &'static str } "decided": "{item:?} is {status} already";
    TooEarly { item: ItemId, on: ItemId, status: &'static str } "too-early":
        "{item:?} cannot be decided yet: it depends on {on:?}, which is {status}";
    NoDocument { item: ItemId, document: FilePath } "too-early":
        "{item:?} cannot be decided yet: it needs the document {document:?}, which is not there, or not what is wanted";
    NoRole { run: RunId, key: String, role: Role } "no-role":
        "the key {key} does not have the role `{role}` in the run {:?}" [run.as_str()];
    HasRoles { key: String, roles: Vec<Role> } "has-role":
        "the key {key} has the role `{}` already"
        [roles.iter().map(|role| role.word()).collect::<Vec<_>>().join("`, `")];
    NoKey(String) "usage" 2: "{0:?} is neither the fingerprint of a key, nor a public key, nor a file that holds one";
    BadKey(#[source] sign::Error) "usage" 2: "this is no public key that can sign here";
    Keyless(std::path::PathBuf) "usage" 2:
        "{} holds neither a public key, nor a line of `git handoff key`, nor a fingerprint" [.0.display()];
    SeveralKeys(std::path::PathBuf) "usage" 2:
        "{} has more than one line: name a file with one key, or the fingerprint" [.0.display()];
    Private(std::path::PathBuf) "usage" 2:
        "{} is a private key: name the file of its public key, which ends with .pub" [.0.display()];
    Key { file: std::path::PathBuf, source: sign::Error } "usage" 2:
        "{} holds no public key that can sign here" [file.display()];
    Long(usize) "usage" 2: "the message has {0} bytes; at most {MAX_MESSAGE} are recorded";
    #[from "not-an-approver"] Illegal(Illegal);
}
