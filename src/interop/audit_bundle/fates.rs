//! The story that the entries tell of each item, and what the bundle displays of them held against it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::item_state::Phase;
use crate::model::outcomes::Outcomes;
use crate::verify::Options;
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::report::{State, Uncovered};

use super::reading::{AuditBundle, ItemShown, Record, Refs};

/// The row `plan`, and what is displayed that no entry says.
pub(super) struct Fates {
    pub(super) verdict: Verdict,
    pub(super) unsaid: Vec<Uncovered>,
    /// How the items came out, as the entries tell it and else as they are shown.
    pub(super) outcomes: Outcomes,
}

/// What the entries tell of one item.
#[derive(Default)]
struct Fate<'v> {
    status: Option<Status<'v>>,
    /// Whether a dispatch is under way: their system lets one end whose item was cancelled meanwhile.
    dispatched: bool,
    refs: Refs<'v>,
}

/// Where an item stands after an entry about it; one that waits again counts as one of which nothing was told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status<'v> {
    Running,
    Ended(&'v str),
}

/// The entries tell a possible story, and the items are shown as it ends. The plan itself is no part of the format.
pub(super) fn judge(bundle: &AuditBundle<'_>, options: &Options) -> Fates {
    let mut findings = Findings::default();
    if options.plan.is_some() || options.base.is_some() {
        findings.add("the format seals neither plan nor base".to_owned());
    }
    let mut fates: BTreeMap<&str, Fate<'_>> = BTreeMap::new();
    let mut cancelled = false;
    for record in &bundle.records {
        match (record.item, record.kind) {
            (Some(item), _) if record.is_about_item() => {
                let fate = fates.entry(item).or_default();
                if let Err(before) = fate.follow(record) {
                    findings
                        .add(format!("entry {}: {} does not fit {item}, which is {before}", record.seq, record.kind));
                }
            }
            (None, kind) if kind.starts_with("item.") => findings.add(format!("entry {} names no item", record.seq)),
            (None, "run.cancelled") => cancelled = true,
            _ => {}
        }
    }
    for (item, _) in fates.iter().filter(|(_, fate)| fate.status == Some(Status::Running)) {
        findings.add(format!("{item} was dispatched and never ended"));
    }
    let unsaid = display(bundle, &fates, cancelled, &mut findings);
    let verdict = findings.verdict(false, || {
        format!("{} told of, every transition possible; the plan is not in it", counted(fates.len(), "item", "items"))
    });
    // What holds here is not what the row means elsewhere.
    let verdict = if verdict.state == State::Ok { Verdict::not_applicable(verdict.detail) } else { verdict };
    Fates { verdict, unsaid, outcomes: outcomes(bundle, &fates) }
}

/// Counts how the items came out; only the display knows of those that are red.
fn outcomes(bundle: &AuditBundle<'_>, fates: &BTreeMap<&str, Fate<'_>>) -> Outcomes {
    let phase = |status: &str| match status {
        "done" => Phase::Done,
        "failed" | "denied" => Phase::Failed,
        "skipped" => Phase::Skipped,
        "cancelled" => Phase::Cancelled,
        "running" => Phase::Running,
        _ => Phase::Waiting,
    };
    let shown: BTreeMap<&str, &ItemShown<'_>> = bundle.items.iter().map(|item| (item.id, item)).collect();
    let mut outcomes = Outcomes::default();
    for item in shown.keys().chain(fates.keys()).copied().collect::<BTreeSet<&str>>() {
        let told = fates.get(item).and_then(|fate| fate.status).map(Status::as_str);
        let (status, red) = shown.get(item).map_or(("pending", false), |item| (item.status, item.red));
        outcomes.add(phase(told.unwrap_or(status)), red);
    }
    outcomes
}

impl<'v> Fate<'v> {
    /// Takes up an entry; what does not fit is taken up as well, and the status before it returned.
    fn follow(&mut self, record: &Record<'v>) -> Result<(), &'v str> {
        let (before, done) = (self.status, self.status == Some(Status::Ended("done")));
        let (after, possible) = match (record.kind, record.status) {
            // What has ended is not cancelled any more.
            ("run.cancelled", _) if matches!(before, Some(Status::Ended(_))) => return Ok(()),
            ("run.cancelled", _) => (Some(Status::Ended("cancelled")), true),
            ("item.fired", _) => (Some(Status::Running), !done),
            ("item.reconciled", Some("done")) => (Some(Status::Ended("done")), self.dispatched),
            ("item.reconciled", Some("failed")) => (Some(Status::Ended("failed")), !done),
            ("item.retried", _) => (None, !done),
            ("item.skipped", _) => (Some(Status::Ended("skipped")), !done && before != Some(Status::Running)),
            ("item.denied", _) => (Some(Status::Ended("denied")), before.is_none()),
            _ => (None, false),
        };
        self.status = after;
        match record.kind {
            "item.fired" => self.dispatched = true,
            "item.reconciled" | "item.retried" => self.dispatched = false,
            _ => {}
        }
        match record.kind {
            // Their store keeps the one before where a dispatch has none.
            "item.fired" => self.refs.manifest = record.refs.manifest.or(self.refs.manifest),
            "item.reconciled" => {
                (self.refs.result, self.refs.outputs) = (record.refs.result, record.refs.outputs.clone());
            }
            _ => {}
        }
        if possible { Ok(()) } else { Err(before.map_or("waiting", Status::as_str)) }
    }
}

impl<'v> Status<'v> {
    fn as_str(self) -> &'v str {
        match self {
            Self::Running => "running",
            Self::Ended(how) => how,
        }
    }
}

impl Record<'_> {
    fn is_about_item(&self) -> bool {
        self.kind.starts_with("item.") || self.kind == "run.cancelled"
    }
}

/// Holds what is displayed against what was told; returns what nobody told and may nevertheless be so.
fn display(
    bundle: &AuditBundle<'_>,
    fates: &BTreeMap<&str, Fate<'_>>,
    cancelled: bool,
    findings: &mut Findings,
) -> Vec<Uncovered> {
    let mut unsaid = Vec::new();
    let mut shown = BTreeSet::new();
    for (at, item) in bundle.items.iter().enumerate() {
        if !shown.insert(item.id) {
            findings.add(format!("{} is shown twice", item.id));
        }
        let fate = fates.get(item.id);
        match (fate.and_then(|fate| fate.status), item.status) {
            (Some(told), shown) if told.as_str() == shown => {}
            // There, an item that fails before its dispatch has no entry, nor has each that is cancelled with its run.
            (None, status) if status == "failed" || (status == "cancelled" && cancelled) => {
                let detail = format!("{:?} is shown as {status}, and no entry says so", item.id);
                unsaid.push(Uncovered { path: format!("items[{at}]"), detail });
            }
            (told, status) => {
                let told = told.map_or("nothing of it", Status::as_str);
                findings.add(format!("{} is shown as {status}, the entries say {told}", item.id));
            }
        }
        let told = fate.map(|fate| fate.refs.clone()).unwrap_or_default();
        refs(item, &told, findings, &mut unsaid);
    }
    if shown.is_empty() {
        unsaid.push(Uncovered { path: "items".to_owned(), detail: "nothing is shown".to_owned() });
    } else {
        for item in fates.keys().filter(|item| !shown.contains(*item)) {
            findings.add(format!("the entries tell of {item}, the items do not show it"));
        }
    }
    unsaid
}

/// Holds the references that are displayed with an item against those of its entries.
fn refs(item: &ItemShown<'_>, told: &Refs<'_>, findings: &mut Findings, unsaid: &mut Vec<Uncovered>) {
    let (shown, told) = (&item.refs, told);
    let fields = [
        ("manifestRef", shown.manifest.is_none(), told.manifest.is_none(), shown.manifest == told.manifest),
        ("resultRef", shown.result.is_none(), told.result.is_none(), shown.result == told.result),
        ("outputRefs", shown.outputs.is_empty(), told.outputs.is_empty(), shown.outputs == told.outputs),
    ];
    for (field, unshown, untold, same) in fields {
        if unshown && !untold {
            let detail = "not shown of each item that has one".to_owned();
            unsaid.push(Uncovered { path: format!("items[].{field}"), detail });
        } else if !same {
            findings.add(format!("{} is shown with another {field} than the entries say", item.id));
        }
    }
}
