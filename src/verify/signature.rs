//! The row `signature`: every entry signed, by a writer, and by whom as far as the verifier knows.

use crate::model::time::Moment;

use super::findings::{Findings, Verdict};
use super::signers::Standing;
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

/// `held_since` is when the run's root was there at the latest, by the clock of somebody else.
pub(super) fn row(case: &Case<'_>, held_since: Option<Moment>) -> Signature {
    let writers = case.chain.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    let links = case.chain.links.iter();
    let signed = links.map(|link| Signed { seq: link.entry.seq, at: link.entry.at, signer: link.signer.as_deref() });
    let mut row = judge(signed, (!case.chain.cut).then_some(writers), case.options, held_since);
    if case.chain.links.is_empty() {
        row.verdict = Verdict::not_applicable("no entry could be read");
    } else if let (true, Some(cut_off)) = (row.verdict.state != State::Failed, case.cut_off()) {
        row.verdict = cut_off;
    }
    row
}

/// Judges signatures; the writers are not known where entry 0 could not be read.
pub(super) fn judge<'a>(
    signed: impl Iterator<Item = Signed<'a>>,
    writers: Option<&[String]>,
    options: &Options,
    held_since: Option<Moment>,
) -> Signature {
    let mut bad = Findings::default();
    let mut distrusted = Findings::default();
    let mut signers: Vec<SignerSeen> = Vec::new();
    for Signed { seq, at, signer } in signed {
        let key = match signer {
            Ok(key) => key,
            Err(why) => {
                bad.add(format!("entry {seq}: {why}"));
                continue;
            }
        };
        if writers.is_some_and(|writers| !writers.iter().any(|writer| writer == key)) {
            bad.add(format!("entry {seq} is signed by {key}, which is not among the run's writers"));
        }
        let (principal, distrust) = standing(options, key, at, held_since);
        let own = options.own_key.as_deref() == Some(key) && options.signer.is_none();
        let trusted = distrust.is_none() && (principal.is_some() || own);
        match signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            Some(seen) => seen.trusted &= trusted,
            None => signers.push(SignerSeen { fingerprint: key.to_owned(), principal, trusted }),
        }
        if let Some(why) = distrust {
            distrusted.add(format!("entry {seq}: the key {key} {why}"));
        }
    }
    let distrust = bad.first().is_none() && distrusted.first().is_some();
    bad.extend(&distrusted);
    let mut verdict = bad.verdict(false, || detail(&signers));
    if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
        verdict.state = State::NotApplicable;
    }
    Signature { verdict, signers, distrust }
}

/// Returns whom the verifier knows the key as, and why it must not be trusted.
pub(super) fn standing(
    options: &Options,
    key: &str,
    at: Moment,
    held_since: Option<Moment>,
) -> (Option<String>, Option<String>) {
    let wanted = options.signer.as_deref();
    let known = options.signers.as_ref().map_or(Standing::Unknown, |signers| signers.standing(key, at, wanted));
    let (principal, outside) = match known {
        Standing::Trusted(principal) => (Some(principal.to_owned()), false),
        Standing::Outside(principal) => (Some(principal.to_owned()), true),
        Standing::Unknown => (None, false),
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

pub(super) fn detail(signers: &[SignerSeen]) -> String {
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
