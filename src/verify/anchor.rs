//! The row `anchor`: something outside the run holds its root, and the same root.

mod answer;

use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::entry::LogRecorded;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::codes::Code;
use super::deleted::{self, Deleted};
use super::findings::{Findings, Verdict};
use super::log::Log;
use super::reader::Link;
use super::root;
use super::same_id::{OtherRun, RunPlace};
use super::witness::{Anchored, Answer, Ask, AtHand, Held, Question, Seal, Standing, Timed};
use super::{Case, Failure, Guarantee, Options, State};
use answer::{AnchorAnswer, JudgedAnchor};

pub(super) struct Anchor {
    pub(super) verdict: Verdict,
    pub(super) anchored: Vec<Anchored>,
    /// The answers of time-stamping authorities. They do not change the verdict.
    pub(super) times: Vec<Timed>,
    pub(super) others: Vec<OtherRun>,
}

impl Anchor {
    /// Returns true if the row fails because an anchor that is required does not hold the run.
    pub(super) fn is_missing(&self) -> bool {
        self.verdict.first.is_some_and(|first| first.failure() == Failure::AnchorMissing)
    }

    /// Returns true if it is undetermined which of two runs or seals is meant.
    pub(super) fn is_conflict(&self) -> bool {
        self.verdict.first.is_some_and(|first| first.failure() == Failure::Conflict)
    }

    /// Returns the earliest time at which an external clock saw the root.
    pub(super) fn held_since(&self) -> Option<Moment> {
        let places =
            self.anchored.iter().filter(|one| one.guarantee >= Guarantee::External).filter_map(|one| one.since);
        places.chain(self.times.iter().filter_map(|timed| timed.at.clone().ok())).min()
    }
}

/// The facts that anchors are compared with.
pub(super) struct Known<'a> {
    pub(super) run: &'a RunId,
    /// The leaf hash of entry 0.
    pub(super) first: Option<Digest>,
    /// The recomputed seal, or `None` if the run is not sealed.
    pub(super) seal: Option<Seal>,
    pub(super) writers: &'a [String],
    /// The place of the run, or `None` for a proof.
    pub(super) at: Option<RunPlace<'a>>,
    /// The keys that the verifier knows.
    pub(super) keys: &'a [String],
    /// The key that signed entry 0.
    pub(super) signer: Option<&'a str>,
    pub(super) options: &'a Options,
    /// The record of the deletion of our own run of this name, if this one was fetched.
    pub(super) deleted: Option<Deleted>,
}

/// The reason why a log counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Its key is one of the run's writers.
    Writer,
    /// The verifier knows its key, which is no writer: the log can only contradict the run.
    Known,
    /// It lies at the same place as the run; its key does not matter.
    Beside,
}

/// Asks the logs at hand and every configured external anchor.
///
/// No anchor may contradict the run or hide how it ends. Each external anchor must hold the run; if
/// there are none, a log must.
pub(super) fn row(case: &Case<'_>, at_hand: &AtHand<'_>) -> Anchor {
    if let Some(verdict) = case.cut_off() {
        return Anchor { verdict, anchored: Vec::new(), times: Vec::new(), others: Vec::new() };
    }
    let links = &case.chain.links;
    let writers = case.chain.sealers();
    let (first, known) = (links.first().map(|link| link.hash), case.options.known_keys());
    let signer = links.first().and_then(|link| link.signer.as_deref().ok());
    let begun_here = !case.options.alone && at_hand.logs.began_here(case.run, signer.zip(first));
    let is_fetched = case.reference.starts_with(format::FETCHED_REFS);
    let facts = Known {
        run: case.run,
        first,
        seal: case.seal().map(|at| {
            let Link { hash, commit, .. } = links[at];
            Seal { root: root::over(case, at), entries: at as u64, seal: hash, commit }
        }),
        writers: &writers,
        keys: &known,
        at: Some(RunPlace { reference: case.reference, begun_here }),
        signer,
        options: case.options,
        deleted: is_fetched.then(|| deleted::recorded(case.store, case.run)).flatten(),
    };
    let counted = at_hand.logs.logs.iter().filter_map(|log| Some((log, facts.reason(log)?)));
    let local = facts.logs(counted).with_others(facts.other_runs(at_hand)).local();
    let (outside, times) = facts.ask(at_hand.ask, case.store.object_format(), Some(case.store));
    let anchor = Anchor { times, ..sum_up(&facts, case.options.alone, local, outside) };
    if links.is_empty() && anchor.verdict.state != State::Failed {
        return Anchor { verdict: Verdict::not_applicable("no entry could be read"), ..anchor };
    }
    anchor
}

/// Asks the same anchors about the seal that a proof shows. A proof comes without logs.
pub(super) fn of_proof(facts: &Known<'_>, at_hand: &AtHand<'_>, object_format: &str) -> Anchor {
    let counted = at_hand.logs.logs.iter().filter_map(|log| Some((log, facts.reason_by_key(log)?)));
    let mut answer = facts.logs(counted).with_others(facts.other_runs(at_hand));
    // A log that was fetched before the seal says nothing against a later proof.
    answer.knows &= answer.holds || !answer.findings.is_empty();
    let (outside, times) = facts.ask(at_hand.ask, object_format, None);
    Anchor { times, ..sum_up(facts, true, answer.local(), outside) }
}

fn sum_up(facts: &Known<'_>, alone: bool, local: JudgedAnchor, outside: Vec<JudgedAnchor>) -> Anchor {
    let knows = local.answer.knows;
    let own = local.anchored.detail.clone();
    let mut findings = Findings::default();
    let (mut notes, mut absent, mut silent) = (String::new(), Vec::new(), String::new());
    let (mut broken, mut unread) = (Vec::new(), None);
    let (mut conflicts, mut others) = (Vec::new(), Vec::<OtherRun>::new());
    let mut twice = Vec::new();
    let mut anchored = Vec::new();
    for (at, judged) in std::iter::once(local).chain(outside).enumerate() {
        judged.answer.findings.into_iter().for_each(|finding| findings.report(Code::AnchorDiffers, finding));
        twice.extend(judged.answer.other_seals.iter().map(|seal| format!("the run was driven twice: {seal}")));
        judged.answer.notes.iter().for_each(|note| notes = format!("{notes}; {note}"));
        let one = judged.anchored;
        let prefix = if at > 0 { format!("{}: ", one.name) } else { String::new() };
        for mut other in judged.answer.others {
            let logged = other.conflicts.then(|| format!("{prefix}{}", facts.conflict(&other)));
            other.named_by = format!("{prefix}{}", other.named_by);
            match others.iter_mut().find(|known| known.is_same(&other)) {
                Some(known) if known.conflicts || !other.conflicts => continue,
                Some(known) => known.conflicts = true,
                None => others.push(other),
            }
            conflicts.extend(logged);
        }
        broken.extend(judged.answer.broken.iter().map(|why| format!("{prefix}{why}")));
        unread = unread.or_else(|| judged.answer.unread.first().map(|why| format!("{prefix}{why}")));
        if at > 0 && one.standing != Standing::Holds && judged.answer.broken.is_empty() {
            absent.push(format!("{}: {}", one.name, one.detail));
        }
        if one.standing == Standing::Unreachable {
            silent = format!("{silent}; {}: {}", one.name, one.detail);
        }
        anchored.push(one);
    }
    let holding = anchored.iter().filter(|one| one.standing == Standing::Holds);
    let strongest = holding.reduce(|a, b| if b.guarantee > a.guarantee { b } else { a });
    let verdict = if findings.first().is_some() {
        findings.verdict(false, String::new)
    } else if !(twice.is_empty() && conflicts.is_empty()) {
        undetermined(twice, conflicts, &notes)
    } else if !broken.is_empty() {
        let missing = (!absent.is_empty()).then_some(Code::AnchorMissing);
        broken.extend(absent);
        let codes = [Code::AnchorBroken].into_iter().chain(missing);
        Verdict::fails(codes, broken.join("; ") + &notes)
    } else if let (Some(unread), true) = (unread, absent.is_empty()) {
        Verdict::incomplete(unread + &notes)
    } else if facts.seal.is_none() {
        let logged = if knows { "submission logged" } else { "in no log" };
        Verdict::not_applicable(format!("not sealed, {logged}{notes}{silent}"))
    } else if !absent.is_empty() {
        Verdict::fails([Code::AnchorMissing], absent.join("; ") + &notes)
    } else if let Some(strongest) = strongest {
        Verdict::ok(strongest.label() + &notes)
    } else if !knows && alone {
        Verdict::not_applicable(own + &notes)
    } else {
        Verdict::fails([Code::AnchorMissing], own + &notes)
    };
    Anchor { verdict, anchored, times: Vec::new(), others }
}

/// Fails the row because it is undetermined which end of the run, or which run, is meant.
fn undetermined(ends: Vec<String>, runs: Vec<String>, notes: &str) -> Verdict {
    let two_ends = (!ends.is_empty()).then_some(Code::DrivenTwice);
    let two_runs = (!runs.is_empty()).then_some(Code::SameId);
    Verdict::fails(two_ends.into_iter().chain(two_runs), [ends, runs].concat().join("; ") + notes)
}

impl Known<'_> {
    /// Asks every external anchor. A time stamp is not an anchor.
    fn ask(&self, ask: Ask<'_>, object_format: &str, store: Option<&Store>) -> (Vec<JudgedAnchor>, Vec<Timed>) {
        let root = self.seal.as_ref().map(|seal| seal.root);
        let (writers, known) = (self.writers, self.keys);
        let question = Question { store, run: self.run, writers, known, root, object_format };
        let (mut outside, mut times) = (Vec::new(), Vec::new());
        for witness in ask(&question) {
            let answer = match &witness.answer {
                Answer::Time(at) => {
                    times.push(Timed { authority: witness.anchor, at: at.clone(), contradiction: None });
                    continue;
                }
                Answer::Logs(logs) => {
                    let by_key = || {
                        logs.iter().flat_map(|logs| &logs.logs).filter_map(|log| Some((log, self.reason_by_key(log)?)))
                    };
                    let others = by_key().filter_map(|(log, _)| self.other_run(log, true)).collect();
                    self.logs(by_key()).with_others(others)
                }
                Answer::Seals(seals) => self.seals(seals),
                Answer::None(why) => AnchorAnswer { silent: Some(why.clone()), ..AnchorAnswer::default() },
            };
            outside.push(answer.outside(witness));
        }
        (outside, times)
    }

    /// Returns the other runs to which logs at hand give this id, by any key.
    fn other_runs(&self, at_hand: &AtHand<'_>) -> Vec<OtherRun> {
        at_hand.logs.logs.iter().filter_map(|log| self.other_run(log, false)).collect()
    }

    /// Returns why a log counts, by its key alone.
    fn reason_by_key(&self, log: &Log) -> Option<Reason> {
        if self.writers.contains(&log.fingerprint) {
            return Some(Reason::Writer);
        }
        self.keys.contains(&log.fingerprint).then_some(Reason::Known)
    }

    /// Returns why a log at hand counts: its key, or its place beside the run or in this
    /// repository.
    ///
    /// A remote may hold logs of any origin. There, a log of a foreign key does not count for a run
    /// whose key the verifier knows.
    fn reason(&self, log: &Log) -> Option<Reason> {
        let is_adjacent =
            if log.elsewhere { log.is_own() } else { self.at.is_some_and(|at| log.lies_beside(at.reference)) };
        // Other people fill a bundle, as they do a remote.
        let own = log.is_own() && (log.elsewhere || !self.options.alone);
        self.reason_by_key(log).or_else(|| {
            (is_adjacent && (own || !self.writers.iter().any(|writer| self.keys.contains(writer))))
                .then_some(Reason::Beside)
        })
    }

    /// Returns the common answer of some logs.
    ///
    /// All logs must agree, and writers' logs must be sound to their end. Of another key's broken
    /// log, the sound part counts, so that a broken log of another key cannot fail the run.
    fn logs<'l>(&self, logs: impl Iterator<Item = (&'l Log, Reason)>) -> AnchorAnswer {
        let (mut answer, mut has_own) = (AnchorAnswer::default(), false);
        for (log, reason) in logs {
            let is_writers = reason == Reason::Writer;
            match log.complaint() {
                Some(why) if is_writers => answer.broken.push(why),
                Some(why) => answer.notes.push(why),
                None => {}
            }
            if let (Some(why), true) = (&log.unread, is_writers) {
                answer.unread.push(format!("{} could not be read: {why}", log.name));
            }
            let Some(logged) = log.runs.get(self.run).filter(|_| self.other_run(log, false).is_none()) else {
                continue;
            };
            let (name, is_sealed, is_witness) = (&log.name, logged.root.is_some(), is_writers && log.broken.is_none());
            // The log has a seal of this run, and the copy here is not sealed.
            if is_sealed && self.seal.is_none() && self.first == Some(logged.first) {
                let ended = format!("{name} says that the run was sealed after {} entries", logged.last_seq);
                if self.may_be_older_than(log) {
                    answer.notes.push(format!("{ended}: this is an older copy"));
                    answer.knows = true;
                    continue;
                }
                // The key may have been admitted later, so the log proves nothing.
                if !self.writers.contains(&log.fingerprint) {
                    answer.notes.push(format!("{ended}, by a key that may not seal it here"));
                    continue;
                }
            }
            match self.contradiction(logged) {
                Some(_) if self.is_another_seal(logged) && self.was_deleted(log, logged) => {
                    answer.notes.push(format!("{name} has another seal, of a run that was deleted here"));
                }
                Some(why) if is_witness && self.is_another_seal(logged) => {
                    answer.other_seals.push(format!("{name} {why}"));
                }
                Some(why) => answer.findings.push(format!("{name} {why}")),
                None if reason == Reason::Known => {}
                None => {
                    has_own |= is_witness && is_sealed;
                    answer.holds |= is_sealed;
                }
            }
            answer.knows |= reason != Reason::Known;
        }
        // Only a seal that a sound log of a writer has, too, shows that both ends were recorded.
        if !has_own {
            answer.findings.append(&mut answer.other_seals);
        }
        answer
    }

    /// Returns true if this run is sealed, and a log has a seal of it, equal or not.
    fn is_another_seal(&self, logged: &LogRecorded) -> bool {
        self.seal.is_some() && self.first == Some(logged.first) && logged.root.is_some()
    }

    /// Returns true if the seal in this repository's own log is that of its own run of this name,
    /// whose deletion the key of the log signed.
    fn was_deleted(&self, log: &Log, logged: &LogRecorded) -> bool {
        !log.elsewhere
            && log.is_own()
            && self.deleted.as_ref().is_some_and(|deleted| deleted.is_of(self.run, &log.fingerprint, logged.last))
    }

    /// Returns true if the run is a fetched copy that may be older than the log, which lies
    /// elsewhere.
    fn may_be_older_than(&self, log: &Log) -> bool {
        let elsewhere =
            |at: RunPlace<'_>| at.reference.starts_with(format::FETCHED_REFS) && !log.lies_beside(at.reference);
        !log.elsewhere && self.at.is_some_and(elsewhere)
    }

    fn seals(&self, anchored: &[Held]) -> AnchorAnswer {
        let mut answer = AnchorAnswer::default();
        for entry in anchored {
            let own = self.writers.contains(&entry.key);
            match self.differs_held(&entry.seal) {
                None => answer.holds |= own,
                Some(why) if own => answer.findings.push(format!("it {why}")),
                Some(_) => answer.others.extend(self.other_seal(entry)),
            }
            answer.knows |= own;
        }
        answer.holds &= answer.findings.is_empty();
        answer
    }

    /// Returns how a log's statement differs from the run.
    fn contradiction(&self, logged: &LogRecorded) -> Option<String> {
        let LogRecorded { log: key, first: recorded_first, .. } = logged;
        if let Some(found) = self.first
            && *recorded_first != found
        {
            let writers = self.writers.join(", ");
            return Some(format!(
                "holds another run by this name: that of the key {key} began with {recorded_first}; that of {writers} with {found}"
            ));
        }
        self.differs_logged(logged)
    }

    /// Returns how the seal in a log differs from the run's.
    pub(super) fn differs_logged(&self, logged: &LogRecorded) -> Option<String> {
        self.differs(logged.root?, logged.last_seq, logged.last)
    }

    /// Returns how a seal that an external anchor holds differs from the run's.
    pub(super) fn differs_held(&self, anchored: &Seal) -> Option<String> {
        let is_other = self.seal.as_ref().is_some_and(|seal| seal != anchored);
        self.differs(anchored.root, anchored.entries, anchored.seal)
            .or_else(|| is_other.then(|| "holds another seal".to_owned()))
    }

    fn differs(&self, root: Digest, entries: u64, last: Digest) -> Option<String> {
        let Some(seal) = &self.seal else {
            return Some(format!("says that the run was sealed after {entries} entries"));
        };
        if root != seal.root {
            return Some(format!("holds the root {}, recomputed is {}", root.short(), seal.root.short()));
        }
        if entries != seal.entries {
            return Some(format!("holds {entries} entries, there are {}", seal.entries));
        }
        (last != seal.seal).then(|| "holds another seal".to_owned())
    }
}
