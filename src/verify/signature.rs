//! The row `signature`: every entry signed, by a writer, and by whom as far as the verifier knows.
//!
//! The signatures of runs, threads and proofs are judged here, and here it is said who may write what.

use crate::model::time::Moment;

use super::findings::{Findings, Verdict};
use super::reader::Link;
use super::signers::KeyStanding;
use super::{Case, Options, SignerSeen, State};

/// The row, and whom it saw.
pub(super) struct Signature {
    pub(super) verdict: Verdict,
    pub(super) signers: Vec<SignerSeen>,
    /// Whether the row fails only because a valid signature's key is not to be trusted.
    pub(super) distrust: bool,
}

/// An entry, and the key that signed it or what is wrong with the signature.
pub(super) struct Signed<'a> {
    pub(super) seq: u64,
    pub(super) at: Moment,
    pub(super) signer: Result<&'a str, &'a String>,
}

impl<'a> Signed<'a> {
    /// The entry of a chain.
    pub(super) fn of(link: &'a Link) -> Self {
        Self { seq: link.entry.seq, at: link.entry.at, signer: link.signer.as_deref() }
    }

    /// Returns the key that signed it; an error says what is wrong with the signature.
    pub(super) fn key(&self) -> Result<&'a str, String> {
        self.signer.map_err(|why| format!("entry {}: {why}", self.seq))
    }
}

/// Who may write a chain, and what is said of a key that may not.
#[derive(Clone, Copy)]
pub(super) struct Writers<'a> {
    keys: Keys<'a>,
    otherwise: &'static str,
}

#[derive(Clone, Copy)]
enum Keys<'a> {
    /// Nobody can tell, so nobody is refused.
    Any,
    /// These.
    These(&'a [String]),
    /// Whichever is the first that signed.
    First,
}

impl<'a> Writers<'a> {
    /// What says who may write is not at hand.
    pub(super) fn unknown() -> Self {
        Self { keys: Keys::Any, otherwise: "" }
    }

    /// A run is written by those whom its entry 0 names.
    pub(super) fn of_run(named: &'a [String]) -> Self {
        Self { keys: Keys::These(named), otherwise: ", which is not among the run's writers" }
    }

    /// A thread is written by whoever began it.
    pub(super) fn of_thread() -> Self {
        Self { keys: Keys::First, otherwise: ", but the thread belongs to the key of its first entry" }
    }

    /// A log is written by the key that it is named after.
    pub(super) fn of_log(owner: &'a String) -> Self {
        Self { keys: Keys::These(std::slice::from_ref(owner)), otherwise: "" }
    }

    /// What comes from elsewhere is written by those who may write what it is to stand for here.
    pub(super) fn of_place(keys: &'a [String]) -> Self {
        Self { keys: Keys::These(keys), otherwise: ", which may not write there" }
    }

    /// Says that a key may not write the chain whose first good signature is by `first`; nothing where it may.
    pub(super) fn refuses(&self, seq: u64, key: &str, first: Option<&str>) -> Option<String> {
        let may = match self.keys {
            Keys::Any => true,
            Keys::These(keys) => keys.iter().any(|writer| writer == key),
            Keys::First => first.is_none_or(|first| first == key),
        };
        (!may).then(|| format!("entry {seq} is signed by {key}{}", self.otherwise))
    }
}

/// What is wrong with the signatures of a chain, and with the keys of those that are good.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) bad: Findings,
    pub(super) distrusted: Findings,
    /// The keys that signed, in order of appearance.
    pub(super) signers: Vec<SignerSeen>,
}

/// `held_since` is when the run's root was there at the latest, by the clock of somebody else.
pub(super) fn row(case: &Case<'_>, held_since: Option<Moment>) -> Signature {
    let writers = case.chain.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    let writers = if case.chain.cut { Writers::unknown() } else { Writers::of_run(writers) };
    let mut row = judge(case.chain.links.iter().map(Signed::of), writers, "", case.options, held_since).row();
    if case.chain.links.is_empty() {
        row.verdict = Verdict::not_applicable("no entry could be read");
    } else if let (true, Some(cut_off)) = (row.verdict.state != State::Failed, case.cut_off()) {
        row.verdict = cut_off;
    }
    row
}

/// Judges the signatures of a chain; `whose` stands before what is found.
pub(super) fn judge<'a>(
    signed: impl Iterator<Item = Signed<'a>>,
    writers: Writers<'_>,
    whose: &str,
    options: &Options,
    held_since: Option<Moment>,
) -> Judged {
    let mut judged = Judged::default();
    for one in signed {
        let key = match one.key() {
            Ok(key) => key,
            Err(why) => {
                judged.bad.add(format!("{whose}{why}"));
                continue;
            }
        };
        let first = judged.signers.first().map(|first| first.fingerprint.as_str());
        if let Some(refusal) = writers.refuses(one.seq, key, first) {
            judged.bad.add(format!("{whose}{refusal}"));
        }
        let (principal, distrust) = standing(options, key, one.at, held_since);
        let trusted = distrust.is_none() && (principal.is_some() || options.own_key.as_deref() == Some(key));
        match judged.signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            Some(seen) => seen.trusted &= trusted,
            None => judged.signers.push(SignerSeen { fingerprint: key.to_owned(), principal, trusted }),
        }
        if let Some(why) = distrust {
            judged.distrusted.add(format!("{whose}entry {}: the key {key} {why}", one.seq));
        }
    }
    judged
}

impl Judged {
    /// Sums up.
    pub(super) fn row(self) -> Signature {
        let Self { mut bad, distrusted, signers } = self;
        let distrust = bad.first().is_none() && distrusted.first().is_some();
        bad.extend(&distrusted);
        let mut verdict = bad.verdict(false, || detail(&signers));
        if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
            verdict.state = State::NotApplicable;
        }
        Signature { verdict, signers, distrust }
    }
}

/// Returns whom the verifier knows the key as, and why it must not be trusted.
pub(super) fn standing(
    options: &Options,
    key: &str,
    at: Moment,
    held_since: Option<Moment>,
) -> (Option<String>, Option<String>) {
    let wanted = options.signer.as_deref();
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
        Some(since.map_or_else(|| "is revoked".to_owned(), |since| format!("is revoked since {since}")))
    } else if outside {
        // The time is the entry's own word, as is the whole order of entries before an anchor of another's vouches for it.
        Some(format!("was not valid at {at}, the time that the entry asserts"))
    } else if principal.is_none() && (options.strict_signers || wanted.is_some()) {
        Some(match wanted {
            Some(wanted) => format!("is not known as {wanted}'s"),
            None => "is not known to the signers".to_owned(),
        })
    } else {
        None
    };
    (principal, distrust)
}

fn detail(signers: &[SignerSeen]) -> String {
    let one = |signer: &SignerSeen| match &signer.principal {
        Some(principal) => format!("ed25519 {} · trusted as {principal}", abbreviated(&signer.fingerprint)),
        None if signer.trusted => format!("ed25519 {} · this repository's key", abbreviated(&signer.fingerprint)),
        None => format!("valid, key {} not known to you", signer.fingerprint),
    };
    signers.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn abbreviated(fingerprint: &str) -> String {
    let start: String = fingerprint.chars().take("SHA256:".len() + 3).collect();
    start + "…"
}
