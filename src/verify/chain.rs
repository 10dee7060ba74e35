//! The row `chain`: entries without gaps, each linked to the one before.

use crate::model::entry::{Entry, Event};
use crate::model::name::{FilePath, clashes};
use crate::model::plan::ProductKey;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, Verdict, counted};

pub(super) fn row(case: &Case<'_>) -> Verdict {
    let mut findings = case.chain.findings.clone();
    if !case.reference.ends_with(&format!("runs/{}", case.run.encoded())) {
        findings.report(Code::Misplaced, format!("the ref {} is not the place of run {}", case.reference, case.run));
    }
    case.chain.check_order(&mut findings);
    let mut sealed = None;
    for (at, link) in case.chain.links.iter().enumerate() {
        let entry = &link.entry;
        let at_entry = At::entry(entry.seq);
        if entry.about.run() != Some(case.run) {
            findings.report_at(
                at_entry,
                Code::Misplaced,
                format!("entry {} is of another run, {:?}", entry.seq, entry.about.as_str()),
            );
        }
        if let Some(seal) = sealed {
            findings.report_at(
                at_entry,
                Code::Misplaced,
                format!("entry {} follows the seal, entry {seal}", entry.seq),
            );
        }
        match &entry.event {
            Event::RunSubmitted(_) if at == 0 => {}
            _ if at == 0 && case.chain.cut => {}
            _ if at == 0 => {
                findings.report_at(
                    at_entry,
                    Code::Misplaced,
                    format!("the first entry is {}, not run.submitted", entry.event.kind()),
                );
            }
            event if !event.is_of_run() || matches!(event, Event::RunSubmitted(_)) => {
                findings.report_at(
                    at_entry,
                    Code::Misplaced,
                    format!("entry {} is {}, which has no place here", entry.seq, event.kind()),
                );
            }
            Event::RunSealed(_) => sealed = sealed.or(Some(entry.seq)),
            _ => {}
        }
        check_entry(entry, &mut findings);
    }
    let entries = counted(case.chain.links.len(), "entry", "entries");
    findings.verdict(case.shallow, || format!("{entries}, hash-linked, no gaps"))
}

/// Rejects paths that clash on some file systems, where one would hide the other.
pub(super) fn check_entry(entry: &Entry, findings: &mut Findings) {
    let names: Vec<&FilePath> = match &entry.event {
        Event::RunSubmitted(e) => e.artifacts.keys().collect(),
        Event::ItemReconciled(e) => {
            // Document names are unique in the whole run; the replay checks that.
            e.products.keys().filter_map(ProductKey::output).collect()
        }
        _ => return,
    };
    for (one, other) in clashes(names.into_iter().map(FilePath::as_str)) {
        findings.report_at(
            At::entry(entry.seq),
            Code::Paths,
            format!("entry {}: {one:?} and {other:?} cannot stand side by side", entry.seq),
        );
    }
}
