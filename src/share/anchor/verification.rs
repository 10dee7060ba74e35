//! Verification of runs, proofs and bundles with local logs and configured anchors.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};
use crate::model::proof::Proof;
use crate::repository::remote_record::{self, Vanished};
use crate::repository::{Repository, Trust};
use crate::run::operate::submit;
use crate::run::query::{Target, target};
use crate::verify::{
    self, AskAnchors, AtHand, Beside, Bundle, ChainReport, Gate, LocalCopies, Logs, Options, Question, Report, Witness,
    verify_beside, verify_proof,
};

use super::missing_runs::{self, Missed};
use super::{Anchor, Means, ask_all, ask_all_of_thread};

/// Requirements, and the anchors to ask.
#[derive(Clone, Default)]
pub struct VerifyRequest<'a> {
    /// Explicitly given trust.
    pub trust: Trust<'a>,
    /// The required plan.
    pub plan: Option<Vec<u8>>,
    /// The required base.
    pub base: Option<Base<'a>>,
    /// The anchors to ask; empty means all configured ones.
    pub anchors: &'a [String],
}

/// The required base.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// For a local run: a revision.
    Here(&'a str),
    /// For a bundle or proof, which lacks the base: a full commit id, or a revision inside a
    /// repository.
    Elsewhere(&'a str),
}

/// The context of a verification.
pub struct Verification<'r> {
    pub(crate) repository: &'r Repository,
    pub(crate) options: Options,
    anchors: Vec<Anchor>,
    means: Means,
}

impl Repository {
    /// Prepares a verification with the configured keys and anchors, or the given ones.
    ///
    /// Calls `warn` for ignored files.
    pub fn verification(
        &self,
        request: VerifyRequest<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Verification<'_>, AnyError> {
        let options = self.options(&request.trust, warn)?;
        let base = request.base.map(|base| self.commit(base)).transpose()?;
        let options = Options { plan: request.plan, base, ..options };
        let anchors = self.anchors(request.anchors)?;
        Ok(Verification { repository: self, options, anchors, means: Means::from_repository(self) })
    }

    /// Returns the required base.
    fn commit(&self, base: Base<'_>) -> Result<Oid, AnyError> {
        let (Base::Here(text) | Base::Elsewhere(text)) = base;
        match text.parse() {
            Ok(oid) if matches!(base, Base::Elsewhere(_)) => Ok(oid),
            Err(_) if self.is_outside() => Err(Error::NoId(text.to_owned()).into()),
            _ => Ok(submit::resolve_base(&self.store, text)?),
        }
    }
}

impl<'r> Verification<'r> {
    /// Selects all runs: of this repository, named by logs or anchors, and fetched.
    pub fn all(self) -> Result<RunsToVerify<'r>, AnyError> {
        let logs = Logs::read(&self.repository.store)?;
        let (store, key) = (&self.repository.store, self.options.own_key.as_deref());
        let holders = missing_runs::Holders { store, key, anchors: &self.anchors, means: &self.means };
        let unreadable = Target::unreadable(store).map_err(target::Error::from)?;
        let known_runs = missing_runs::look_up(&holders, &logs, &unreadable)?;
        let mut targets = known_runs.targets;
        let mut fetched = Target::all_fetched(store).map_err(target::Error::from)?;
        fetched.extend(unreadable);
        fetched.retain(|one| targets.iter().all(|target| target.reference != one.reference));
        targets.extend(fetched);
        let vanished = remote_record::vanished(store, &logs)?.into_iter();
        let vanished = vanished.filter(|vanished| vanished.place.kind != Kind::Thread);
        let (deleted, cautions): (Vec<_>, Vec<_>) = vanished.partition(Vanished::is_missed);
        let deleted = deleted.iter().map(|lost| Missed::Deleted(lost.sentence()));
        let missed = known_runs.missed.into_iter().chain(deleted).collect();
        let cautions = describe_vanished(&cautions);
        Ok(RunsToVerify { missed, cautions, ..RunsToVerify::new(self, logs, targets) })
    }

    /// Verifies a local run.
    pub fn run(self, name: &str) -> Result<Report, AnyError> {
        let target = Target::find(&self.repository.store, name)?;
        let logs = Logs::read(&self.repository.store)?;
        RunsToVerify::new(self, logs, Vec::new()).report(&target)
    }

    /// Selects named runs. A missing ref is reported if a log names the run.
    pub fn by_name(self, names: &[String]) -> Result<RunsToVerify<'r>, AnyError> {
        let mut runs = self.found_by(names, |logs, name, unknown| {
            RunId::parse(name)
                .map(Target::own)
                .ok()
                .or_else(|| {
                    let (remote, id) = name.rsplit_once('/')?;
                    let run = RunId::parse(id).ok()?;
                    let reference = logs.fetched_place(remote, &Place::of_run(&run))?;
                    Some(Target { run, reference })
                })
                .ok_or(unknown)
        })?;
        runs.missed = runs.covered(names);
        let vanished = remote_record::vanished(&runs.with.repository.store, &runs.logs)?;
        runs.cautions = vanished.iter().filter(|vanished| runs.has(vanished)).map(Vanished::sentence).collect();
        Ok(runs)
    }

    /// Selects named runs, which must exist.
    pub fn found(self, names: &[String]) -> Result<RunsToVerify<'r>, AnyError> {
        self.found_by(names, |_, _, unknown| Err(unknown))
    }

    fn found_by(
        self,
        names: &[String],
        otherwise: impl Fn(&Logs, &str, target::Error) -> Result<Target, target::Error>,
    ) -> Result<RunsToVerify<'r>, AnyError> {
        let store = &self.repository.store;
        let logs = Logs::read(store)?;
        let targets = names
            .iter()
            .map(|name| Target::find(store, name).or_else(|unknown| otherwise(&logs, name, unknown)))
            .collect::<Result<_, _>>()?;
        Ok(RunsToVerify::new(self, logs, targets))
    }

    /// Asks the anchors about a run.
    fn ask(&self, question: &Question<'_>) -> Vec<Witness> {
        ask_all(&self.anchors, &self.means, question)
    }

    /// Creates a gate with these keys and anchors that rejects untrusted runs.
    pub fn open<T>(&self, pass: impl FnOnce(&Gate<'_>) -> T) -> Result<T, AnyError> {
        let logs = Logs::read(&self.repository.store)?;
        let at_hand = AtHand { logs: &logs, ask: &|question| self.ask(question), bases: None };
        let (store, options) = (&self.repository.store, &self.options);
        Ok(pass(&Gate { store, at_hand: &at_hand, options, accept_untrusted: false }))
    }

    /// Verifies a proof with its requirements.
    pub fn proof(&self, proof: &Proof, context: Beside) -> Result<Report, AnyError> {
        let logs = Logs::read(&self.repository.store)?;
        Ok(verify_proof(
            proof,
            context,
            &self.options,
            &AtHand { logs: &logs, ask: &|question| self.ask(question), bases: None },
        ))
    }

    /// Verifies a bundle, or named parts of it, and passes each report to `report_chain`.
    pub fn bundle(
        &self,
        bundle: &Bundle,
        names: &[String],
        report_chain: &mut dyn FnMut(ChainReport),
    ) -> Result<(), AnyError> {
        let witnesses = Logs::read(&self.repository.store)?;
        let ask = AskAnchors {
            run: &|question| self.ask(question),
            thread: &|question| ask_all_of_thread(&self.anchors, &self.means, question),
        };
        for report in bundle.verify(names, witnesses, ask, &self.options)? {
            report_chain(report?);
        }
        Ok(())
    }
}

/// Selected runs with their evidence.
pub struct RunsToVerify<'r> {
    with: Verification<'r>,
    logs: Logs,
    targets: Vec<Target>,
    /// The sources of the runs' products, looked up once.
    copies: RefCell<LocalCopies>,
    /// The missing runs, and the anchors that could not list theirs.
    pub missed: Vec<Missed>,
    /// Messages about what remotes lack without being missed.
    pub cautions: Vec<String>,
}

impl<'r> RunsToVerify<'r> {
    fn new(with: Verification<'r>, logs: Logs, targets: Vec<Target>) -> Self {
        let copies = RefCell::new(LocalCopies::new(&with.repository.store));
        Self { with, logs, targets, copies, missed: Vec::new(), cautions: Vec::new() }
    }

    /// Returns true if no run exists or is missing.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.missed.is_empty()
    }

    /// Returns our missing runs of which a copy was selected by name.
    fn covered(&self, names: &[String]) -> Vec<Missed> {
        let copies = names.iter().zip(&self.targets).filter(|(name, at)| *name == at.run.as_str() && !at.is_own());
        let logged_runs = self.logs.recorded_runs(None);
        let gone = copies.filter_map(|(_, copy)| {
            let holder = format!("the log {}", logged_runs.get(&copy.run)?);
            Some(Missed::Gone { reference: format::run_ref(&copy.run), holder, kind: Kind::Run })
        });
        gone.collect()
    }

    /// Returns true if a selected run is what a remote lacks.
    fn has(&self, vanished: &Vanished) -> bool {
        self.targets.iter().any(|target| {
            vanished.place == Place::of_run(&target.run) && (target.is_own() || target.reference == vanished.reference)
        })
    }

    /// Verifies the runs one by one.
    pub fn reports(&self) -> impl Iterator<Item = Result<Report, AnyError>> {
        self.targets.iter().map(|target| self.report(target))
    }

    fn report(&self, target: &Target) -> Result<Report, AnyError> {
        let Verification { repository, options, .. } = &self.with;
        let store = &repository.store;
        let at_hand = AtHand { logs: &self.logs, ask: &|question| self.with.ask(question), bases: None };
        match verify_beside(&mut self.copies.borrow_mut(), &at_hand, &target.run, &target.reference, options) {
            Err(gone @ verify::Error::NoSuchRun(_)) => {
                // A similar name helps more than the name of a ref.
                Target::find(store, &target.name())?;
                Err(gone.into())
            }
            other => Ok(other?),
        }
    }
}

/// Formats what remotes lack without being missed: losses separately, and the number of runs they
/// never showed.
fn describe_vanished(vanished: &[Vanished]) -> Vec<String> {
    let (lost, unpushed): (Vec<_>, Vec<_>) = vanished.iter().partition(|vanished| vanished.was_shown);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    unpushed.iter().for_each(|run| *counts.entry(&run.remote).or_default() += 1);
    let lost = lost.into_iter().map(Vanished::sentence);
    lost.chain(counts.into_iter().map(|(remote, count)| remote_record::unpushed(remote, count))).collect()
}

errors! {
    /// An error while verifying.
    #[derive(Debug, thiserror::Error)] pub enum Error = "usage" 2;
    NoId(String): "{0:?} must be a commit's full id: there is no repository here";
}
