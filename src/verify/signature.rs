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

pub(super) fn row(case: &Case<'_>) -> Signature {
    let mut bad = Findings::default();
    let mut distrusted = Findings::default();
    let mut signers: Vec<SignerSeen> = Vec::new();
    let writers = case.story.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    for link in &case.story.links {
        let seq = link.entry.seq;
        let key = match &link.signer {
            Ok(key) => key,
            Err(why) => {
                bad.add(format!("entry {seq}: {why}"));
                continue;
            }
        };
        if !writers.contains(key) && !case.story.cut {
            bad.add(format!("entry {seq} is signed by {key}, which is not among the run's writers"));
        }
        let (principal, distrust) = standing(case.options, key, link.entry.at);
        let trusted = distrust.is_none() && (principal.is_some() || case.options.own_key.as_ref() == Some(key));
        match signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            Some(seen) => seen.trusted &= trusted,
            None => signers.push(SignerSeen { fingerprint: key.clone(), principal, trusted }),
        }
        if let Some(why) = distrust {
            distrusted.add(format!("entry {seq}: the key {key} {why}"));
        }
    }
    let distrust = bad.first().is_none() && distrusted.first().is_some();
    bad.extend(&distrusted);
    let mut verdict = bad.verdict(false, || detail(&signers));
    if case.story.links.is_empty() {
        verdict = Verdict::not_applicable("no entry could be read");
    } else if let (State::Ok, Some(cut_off)) = (verdict.state, case.cut_off()) {
        verdict = cut_off;
    } else if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
        verdict.state = State::NotApplicable;
    }
    Signature { verdict, signers, distrust }
}

/// Returns whom the verifier knows the key as, and why it must not be trusted.
pub(super) fn standing(options: &Options, key: &str, at: Moment) -> (Option<String>, Option<&'static str>) {
    let known = options.signers.as_ref().map_or(Standing::Unknown, |signers| signers.standing(key, at));
    let (principal, outside) = match known {
        Standing::Trusted(principal) => (Some(principal.to_owned()), false),
        Standing::Outside(principal) => (Some(principal.to_owned()), true),
        Standing::Unknown => (None, false),
    };
    let distrust = if options.revoked.contains(key) {
        Some("is revoked")
    } else if outside {
        Some("was not valid at that time")
    } else if principal.is_none() && options.strict_signers {
        Some("is not known to the signers")
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
