//! Runs, proofs and bundles, verified with the logs at hand and the places outside that are configured.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};
use crate::model::proof::Proof;
use crate::repository::shown::{self, Vanished};
use crate::repository::{Repository, Trust, trust};
use crate::run::{Target, submit, target};
use crate::verify::{
    self, AtHand, Beside, Bundle, BundleError, ChainReport, Copies, Gate, Logs, Options, Question, Report, Witness,
    verify_beside, verify_proof,
};

use super::held::{self, Missed};
use super::{Anchor, Means, ask_all, gate};

/// What must hold of whatever is verified, and who is asked about it.
#[derive(Clone, Default)]
pub struct VerifyRequest<'a> {
    /// Whom to trust, where that is not as the configuration says.
    pub trust: Trust<'a>,
    /// The bytes of the plan that a run must be of.
    pub plan: Option<Vec<u8>>,
    /// The commit that a run must start from.
    pub base: Option<Base<'a>>,
    /// The only anchors that are asked; all that are configured where none is named.
    pub anchors: &'a [String],
}

/// The commit that a run must start from.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// Of a run that is here: a revision.
    Here(&'a str),
    /// Of a bundle or a proof, whose base is not in it: a commit's full id, or a revision where there is a repository.
    Elsewhere(&'a str),
}

/// What runs, proofs and bundles are verified with.
pub struct Verification<'r> {
    pub(crate) repository: &'r Repository,
    pub(crate) options: Options,
    anchors: Vec<Anchor>,
    means: Means,
}

impl Repository {
    /// Begins to verify: with the keys and the anchors that are configured, unless others are asked for.
    ///
    /// `warn` is told of files that are ignored.
    pub fn verification(
        &self,
        request: VerifyRequest<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Verification<'_>, Error> {
        let options = self.options(&request.trust, warn)?;
        let base = request.base.map(|base| self.commit(base)).transpose()?;
        let options = Options { plan: request.plan, base, ..options };
        let anchors = self.anchors(request.anchors)?;
        Ok(Verification { repository: self, options, anchors, means: Means::of(self) })
    }

    /// Returns the commit that a run must start from.
    fn commit(&self, base: Base<'_>) -> Result<Oid, Error> {
        let (Base::Here(text) | Base::Elsewhere(text)) = base;
        match text.parse() {
            Ok(oid) if matches!(base, Base::Elsewhere(_)) => Ok(oid),
            Err(_) if self.is_outside() => Err(Error::NoId(text.to_owned())),
            _ => Ok(submit::resolve_base(&self.store, text)?),
        }
    }
}

impl<'r> Verification<'r> {
    /// Takes every run of this repository, every one that something holds as ours, and every one that was fetched.
    pub fn all(self) -> Result<RunsToVerify<'r>, Error> {
        let logs = Logs::read(&self.repository.store)?;
        let own_key = self.options.own_key.as_deref();
        let store = &self.repository.store;
        let unreadable = Target::unreadable(store).map_err(target::Error::from)?;
        let held = held::look_up((store, own_key), &logs, (&self.anchors, &self.means), &unreadable)?;
        let mut targets = held.targets;
        let mut fetched = Target::all_fetched(store).map_err(target::Error::from)?;
        fetched.extend(unreadable);
        fetched.retain(|one| targets.iter().all(|target| target.reference != one.reference));
        targets.extend(fetched);
        let vanished = shown::vanished(store, &logs)?.into_iter();
        let vanished = vanished.filter(|vanished| vanished.place.kind != Kind::Thread);
        let (deleted, cautions): (Vec<_>, Vec<_>) = vanished.partition(Vanished::is_missed);
        let deleted = deleted.iter().map(|vanished| Missed::Deleted(vanished.sentence()));
        let missed = held.missed.into_iter().chain(deleted).collect();
        let cautions = told(&cautions);
        Ok(RunsToVerify { missed, cautions, ..RunsToVerify::of(self, logs, targets) })
    }

    /// Verifies one run that is here.
    pub fn run(self, name: &str) -> Result<Report, Error> {
        let target = Target::find(&self.repository.store, name)?;
        let logs = Logs::read(&self.repository.store)?;
        RunsToVerify::of(self, logs, Vec::new()).report(&target)
    }

    /// Takes the runs of some names. One whose ref is gone may still be one that a log names; what is known of refs that are gone is told.
    pub fn named(self, names: &[String]) -> Result<RunsToVerify<'r>, Error> {
        let mut runs = self.found_by(names, |logs, name, unknown| {
            let fetched = || {
                let (remote, id) = name.rsplit_once('/')?;
                let run = RunId::parse(id).ok()?;
                let reference = logs.fetched_place(remote, &Place::of_run(&run))?;
                Some(Target { run, reference })
            };
            RunId::parse(name).map(Target::own).ok().or_else(fetched).ok_or(unknown)
        })?;
        runs.missed = runs.covered(names);
        let vanished = shown::vanished(&runs.with.repository.store, &runs.logs)?;
        runs.cautions = vanished.iter().filter(|vanished| runs.has(vanished)).map(Vanished::sentence).collect();
        Ok(runs)
    }

    /// Takes the runs of some names, each of which must be there.
    pub fn found(self, names: &[String]) -> Result<RunsToVerify<'r>, Error> {
        self.found_by(names, |_, _, unknown| Err(unknown))
    }

    fn found_by(
        self,
        names: &[String],
        otherwise: impl Fn(&Logs, &str, target::Error) -> Result<Target, target::Error>,
    ) -> Result<RunsToVerify<'r>, Error> {
        let store = &self.repository.store;
        let logs = Logs::read(store)?;
        let find = |name: &String| Target::find(store, name).or_else(|unknown| otherwise(&logs, name, unknown));
        let targets = names.iter().map(find).collect::<Result<_, _>>()?;
        Ok(RunsToVerify::of(self, logs, targets))
    }

    /// Asks the anchors about a run.
    fn ask(&self, question: &Question<'_>) -> Vec<Witness> {
        ask_all(&self.anchors, &self.means, question)
    }

    /// Opens the gate with the keys and the anchors that this goes by; what is not trusted does not pass.
    pub fn open<T>(&self, pass: impl FnOnce(&Gate<'_>) -> T) -> Result<T, Error> {
        let logs = Logs::read(&self.repository.store)?;
        let ask = |question: &Question<'_>| self.ask(question);
        let at_hand = AtHand { logs: &logs, ask: &ask };
        let (store, options) = (&self.repository.store, &self.options);
        Ok(pass(&Gate { store, at_hand: &at_hand, options, accept_untrusted: false }))
    }

    /// Verifies a proof, and what is held against it.
    pub fn proof(&self, proof: &Proof, beside: Beside) -> Result<Report, Error> {
        let logs = Logs::read(&self.repository.store)?;
        let ask = |question: &Question<'_>| self.ask(question);
        Ok(verify_proof(proof, beside, &self.options, &AtHand { logs: &logs, ask: &ask }))
    }

    /// Verifies what is in a bundle, all or what is named, and hands each report to `told`.
    pub fn bundle(&self, bundle: &Bundle, names: &[String], told: &mut dyn FnMut(ChainReport)) -> Result<(), Error> {
        let witnesses = Logs::read(&self.repository.store)?;
        let ask = |question: &Question<'_>| self.ask(question);
        for report in bundle.verify(names, witnesses, &ask, &self.options)? {
            told(report?);
        }
        Ok(())
    }
}

/// Runs that are to be verified, with all that their word is held against.
pub struct RunsToVerify<'r> {
    with: Verification<'r>,
    logs: Logs,
    targets: Vec<Target>,
    /// What the runs took from, looked at once for all of them.
    copies: RefCell<Copies>,
    /// What something holds as ours and cannot be found at all, and who could not say what it holds.
    pub missed: Vec<Missed>,
    /// What remotes do not show and is not missed for it, in sentences.
    pub cautions: Vec<String>,
}

impl<'r> RunsToVerify<'r> {
    fn of(with: Verification<'r>, logs: Logs, targets: Vec<Target>) -> Self {
        Self { with, logs, targets, copies: RefCell::default(), missed: Vec::new(), cautions: Vec::new() }
    }

    /// Returns whether there is no run, and none that is missed.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.missed.is_empty()
    }

    /// Returns what of ours is gone although a log of ours holds it, and a copy was found by its name, each of which has its target.
    fn covered(&self, names: &[String]) -> Vec<Missed> {
        let copies = names.iter().zip(&self.targets).filter(|(name, at)| *name == at.run.as_str() && !at.is_own());
        let held = self.logs.held(None);
        let gone = copies.filter_map(|(_, copy)| {
            let holder = format!("the log {}", held.get(&copy.run)?);
            Some(Missed::Gone { reference: format::run_ref(&copy.run), holder })
        });
        gone.collect()
    }

    /// Returns whether one of the runs is what a remote does not show: what was fetched from there, or ours.
    fn has(&self, vanished: &Vanished) -> bool {
        self.targets.iter().any(|target| {
            vanished.place == Place::of_run(&target.run) && (target.is_own() || target.reference == vanished.reference)
        })
    }

    /// Verifies one run after the other.
    pub fn reports(&self) -> impl Iterator<Item = Result<Report, Error>> {
        self.targets.iter().map(|target| self.report(target))
    }

    fn report(&self, target: &Target) -> Result<Report, Error> {
        let Verification { repository, options, .. } = &self.with;
        let store = &repository.store;
        let ask = |question: &Question<'_>| self.with.ask(question);
        let at_hand = AtHand { logs: &self.logs, ask: &ask };
        match verify_beside(&mut self.copies.borrow_mut(), (store, &at_hand), (&target.run, &target.reference), options)
        {
            Err(gone @ verify::Error::NoSuchRun(_)) => {
                // A name that is like it is more help than a ref that nobody typed.
                Target::find(store, &target.name())?;
                Err(gone.into())
            }
            other => Ok(other?),
        }
    }
}

/// Says what remotes do not show and what is not missed for it: what is gone each by itself, and for each remote how many runs it was
/// never seen to show.
fn told(vanished: &[Vanished]) -> Vec<String> {
    let (lost, unpushed): (Vec<_>, Vec<_>) = vanished.iter().partition(|vanished| vanished.seen);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    unpushed.iter().for_each(|vanished| *counts.entry(&vanished.remote).or_default() += 1);
    let lost = lost.into_iter().map(Vanished::sentence);
    lost.chain(counts.into_iter().map(|(remote, count)| shown::unpushed(remote, count))).collect()
}

/// Why something cannot be verified.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0:?} must be a commit's full id: there is no repository here")]
    NoId(String),
    #[error(transparent)]
    Base(#[from] submit::Error),
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    Anchors(#[from] gate::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Shown(#[from] shown::Error),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Verify(#[from] verify::Error),
}
