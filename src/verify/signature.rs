//! The row `signature`: every entry is signed, by a key that may write it and that the verifier
//! does not distrust.
//!
//! Judges the signatures of runs, threads, logs and proofs.

use std::collections::BTreeMap;

use crate::model::digest::Digest;
use crate::model::entry::Event;
use crate::model::log_name::is_fingerprint;
use crate::model::name::RunId;
use crate::model::role::{Keys, Role, RunAdmitted};
use crate::model::time::Moment;

use super::codes::Code;
use super::external_statements;
use super::findings::{At, Findings, Verdict};
use super::imports::Imported;
use super::reader::Link;
use super::signers::KeyStanding;
use super::{Admission, Case, Options, SignerSeen, State};

/// The hint about unknown keys.
pub const HOW_TO_KNOW: &str =
    "to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers";

pub(crate) struct Signature {
    pub(crate) verdict: Verdict,
    pub(crate) signers: Vec<SignerSeen>,
}

impl Signature {
    /// Returns true if the row fails only because valid signatures have distrusted keys.
    pub(crate) fn is_distrust(&self) -> bool {
        self.verdict.codes.first().is_some_and(|code| code.is_distrust())
    }
}

/// An entry with its signing key, or the fault of its signature.
pub(crate) struct Signed<'a> {
    pub(crate) seq: u64,
    pub(crate) at: Moment,
    pub(crate) signer: Result<&'a str, &'a String>,
    /// The event, if the chain states it.
    pub(crate) event: Option<&'a Event>,
    pub(crate) verified_before: bool,
}

impl<'a> Signed<'a> {
    pub(super) fn from_link(link: &'a Link) -> Self {
        let Link { entry, signer, verified_before, .. } = link;
        let (seq, at, signer) = (entry.seq, entry.at, signer.as_deref());
        Self { seq, at, signer, event: Some(&entry.event), verified_before: *verified_before }
    }

    /// Returns the key that signed, or the fault of the signature.
    pub(crate) fn key(&self) -> Result<&'a str, String> {
        self.signer.map_err(|why| format!("entry {}: {why}", self.seq))
    }
}

/// The rules for the keys that may write a chain, as far as it was read.
#[derive(Clone)]
pub(crate) enum Writers<'a> {
    /// Any key, because the entry that names the writers is missing.
    Any,
    /// This key: the one in a log's name, or of a foreign thread's first entry.
    Owner(&'a str),
    /// The key of the first valid signature, which owns the thread.
    First,
    /// The keys to which the entries so far give a role.
    Run(Box<RunWriters<'a>>),
}

#[derive(Clone)]
pub(crate) struct RunWriters<'a> {
    run: &'a RunId,
    first: Option<Digest>,
    keys: Keys,
}

impl<'a> Writers<'a> {
    /// Accepts the keys that entry 0 names and those admitted later; `first` is the leaf hash of
    /// entry 0.
    pub(crate) fn of_run(run: &'a RunId, keys: Keys, first: Option<Digest>) -> Self {
        Self::Run(Box::new(RunWriters { run, first, keys }))
    }

    /// Returns the reason if the key may not write this entry; `first` is the key of the first
    /// valid signature.
    ///
    /// An accepted entry can admit keys for later entries.
    pub(super) fn refuse(&mut self, one: &Signed<'_>, key: &str, first: Option<&str>) -> Option<(Code, String)> {
        let why = match self {
            Self::Any => None,
            Self::Owner(owner) => (*owner != key).then(|| (Code::Role, String::new())),
            Self::First => first
                .is_some_and(|first| first != key)
                .then(|| (Code::Role, ", but the thread belongs to the key of its first entry".to_owned())),
            Self::Run(run) => run.refuse(one.event?, key).map(|(code, why)| (code, format!(", {why}"))),
        };
        why.map(|(code, why)| (code, format!("entry {} is signed by {key}{why}", one.seq)))
    }

    /// Admits the keys of an entry that was verified before.
    pub(super) fn admit_verified(&mut self, one: &Signed<'_>) {
        if let (Self::Run(run), Some(event)) = (self, one.event) {
            run.keys.take(event, one.signer.ok());
        }
    }

    /// Checks the statement of another key that the entry holds; returns `None` if it holds none.
    pub(super) fn statement(&self, one: &Signed<'_>) -> Option<Result<external_statements::Statement, String>> {
        let Self::Run(run) = self else { return None };
        Some(external_statements::check(run.run, run.first, one.event?)?.and_then(|statement| {
            if run.keys.has(&statement.key, statement.role) {
                return Ok(statement);
            }
            Err(format!("it is by {}, which does not have the role {}", statement.key, statement.role))
        }))
    }
}

impl RunWriters<'_> {
    fn refuse(&mut self, event: &Event, key: &str) -> Option<(Code, String)> {
        if let Some(why) = self.keys.refuse(key, event) {
            return Some((Code::Role, why.to_string()));
        }
        if let Event::RunAdmitted(RunAdmitted { first: Some(first), .. }) = event
            && self.first.is_some_and(|own| own != *first)
        {
            return Some((Code::Role, "but admits a sealing key to a run with another entry 0".to_owned()));
        }
        self.keys.take(event, Some(key));
        match event {
            Event::ItemDecided(e) if e.said.is_none() && e.by != key => {
                Some((Code::Role, format!("but names {} as the key that decided", e.by)))
            }
            _ => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Judged {
    /// Faults that no knowledge of the verifier changes.
    pub(crate) bad: Findings,
    /// The keys that the verifier does not trust, or does not ask for.
    pub(crate) distrusted: Findings,
    /// The keys that signed, in order of appearance.
    pub(crate) signers: Vec<SignerSeen>,
    /// The first admission of each key, with all roles that it was given.
    admissions: BTreeMap<String, Admission>,
}

/// `held_since` is the earliest time at which an external clock saw the run's root.
pub(super) fn row(case: &Case<'_>, imports: &[Imported], held_since: Option<Moment>) -> Signature {
    let keys = case.chain.submitted().map(Keys::from_submitted).unwrap_or_default();
    let first = case.chain.links.first().map(|link| link.hash);
    let writers = if case.chain.cut { Writers::Any } else { Writers::of_run(case.run, keys, first) };
    let mut judged = judge(case.chain.links.iter().map(Signed::from_link), writers, "", case.options, held_since);
    let options_for_others = options_for_others(case.options);
    for Imported { seq, label, found, .. } in imports {
        for (key, at) in found.iter().flat_map(|source| &source.keys) {
            judged.record_key((*seq, label), key, *at, &options_for_others, held_since);
        }
    }
    let mut row = judged.row();
    if case.chain.links.is_empty() {
        row.verdict = Verdict::not_applicable("no entry could be read");
    } else if let (true, Some(cut_off)) = (row.verdict.state != State::Failed, case.cut_off()) {
        row.verdict = cut_off;
    }
    row
}

/// Judges the signatures of a chain; `label` is the prefix of findings.
pub(crate) fn judge<'a>(
    signed: impl Iterator<Item = Signed<'a>>,
    mut writers: Writers<'_>,
    label: &str,
    options: &Options,
    held_since: Option<Moment>,
) -> Judged {
    let mut judged = Judged::default();
    let options_for_others = options_for_others(options);
    for one in signed {
        if one.verified_before {
            writers.admit_verified(&one);
            continue;
        }
        let key = match one.key() {
            Ok(key) => key,
            Err(why) => {
                judged.bad.report_at(At::entry(one.seq), Code::Signature, format!("{label}{why}"));
                continue;
            }
        };
        let first = judged.signers.first().map(|first| first.fingerprint.clone());
        match writers.refuse(&one, key, first.as_deref()) {
            Some((code, refusal)) => judged.bad.report_at(At::entry(one.seq), code, format!("{label}{refusal}")),
            None => judged.admit(&one, key),
        }
        let conducts = !matches!(one.event, Some(Event::ItemDecided(_) | Event::DocumentWritten(_)));
        let applicable = if conducts { options } else { &options_for_others };
        judged.record_key((one.seq, &format!("{label}entry {}", one.seq)), key, one.at, applicable, held_since);
        match writers.statement(&one) {
            Some(Ok(statement)) => {
                let what = format!("{label}entry {}: the statement", one.seq);
                judged.record_key((one.seq, &what), &statement.key, statement.at, &options_for_others, held_since);
            }
            Some(Err(why)) => {
                let why = format!("{label}entry {}: its statement is not valid: {why}", one.seq);
                judged.bad.report_at(At::entry(one.seq), Code::Statement, why);
            }
            None => {}
        }
    }
    judged
}

/// Returns the options for keys that only contribute to the run.
///
/// The signer that the verifier names conducts the run. Keys that decide, write documents or sealed
/// an upstream run only have to be known.
pub(crate) fn options_for_others(options: &Options) -> Options {
    let by_principal = options.signer.as_ref().is_some_and(|signer| !is_fingerprint(signer));
    let strict_signers = options.strict_signers || by_principal;
    Options { strict_signers, signer: None, plan: None, ..options.clone() }
}

impl Judged {
    /// Judges a key that an entry names without a signature. It cannot improve the row, but can
    /// fail it.
    pub(super) fn judge_named_key(
        &mut self,
        (seq, what): (u64, &str),
        by: &str,
        at: Moment,
        options: &Options,
        held_since: Option<Moment>,
    ) {
        if let Some((code, why)) = standing(&options_for_others(options), by, at, held_since).1 {
            self.distrusted.report_at(At::entry(seq), code, format!("{what}: the key {by} {why}"));
        }
    }

    /// Records a key that signed at some time, and its standing. `place` is the number of the entry
    /// and its description.
    pub(super) fn record_key(
        &mut self,
        (seq, what): (u64, &str),
        key: &str,
        at: Moment,
        options: &Options,
        held_since: Option<Moment>,
    ) {
        let (principal, distrust) = standing(options, key, at, held_since);
        let trusted = distrust.is_none() && (principal.is_some() || options.own_key.as_deref() == Some(key));
        if let Some(signer) = self.signers.iter_mut().find(|signer| signer.fingerprint == *key) {
            signer.trusted &= trusted;
        } else {
            let is_listed = options.signers.as_ref().is_some_and(|signers| signers.names(key));
            let unknown = !trusted && !is_listed && !options.revoked.contains_key(key);
            let admitted = self.admissions.get(key).cloned();
            self.signers.push(SignerSeen { fingerprint: key.to_owned(), principal, trusted, unknown, admitted });
        }
        let Some((code, why)) = distrust else { return };
        // A key that is merely not the expected one is only a mismatch.
        let unasked = Options { signer: None, ..options.clone() };
        let code = match standing(&unasked, key, at, held_since).1 {
            None => Code::OtherSigner,
            Some((unasked, _)) if code == Code::OtherSigner => unasked,
            Some(_) => code,
        };
        self.distrusted.report_at(At::entry(seq), code, format!("{what}: the key {key} {why}"));
    }

    fn admit(&mut self, one: &Signed<'_>, by: &str) {
        let mut admit = |key: &str, role: Role| {
            let admission = self.admissions.entry(key.to_owned());
            let roles = &mut admission
                .or_insert_with(|| Admission { by: by.to_owned(), entry: one.seq, roles: Vec::new() })
                .roles;
            if !roles.contains(&role) {
                roles.push(role);
            }
        };
        match one.event {
            Some(Event::RunAdmitted(e)) => admit(&e.key, e.role),
            Some(Event::RunSubmitted(e)) => {
                for (key, roles) in Keys::from_submitted(e).iter().filter(|(key, _)| *key != by) {
                    roles.iter().for_each(|role| admit(key, *role));
                }
            }
            _ => {}
        }
    }
}

impl Judged {
    pub(crate) fn row(self) -> Signature {
        let Self { bad, distrusted, signers, .. } = self;
        let findings = if bad.is_contradicted() { bad } else { distrusted };
        let mut verdict = findings.verdict(false, || detail(&signers));
        if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
            verdict.state = State::NotApplicable;
        }
        Signature { verdict, signers }
    }
}

/// Returns the principal of a key, and the reason to distrust it.
pub(super) fn standing(
    options: &Options,
    key: &str,
    at: Moment,
    held_since: Option<Moment>,
) -> (Option<String>, Option<(Code, String)>) {
    let (wanted_key, expected) = match options.signer.as_deref() {
        Some(signer) if is_fingerprint(signer) => (Some(signer), None),
        expected => (None, expected),
    };
    let known = options.signers.as_ref().map_or(KeyStanding::Unknown, |signers| signers.standing(key, at, expected));
    let (principal, outside) = match known {
        KeyStanding::Trusted(principal) => (Some(principal.to_owned()), false),
        KeyStanding::Outside(principal) => (Some(principal.to_owned()), true),
        KeyStanding::Unknown => (None, false),
    };
    // A key that was revoked later remains valid for what an external clock saw before. The run's
    // own times do not count.
    let revoked = options
        .revoked
        .get(key)
        .filter(|since| !since.is_some_and(|since| held_since.is_some_and(|anchored| anchored < since)));
    let distrust = if let Some(since) = revoked {
        let since_when = |date| format!("is revoked since {date}, and no anchor or time stamp proves an earlier date");
        Some((Code::KeyRevoked, since.map_or_else(|| "is revoked".to_owned(), since_when)))
    } else if outside {
        // The entry's time is its key's claim.
        Some((Code::KeyNotValid, format!("was not valid at {at}, the time that the entry asserts")))
    } else if wanted_key.is_some_and(|required| required != key) {
        Some((Code::OtherSigner, "is not the one that was asked for".to_owned()))
    } else if principal.is_none() && (options.strict_signers || expected.is_some()) {
        let why = match expected {
            Some(expected) => format!("is not known as {expected}'s"),
            None => "is not known to the signers".to_owned(),
        };
        Some((Code::KeyUnknown, why))
    } else {
        None
    };
    (principal, distrust)
}

fn detail(signers: &[SignerSeen]) -> String {
    signers
        .iter()
        .map(|signer| match &signer.principal {
            Some(principal) => format!("ed25519 {} · trusted as {principal}", abbreviated(&signer.fingerprint)),
            None if signer.trusted => format!("ed25519 {} · this repository's key", abbreviated(&signer.fingerprint)),
            None => {
                let admitted =
                    signer.admitted.as_ref().map(|admission| admission.in_words(signers)).unwrap_or_default();
                format!("valid, key {} not known to you{admitted}", signer.fingerprint)
            }
        })
        .collect::<Vec<_>>()
        .join("; ")
}

impl Admission {
    fn in_words(&self, signers: &[SignerSeen]) -> String {
        let by = signers.iter().find(|signer| signer.fingerprint == self.by);
        let by = match by.map(|signer| (&signer.principal, signer.trusted)) {
            Some((Some(principal), true)) => format!("{principal}, whom you trust"),
            Some((None, true)) => "this repository's key".to_owned(),
            _ => self.by.clone(),
        };
        let roles: Vec<&str> = self.roles.iter().map(|role| role.word()).collect();
        format!(", admitted as {} in entry {} by {by}", roles.join(", "), self.entry)
    }
}

fn abbreviated(fingerprint: &str) -> String {
    let start: String = fingerprint.chars().take("SHA256:".len() + 3).collect();
    start + "…"
}
