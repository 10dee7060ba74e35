//! The row `lineage`: a thread that began as another's checkpoint holds exactly what that checkpoint held, and the other thread
//! is one that could be verified itself: its chain, its signatures, its keys, and what logs say of it.

use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::entry::{Event, Origin};
use crate::model::thread::Content;

use super::{Ancestor, Table, ThreadChain, anchor, earlier, signatures, ties};
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::{Options, SignerSeen, State};

/// A line of descent that is longer than this is not followed to its end.
const MOST: usize = 1000;

/// The row, and what it saw on the way.
pub(super) struct Lineage {
    pub(super) verdict: Verdict,
    /// Whether the row fails only because a valid signature's key is not to be trusted.
    pub(super) distrust: bool,
    /// The threads that were gone back to, the nearest first.
    pub(super) ancestors: Vec<Ancestor>,
    /// What each of them says.
    pub(super) sources: Vec<ThreadChain>,
}

/// What is wrong with where a thread came from.
#[derive(Default)]
pub(super) struct Flaws {
    /// With the evidence.
    pub(super) bad: Findings,
    /// With the keys of signatures that are good.
    pub(super) distrusted: Findings,
    /// Keys that are merely not known.
    pub(super) unknown: Vec<String>,
}

/// What a thread says it began as.
struct Beginning {
    origin: Origin,
    content: Content,
    /// Whose offer it was, and whether the adopter accepted a key that he did not know; nothing of a fork.
    offer: Option<(String, bool)>,
}

/// Walks from thread to thread, and looks at the runs that checkpoints are tied to.
pub(super) fn trace(table: &Table<'_>, walked: &ThreadChain) -> Lineage {
    let mut lineage = Lineage {
        verdict: Verdict::not_applicable("the chain could not be read to its first entry"),
        distrust: false,
        ancestors: Vec::new(),
        sources: Vec::new(),
    };
    if walked.cut {
        return lineage;
    }
    // Who a thread must be by is said of the thread itself: whoever handed it over only has to be known.
    let options = Options {
        signer: None,
        strict_signers: table.options.strict_signers || table.options.signer.is_some(),
        ..table.options.clone()
    };
    let mut wrong = Flaws::default();
    let mut runs = ties::hold(table, &options, walked, &mut wrong);
    let (mut from, mut meter) = (beginning(walked), walked.meter);
    while let Some(beginning) = from {
        if lineage.ancestors.len() >= MOST {
            wrong.bad.add(format!("the thread has more than {MOST} ancestors"));
            break;
        }
        let Some((ancestor, source)) = examine(table, &options, (&beginning, meter), &mut wrong) else { break };
        meter = source.meter;
        runs.extend(ties::hold(table, &options, &source, &mut wrong));
        from = self::beginning(&source);
        lineage.ancestors.push(ancestor);
        lineage.sources.push(source);
    }
    lineage.conclude(wrong, runs.len(), table.shallow);
    lineage
}

impl Lineage {
    fn conclude(&mut self, wrong: Flaws, runs: usize, shallow: bool) {
        let Flaws { mut bad, distrusted, mut unknown } = wrong;
        let fails = bad.wrong() || (!shallow && bad.first().is_some());
        self.distrust = !fails && distrusted.first().is_some();
        bad.extend(&distrusted);
        let threads = self.ancestors.len();
        let mut said = Vec::new();
        if threads > 0 {
            said.push(format!("goes back to {}", counted(threads, "thread", "threads")));
        }
        if runs > 0 {
            said.push(format!("tied to {}", counted(runs, "run", "runs")));
        }
        if self.ancestors.iter().any(|ancestor| ancestor.accepted_unknown) {
            said.push("an unknown key was accepted on the way".to_owned());
        }
        unknown.sort();
        unknown.dedup();
        said.extend(unknown.iter().map(|key| format!("key {key} not known to you")));
        self.verdict = bad.verdict(shallow, || said.join(", "));
        if self.verdict.state == State::Ok && said.is_empty() {
            self.verdict = Verdict::not_applicable("began by itself");
        } else if self.verdict.state == State::Ok && !unknown.is_empty() {
            self.verdict.state = State::NotApplicable;
        }
    }
}

/// Holds the thread that another began as against what that one says of it, and against the verifier's keys and logs.
///
/// All of them are held together, so that what was read before counts.
fn examine(
    table: &Table<'_>,
    options: &Options,
    (beginning, meter): (&Beginning, Meter),
    wrong: &mut Flaws,
) -> Option<(Ancestor, ThreadChain)> {
    let Beginning { origin, content, offer } = beginning;
    let source = read(table.store, (origin, meter), &mut wrong.bad)?;
    let whose = format!("the source {}:{}", origin.thread, origin.checkpoint);
    match source.trail.latest() {
        Some(latest) if latest.id == origin.checkpoint && latest.commit == origin.commit => {
            if *latest.content != *content {
                wrong.bad.add(format!("{whose} holds something else"));
            }
        }
        _ => wrong.bad.add(format!("commit {} is not {whose}", origin.commit)),
    }
    let judged = signatures(&source, options, &format!("{whose}: "));
    wrong.bad.extend(&judged.bad);
    wrong.distrusted.extend(&judged.distrusted);
    let signer = judged.signers.into_iter().next();
    if let (Some((offered_by, _)), Some(signer)) = (offer, &signer)
        && *offered_by != signer.fingerprint
    {
        let key = &signer.fingerprint;
        wrong.bad.add(format!("{whose} is signed by {key}, which is not the key that offered it"));
    }
    // No log stands beside a thread that was reached through another: only those of its key speak of it.
    let anchored = anchor(&source, table.logs, &origin.thread, "");
    let anchored = earlier::held(table, &source, (&origin.thread, ""), anchored);
    if anchored.state == State::Failed {
        wrong.bad.add(format!("{whose}: {}", anchored.detail));
    }
    let signer = signer.unwrap_or_else(|| SignerSeen::unknown(String::new()));
    if !signer.trusted && judged.distrusted.first().is_none() && !signer.fingerprint.is_empty() {
        wrong.unknown.push(signer.fingerprint.clone());
    }
    let ancestor = Ancestor {
        thread: origin.thread.clone(),
        checkpoint: origin.checkpoint.clone(),
        commit: origin.commit,
        adopted: offer.is_some(),
        signer,
        accepted_unknown: offer.as_ref().is_some_and(|(_, accepted)| *accepted),
    };
    Some((ancestor, source))
}

/// Reads a thread up to the checkpoint that another began as; none where its chain does not hold.
fn read(store: &Store, (origin, meter): (&Origin, Meter), bad: &mut Findings) -> Option<ThreadChain> {
    let source = ThreadChain::read_after(store, &origin.thread, origin.commit, meter);
    let Some(first) = source.findings.first() else { return Some(source) };
    let finding = format!("the source {}:{}: {first}", origin.thread, origin.checkpoint);
    if source.findings.wrong() {
        bad.add(finding);
    } else {
        bad.missing(finding);
    }
    None
}

/// Returns what a thread says it began as.
fn beginning(walked: &ThreadChain) -> Option<Beginning> {
    match &walked.links.first()?.entry.event {
        Event::ThreadForked(e) => Some(Beginning { origin: e.from.clone(), content: e.content(), offer: None }),
        Event::ThreadAdopted(e) => {
            let from = &e.adopted_from;
            let origin =
                Origin { thread: from.thread.clone(), checkpoint: from.checkpoint.clone(), commit: from.commit };
            let offer = Some((from.signer.clone(), from.accepted_unknown));
            Some(Beginning { origin, content: e.content(), offer })
        }
        _ => None,
    }
}
