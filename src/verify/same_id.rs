//! Other runs that have the id of the one that is verified.
//!
//! Two people may each run a plan with the same id. Nothing was altered then, so that this is told apart from a run that was told
//! anew: a log of the key that began this run and names another first entry contradicts it; a log of any other key names
//! another run.

use crate::model::digest::Digest;
use crate::model::format;

use super::Options;
use super::anchor::Known;
use super::log::{Log, Said};
use super::witness::Held;

/// Another run with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// The fingerprint of the key whose log or anchor names it.
    pub key: String,
    /// The principal of that key in the verifier's signers.
    pub principal: Option<String>,
    /// The leaf hash of its entry 0; `None` where only its seal is known.
    pub first: Option<Digest>,
    /// The ref of the log, or the name of the anchor, that names it.
    pub named_by: String,
    /// Whether the two are in conflict: it cannot be told which of them is meant.
    pub conflicts: bool,
}

/// A run and the others that have its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameId {
    /// The key that signed entry 0 of the run.
    pub key: Option<String>,
    /// The leaf hash of its entry 0.
    pub first: Option<Digest>,
    /// The others, each key and first entry once.
    pub others: Vec<OtherRun>,
}

impl SameId {
    /// Puts a run, by the key and the leaf hash of its entry 0, beside those that have its id.
    pub(super) fn of((key, first): (Option<String>, Option<Digest>), others: Vec<OtherRun>) -> Option<Self> {
        (!others.is_empty()).then_some(Self { key, first, others })
    }
}

impl OtherRun {
    /// Returns the key, with its principal if the verifier knows one.
    pub fn whose(&self) -> String {
        match &self.principal {
            Some(principal) => format!("{} ({principal})", self.key),
            None => self.key.clone(),
        }
    }

    /// Returns the log or anchor that names the run, in words: `a log from origin`.
    pub(super) fn log(&self) -> String {
        if self.named_by.starts_with(format::LOG_REFS) {
            return "a log here".to_owned();
        }
        let fetched = self.named_by.strip_prefix(format::FETCHED_REFS);
        match fetched.and_then(|rest| rest.split_once("/logs/")) {
            Some((remote, _)) => format!("a log from {remote}"),
            None => self.named_by.trim_end_matches(": ").to_owned(),
        }
    }

    /// Returns whether this is the same run, whoever else names it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.key, self.first) == (&other.key, other.first)
    }
}

/// The place of a run in the repository that is verified.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    /// Its ref.
    pub(super) reference: &'a str,
    /// Whether this repository's log of the key that signed entry 0 names that entry: the run was begun here.
    pub(super) begun_here: bool,
}

/// Where a run lies, as far as it matters for what another run with its id means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies<'a> {
    /// In this repository, begun by this repository's key.
    Ours,
    /// In this repository or a bundle, begun by another key.
    Here(&'a str),
    /// At the ref that was fetched from a remote.
    Fetched(&'a str),
    /// Nowhere: it is known from a proof.
    Nowhere,
}

impl Known<'_> {
    fn lies(&self) -> Lies<'_> {
        match self.at.map(|at| at.reference) {
            None => Lies::Nowhere,
            Some(reference) if reference.starts_with(format::FETCHED_REFS) => Lies::Fetched(reference),
            Some(_) if !self.options.alone && self.signer.is_some() && self.signer == self.own_key() => Lies::Ours,
            Some(reference) => Lies::Here(reference),
        }
    }

    /// Returns true if the run was begun in this repository, by whatever key it had then, and `key`, which names another run, is not
    /// the one that it has now: the run is not doubted because of what others put elsewhere.
    fn is_begun_here_and_not_by(&self, key: &str) -> bool {
        self.at.is_some_and(|at| at.begun_here) && self.own_key() != Some(key)
    }

    fn own_key(&self) -> Option<&str> {
        self.options.own_key.as_deref()
    }

    /// Returns the other run that a log names, or `None` if it names none, or contradicts this one.
    ///
    /// `outside` says that the log lies at a place outside that the verifier asked.
    pub(super) fn other_run(&self, log: &Log, outside: bool) -> Option<OtherRun> {
        let said = log.runs.get(self.run)?;
        let is_other = match said.first {
            Some(first) if self.first? != first => self.signer? != log.fingerprint,
            // Of a copy that is not sealed, whose key may have been admitted later, see `anchor`.
            Some(_) if self.seal.is_none() => false,
            // A key that may not seal this run sealed another one.
            _ => !self.writers.contains(&log.fingerprint) && self.differs_from(said),
        };
        let conflicts = if outside { self.conflicts_outside(&log.fingerprint) } else { self.conflicts_with(log) };
        is_other.then(|| self.other(&log.fingerprint, said.first, log.name.clone(), conflicts))
    }

    /// Returns the other run whose seal a place outside holds under a key that may not seal this one.
    pub(super) fn other_seal(&self, held: &Held) -> Option<OtherRun> {
        let is_other = !self.writers.contains(&held.key) && self.differs(&held.seal).is_some();
        is_other.then(|| self.other(&held.key, None, String::new(), self.conflicts_outside(&held.key)))
    }

    fn other(&self, key: &str, first: Option<Digest>, named_by: String, conflicts: bool) -> OtherRun {
        let principal = self.options.signers.as_ref().and_then(|signers| signers.principal(key)).map(str::to_owned);
        OtherRun { key: key.to_owned(), principal, first, named_by, conflicts: conflicts && !is_decided(self.options) }
    }

    fn differs_from(&self, said: &Said) -> bool {
        said.sealed.as_ref().is_some_and(|sealed| self.differs(&sealed.into()).is_some())
    }

    /// Returns whether it is undecided which of two runs is meant, because of where the log of the other lies.
    fn conflicts_with(&self, log: &Log) -> bool {
        if self.is_begun_here_and_not_by(&log.fingerprint) && log.name.starts_with(format::FETCHED_REFS) {
            return false;
        }
        let is_known = self.keys.contains(&log.fingerprint);
        let is_stranger = !self.signer.is_some_and(|signer| self.keys.iter().any(|key| key == signer));
        match self.lies() {
            Lies::Ours => false,
            Lies::Fetched(reference) => log.stands_by(reference) && (is_known || is_stranger),
            Lies::Here(reference) if !log.elsewhere => is_known || (is_stranger && log.stands_by(reference)),
            Lies::Here(_) | Lies::Nowhere => is_known && is_stranger,
        }
    }

    fn conflicts_outside(&self, key: &str) -> bool {
        self.lies() != Lies::Ours && !self.is_begun_here_and_not_by(key)
    }

    /// Says which two runs are in conflict.
    pub(super) fn conflict(&self, other: &OtherRun) -> String {
        let begins = |first: Option<Digest>| first.map_or_else(String::new, |first| format!(" began with {first}"));
        let (theirs, ours) = (begins(other.first), begins(self.first));
        let this = self.signer.unwrap_or("an unknown key");
        let named_by = match other.named_by.as_str() {
            "" => "it".to_owned(),
            // Of an anchor, whose name stands before this.
            name if name.starts_with(format::LOG_REFS) => "a log".to_owned(),
            _ => other.log(),
        };
        format!("{named_by} holds another run by this name: that of {}{theirs}; that of {this}{ours}", other.whose())
    }
}

/// Returns whether the verifier asked for one run among those with its id: by its signer, or by the commit that it starts from.
fn is_decided(options: &Options) -> bool {
    options.signer.is_some() || options.base.is_some()
}
