//! The row `anchor`: something outside the run holds its root, and holds the same.

use super::Case;
use super::findings::{Findings, Verdict};
use super::logs::{Log, Logs, Said};
use super::objects::Objects;
use super::root;

/// The row, and whether it fails because nothing at all holds the run.
pub(super) struct Anchor {
    pub(super) verdict: Verdict,
    pub(super) missing: bool,
}

/// A log counts if it stands beside the run, or if it is by one of the run's writers. All that count must agree; those that
/// are themselves broken are named and count for nothing.
pub(super) fn row(case: &Case<'_>, logs: &Logs) -> Anchor {
    if let Some(verdict) = case.cut_off() {
        return Anchor { verdict, missing: false };
    }
    let writers = case.story.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    let counts = |log: &&Log| log.stands_by(case.reference) || writers.contains(&log.fingerprint);
    let objects = Objects::new(case.store);
    let mut findings = Findings::default();
    let mut notes = String::new();
    let (mut holds, mut knows) = (false, false);
    for log in logs.logs.iter().filter(counts) {
        let Some(said) = log.runs.get(case.run) else { continue };
        let spoilt = || log.spoilt(&objects, case.run, case.lazy);
        if let Some(why) = log.broken.clone().or_else(spoilt) {
            notes = format!("{notes}; {} is broken: {why}", log.name);
            continue;
        }
        knows = true;
        match contradiction(case, said) {
            Some(why) => findings.add(format!("{} {why}", log.name)),
            None => holds |= said.sealed.is_some(),
        }
    }
    let missing = |why: &str| Anchor { verdict: Verdict::failed(format!("{why}{notes}")), missing: true };
    let verdict = if findings.first().is_some() {
        findings.verdict(false, String::new)
    } else if case.story.links.is_empty() {
        Verdict::not_applicable("no entry could be read")
    } else if case.seal().is_none() {
        Verdict::not_applicable(format!("not sealed, {}{notes}", if knows { "submission logged" } else { "in no log" }))
    } else if holds {
        Verdict::ok(format!("local (detect){notes}"))
    } else if !knows && case.options.alone {
        Verdict::not_applicable(format!("no log at hand holds the run{notes}"))
    } else if knows {
        return missing("a log holds the submission of the run, but not its seal");
    } else {
        return missing("no log at hand holds the run");
    };
    Anchor { verdict, missing: false }
}

/// Returns how a log's word differs from the run.
fn contradiction(case: &Case<'_>, said: &Said) -> Option<String> {
    let links = &case.story.links;
    let first = links.first().map(|link| link.hash);
    if let (Some(logged), Some(found)) = (said.first, first)
        && logged != found
    {
        return Some(format!("holds another run by this name, which began with {}", logged.short()));
    }
    let sealed = said.sealed.as_ref()?;
    let Some(seal) = case.seal() else {
        return Some(format!("says that the run was sealed after {} entries", sealed.entries));
    };
    let root = root::over(case, seal);
    if sealed.root != root {
        return Some(format!("holds the root {}, recomputed is {}", sealed.root.short(), root.short()));
    }
    if sealed.entries != seal as u64 {
        return Some(format!("holds {} entries, there are {seal}", sealed.entries));
    }
    if sealed.seal != links[seal].hash || sealed.commit != links[seal].commit {
        return Some("holds another seal".to_owned());
    }
    None
}
