//! Follows each item's status through the entries and compares it with the status that the bundle
//! displays.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::item_state::Phase;
use crate::model::outcomes::Outcomes;
use crate::verify::Options;
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::report::{State, Uncovered};

use super::reading::{AuditBundle, ItemShown, Record, Refs};

/// The row `plan`, and displayed values that no entry supports.
pub(super) struct Fates {
    pub(super) verdict: Verdict,
    pub(super) unsaid: Vec<Uncovered>,
    /// The items' outcomes, from the entries or else from the display.
    pub(super) outcomes: Outcomes,
}

/// The status of one item by its entries.
#[derive(Default)]
struct Fate<'v> {
    status: Option<Status<'v>>,
    /// True while a dispatch is running: their system lets a dispatch end after its item was
    /// cancelled.
    dispatched: bool,
    refs: Refs<'v>,
}

/// The status after an entry; waiting again equals no entry yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status<'v> {
    Running,
    Ended(&'v str),
}

/// Checks that the entries are a possible sequence and that the displayed items match its end. The
/// format does not contain the plan.
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
    // A pass here means less than the row means for our runs.
    let verdict = if verdict.state == State::Ok { Verdict::not_applicable(verdict.detail) } else { verdict };
    Fates { verdict, unsaid, outcomes: outcomes(bundle, &fates) }
}

/// Counts the items' outcomes; only the display shows red ones.
fn outcomes(bundle: &AuditBundle<'_>, fates: &BTreeMap<&str, Fate<'_>>) -> Outcomes {
    let items: BTreeMap<&str, &ItemShown<'_>> = bundle.items.iter().map(|item| (item.id, item)).collect();
    let mut outcomes = Outcomes::default();
    for item in items.keys().chain(fates.keys()).copied().collect::<BTreeSet<&str>>() {
        let recorded = fates.get(item).and_then(|fate| fate.status).map(Status::as_str);
        let (status, red) = items.get(item).map_or(("pending", false), |item| (item.status, item.red));
        outcomes.add(phase_of(recorded.unwrap_or(status)), red);
    }
    outcomes
}

fn phase_of(status: &str) -> Phase {
    match status {
        "done" => Phase::Done,
        "failed" | "denied" => Phase::Failed,
        "skipped" => Phase::Skipped,
        "cancelled" => Phase::Cancelled,
        "running" => Phase::Running,
        _ => Phase::Waiting,
    }
}

impl<'v> Fate<'v> {
    /// Applies an entry, even one that does not fit; then returns the earlier status as the error.
    fn follow(&mut self, record: &Record<'v>) -> Result<(), &'v str> {
        let (before, done) = (self.status, self.status == Some(Status::Ended("done")));
        let (after, possible) = match (record.kind, record.status) {
            // An ended item is no longer cancelled.
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
            // Their store keeps the earlier manifest if a dispatch has none.
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

/// Compares the display with the entries. Returns displayed values that no entry supports but that
/// may be right.
fn display(
    bundle: &AuditBundle<'_>,
    fates: &BTreeMap<&str, Fate<'_>>,
    cancelled: bool,
    findings: &mut Findings,
) -> Vec<Uncovered> {
    let mut unsaid = Vec::new();
    let mut ids = BTreeSet::new();
    for (at, item) in bundle.items.iter().enumerate() {
        if !ids.insert(item.id) {
            findings.add(format!("{} is shown twice", item.id));
        }
        let fate = fates.get(item.id);
        match (fate.and_then(|fate| fate.status), item.status) {
            (Some(recorded), displayed) if recorded.as_str() == displayed => {}
            // In their system, an item that fails before its dispatch has no entry, and neither
            // have items cancelled with their run.
            (None, status) if status == "failed" || (status == "cancelled" && cancelled) => {
                let detail = format!("{:?} is shown as {status}, and no entry says so", item.id);
                unsaid.push(Uncovered { path: format!("items[{at}]"), detail });
            }
            (recorded, status) => {
                let recorded_word = recorded.map_or("nothing of it", Status::as_str);
                findings.add(format!("{} is shown as {status}, the entries say {recorded_word}", item.id));
            }
        }
        let recorded = fate.map(|fate| fate.refs.clone()).unwrap_or_default();
        refs(item, &recorded, findings, &mut unsaid);
    }
    if ids.is_empty() {
        unsaid.push(Uncovered { path: "items".to_owned(), detail: "nothing is shown".to_owned() });
    } else {
        for item in fates.keys().filter(|item| !ids.contains(*item)) {
            findings.add(format!("the entries tell of {item}, the items do not show it"));
        }
    }
    unsaid
}

/// Compares the displayed references of an item with those of its entries.
fn refs(item: &ItemShown<'_>, recorded: &Refs<'_>, findings: &mut Findings, unsaid: &mut Vec<Uncovered>) {
    let (displayed, recorded_refs) = (&item.refs, recorded);
    let fields = [
        (
            "manifestRef",
            displayed.manifest.is_none(),
            recorded_refs.manifest.is_none(),
            displayed.manifest == recorded_refs.manifest,
        ),
        (
            "resultRef",
            displayed.result.is_none(),
            recorded_refs.result.is_none(),
            displayed.result == recorded_refs.result,
        ),
        (
            "outputRefs",
            displayed.outputs.is_empty(),
            recorded_refs.outputs.is_empty(),
            displayed.outputs == recorded_refs.outputs,
        ),
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
