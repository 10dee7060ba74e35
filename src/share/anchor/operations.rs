//! Operations on anchors: configure, list, push, check.

use std::collections::BTreeMap;

use crate::git::{program, refs};
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::entry::Subject;
use crate::model::format;
use crate::model::log_recorded::Indexed;
use crate::model::name::{RunId, ThreadId};
use crate::repository::Repository;
use crate::run::query::target::{self, Target, own_runs};
use crate::thread::own_threads;
use crate::verify::{self, Logs, Options, Seal, State, ThreadsAtHand, thread_leaves, verify};

use super::Means;
use super::answers::{AnchorCheck, AnchorList, AnchorPush, AnchorShown};
use super::kind::{self, Evidence, Sealing, ThreadTip};
use super::missing_runs::Missed;
use super::verification::{RunsToVerify, VerifyRequest};

/// An anchor to configure.
pub struct NewAnchor<'a> {
    /// The name.
    pub name: &'a str,
    /// The settings below `handoff.anchor.<name>`; `type` is the kind.
    pub settings: BTreeMap<String, String>,
    /// Whether to write to the user's configuration.
    pub global: bool,
}

impl Repository {
    /// Configures an anchor after checking it; writes nothing to it.
    pub fn add_anchor(&self, new: NewAnchor<'_>) -> Result<AnchorShown, AnyError> {
        let NewAnchor { name, mut settings, global } = new;
        if self.config.anchors.contains_key(name) {
            return Err(Error::Exists(name.to_owned()).into());
        }
        kind::settle(self, &mut settings)?;
        let lower = settings.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())).collect();
        let anchor = self.anchor(name, &lower)?;
        anchor.probe(&Means::from_repository(self))?;
        self.configure(name, &settings, global)?;
        Ok(AnchorShown::added(&anchor))
    }

    /// Writes all settings of an anchor or none.
    fn configure(&self, name: &str, settings: &BTreeMap<String, String>, global: bool) -> Result<(), program::Error> {
        let scope = if global { "--global" } else { "--local" };
        let git = || self.store.git().args(["config", scope]);
        for (key, value) in settings {
            if let Err(error) = git().args([&format!("handoff.anchor.{name}.{key}"), value]).run() {
                // A partial configuration would make every verify fail. If nothing was written,
                // nothing is undone.
                let _ = git().args(["--remove-section", &format!("handoff.anchor.{name}")]).run();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Lists the anchors that verify asks.
    pub fn list_anchors(&self) -> Result<AnchorList, AnyError> {
        Ok(AnchorList::from_anchors(&self.anchors(&[])?))
    }

    /// Publishes sealed runs and threads: the named ones or all, to the named anchors or all.
    ///
    /// Stops at the first failing anchor; earlier ones keep what they got.
    pub fn push_to_anchors(&self, names: &[String]) -> Result<AnchorPush, AnyError> {
        let names = names.iter().map(|name| Target::expanded(&self.store, name)).collect::<Result<Vec<_>, _>>()?;
        let (anchors, runs): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| self.config.anchors.contains_key(name));
        let anchors = self.anchors(&anchors)?;
        if anchors.is_empty() {
            return Err(Error::NoAnchors.into());
        }
        let evidence = self.to_anchor(runs)?;
        let means = Means { writer: self.log_writer()?, ..Means::from_repository(self) };
        let mut answer = AnchorPush::default();
        for anchor in &anchors {
            match anchor.publish(&means, &evidence, &|subject| self.refuse_unsound(subject)) {
                Ok(published) => answer.add(anchor, published),
                Err(error) => {
                    answer.stopped = Some((anchor.name.clone(), error));
                    break;
                }
            }
        }
        Ok(answer)
    }

    /// Returns what to publish: the runs that our key sealed and its threads, all or named ones.
    fn to_anchor(&self, names: Vec<String>) -> Result<Evidence, AnyError> {
        let own = own_threads(&self.store)?;
        let all = names.is_empty();
        let (thread_names, runs): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| own.iter().any(|thread| thread.as_str() == name));
        // A name may be that of a run and of a thread.
        let both = thread_names.iter().filter(|name| {
            RunId::parse(name).is_ok_and(|run| own_runs(&self.store).is_ok_and(|known| known.contains(&run)))
        });
        let runs: Vec<String> = runs.into_iter().chain(both.cloned()).collect();
        let sealings = if all || !runs.is_empty() { self.sealings(&runs)? } else { Vec::new() };
        let threads_to_push =
            own.into_iter().filter(|thread| all || thread_names.iter().any(|name| thread.as_str() == name));
        let Some(fingerprint) = self.own_fingerprint() else { return Ok(Evidence { sealings, threads: Vec::new() }) };
        let mut threads = Vec::new();
        for thread in threads_to_push {
            match log::find(&self.store, &fingerprint, thread.clone())? {
                Some(Indexed { last_seq, last, .. }) => {
                    let entries = last_seq.saturating_add(1);
                    let leaves = thread_leaves(&self.store, &thread, &format::thread_ref(&thread))?;
                    threads.push(ThreadTip { thread, entries, last, fingerprint: fingerprint.clone(), leaves });
                }
                _ if all => {}
                _ => return Err(Error::NotOurThread(thread).into()),
            }
        }
        Ok(Evidence { sealings, threads })
    }

    /// Returns the runs that our key sealed, all or named ones.
    fn sealings(&self, names: &[String]) -> Result<Vec<Sealing>, AnyError> {
        let runs = own_runs(&self.store)?;
        if let Some(unknown) = names.iter().find(|name| !runs.iter().any(|run| run.as_str() == *name)) {
            return Err(Error::UnknownName(unknown.clone()).into());
        }
        let Some(fingerprint) = self.own_fingerprint() else { return Ok(Vec::new()) };
        let mut sealings = Vec::new();
        for run in runs {
            let is_named = names.iter().any(|name| name == run.as_str());
            if !is_named && !names.is_empty() {
                continue;
            }
            let recorded = log::find(&self.store, &fingerprint, run.clone())?;
            let tip = refs::read(&self.store, &format::run_ref(&run)).map_err(target::Error::from)?;
            match (recorded, tip) {
                (Some(Indexed { last_seq: entries, last: seal, root: Some(root), .. }), Some(commit)) => {
                    let seal = Seal { root, entries, seal, commit };
                    sealings.push(Sealing { run, seal, fingerprint: fingerprint.clone() });
                }
                _ if is_named => return Err(Error::NotSealed(run).into()),
                _ => {}
            }
        }
        Ok(sealings)
    }

    /// Fails if a run or thread does not verify with this repository's logs.
    fn refuse_unsound(&self, subject: &Subject) -> Result<(), AnyError> {
        let options = Options { own_key: self.own_fingerprint(), ..Options::default() };
        // Evidence missing in a partial clone is acceptable if everything published was recomputed.
        let failed = match subject {
            Subject::Run(run) => {
                let report = verify(&self.store, run, &format::run_ref(run), &options)?;
                let failed = report.rows.iter().find(|row| row.state == State::Failed);
                failed.map(|row| format!("{}: {}", row.name, row.detail))
            }
            Subject::Thread(id) => {
                let logs = Logs::read(&self.store)?;
                let at_hand = ThreadsAtHand::logs(&logs);
                verify::thread(&self.store, at_hand, id, &format::thread_ref(id), &options)?.finding()
            }
            Subject::Archive(_) => None,
        };
        failed.map_or(Ok(()), |why| Err(super::Error::Unsound(subject.clone(), why).into()))
    }

    /// Prepares to ask anchors about named runs, or about all sealed ones.
    ///
    /// Calls `warn` for ignored files.
    pub fn check_anchors(
        &self,
        runs: &[String],
        anchors: &[String],
        warn: &mut dyn FnMut(&str),
    ) -> Result<AnchorChecks<'_>, AnyError> {
        let with = self.verification(VerifyRequest { anchors, ..VerifyRequest::default() }, warn)?;
        let all = runs.is_empty();
        Ok(AnchorChecks { runs: if all { with.all()? } else { with.found(runs)? }, all })
    }
}

/// Runs to ask about.
pub struct AnchorChecks<'r> {
    runs: RunsToVerify<'r>,
    /// Whether all runs were selected, so that unsealed ones are skipped.
    all: bool,
}

impl AnchorChecks<'_> {
    /// Asks about each run.
    pub fn answers(&self) -> impl Iterator<Item = Result<AnchorCheck, AnyError>> {
        let checks = self.runs.reports().map(|report| Ok(AnchorCheck::from_report(report?)));
        checks.filter(|check| !self.all || !matches!(check, Ok(AnchorCheck { sealed: false, .. })))
    }

    /// Returns the missing runs, and the anchors that could not list theirs.
    pub fn missed(self) -> Vec<Missed> {
        self.runs.missed
    }
}

errors! {
    /// An error of an operation on anchors.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Exists(String) "anchor-exists": "the anchor {0:?} is configured already";
    NoAnchors "no-anchors": "no anchor is configured";
    UnknownName(String) "unknown-name": "{0:?} is neither an anchor in your configuration nor a run or thread here";
    NotSealed(RunId) "not-sealed": "your log holds no seal of the run {:?}" [.0.as_str()];
    NotOurThread(ThreadId) "not-logged": "your log says nothing of the thread {:?}" [.0.as_str()];
}
