//! The row `anchor`: something outside the run holds its root, and holds the same.

use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::findings::{Findings, Verdict};
use super::logs::{Flaw, Log, Said};
use super::objects::Objects;
use super::root;
use super::story::Link;
use super::witness::{Anchored, Answer, Ask, AtHand, LOCAL, Question, Seal, Standing, Timed, Witness};
use super::{Case, Guarantee, State};

/// The row, and what each anchor said.
pub(super) struct Anchor {
    pub(super) verdict: Verdict,
    /// Whether it fails because an anchor that is wanted does not hold the run.
    pub(super) missing: bool,
    /// The logs at hand, and every place outside that was asked.
    pub(super) anchored: Vec<Anchored>,
    /// What time-stamping authorities say, which neither makes the row hold nor fail.
    pub(super) times: Vec<Timed>,
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
pub(super) struct Facts<'a> {
    pub(super) run: &'a RunId,
    /// The leaf hash of entry 0.
    pub(super) first: Option<Digest>,
    /// The seal, recomputed; none for a run that is not sealed.
    pub(super) seal: Option<Seal>,
    pub(super) writers: &'a [String],
}

/// Asks the logs at hand and every place outside that the verifier configured. None may contradict the run, and each place
/// outside must hold it; where there is none, a log must.
pub(super) fn row(case: &Case<'_>, at_hand: &AtHand<'_>) -> Anchor {
    if let Some(verdict) = case.cut_off() {
        return Anchor { verdict, missing: false, anchored: Vec::new(), times: Vec::new() };
    }
    let links = &case.story.links;
    let writers = case.story.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    let sealed = |at: usize| {
        let Link { hash, commit, .. } = links[at];
        Seal { root: root::over(case, at), entries: at as u64, seal: hash, commit }
    };
    let facts =
        Facts { run: case.run, first: links.first().map(|link| link.hash), seal: case.seal().map(sealed), writers };
    let counts = |log: &&Log| log.stands_by(case.reference) || writers.contains(&log.fingerprint);
    let objects = Objects::new(case.store);
    let flaw = |log: &Log| log.flaw(&objects, case.run, case.lazy);
    let local = facts.logs(at_hand.logs.logs.iter().filter(counts), &flaw).local();
    let (outside, times) = facts.ask(at_hand.ask, case.store.object_format(), Some(case.store));
    let anchor = Anchor { times, ..sum_up(&facts, case.options.alone, local, outside) };
    if links.is_empty() && anchor.verdict.state != State::Failed {
        return Anchor { verdict: Verdict::not_applicable("no entry could be read"), missing: false, ..anchor };
    }
    anchor
}

/// Asks the logs at hand and every place outside about the seal that a proof shows; it comes without any log.
pub(super) fn of_proof(facts: &Facts<'_>, at_hand: &AtHand<'_>, object_format: &str) -> Anchor {
    let writers = |log: &&Log| facts.writers.contains(&log.fingerprint);
    let mut word = facts.logs(at_hand.logs.logs.iter().filter(writers), &|_| None);
    // A log that was here before the seal says nothing against a proof that came after it.
    word.knows &= word.holds || !word.findings.is_empty();
    let (outside, times) = facts.ask(at_hand.ask, object_format, None);
    Anchor { times, ..sum_up(facts, true, word.local(), outside) }
}

/// Sums up for a run: the strongest that holds is named.
fn sum_up(facts: &Facts<'_>, alone: bool, local: Weighed, outside: Vec<Weighed>) -> Anchor {
    let knows = local.word.knows;
    let own = local.anchored.detail.clone();
    let unread = local.word.absent.clone();
    let mut findings = Findings::default();
    let (mut notes, mut absent, mut silent) = (String::new(), Vec::new(), String::new());
    let mut anchored = Vec::new();
    for (at, weighed) in std::iter::once(local).chain(outside).enumerate() {
        weighed.word.findings.into_iter().for_each(|finding| findings.add(finding));
        weighed.word.notes.iter().for_each(|note| notes = format!("{notes}; {note}"));
        let one = weighed.anchored;
        if at > 0 && one.standing != Standing::Holds {
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
    } else if facts.seal.is_none() {
        let logged = if knows { "submission logged" } else { "in no log" };
        (Verdict::not_applicable(format!("not sealed, {logged}{notes}{silent}")), false)
    } else if !absent.is_empty() {
        (Verdict::failed(absent.join("; ") + &notes), true)
    } else if let Some(strongest) = strongest {
        (Verdict::ok(strongest.label() + &notes), false)
    } else if let Some(unread) = unread {
        (Verdict::incomplete(unread + &notes), false)
    } else if !knows && alone {
        (Verdict::not_applicable(own + &notes), false)
    } else {
        (Verdict::failed(own + &notes), true)
    };
    Anchor { verdict, missing, anchored, times: Vec::new() }
}

impl Facts<'_> {
    /// Asks everybody; a time is no anchor.
    fn ask(&self, ask: Ask<'_>, object_format: &str, store: Option<&Store>) -> (Vec<Weighed>, Vec<Timed>) {
        let root = self.seal.as_ref().map(|seal| seal.root);
        let question = Question { store, run: self.run, writers: self.writers, root, object_format };
        let (mut outside, mut times) = (Vec::new(), Vec::new());
        for witness in ask(&question) {
            let word = match &witness.answer {
                Answer::Time(at) => {
                    times.push(Timed { authority: witness.anchor, at: at.clone() });
                    continue;
                }
                Answer::Logs(logs) => {
                    let counts = |log: &&Log| self.writers.contains(&log.fingerprint);
                    let flaw = |log: &Log| log.broken.clone().map(Flaw::Broken);
                    self.logs(logs.iter().flat_map(|logs| &logs.logs).filter(counts), &flaw)
                }
                Answer::Seals(seals) => self.seals(seals),
                Answer::None(why) => Word { silent: Some(why.clone()), ..Word::default() },
            };
            outside.push(word.outside(witness));
        }
        (outside, times)
    }

    /// All logs must agree; those that are themselves broken are named and count for nothing, and those that are not wholly
    /// here hold nothing for sure.
    fn logs<'l>(&self, logs: impl Iterator<Item = &'l Log>, flaw: &dyn Fn(&Log) -> Option<Flaw>) -> Word {
        let mut word = Word::default();
        for log in logs {
            let Some(said) = log.runs.get(self.run) else { continue };
            let absent = match flaw(log) {
                Some(Flaw::Broken(why)) => {
                    word.notes.push(format!("{} is broken: {why}", log.name));
                    continue;
                }
                Some(Flaw::Absent(why)) => Some(format!("{} is not wholly here: {why}", log.name)),
                None => None,
            };
            word.knows = true;
            match (self.contradiction(said), absent) {
                (Some(why), _) => word.findings.push(format!("{} {why}", log.name)),
                (None, Some(absent)) => word.absent = word.absent.or(Some(absent)),
                (None, None) => word.holds |= said.sealed.is_some(),
            }
        }
        word
    }

    fn seals(&self, seals: &[Seal]) -> Word {
        let findings: Vec<String> =
            seals.iter().filter_map(|seal| Some(format!("it {}", self.differs(seal)?))).collect();
        let holds = !seals.is_empty() && findings.is_empty();
        Word { holds, knows: !seals.is_empty(), findings, ..Word::default() }
    }

    /// Returns how a log's word differs from the run.
    fn contradiction(&self, said: &Said) -> Option<String> {
        if let (Some(logged), Some(found)) = (said.first, self.first)
            && logged != found
        {
            return Some(format!("holds another run by this name, which began with {}", logged.short()));
        }
        let e = said.sealed.as_ref()?;
        self.differs(&Seal { root: e.root, entries: e.entries, seal: e.seal, commit: e.commit })
    }

    /// Returns how what is held of a seal differs from the run.
    fn differs(&self, held: &Seal) -> Option<String> {
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

/// What the logs of one place, or another place, say of a run.
#[derive(Default)]
struct Word {
    /// How it contradicts the run.
    findings: Vec<String>,
    /// What a reader should know besides.
    notes: Vec<String>,
    /// Whether it holds the seal.
    holds: bool,
    /// Whether it knows the run at all.
    knows: bool,
    /// Why it says nothing.
    silent: Option<String>,
    /// What is not here of a log that may hold the seal.
    absent: Option<String>,
}

/// An anchor, and its word.
struct Weighed {
    anchored: Anchored,
    word: Word,
}

impl Word {
    fn standing(&self) -> Standing {
        match self {
            Self { silent: Some(_), .. } => Standing::Unreachable,
            Self { findings, .. } if !findings.is_empty() => Standing::Differs,
            Self { holds: true, .. } => Standing::Holds,
            _ => Standing::Missing,
        }
    }

    /// Makes it the word of the logs at hand.
    fn local(self) -> Weighed {
        let standing = self.standing();
        let detail = match standing {
            Standing::Differs => self.findings.join("; "),
            Standing::Missing if self.knows => "a log holds the submission of the run, but not its seal".to_owned(),
            Standing::Missing => "no log at hand holds the run".to_owned(),
            Standing::Holds | Standing::Unreachable => String::new(),
        };
        let (name, guarantee) = (LOCAL.to_owned(), Guarantee::Detect);
        Weighed { anchored: Anchored { name, kind: LOCAL, guarantee, standing, detail, since: None }, word: self }
    }

    /// Makes it the word of a place outside.
    fn outside(mut self, witness: Witness) -> Weighed {
        let Witness { anchor: name, kind, guarantee, since, notes, .. } = witness;
        let standing = self.standing();
        let detail = match (&self.silent, standing) {
            (Some(why), _) => why.clone(),
            (None, Standing::Differs) => self.findings.join("; "),
            (None, Standing::Missing) if self.knows => {
                "it holds the submission of the run, but not its seal".to_owned()
            }
            (None, Standing::Missing) => "it holds nothing of the run".to_owned(),
            (None, _) => notes.join("; "),
        };
        let named = |text: &String| format!("{name}: {text}");
        self.findings = self.findings.iter().map(named).collect();
        self.notes = self.notes.iter().chain(&notes).map(named).collect();
        let since = since.filter(|_| standing == Standing::Holds);
        Weighed { anchored: Anchored { name, kind, guarantee, standing, detail, since }, word: self }
    }
}
