//! What places outside the repository hold of a thread. Nothing is asked here.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::git::store::Store;
use crate::model::name::ThreadId;
use crate::model::place::Place;
use crate::verify::findings::{Findings, Verdict};
use crate::verify::{Guarantee, Logs, State, resolve};

use super::ThreadChain;

/// What a place outside answered about the threads of some keys.
pub struct ThreadWitness {
    /// The name that the verifier's configuration gives to it.
    pub anchor: String,
    /// What kind of place it is, such as `git`.
    pub kind: &'static str,
    /// How strong its word is.
    pub guarantee: Guarantee,
    /// The logs of these keys that lie there, or why it gave no answer.
    pub logs: Result<Vec<Rc<Logs>>, String>,
}

/// What a thread is held against besides itself.
#[derive(Clone, Copy)]
pub struct ThreadsAtHand<'a> {
    /// The logs of this repository.
    pub logs: &'a Logs,
    /// What places outside hold.
    pub outside: &'a [ThreadWitness],
}

/// Returns the keys that signed the first entries of some threads, each thread with its ref.
pub fn owners<'t>(store: &Store, threads: impl IntoIterator<Item = (&'t ThreadId, &'t str)>) -> BTreeSet<String> {
    let owner = |(thread, reference): (&ThreadId, &str)| {
        let tip = resolve(store, reference).ok()?.ok()?;
        ThreadChain::read(store, thread, tip).links.first()?.signer.clone().ok()
    };
    threads.into_iter().filter_map(owner).collect()
}

/// Holds a thread against what places outside hold of it, after what the logs at hand said of it.
///
/// A thread of this repository that is shorter than a place outside knows has lost its end. One that was fetched may lag.
pub(super) fn held(
    walked: &ThreadChain,
    outside: &[ThreadWitness],
    (thread, reference): (&ThreadId, &str),
    at_hand: Verdict,
) -> Verdict {
    let owner = walked.links.first().and_then(|link| link.signer.as_ref().ok());
    let Some(owner) = owner.filter(|_| at_hand.state != State::Failed && !walked.cut) else { return at_hand };
    let is_own = !reference.is_empty() && Place::fetched(reference).is_none();
    let (mut findings, mut holds, mut notes, mut unasked) = (Findings::default(), Vec::new(), Vec::new(), Vec::new());
    for witness in outside {
        let anchor = &witness.anchor;
        let logs = match &witness.logs {
            Ok(logs) => logs.iter().flat_map(|logs| &logs.logs).filter(|log| log.fingerprint == *owner),
            Err(why) => {
                unasked.push(format!("{anchor}: {why}"));
                continue;
            }
        };
        let mut most = None;
        for log in logs {
            if let Some(why) = log.complaint() {
                findings.add(format!("{anchor}: {why}"));
            }
            for said in log.told.get(thread).into_iter().flatten() {
                let place = usize::try_from(said.entries.saturating_sub(1)).unwrap_or(usize::MAX);
                match walked.links.get(place) {
                    Some(link) if link.hash == said.last => most = most.max(Some(said.entries)),
                    Some(_) => findings.add(format!("{anchor} holds another entry {place}")),
                    None if is_own => {
                        findings.add(format!("{anchor} holds {} entries: the last are gone", said.entries));
                    }
                    None => notes.push(format!("{anchor} knows of {} entries", said.entries)),
                }
            }
        }
        let all = walked.links.len() as u64;
        let (kind, guarantee) = (witness.kind, witness.guarantee.as_str());
        match most {
            Some(most) if most == all => holds.push(format!("{anchor}: {kind} ({guarantee})")),
            Some(most) => holds.push(format!("{anchor}: {kind} ({guarantee}), {most} of {all} entries")),
            None => notes.push(format!("{anchor} holds nothing of it")),
        }
    }
    if findings.first().is_some() {
        return findings.verdict(false, String::new);
    }
    let is_here = at_hand.state == State::Ok;
    let said = holds.iter().cloned().chain([at_hand.detail.clone()]).chain(notes).collect::<Vec<_>>().join("; ");
    match (holds.is_empty(), unasked.is_empty()) {
        _ if at_hand.incomplete => Verdict::incomplete(said),
        (_, false) => Verdict::incomplete(format!("{}; {said}", unasked.join("; "))),
        (false, true) => Verdict::ok(said),
        (true, true) if is_here => Verdict::ok(said),
        (true, true) => Verdict::not_applicable(said),
    }
}
