//! The row `signature`: every entry signed, by a writer, and by whom as far as the verifier knows.
//!
//! The signatures of runs, threads and proofs are judged here, and here it is said who may write what.

use std::collections::BTreeMap;

use crate::model::digest::Digest;
use crate::model::entry::Event;
use crate::model::log_name::is_fingerprint;
use crate::model::name::RunId;
use crate::model::role::{Keys, Refused, Role, RunAdmitted};
use crate::model::time::Moment;

use super::codes::Code;
use super::findings::{Findings, Verdict};
use super::reader::Link;
use super::said;
use super::signers::KeyStanding;
use super::taken::Taken;
use super::{Admission, Case, Options, SignerSeen, State};

/// How a key becomes one that the verifier knows, for sentences that say that a key is not known.
pub const HOW_TO_KNOW: &str =
    "to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers";

/// The row, and whom it saw.
pub(crate) struct Signature {
    pub(crate) verdict: Verdict,
    pub(crate) signers: Vec<SignerSeen>,
    /// Whether the row fails only because a valid signature's key is not to be trusted.
    pub(crate) distrust: bool,
}

/// An entry, and the key that signed it or what is wrong with the signature.
pub(crate) struct Signed<'a> {
    pub(crate) seq: u64,
    pub(crate) at: Moment,
    pub(crate) signer: Result<&'a str, &'a String>,
    /// What happened, where the chain says so.
    pub(crate) event: Option<&'a Event>,
    /// Whether somebody vouches for the signature.
    pub(crate) vouched: bool,
}

impl<'a> Signed<'a> {
    /// The entry of a chain.
    pub(super) fn of(link: &'a Link) -> Self {
        let Link { entry, signer, vouched, .. } = link;
        let (seq, at, signer) = (entry.seq, entry.at, signer.as_deref());
        Self { seq, at, signer, event: Some(&entry.event), vouched: *vouched }
    }

    /// Returns the key that signed it; an error says what is wrong with the signature.
    pub(crate) fn key(&self) -> Result<&'a str, String> {
        self.signer.map_err(|why| format!("entry {}: {why}", self.seq))
    }
}

/// Who may write a chain, as far as it was read.
#[derive(Clone)]
pub(crate) struct Writers<'a>(Who<'a>);

#[derive(Clone)]
enum Who<'a> {
    /// Nobody can tell, so nobody is refused.
    Any,
    /// This one.
    Owner(&'a str),
    /// Whichever is the first that signed.
    First,
    /// Those whom the entries of a run so far give a role.
    Run(Box<Conduct<'a>>),
}

/// A run that is being read.
#[derive(Clone)]
struct Conduct<'a> {
    run: &'a RunId,
    /// The leaf hash of its entry 0.
    first: Option<Digest>,
    keys: Keys,
}

impl<'a> Writers<'a> {
    /// What says who may write is not at hand.
    pub(crate) fn unknown() -> Self {
        Self(Who::Any)
    }

    /// A run is written by those whom its entry 0 names, and those who were admitted since; `first` is the leaf hash of that entry.
    pub(crate) fn of_run(run: &'a RunId, keys: Keys, first: Option<Digest>) -> Self {
        Self(Who::Run(Box::new(Conduct { run, first, keys })))
    }

    /// A thread is written by whoever began it.
    pub(crate) fn of_thread() -> Self {
        Self(Who::First)
    }

    /// A log is written by the key that it is named after, and a thread from elsewhere by that of its first entry.
    pub(crate) fn of(owner: &'a str) -> Self {
        Self(Who::Owner(owner))
    }

    /// Says that a key may not write this into the chain whose first good signature is by `first`; nothing where it may. What it may
    /// write counts for what comes after it.
    pub(crate) fn refuses(&mut self, one: &Signed<'_>, key: &str, first: Option<&str>) -> Option<(Code, String)> {
        let why = match &mut self.0 {
            Who::Any => None,
            Who::Owner(owner) => (*owner != key).then(|| (Code::Role, String::new())),
            Who::First => first
                .is_some_and(|first| first != key)
                .then(|| (Code::Role, ", but the thread belongs to the key of its first entry".to_owned())),
            Who::Run(conduct) => conduct.refuse(one.event?, key).map(|(code, why)| (code, format!(", {why}"))),
        };
        why.map(|(code, why)| (code, format!("entry {} is signed by {key}{why}", one.seq)))
    }

    /// Takes in an entry that somebody vouches for.
    pub(crate) fn vouched(&mut self, one: &Signed<'_>) {
        if let (Who::Run(conduct), Some(event)) = (&mut self.0, one.event) {
            conduct.keys.take(event);
        }
    }

    /// Returns what an entry takes in of what somebody else said, if it does.
    pub(super) fn said(&self, one: &Signed<'_>) -> Option<Result<said::Said, String>> {
        let Who::Run(conduct) = &self.0 else { return None };
        Some(said::check(conduct.run, conduct.first, one.event?)?.and_then(|said| {
            if conduct.keys.has(&said.key, said.role) {
                return Ok(said);
            }
            Err(format!("it is by {}, which does not have the role {}", said.key, said.role))
        }))
    }
}

impl Conduct<'_> {
    fn refuse(&mut self, event: &Event, key: &str) -> Option<(Code, String)> {
        if let Some(why) = self.keys.refuse(key, event) {
            let code = if why == Refused::Admission { Code::Admission } else { Code::Role };
            return Some((code, why.to_string()));
        }
        if let Event::RunAdmitted(RunAdmitted { first: Some(first), .. }) = event
            && self.first.is_some_and(|own| own != *first)
        {
            return Some((Code::Admission, "and admits a key that seals to a run with another entry 0".to_owned()));
        }
        self.keys.take(event);
        match event {
            Event::ItemDecided(e) if e.said.is_none() && e.by != key => {
                Some((Code::DecidedBy, format!("and says that {} decided", e.by)))
            }
            _ => None,
        }
    }
}

/// What is wrong with the signatures of a chain, and with the keys of those that are good.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) bad: Findings,
    pub(crate) distrusted: Findings,
    /// That keys are others than the verifier asked for.
    mismatched: Findings,
    /// The keys that signed, in order of appearance.
    pub(crate) signers: Vec<SignerSeen>,
    /// The keys that entries admitted, the first admission of each with all roles that it was given.
    admissions: BTreeMap<String, Admission>,
}

/// `held_since` is when the run's root was there at the latest, by the clock of somebody else.
pub(super) fn row(case: &Case<'_>, taken: &[Taken], held_since: Option<Moment>) -> Signature {
    let keys = case.chain.submitted().map(Keys::of).unwrap_or_default();
    let first = case.chain.links.first().map(|link| link.hash);
    let writers = if case.chain.cut { Writers::unknown() } else { Writers::of_run(case.run, keys, first) };
    let mut judged = judge(case.chain.links.iter().map(Signed::of), writers, "", case.options, held_since);
    let of_others = of_others(case.options);
    for Taken { whose, found, .. } in taken {
        for (key, at) in found.iter().flat_map(|shown| &shown.keys) {
            judged.see(whose, key, *at, (&of_others, held_since));
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

/// Judges the signatures of a chain; `whose` stands before what is found.
pub(crate) fn judge<'a>(
    signed: impl Iterator<Item = Signed<'a>>,
    mut writers: Writers<'_>,
    whose: &str,
    options: &Options,
    held_since: Option<Moment>,
) -> Judged {
    let mut judged = Judged::default();
    let of_others = of_others(options);
    for one in signed {
        if one.vouched {
            writers.vouched(&one);
            continue;
        }
        let key = match one.key() {
            Ok(key) => key,
            Err(why) => {
                judged.bad.report(Code::Signature, format!("{whose}{why}"));
                continue;
            }
        };
        let first = judged.signers.first().map(|first| first.fingerprint.clone());
        match writers.refuses(&one, key, first.as_deref()) {
            Some((code, refusal)) => judged.bad.report(code, format!("{whose}{refusal}")),
            None => judged.admit(&one, key),
        }
        let conducts = !matches!(one.event, Some(Event::ItemDecided(_) | Event::DocumentWritten(_)));
        let asked = if conducts { options } else { &of_others };
        judged.see(&format!("{whose}entry {}", one.seq), key, one.at, (asked, held_since));
        match writers.said(&one) {
            Some(Ok(said)) => {
                let seen = format!("{whose}entry {}: what was said", one.seq);
                judged.see(&seen, &said.key, said.at, (&of_others, held_since));
            }
            Some(Err(why)) => {
                let why = format!("{whose}entry {}: what it takes in does not hold: {why}", one.seq);
                judged.bad.report(Code::Statement, why);
            }
            None => {}
        }
    }
    judged
}

/// Returns what is asked of the keys of others. Who is asked for by name conducts the run; of those who decide, write documents or
/// sealed runs that it takes from it is enough that they are known.
pub(crate) fn of_others(options: &Options) -> Options {
    let by_principal = options.signer.as_ref().is_some_and(|signer| !is_fingerprint(signer));
    let strict_signers = options.strict_signers || by_principal;
    Options { strict_signers, signer: None, plan: None, ..options.clone() }
}

impl Judged {
    /// Takes in the key of a decision that is shown by itself.
    pub(crate) fn decided(
        &mut self,
        what: &str,
        (by, at): (&str, Moment),
        options: &Options,
        held_since: Option<Moment>,
    ) {
        self.see(what, by, at, (&of_others(options), held_since));
    }

    /// Judges a key that is named and signed nothing: it cannot make the row better, and fails it as one that signed.
    pub(crate) fn named(
        &mut self,
        what: &str,
        (by, at): (&str, Moment),
        options: &Options,
        held_since: Option<Moment>,
    ) {
        if let Some((code, why)) = standing(&of_others(options), by, at, held_since).1 {
            self.distrusted.report(code, format!("{what}: the key {by} {why}"));
        }
    }

    /// Takes in a key that signed at some time, and how it stands with it.
    fn see(&mut self, what: &str, key: &str, at: Moment, (options, held_since): (&Options, Option<Moment>)) {
        let (principal, distrust) = standing(options, key, at, held_since);
        let trusted = distrust.is_none() && (principal.is_some() || options.own_key.as_deref() == Some(key));
        if let Some(seen) = self.signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            seen.trusted &= trusted;
        } else {
            let named = options.signers.as_ref().is_some_and(|signers| signers.names(key));
            let unknown = !trusted && !named && !options.revoked.contains_key(key);
            let admitted = self.admissions.get(key).cloned();
            self.signers.push(SignerSeen { fingerprint: key.to_owned(), principal, trusted, unknown, admitted });
        }
        let Some((code, why)) = distrust else { return };
        // A key that is only not the one that was asked for is nothing against it.
        let unasked = Options { signer: None, ..options.clone() };
        let is_other = options.signer.is_some() && standing(&unasked, key, at, held_since).1.is_none();
        let (findings, code) =
            if is_other { (&mut self.mismatched, Code::OtherSigner) } else { (&mut self.distrusted, code) };
        findings.report(code, format!("{what}: the key {key} {why}"));
    }

    /// Notes the keys that an entry admits to a run, by the key that signed the entry.
    fn admit(&mut self, one: &Signed<'_>, by: &str) {
        let mut admit = |key: &str, role: Role| {
            let new = || Admission { by: by.to_owned(), entry: one.seq, roles: Vec::new() };
            let roles = &mut self.admissions.entry(key.to_owned()).or_insert_with(new).roles;
            if !roles.contains(&role) {
                roles.push(role);
            }
        };
        match one.event {
            Some(Event::RunAdmitted(e)) => admit(&e.key, e.role),
            Some(Event::RunSubmitted(e)) => {
                for (key, roles) in Keys::of(e).iter().filter(|(key, _)| *key != by) {
                    roles.iter().for_each(|role| admit(key, *role));
                }
            }
            _ => {}
        }
    }
}

impl Judged {
    /// Sums up.
    pub(crate) fn row(self) -> Signature {
        let Self { mut bad, distrusted, mismatched, signers, .. } = self;
        let distrust = bad.first().is_none() && distrusted.first().is_some();
        bad.extend(&distrusted);
        let is_other = bad.first().is_none() && mismatched.first().is_some();
        bad.extend(&mismatched);
        let mut verdict = bad.verdict(false, || detail(&signers));
        verdict.mismatch = is_other;
        if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
            verdict.state = State::NotApplicable;
        }
        Signature { verdict, signers, distrust }
    }
}

/// Returns whom the verifier knows the key as, and why it must not be trusted, with the code of that.
pub(crate) fn standing(
    options: &Options,
    key: &str,
    at: Moment,
    held_since: Option<Moment>,
) -> (Option<String>, Option<(Code, String)>) {
    let (wanted_key, wanted) = match options.signer.as_deref() {
        Some(signer) if is_fingerprint(signer) => (Some(signer), None),
        wanted => (None, wanted),
    };
    let known = options.signers.as_ref().map_or(KeyStanding::Unknown, |signers| signers.standing(key, at, wanted));
    let (principal, outside) = match known {
        KeyStanding::Trusted(principal) => (Some(principal.to_owned()), false),
        KeyStanding::Outside(principal) => (Some(principal.to_owned()), true),
        KeyStanding::Unknown => (None, false),
    };
    // Only the word of somebody else about when it was there helps a run whose key was revoked later: its own times are the key's.
    let before = |since: Moment| held_since.is_some_and(|held| held < since);
    let revoked = options.revoked.get(key).filter(|since| !since.is_some_and(before));
    let distrust = if let Some(since) = revoked {
        let since_when =
            |since| format!("is revoked since {since}, and no anchor or time stamp shows that this is older");
        Some((Code::KeyRevoked, since.map_or_else(|| "is revoked".to_owned(), since_when)))
    } else if outside {
        // The time is the entry's own word, as is the whole order of entries before an anchor of another's vouches for it.
        Some((Code::KeyNotValid, format!("was not valid at {at}, the time that the entry asserts")))
    } else if wanted_key.is_some_and(|wanted| wanted != key) {
        Some((Code::OtherSigner, "is not the one that was asked for".to_owned()))
    } else if principal.is_none() && (options.strict_signers || wanted.is_some()) {
        let why = match wanted {
            Some(wanted) => format!("is not known as {wanted}'s"),
            None => "is not known to the signers".to_owned(),
        };
        Some((Code::KeyUnknown, why))
    } else {
        None
    };
    (principal, distrust)
}

fn detail(signers: &[SignerSeen]) -> String {
    let one = |signer: &SignerSeen| match &signer.principal {
        Some(principal) => format!("ed25519 {} · trusted as {principal}", abbreviated(&signer.fingerprint)),
        None if signer.trusted => format!("ed25519 {} · this repository's key", abbreviated(&signer.fingerprint)),
        None => {
            let admitted = signer.admitted.as_ref().map(|admission| admission.in_words(signers)).unwrap_or_default();
            format!("valid, key {} not known to you{admitted}", signer.fingerprint)
        }
    };
    signers.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Admission {
    /// Says who admitted an unknown key, by the name that the verifier has for that key.
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
