//! Other runs with the id of the verified run.
//!
//! Two people may each run a plan with the same id, without tampering. A log of the key that began
//! this run contradicts it if it names another first entry. A log of any other key names another
//! run.

use crate::model::digest::Digest;
use crate::model::format;

use super::Options;
use super::anchor::Known;
use super::log::Log;
use super::witness::Held;

/// Another run with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// The fingerprint of the key whose log or anchor names the run.
    pub key: String,
    /// The principal of that key in the verifier's signers.
    pub principal: Option<String>,
    /// The leaf hash of its entry 0, or `None` if only its seal is known.
    pub first: Option<Digest>,
    /// The ref of the log, or the name of the anchor.
    pub named_by: String,
    /// True if it is unknown which of the two runs is meant.
    pub conflicts: bool,
}

/// A run, and the others with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameId {
    /// The key that signed entry 0 of the run.
    pub key: Option<String>,
    /// The leaf hash of its entry 0.
    pub first: Option<Digest>,
    /// The other runs, each key and first entry once.
    pub others: Vec<OtherRun>,
}

impl SameId {
    /// Returns `None` if there are no others; `key` and `first` belong to entry 0.
    pub(super) fn new(key: Option<String>, first: Option<Digest>, others: Vec<OtherRun>) -> Option<Self> {
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

    /// Describes the log or anchor that names the run: `a log from origin`.
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

    /// Returns true if both have the same key and first entry.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.key, self.first) == (&other.key, other.first)
    }
}

/// The place of a run in the repository.
#[derive(Clone, Copy)]
pub(super) struct RunPlace<'a> {
    pub(super) reference: &'a str,
    /// True if this repository's log of the key that signed entry 0 names that entry.
    pub(super) begun_here: bool,
}

/// The place of a run, as far as conflicts depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location<'a> {
    /// In this repository, begun by its own key.
    Ours,
    /// In this repository or a bundle, begun by another key.
    Here(&'a str),
    /// At a fetched ref.
    Fetched(&'a str),
    /// In a proof only.
    Nowhere,
}

impl Known<'_> {
    fn location(&self) -> Location<'_> {
        match self.at.map(|at| at.reference) {
            None => Location::Nowhere,
            Some(reference) if reference.starts_with(format::FETCHED_REFS) => Location::Fetched(reference),
            Some(_) if !self.options.alone && self.signer.is_some() && self.signer == self.own_key() => Location::Ours,
            Some(reference) => Location::Here(reference),
        }
    }

    /// Returns true if the run was begun in this repository, and `key` is not the repository's
    /// current key. Then logs elsewhere cannot cast doubt on it.
    fn is_begun_here_and_not_by(&self, key: &str) -> bool {
        self.at.is_some_and(|at| at.begun_here) && self.own_key() != Some(key)
    }

    fn own_key(&self) -> Option<&str> {
        self.options.own_key.as_deref()
    }

    /// Returns the other run that a log names; `None` if it names this run or contradicts it.
    ///
    /// `outside` is true for the log of an external anchor.
    pub(super) fn other_run(&self, log: &Log, outside: bool) -> Option<OtherRun> {
        let logged = log.runs.get(self.run)?;
        let is_other = if self.first? == logged.first {
            // A key that may not seal this run sealed another copy. It may be admitted later in a
            // run that is not sealed; see `anchor`.
            let is_strange = self.seal.is_some() && !self.writers.contains(&log.fingerprint);
            is_strange && self.differs_logged(logged).is_some()
        } else {
            self.signer? != log.fingerprint
        };
        let conflicts = if outside { self.conflicts_outside(&log.fingerprint) } else { self.conflicts_with(log) };
        is_other.then(|| self.other(&log.fingerprint, Some(logged.first), log.name.clone(), conflicts))
    }

    /// Returns the other run whose seal an external anchor holds, under a key that may not seal
    /// this run.
    pub(super) fn other_seal(&self, anchored: &Held) -> Option<OtherRun> {
        let is_other = !self.writers.contains(&anchored.key) && self.differs_held(&anchored.seal).is_some();
        is_other.then(|| self.other(&anchored.key, None, String::new(), self.conflicts_outside(&anchored.key)))
    }

    fn other(&self, key: &str, first: Option<Digest>, named_by: String, conflicts: bool) -> OtherRun {
        let principal = self.options.signers.as_ref().and_then(|signers| signers.principal(key)).map(str::to_owned);
        OtherRun { key: key.to_owned(), principal, first, named_by, conflicts: conflicts && !is_decided(self.options) }
    }

    /// Returns true if the place of the other run's log leaves open which run is meant.
    fn conflicts_with(&self, log: &Log) -> bool {
        if self.is_begun_here_and_not_by(&log.fingerprint) && log.name.starts_with(format::FETCHED_REFS) {
            return false;
        }
        let is_known = self.keys.contains(&log.fingerprint);
        let is_stranger = !self.signer.is_some_and(|signer| self.keys.iter().any(|key| key == signer));
        match self.location() {
            Location::Ours => false,
            Location::Fetched(reference) => log.lies_beside(reference) && (is_known || is_stranger),
            Location::Here(reference) if !log.elsewhere => is_known || (is_stranger && log.lies_beside(reference)),
            Location::Here(_) | Location::Nowhere => is_known && is_stranger,
        }
    }

    fn conflicts_outside(&self, key: &str) -> bool {
        self.location() != Location::Ours && !self.is_begun_here_and_not_by(key)
    }

    pub(super) fn conflict(&self, other: &OtherRun) -> String {
        let (theirs, ours) = (describe_beginning(other.first), describe_beginning(self.first));
        let this = self.signer.unwrap_or("an unknown key");
        let named_by = match other.named_by.as_str() {
            "" => "it".to_owned(),
            // The caller puts the anchor's name before this text.
            name if name.starts_with(format::LOG_REFS) => "a log".to_owned(),
            _ => other.log(),
        };
        format!("{named_by} holds another run by this name: that of {}{theirs}; that of {this}{ours}", other.whose())
    }
}

fn describe_beginning(first: Option<Digest>) -> String {
    first.map_or_else(String::new, |first| format!(" began with {first}"))
}

/// Returns true if the verifier chose one run by its signer or base.
fn is_decided(options: &Options) -> bool {
    options.signer.is_some() || options.base.is_some()
}
