//! Local copies of upstream runs and threads, compared with the evidence of imports.
//!
//! Any remote may offer a copy. The best local copy counts, so a damaged copy proves nothing. A
//! valid copy by the same key with other content is a contradiction.

use std::collections::{BTreeMap, HashMap};

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::merkle;
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;

use super::imports::{Origin, SignedEntry};
use super::upstream::{CopyState, origins};
use super::witness::AtHand;
use super::{Case, Error, Options, Report, Standpoint, State, ThreadReport, resolve, root, thread_at};

/// The local copies that were examined, each once.
///
/// They belong to one repository and one verifier, whose options stay the same.
pub struct LocalCopies {
    store: Store,
    fetched: Option<BTreeMap<Place, Vec<String>>>,
    /// For each ref: the hash of its first entry, and the copy if an import names that hash.
    runs: HashMap<String, (Option<Digest>, Option<RunCopy>)>,
    threads: HashMap<String, ThreadCopy>,
}

#[derive(Clone, Copy)]
pub(super) struct RunRoot<'a> {
    pub(super) run: &'a RunId,
    pub(super) first: Digest,
    pub(super) root: Digest,
    /// The number of entries under the root, if the run was not sealed.
    pub(super) open: Option<u64>,
}

#[derive(Clone)]
struct RunCopy {
    /// The root over its entries, or `None` if it is not sealed.
    root: Option<Digest>,
    /// True if entries, seal and signatures are valid. Anchors do not count.
    holds: bool,
    /// True if entries and signatures are valid.
    holds_so_far: bool,
    leaves: Vec<Digest>,
    /// The verdict on the copy alone.
    standing: CopyState,
    /// Its own sources, each with whether a product was imported.
    imports: Vec<(Origin, bool)>,
    sandbox: BTreeMap<String, u64>,
}

pub(super) struct FoundRun {
    pub(super) here: CopyState,
    /// The run's own sources, each with whether a product was imported.
    pub(super) imports: Vec<(Origin, bool)>,
    /// The number of attempts for each sandbox, or `None` if no copy reaches the seal.
    pub(super) sandbox: Option<BTreeMap<String, u64>>,
}

impl FoundRun {
    fn alone(here: CopyState) -> Self {
        Self { here, imports: Vec::new(), sandbox: None }
    }
}

struct ThreadCopy {
    /// The leaf hashes of its entries, each after the hash of the entry before.
    entries: Vec<(Option<Digest>, Digest)>,
    /// The only key that signed it, or `None` if entries or signatures are not valid.
    key: Option<String>,
    /// The first fault, or a note that not everything could be checked.
    finding: Option<String>,
}

impl LocalCopies {
    /// Returns an empty set of copies in `store`.
    pub fn new(store: &Store) -> Self {
        Self { store: store.clone(), fetched: None, runs: HashMap::new(), threads: HashMap::new() }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Finds the best local copy of an upstream run, with its own sources.
    pub(super) fn run(
        &mut self,
        at_hand: &AtHand<'_>,
        options: &Options,
        RunRoot { run, first, root, open }: RunRoot<'_>,
    ) -> Result<FoundRun, Error> {
        let mut best = FoundRun::alone(CopyState::Absent);
        for reference in self.references(&Place::of_run(run))? {
            // A copy with another first entry is another run.
            let Some(copy) = self.run_copy(at_hand, options, run, &reference, first)? else { continue };
            let found = if let Some(entries) = open {
                let here = copy.extends_prefix(entries, root);
                if copy.holds_so_far && matches!(here, CopyState::Contradicts(_)) {
                    return Ok(FoundRun::alone(here));
                }
                FoundRun { here, ..copy.found() }
            } else if copy.root == Some(root) {
                copy.found()
            } else if copy.root.is_none() {
                FoundRun::alone(CopyState::Unproven("not to its seal".to_owned()))
            } else {
                let why = "it has the same first entry, but its seal says another root";
                let found = FoundRun::alone(CopyState::Contradicts(why.to_owned()));
                if copy.holds {
                    return Ok(found);
                }
                found
            };
            if found.here.rank() > best.here.rank() {
                best = found;
            }
        }
        Ok(best)
    }

    /// Finds the best local copy of a thread with this entry.
    pub(super) fn thread(
        &mut self,
        at_hand: &AtHand<'_>,
        options: &Options,
        thread: &ThreadId,
        entry: &SignedEntry,
    ) -> Result<CopyState, Error> {
        let mut best = CopyState::Absent;
        for reference in self.references(&Place::of_thread(thread))? {
            if !self.threads.contains_key(&reference) {
                let store = &self.store;
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
            if matches!(here, CopyState::Contradicts(_)) {
                return Ok(here);
            }
            if here.rank() > best.rank() {
                best = here;
            }
        }
        Ok(best)
    }

    /// Returns the local refs of a place: our own and fetched ones.
    fn references(&mut self, place: &Place) -> Result<Vec<String>, Error> {
        if self.fetched.is_none() {
            let listed = refs::list_with_archived(&self.store, format::FETCHED_REFS).map_err(Error::Refs)?;
            let mut places: BTreeMap<Place, Vec<String>> = BTreeMap::new();
            for (name, _) in listed {
                if let Some((_, at)) = Place::fetched(&name) {
                    places.entry(at).or_default().push(name);
                }
            }
            self.fetched = Some(places);
        }
        let own =
            Some(place.below(format::REFS)).filter(|own| refs::read(&self.store, own).is_ok_and(|tip| tip.is_some()));
        let fetched = self.fetched.iter().filter_map(|places| places.get(place)).flatten();
        Ok(own.into_iter().chain(fetched.cloned()).collect())
    }

    /// Returns the copy at a ref if it begins with the entry `first`.
    fn run_copy(
        &mut self,
        at_hand: &AtHand<'_>,
        options: &Options,
        run: &RunId,
        reference: &str,
        first: Digest,
    ) -> Result<Option<&RunCopy>, Error> {
        let known = self.runs.get(reference);
        if known.is_none_or(|(begins, copy)| *begins == Some(first) && copy.is_none()) {
            let case = match Case::open(&self.store, run, reference, options) {
                Err(Error::NoSuchRun(_)) => return Ok(None),
                other => other?,
            };
            let begins = case.chain.links.first().map(|link| link.hash);
            let copy = (begins == Some(first)).then(|| RunCopy::read(&case, at_hand));
            self.runs.insert(reference.to_owned(), (begins, copy));
        }
        Ok(self.runs.get(reference).and_then(|(begins, copy)| copy.as_ref().filter(|_| *begins == Some(first))))
    }
}

impl RunCopy {
    fn read(case: &Case<'_>, at_hand: &AtHand<'_>) -> Self {
        let root = case.seal().map(|seal| root::over(case, seal));
        let by_sealer = case.seal().is_some_and(|seal| {
            let link = &case.chain.links[seal];
            link.signer.as_ref().is_ok_and(|key| case.chain.sealers().contains(key))
        });
        let (report, imports) = super::verify_alone(case, at_hand);
        let rows = &report.rows;
        let holds_so_far = [&rows.chain, &rows.signature].into_iter().all(|row| row.state != State::Failed);
        let holds = by_sealer && holds_so_far && rows.root.state != State::Failed;
        let leaves = case.chain.links.iter().map(|link| link.hash).collect();
        let (standing, imports) = (standing(&report), origins(&imports));
        Self { root, holds, holds_so_far, leaves, standing, imports, sandbox: report.sandbox }
    }

    fn found(&self) -> FoundRun {
        FoundRun { here: self.standing.clone(), imports: self.imports.clone(), sandbox: Some(self.sandbox.clone()) }
    }

    /// Compares the copy with the prefix that the run had when it was continued.
    fn extends_prefix(&self, entries: u64, root: Digest) -> CopyState {
        let under = usize::try_from(entries).ok().and_then(|entries| self.leaves.get(..entries));
        match under {
            None => CopyState::Unproven("not to the entry that it was continued from".to_owned()),
            Some(under) if merkle::root(under.iter().copied()) != root => {
                CopyState::Contradicts("it has the same first entry, but other entries follow".to_owned())
            }
            Some(_) if self.holds_so_far => CopyState::Intact,
            Some(_) => self.standing.clone(),
        }
    }
}

impl ThreadCopy {
    /// Compares the copy with an entry of the thread.
    fn stands(&self, entry: &SignedEntry) -> CopyState {
        let has = |hash: Digest| self.entries.iter().any(|(_, known)| *known == hash);
        let unsure = || self.finding.clone().map(CopyState::Unproven);
        if has(entry.hash) {
            return unsure().unwrap_or(CopyState::Intact);
        }
        // Without a link to this thread, it is another thread with the same name.
        let at = usize::try_from(entry.seq).unwrap_or(usize::MAX);
        if self.key.as_ref() == Some(&entry.key)
            && self.entries.get(at).is_some_and(|(prev, _)| *prev != entry.prev || at == 0)
        {
            return CopyState::Contradicts(format!("its key signed another chain: entry {at} is another"));
        }
        let Some(prev) = entry.prev.filter(|prev| has(*prev)) else { return CopyState::Absent };
        let Some(key) = &self.key else { return unsure().unwrap_or(CopyState::Absent) };
        if *key != entry.key {
            return CopyState::Contradicts("the import is signed by another key than that thread".to_owned());
        }
        if self.entries.iter().any(|(before, _)| *before == Some(prev)) {
            return CopyState::Contradicts("another entry follows the one before".to_owned());
        }
        CopyState::Unproven("not to that checkpoint".to_owned())
    }
}

/// Returns true if chain and signatures of the thread are valid and by one key.
fn is_by_one_key(report: &ThreadReport) -> bool {
    report.signers.len() == 1
        && [&report.rows.chain, &report.rows.signature].into_iter().all(|row| row.state != State::Failed)
}

/// Returns the state of a copy that has the right root.
fn standing(report: &Report) -> CopyState {
    let failed = report.rows.iter().find(|row| row.state == State::Failed);
    let why = failed.map(|row| format!("{}: {}", row.name, row.detail));
    match why {
        None if report.intact => CopyState::Intact,
        None => CopyState::Unproven("not all of it".to_owned()),
        Some(why) if report.headline == "TAMPERED" => CopyState::Contradicts(why),
        Some(why) => CopyState::Unproven(why),
    }
}
