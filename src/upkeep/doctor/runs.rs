//! Checks of runs and of what belongs to them besides their refs.

use crate::engine::run_lock::{self, RunLock};
use crate::git::refs;
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::format;
use crate::model::format::{REFS, RUN_REFS};
use crate::model::hints;
use crate::model::name::RunId;
use crate::model::state::Phase;
use crate::run::operate::OpenRun;
use crate::run::query::sharing::Sharing;
use crate::run::query::{self, View};
use crate::verify::{Refusal, continuable};
use crate::worktree::workspace::Workspace;
use std::path::{Path, PathBuf};

use super::{Error, Finding, Patient};

/// The folders below `refs/handoff/` whose refs only the driver of a run writes.
pub(super) const HELD: [&str; 4] = ["runs", "bases", "salvage", "transcripts"];

pub(super) fn examine(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    // A stale lock on a ref would prevent every other repair.
    let mut findings = stale_locks(patient, fix)?;
    for (name, _) in refs::list(patient.store, RUN_REFS)? {
        let Some(run) = name.strip_prefix(RUN_REFS).and_then(RunId::decode) else {
            let message = format!("{name} is not the ref of a run");
            findings.push(Finding::problem("bad-ref", message).hint(hints::remove_ref(name)));
            continue;
        };
        match query::view(patient.store, &run, &name) {
            Ok(Some(view)) => findings.extend(one(patient, &view, fix)?),
            Ok(None) => {}
            Err(error) => {
                let message = format!("the run {:?} cannot be read: {error}", run.as_str());
                findings.push(Finding::problem("unreadable-run", message).hint(hints::verify(&run)));
            }
        }
    }
    findings.extend(leftovers_of_nothing(patient));
    Ok(findings)
}

fn one(patient: &Patient<'_>, view: &View, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let mut findings = records(patient, view, fix)?;
    if let Some(finding) = unfinished(patient, view)? {
        findings.push(finding);
    }
    let state = &view.state;
    // An open-ended run may wait indefinitely.
    let waits = state.is_done() && state.open_ended;
    if state.is_settled() && !state.sealed && !waits {
        let (code, message, hint) = if state.is_done() {
            ("unsealed", "every item is done, and it is not sealed", hints::run(&view.run))
        } else {
            ("unsealed", "it has settled, and it is not sealed", hints::close(&view.run))
        };
        findings.push(Finding::problem(code, format!("the run {:?}: {message}", view.run.as_str())).hint(hint));
    }
    Ok(findings)
}

/// Finds log entries that are missing because of a crash right after submit or seal.
fn records(patient: &Patient<'_>, view: &View, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let (store, run) = (patient.store, &view.run);
    let base = view.state.submitted.base;
    let mut missing = Vec::new();
    if !store.contains(base) {
        let message = format!("the base commit {base} of the run {:?} is not here", run.as_str());
        return Ok(vec![Finding::problem("base-gone", message).hint(hints::fetch_base(base))]);
    }
    if refs::read(store, &format::base_ref(run))? != Some(base) {
        let message = format!("nothing keeps the base commit of the run {:?} from being pruned", run.as_str());
        missing.push(Finding::problem("base-missing", message));
    }
    let Some(writer) = &patient.writer else { return Ok(missing) };
    let own = writer.signer.fingerprint();
    if !view.state.submitted.roles.contains_key(&own) {
        return Ok(missing);
    }
    match log::find(store, &own, run.clone()).map_err(Error::Log)? {
        None => {
            let message = format!("the repository log does not name the run {:?}", run.as_str());
            missing.push(Finding::problem("log-missing", message));
        }
        Some(known) if known.root.is_none() && view.state.sealed => {
            let message = format!("the repository log does not hold the root of the sealed run {:?}", run.as_str());
            missing.push(Finding::problem("seal-not-logged", message));
        }
        Some(_) => {}
    }
    if missing.is_empty() {
        return Ok(missing);
    }
    // A log must not attest to a run that was tampered with.
    let open = match continuable(store, run, &format::run_ref(run), &own) {
        Ok(proven) => fix.then(|| OpenRun::from_verified(writer, proven)).transpose()?,
        Err(Refusal::Sealed(_)) => fix.then(|| OpenRun::open(writer, run)).transpose()?,
        Err(refusal) => {
            missing.push(Finding::problem("not-sound", refusal.to_string()));
            return Ok(missing.into_iter().map(|finding| finding.hint(hints::verify(run))).collect());
        }
    };
    if let Some(open) = open {
        open.mend()?;
        open.mend_seal()?;
    }
    Ok(missing.into_iter().map(|finding| finding.hint(hints::mend()).fixed(fix)).collect())
}

/// Finds attempts and worktrees without a driver.
fn unfinished(patient: &Patient<'_>, view: &View) -> Result<Option<Finding>, AnyError> {
    let run = &view.run;
    let running = view.state.items.iter().filter(|item| item.phase == Phase::Running).count();
    let mut left = 0;
    for host in patient.host.all() {
        left += Workspace::leftovers(&host, run).map_err(Error::Workspace)?.len();
    }
    // A driven run needs no check. The check takes the lock briefly, so it is made only if needed.
    if (running == 0 && left == 0) || is_held(patient, run)? {
        return Ok(None);
    }
    if running > 0 && view.state.shared.is_some() {
        let sharing = Sharing::read(patient.store, run);
        let remote = sharing.as_ref().map_or("a remote", |sharing| &sharing.remote);
        let message = format!("the run {:?} is driven through {remote}: {running} item(s) were running", run.as_str());
        let finding = Finding::note("driven-elsewhere", message);
        return Ok(Some(if sharing.is_some() { finding.hint(hints::drivers(run)) } else { finding }));
    }
    if running > 0 {
        let message = format!("the run {:?}: {running} item(s) were running when their driver died", run.as_str());
        return Ok(Some(Finding::problem("stranded", message).hint(hints::run(run))));
    }
    let message = format!("the run {:?} left {left} worktree(s) on the disk", run.as_str());
    Ok(Some(Finding::problem("worktrees-left", message).hint(hints::clean(run))))
}

fn is_held(patient: &Patient<'_>, run: &RunId) -> Result<bool, AnyError> {
    match RunLock::take(&patient.store.common_dir(), run) {
        Ok(_) => Ok(false),
        Err(run_lock::Error::Held { .. }) => Ok(true),
        Err(other) => Err(Error::Hold(other).into()),
    }
}

/// Finds worktrees of unknown runs, whose work cannot be saved under any name.
fn leftovers_of_nothing(patient: &Patient<'_>) -> Vec<Finding> {
    let roots = std::iter::once(&patient.host.settings.root).chain(&patient.host.earlier);
    let entries = roots.flat_map(std::fs::read_dir).flat_map(Iterator::flatten);
    let mut orphans: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let run = path.file_name().and_then(|name| name.to_str()).and_then(RunId::decode);
            run.is_some_and(|run| refs::read(patient.store, &format::run_ref(&run)).is_ok_and(|found| found.is_none()))
        })
        .collect();
    orphans.sort();
    orphans
        .into_iter()
        .map(|path| {
            let message = format!("{} holds worktrees of a run that is not here", path.display());
            Finding::problem("orphans", message).hint(hints::remove_folder(path.display()))
        })
        .collect()
}

fn stale_locks(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let common = patient.store.common_dir();
    let mut findings = Vec::new();
    for kind in HELD {
        for (name, run) in locked(&common, kind) {
            let message = format!("{name}.lock was left by a process that died");
            let finding = Finding::problem("stale-lock", message).hint(hints::mend());
            let hold = match RunLock::take(&common, &run) {
                Ok(hold) => hold,
                // The repository that has the run has its lock file as well.
                Err(run_lock::Error::Held { .. }) => continue,
                Err(other) => return Err(Error::Hold(other).into()),
            };
            let fixed = fix && refs::clear_stale_lock(patient.store, &name).is_ok();
            drop(hold);
            findings.push(finding.fixed(fixed));
        }
    }
    Ok(findings)
}

/// Returns the refs below a folder that have a lock file, with their runs.
fn locked(common: &Path, kind: &str) -> Vec<(String, RunId)> {
    let entries = std::fs::read_dir(common.join(REFS).join(kind)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let segment = name.strip_suffix(".lock")?;
            Some((format!("{REFS}{kind}/{segment}"), RunId::decode(segment)?))
        })
        .collect();
    found.sort();
    found
}
