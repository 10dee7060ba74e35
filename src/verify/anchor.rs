//! The row `anchor`: something outside the run holds its root, and holds the same.

mod word;

use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::codes::Code;
use super::findings::{Findings, Verdict};
use super::log::{Log, Said, Spoilt};
use super::objects::Objects;
use super::reader::Link;
use super::root;
use super::same_id::{At, OtherRun};
use super::witness::{Anchored, Answer, Ask, AtHand, Held, Question, Seal, Standing, Timed};
use super::{Case, Guarantee, Options, State};
use word::{Weighed, Word};

/// The row, and what each anchor said.
pub(super) struct Anchor {
    pub(super) verdict: Verdict,
    /// Whether it fails because an anchor that is wanted does not hold the run.
    pub(super) missing: bool,
    /// The logs at hand, and every place outside that was asked.
    pub(super) anchored: Vec<Anchored>,
    /// What time-stamping authorities say, which neither makes the row hold nor fail.
    pub(super) times: Vec<Timed>,
    /// Other runs that have the id of this one.
    pub(super) others: Vec<OtherRun>,
}

impl Anchor {
    /// Returns when the root was there at the latest, by the clock of somebody else.
    pub(super) fn held_since(&self) -> Option<Moment> {
        let places =
            self.anchored.iter().filter(|one| one.guarantee >= Guarantee::External).filter_map(|one| one.since);
        places.chain(self.times.iter().filter_map(|timed| timed.at.clone().ok())).min()
    }
}

/// What anchors are held against.
pub(super) struct Known<'a> {
    pub(super) run: &'a RunId,
    /// The leaf hash of entry 0.
    pub(super) first: Option<Digest>,
    /// The seal, recomputed; none for a run that is not sealed.
    pub(super) seal: Option<Seal>,
    pub(super) writers: &'a [String],
    /// Where the run lies; `None` for a proof.
    pub(super) at: Option<At<'a>>,
    /// The keys that the verifier knows.
    pub(super) keys: &'a [String],
    /// The key that signed entry 0.
    pub(super) signer: Option<&'a str>,
    pub(super) options: &'a Options,
}

/// Whose word a log is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// One of the run's writers'.
    Writer,
    /// Another key's that the verifier knows: it can only speak against the run.
    Known,
    /// Any other key's, which counts because of the place where its log lies.
    Beside,
}

/// Asks the logs at hand and every place outside that the verifier configured. None may contradict the run, none may hide how
/// it ends, and each place outside must hold it; where there is none, a log must.
pub(super) fn row(case: &Case<'_>, at_hand: &AtHand<'_>) -> Anchor {
    if let Some(verdict) = case.cut_off() {
        return Anchor { verdict, missing: false, anchored: Vec::new(), times: Vec::new(), others: Vec::new() };
    }
    let links = &case.chain.links;
    let writers = case.chain.sealers();
    let sealed = |at: usize| {
        let Link { hash, commit, .. } = links[at];
        Seal { root: root::over(case, at), entries: at as u64, seal: hash, commit }
    };
    let (first, known) = (links.first().map(|link| link.hash), case.options.known_keys());
    let signer = links.first().and_then(|link| link.signer.as_deref().ok());
    let begun_here = !case.options.alone && at_hand.logs.began_here(case.run, signer.zip(first));
    let facts = Known {
        run: case.run,
        first,
        seal: case.seal().map(sealed),
        writers: &writers,
        keys: &known,
        at: Some(At { reference: case.reference, begun_here }),
        signer,
        options: case.options,
    };
    let objects = Objects::new(case.store);
    let spoilt = |log: &Log| log.spoilt(&objects, case.run, case.lazy);
    let voices = at_hand.logs.logs.iter().filter_map(|log| Some((log, facts.voice(log)?)));
    let local = facts.logs(voices, &spoilt).beside(facts.others(at_hand)).local();
    let (outside, times) = facts.ask(at_hand.ask, case.store.object_format(), Some(case.store));
    let anchor = Anchor { times, ..sum_up(&facts, case.options.alone, local, outside) };
    if links.is_empty() && anchor.verdict.state != State::Failed {
        return Anchor { verdict: Verdict::not_applicable("no entry could be read"), missing: false, ..anchor };
    }
    anchor
}

/// Asks the logs at hand and every place outside about the seal that a proof shows; it comes without any log.
pub(super) fn of_proof(facts: &Known<'_>, at_hand: &AtHand<'_>, object_format: &str) -> Anchor {
    let voices = at_hand.logs.logs.iter().filter_map(|log| Some((log, facts.voice_of(log)?)));
    let mut word = facts.logs(voices, &|_| None).beside(facts.others(at_hand));
    // A log that was here before the seal says nothing against a proof that came after it.
    word.knows &= word.holds || !word.findings.is_empty();
    let (outside, times) = facts.ask(at_hand.ask, object_format, None);
    Anchor { times, ..sum_up(facts, true, word.local(), outside) }
}

/// Sums up for a run: the strongest that holds is named.
fn sum_up(facts: &Known<'_>, alone: bool, local: Weighed, outside: Vec<Weighed>) -> Anchor {
    let knows = local.word.knows;
    let own = local.anchored.detail.clone();
    let mut findings = Findings::default();
    let (mut notes, mut absent, mut silent) = (String::new(), Vec::new(), String::new());
    let (mut broken, mut unread) = (Vec::new(), None);
    let (mut conflicts, mut others) = (Vec::new(), Vec::<OtherRun>::new());
    let mut anchored = Vec::new();
    for (at, weighed) in std::iter::once(local).chain(outside).enumerate() {
        weighed.word.findings.into_iter().for_each(|finding| findings.report(Code::AnchorDiffers, finding));
        weighed.word.notes.iter().for_each(|note| notes = format!("{notes}; {note}"));
        let one = weighed.anchored;
        let prefix = if at > 0 { format!("{}: ", one.name) } else { String::new() };
        for mut other in weighed.word.others {
            let said = other.conflicts.then(|| format!("{prefix}{}", facts.conflict(&other)));
            other.named_by = format!("{prefix}{}", other.named_by);
            match others.iter_mut().find(|known| known.is_same(&other)) {
                Some(known) if known.conflicts || !other.conflicts => continue,
                Some(known) => known.conflicts = true,
                None => others.push(other),
            }
            conflicts.extend(said);
        }
        broken.extend(weighed.word.broken.iter().map(|why| format!("{prefix}{why}")));
        unread = unread.or_else(|| weighed.word.unread.first().map(|why| format!("{prefix}{why}")));
        if at > 0 && one.standing != Standing::Holds && weighed.word.broken.is_empty() {
            absent.push(format!("{}: {}", one.name, one.detail));
        }
        if one.standing == Standing::Unreachable {
            silent = format!("{silent}; {}: {}", one.name, one.detail);
        }
        anchored.push(one);
    }
    let holding = anchored.iter().filter(|one| one.standing == Standing::Holds);
    let strongest = holding.reduce(|a, b| if b.guarantee > a.guarantee { b } else { a });
    let (verdict, missing) = if findings.first().is_some() {
        (findings.verdict(false, String::new), false)
    } else if !conflicts.is_empty() {
        (Verdict::conflict(conflicts.join("; ") + &notes), false)
    } else if !broken.is_empty() {
        let missing = (!absent.is_empty()).then_some(Code::AnchorMissing);
        broken.extend(absent);
        let codes = [Code::AnchorBroken].into_iter().chain(missing);
        (Verdict::fails(codes, broken.join("; ") + &notes), true)
    } else if let (Some(unread), true) = (unread, absent.is_empty()) {
        (Verdict::incomplete(unread + &notes), false)
    } else if facts.seal.is_none() {
        let logged = if knows { "submission logged" } else { "in no log" };
        (Verdict::not_applicable(format!("not sealed, {logged}{notes}{silent}")), false)
    } else if !absent.is_empty() {
        (Verdict::fails([Code::AnchorMissing], absent.join("; ") + &notes), true)
    } else if let Some(strongest) = strongest {
        (Verdict::ok(strongest.label() + &notes), false)
    } else if !knows && alone {
        (Verdict::not_applicable(own + &notes), false)
    } else {
        (Verdict::fails([Code::AnchorMissing], own + &notes), true)
    };
    Anchor { verdict, missing, anchored, times: Vec::new(), others }
}

impl Known<'_> {
    /// Asks everybody; a time is no anchor.
    fn ask(&self, ask: Ask<'_>, object_format: &str, store: Option<&Store>) -> (Vec<Weighed>, Vec<Timed>) {
        let root = self.seal.as_ref().map(|seal| seal.root);
        let (writers, known) = (self.writers, self.keys);
        let question = Question { store, run: self.run, writers, known, root, object_format };
        let (mut outside, mut times) = (Vec::new(), Vec::new());
        for witness in ask(&question) {
            let word = match &witness.answer {
                Answer::Time(at) => {
                    times.push(Timed { authority: witness.anchor, at: at.clone(), contradiction: None });
                    continue;
                }
                Answer::Logs(logs) => {
                    let asked =
                        || logs.iter().flat_map(|logs| &logs.logs).filter_map(|log| Some((log, self.voice_of(log)?)));
                    let others = asked().filter_map(|(log, _)| self.other_run(log, true)).collect();
                    self.logs(asked(), &|_| None).beside(others)
                }
                Answer::Seals(seals) => self.seals(seals),
                Answer::None(why) => Word { silent: Some(why.clone()), ..Word::default() },
            };
            outside.push(word.outside(witness));
        }
        (outside, times)
    }

    /// Returns the other runs that logs at hand name by the id of this one, whoever wrote them.
    fn others(&self, at_hand: &AtHand<'_>) -> Vec<OtherRun> {
        at_hand.logs.logs.iter().filter_map(|log| self.other_run(log, false)).collect()
    }

    /// Returns what a log has to do with the run by its key alone.
    fn voice_of(&self, log: &Log) -> Option<Voice> {
        if self.writers.contains(&log.fingerprint) {
            return Some(Voice::Writer);
        }
        self.keys.contains(&log.fingerprint).then_some(Voice::Known)
    }

    /// Returns what a log at hand has to do with the run: by its key, or because it is one of the run's place or our own.
    ///
    /// At a remote anybody may have put one, so that it has no say there about a run by a key that the verifier knows.
    fn voice(&self, log: &Log) -> Option<Voice> {
        let is_known_run = || self.writers.iter().any(|writer| self.keys.contains(writer));
        let stands_by = || self.at.is_some_and(|at| log.stands_by(at.reference));
        let beside = if log.elsewhere { log.is_own() } else { stands_by() };
        // A bundle is filled by others, as a remote is.
        let own = log.is_own() && (log.elsewhere || !self.options.alone);
        self.voice_of(log).or_else(|| (beside && (own || !is_known_run())).then_some(Voice::Beside))
    }

    /// All logs must agree, and those of writers be sound to their end; of others that are broken, what is sound counts: nobody
    /// makes another's run fail with a log of their own.
    fn logs<'l>(&self, logs: impl Iterator<Item = (&'l Log, Voice)>, spoilt: &dyn Fn(&Log) -> Option<Spoilt>) -> Word {
        let mut word = Word::default();
        for (log, voice) in logs {
            let (mut broken, mut unread) = (log.complaint(), log.unread.clone());
            match spoilt(log) {
                Some(Spoilt::Damaged(why)) => broken = broken.or(Some(why)),
                Some(Spoilt::Absent(why)) => unread = unread.or(Some(why)),
                None => {}
            }
            match broken {
                Some(why) if voice == Voice::Writer => word.broken.push(why),
                Some(why) => word.notes.push(why),
                None => {}
            }
            let holds = unread.is_none();
            if let (Some(why), true) = (unread, voice == Voice::Writer) {
                word.unread.push(format!("{} could not be read: {why}", log.name));
            }
            let Some(said) = log.runs.get(self.run).filter(|_| self.other_run(log, false).is_none()) else { continue };
            if let Some(sealed) = said.sealed.as_ref().filter(|_| self.is_older(log, said)) {
                let (name, entries) = (&log.name, sealed.entries);
                word.notes.push(format!(
                    "{name} says that the run was sealed after {entries} entries: this is an older copy"
                ));
                word.knows = true;
                continue;
            }
            if let Some(sealed) = said.sealed.as_ref().filter(|_| self.is_no_sealer(log, said)) {
                let (name, entries) = (&log.name, sealed.entries);
                word.notes.push(format!(
                    "{name} says that the run was sealed after {entries} entries, by a key that may not seal it here"
                ));
                continue;
            }
            match self.contradiction(said, &log.fingerprint) {
                Some(why) => word.findings.push(format!("{} {why}", log.name)),
                None if voice == Voice::Known => {}
                None => word.holds |= holds && said.sealed.is_some(),
            }
            word.knows |= voice != Voice::Known;
        }
        word
    }

    /// Whether a log may know of more than this copy of the run, which was fetched from another place than the log: it lags, and
    /// nothing of it is denied.
    fn is_older(&self, log: &Log, said: &Said) -> bool {
        let elsewhere = |at: At<'_>| at.reference.starts_with(format::FETCHED_REFS) && !log.stands_by(at.reference);
        self.seal.is_none() && said.first == self.first && !log.elsewhere && self.at.is_some_and(elsewhere)
    }

    /// Returns true if a log names the beginning of this run, which is not sealed here, and its key may not seal it: it may have been
    /// admitted later, and otherwise it says nothing.
    fn is_no_sealer(&self, log: &Log, said: &Said) -> bool {
        self.seal.is_none() && said.first == self.first && !self.writers.contains(&log.fingerprint)
    }

    fn seals(&self, held: &[Held]) -> Word {
        let mut word = Word::default();
        for held in held {
            let own = self.writers.contains(&held.key);
            match self.differs(&held.seal) {
                None => word.holds |= own,
                Some(why) if own => word.findings.push(format!("it {why}")),
                Some(_) => word.others.extend(self.other_seal(held)),
            }
            word.knows |= own;
        }
        word.holds &= word.findings.is_empty();
        word
    }

    /// Returns how the word of a key's log differs from the run.
    fn contradiction(&self, said: &Said, key: &str) -> Option<String> {
        if let (Some(logged), Some(found)) = (said.first, self.first)
            && logged != found
        {
            let writers = self.writers.join(", ");
            return Some(format!(
                "holds another run by this name: that of the key {key} began with {logged}; that of {writers} with {found}"
            ));
        }
        self.differs(&said.sealed.as_ref()?.into())
    }

    /// Returns how what is held of a seal differs from the run.
    pub(super) fn differs(&self, held: &Seal) -> Option<String> {
        let Some(seal) = &self.seal else {
            return Some(format!("says that the run was sealed after {} entries", held.entries));
        };
        if held.root != seal.root {
            return Some(format!("holds the root {}, recomputed is {}", held.root.short(), seal.root.short()));
        }
        if held.entries != seal.entries {
            return Some(format!("holds {} entries, there are {}", held.entries, seal.entries));
        }
        (held != seal).then(|| "holds another seal".to_owned())
    }
}
