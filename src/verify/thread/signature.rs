//! The row `signature`: every entry signed, all by the key of the first, and by whom as far as the verifier knows.

use super::ThreadChain;
use crate::verify::findings::{Findings, Verdict};
use crate::verify::signature::{detail, standing};
use crate::verify::{Options, SignerSeen, State};

/// The row, and whom it saw.
pub(super) struct Signature {
    pub(super) verdict: Verdict,
    pub(super) signers: Vec<SignerSeen>,
    /// Whether the row fails only because a valid signature's key is not to be trusted.
    pub(super) distrust: bool,
}

/// What is wrong with the signatures of a thread, and with the keys of those that are good.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) bad: Findings,
    pub(super) distrusted: Findings,
    pub(super) signers: Vec<SignerSeen>,
}

pub(super) fn row(walked: &ThreadChain, options: &Options) -> Signature {
    let Judged { mut bad, distrusted, signers } = judge(walked, options, "");
    let distrust = bad.first().is_none() && distrusted.first().is_some();
    bad.extend(&distrusted);
    let mut verdict = bad.verdict(false, || detail(&signers));
    if walked.links.is_empty() {
        verdict = Verdict::not_applicable("no entry could be read");
    } else if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
        verdict.state = State::NotApplicable;
    }
    Signature { verdict, signers, distrust }
}

/// Judges every signature of a thread; `whose` stands before what is found.
pub(super) fn judge(walked: &ThreadChain, options: &Options, whose: &str) -> Judged {
    let mut judged = Judged::default();
    for link in &walked.links {
        let entry = format!("{whose}entry {}", link.entry.seq);
        let key = match &link.signer {
            Ok(key) => key,
            Err(why) => {
                judged.bad.add(format!("{entry}: {why}"));
                continue;
            }
        };
        if judged.signers.first().is_some_and(|owner| owner.fingerprint != *key) {
            let owner = "but the thread belongs to the key of its first entry";
            judged.bad.add(format!("{entry} is signed by {key}, {owner}"));
        }
        let (principal, distrust) = standing(options, key, link.entry.at, None);
        let trusted = distrust.is_none() && (principal.is_some() || options.own_key.as_ref() == Some(key));
        match judged.signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            Some(seen) => seen.trusted &= trusted,
            None => judged.signers.push(SignerSeen { fingerprint: key.clone(), principal, trusted }),
        }
        if let Some(why) = distrust {
            judged.distrusted.add(format!("{entry}: the key {key} {why}"));
        }
    }
    judged
}
