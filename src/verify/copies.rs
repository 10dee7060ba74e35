//! The copies of other runs and threads that are here, held against what was taken from them.
//!
//! Any remote may offer one. The best that is here counts, so that nobody who spoils a copy speaks against another; but one that holds
//! and says something else, under the same key, does.

use std::collections::{BTreeMap, HashMap};

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::merkle;
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;

use super::origins::{Here, origins};
use super::taken::{Origin, SignedEntry};
use super::witness::AtHand;
use super::{Case, Error, Options, Report, Standpoint, State, ThreadReport, resolve, root, thread_at};

/// What was made of the copies that were looked at, each once, however many things were taken from it.
///
/// It is of one repository and of one verifier, who knows the same throughout.
#[derive(Default)]
pub struct Copies {
    /// The refs that were fetched, by what lies there.
    fetched: Option<BTreeMap<Place, Vec<String>>>,
    /// By their refs: how each begins, and what it is where something was taken from a run that begins so.
    runs: HashMap<String, (Option<Digest>, Option<RunCopy>)>,
    threads: HashMap<String, ThreadCopy>,
}

/// A run that something was taken from.
#[derive(Clone, Copy)]
pub(super) struct Is<'a> {
    pub(super) run: &'a RunId,
    /// The leaf hash of its entry 0.
    pub(super) first: Digest,
    /// The root that its seal says.
    pub(super) root: Digest,
    /// The number of entries that the root is over, where the run was not sealed.
    pub(super) open: Option<u64>,
}

/// A copy of a run.
#[derive(Clone)]
struct RunCopy {
    /// The root over its entries; none where it is not sealed.
    root: Option<Digest>,
    /// Whether nothing is wrong with entries, seal and signatures, whatever anchors say.
    holds: bool,
    /// Whether nothing is wrong with entries and signatures.
    holds_so_far: bool,
    /// The leaf hashes of its entries.
    leaves: Vec<Digest>,
    /// How it stands by itself.
    standing: Here,
    /// What it took, each with whether a product of it was imported.
    taken: Vec<(Origin, bool)>,
    /// What confined its attempts, counted.
    sandbox: BTreeMap<String, u64>,
}

/// What there is of a run that something was taken from.
pub(super) struct Found {
    pub(super) here: Here,
    /// What that run took itself, each with whether a product of it was imported.
    pub(super) taken: Vec<(Origin, bool)>,
    /// What confined its attempts, counted; `None` if no copy goes to that seal.
    pub(super) sandbox: Option<BTreeMap<String, u64>>,
}

impl Found {
    fn alone(here: Here) -> Self {
        Self { here, taken: Vec::new(), sandbox: None }
    }
}

/// A copy of a thread.
struct ThreadCopy {
    /// Its entries, each with the one before it.
    entries: Vec<(Option<Digest>, Digest)>,
    /// The key that signed all of them; none where something is wrong with entries or signatures.
    key: Option<String>,
    /// What is wrong with it, or that not all of it could be looked at.
    finding: Option<String>,
}

impl Copies {
    /// Looks for a run that something was taken from, and returns what that one took itself.
    pub(super) fn run(
        &mut self,
        store: &Store,
        at_hand: &AtHand<'_>,
        options: &Options,
        Is { run, first, root, open }: Is<'_>,
    ) -> Result<Found, Error> {
        let mut best = Found::alone(Here::Not);
        for reference in self.references(store, &Place::of_run(run))? {
            // Another run of that name is another run.
            let Some(copy) = self.run_copy(store, at_hand, options, (run, &reference, first))? else { continue };
            if let Some(entries) = open {
                let here = copy.goes_on(entries, root);
                if copy.holds_so_far && matches!(here, Here::Contradicts(_)) {
                    return Ok(Found::alone(here));
                }
                better(&mut best, Found { here, ..copy.found() });
                continue;
            }
            let another = || Here::Contradicts("it begins as that run does, and its seal says another root".to_owned());
            match copy.root {
                Some(said) if said != root && copy.holds => return Ok(Found::alone(another())),
                Some(said) if said != root => better(&mut best, Found::alone(another())),
                Some(_) => better(&mut best, copy.found()),
                None => better(&mut best, Found::alone(Here::Unsure("not to its seal".to_owned()))),
            }
        }
        Ok(best)
    }

    /// Looks for a thread that has an entry.
    pub(super) fn thread(
        &mut self,
        store: &Store,
        at_hand: &AtHand<'_>,
        options: &Options,
        (thread, entry): (&ThreadId, &SignedEntry),
    ) -> Result<Here, Error> {
        let mut best = Here::Not;
        for reference in self.references(store, &Place::of_thread(thread))? {
            if !self.threads.contains_key(&reference) {
                let Ok(tip) = resolve(store, &reference)? else { continue };
                let at =
                    Standpoint { objects: store, home: store, thread, reference: &reference, place: &reference, tip };
                let examined = thread_at(&at, at_hand.logs, options);
                let key = Some(&examined.report).filter(|report| is_by_one_key(report));
                let key = key.and_then(|report| Some(report.signers.first()?.fingerprint.clone()));
                let missing = (!examined.report.intact).then(|| "not all of it".to_owned());
                let finding = examined.report.finding().or(missing);
                self.threads.insert(reference.clone(), ThreadCopy { entries: examined.entries, key, finding });
            }
            let here = self.threads[&reference].stands(entry);
            if matches!(here, Here::Contradicts(_)) {
                return Ok(here);
            }
            better(&mut best, here);
        }
        Ok(best)
    }

    /// Returns the refs at which what lies in a place is here: ours, and those that were fetched.
    fn references(&mut self, store: &Store, place: &Place) -> Result<Vec<String>, Error> {
        if self.fetched.is_none() {
            let listed = refs::list_with_archived(store, format::FETCHED_REFS).map_err(Error::Refs)?;
            let mut places: BTreeMap<Place, Vec<String>> = BTreeMap::new();
            for (name, _) in listed {
                if let Some((_, at)) = Place::fetched(&name) {
                    places.entry(at).or_default().push(name);
                }
            }
            self.fetched = Some(places);
        }
        let own = Some(place.below(format::REFS)).filter(|own| refs::read(store, own).is_ok_and(|tip| tip.is_some()));
        let fetched = self.fetched.iter().filter_map(|places| places.get(place)).flatten();
        Ok(own.into_iter().chain(fetched.cloned()).collect())
    }

    /// Returns what is made of the run at a ref, if it begins with an entry.
    fn run_copy(
        &mut self,
        store: &Store,
        at_hand: &AtHand<'_>,
        options: &Options,
        (run, reference, first): (&RunId, &str, Digest),
    ) -> Result<Option<&RunCopy>, Error> {
        let known = self.runs.get(reference);
        if known.is_none_or(|(begins, copy)| *begins == Some(first) && copy.is_none()) {
            let case = match Case::open(store, run, reference, options) {
                Err(Error::NoSuchRun(_)) => return Ok(None),
                other => other?,
            };
            let begins = case.chain.links.first().map(|link| link.hash);
            let copy = (begins == Some(first)).then(|| RunCopy::of(&case, at_hand));
            self.runs.insert(reference.to_owned(), (begins, copy));
        }
        Ok(self.runs.get(reference).and_then(|(begins, copy)| copy.as_ref().filter(|_| *begins == Some(first))))
    }
}

impl RunCopy {
    fn of(case: &Case<'_>, at_hand: &AtHand<'_>) -> Self {
        let root = case.seal().map(|seal| root::over(case, seal));
        let by_sealer = case.seal().is_some_and(|seal| {
            let link = &case.chain.links[seal];
            link.signer.as_ref().is_ok_and(|key| case.chain.sealers().contains(key))
        });
        let (report, taken) = super::examined(case, at_hand);
        let fails = |name: &str| report.row(name).is_some_and(|row| row.state == State::Failed);
        let holds = by_sealer && !["chain", "root", "signature"].into_iter().any(fails);
        let holds_so_far = !["chain", "signature"].into_iter().any(fails);
        let leaves = case.chain.links.iter().map(|link| link.hash).collect();
        let (standing, taken) = (standing(&report), origins(&taken));
        Self { root, holds, holds_so_far, leaves, standing, taken, sandbox: report.sandbox }
    }

    fn found(&self) -> Found {
        Found { here: self.standing.clone(), taken: self.taken.clone(), sandbox: Some(self.sandbox.clone()) }
    }

    /// Says how it stands to its own first entries, of which somebody has a root.
    fn goes_on(&self, entries: u64, root: Digest) -> Here {
        let under = usize::try_from(entries).ok().and_then(|entries| self.leaves.get(..entries));
        match under {
            None => Here::Unsure("not to the entry that it was continued from".to_owned()),
            Some(under) if merkle::root(under.iter().copied()) != root => {
                Here::Contradicts("it begins as that run does, and goes on otherwise".to_owned())
            }
            Some(_) if self.holds_so_far => Here::Intact,
            Some(_) => self.standing.clone(),
        }
    }
}

impl ThreadCopy {
    /// Says how it stands to an entry that is said to be the thread's.
    fn stands(&self, entry: &SignedEntry) -> Here {
        let has = |hash: Digest| self.entries.iter().any(|(_, known)| *known == hash);
        let unsure = || self.finding.clone().map(Here::Unsure);
        if has(entry.hash) {
            return unsure().unwrap_or(Here::Intact);
        }
        // What is not this thread, as far as can be told, is another one of that name.
        let at = usize::try_from(entry.seq).unwrap_or(usize::MAX);
        let is_another = |(prev, _): &(Option<Digest>, Digest)| *prev != entry.prev || at == 0;
        if self.key.as_ref() == Some(&entry.key) && self.entries.get(at).is_some_and(is_another) {
            return Here::Contradicts(format!("its key told it anew: entry {at} is another"));
        }
        let Some(prev) = entry.prev.filter(|prev| has(*prev)) else { return Here::Not };
        let Some(key) = &self.key else { return unsure().unwrap_or(Here::Not) };
        if *key != entry.key {
            return Here::Contradicts("what was taken is by another key than that thread".to_owned());
        }
        if self.entries.iter().any(|(before, _)| *before == Some(prev)) {
            return Here::Contradicts("it goes on otherwise from the entry before".to_owned());
        }
        Here::Unsure("not to that checkpoint".to_owned())
    }
}

/// Keeps the better of two copies.
fn better<T: AsRef<Here>>(best: &mut T, other: T) {
    let rank = |copy: &T| match copy.as_ref() {
        Here::Intact => 3,
        Here::Contradicts(_) => 2,
        Here::Unsure(_) => 1,
        Here::Not => 0,
    };
    if rank(&other) > rank(best) {
        *best = other;
    }
}

impl AsRef<Here> for Here {
    fn as_ref(&self) -> &Here {
        self
    }
}

impl AsRef<Here> for Found {
    fn as_ref(&self) -> &Here {
        &self.here
    }
}

/// Whether a thread holds together under one key, whatever anchors say and whether that is trusted or not.
fn is_by_one_key(report: &ThreadReport) -> bool {
    report.signers.len() == 1
        && [&report.rows.chain, &report.rows.signature].into_iter().all(|row| row.state != State::Failed)
}

/// Says how a run stands that has the root that was taken from.
fn standing(report: &Report) -> Here {
    let failed = report.rows.iter().find(|row| row.state == State::Failed);
    let why = failed.map(|row| format!("{}: {}", row.name, row.detail));
    match why {
        None if report.intact => Here::Intact,
        None => Here::Unsure("not all of it".to_owned()),
        Some(why) if report.headline == "TAMPERED" => Here::Contradicts(why),
        Some(why) => Here::Unsure(why),
    }
}
