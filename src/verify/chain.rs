//! The row `chain`: entries without gaps, each bound to the one before, each accounting for what it changed.

use crate::model::entry::{Entry, Event};
use crate::model::name::{FilePath, clashes};
use crate::model::plan::ProductKey;

use super::Case;
use super::findings::{Findings, Verdict, counted};

pub(super) fn row(case: &Case<'_>) -> Verdict {
    let mut findings = case.story.findings.clone();
    if !case.reference.ends_with(&format!("runs/{}", case.run.encoded())) {
        findings.add(format!("the ref {} is not the place of run {}", case.reference, case.run));
    }
    case.story.check_order(&mut findings);
    let mut sealed = None;
    for (at, link) in case.story.links.iter().enumerate() {
        let entry = &link.entry;
        if entry.about.run() != Some(case.run) {
            findings.add(format!("entry {} is of another run, {:?}", entry.seq, entry.about.as_str()));
        }
        if let Some(seal) = sealed {
            findings.add(format!("entry {} follows the seal, entry {seal}", entry.seq));
        }
        match &entry.event {
            Event::RunSubmitted(_) if at == 0 => {}
            _ if at == 0 && case.story.cut => {}
            _ if at == 0 => findings.add(format!("the first entry is {}, not run.submitted", entry.event.kind())),
            Event::RunSubmitted(_)
            | Event::LogSubmitted(_)
            | Event::LogSealed(_)
            | Event::LogThread(_)
            | Event::ThreadCheckpointed(_)
            | Event::ThreadAdopted(_)
            | Event::ThreadForked(_)
            | Event::ThreadRolledBack(_)
            | Event::ThreadResumed(_) => {
                findings.add(format!("entry {} is {}, which has no place here", entry.seq, entry.event.kind()));
            }
            Event::RunSealed(_) => sealed = sealed.or(Some(entry.seq)),
            _ => {}
        }
        check_names(entry, &mut findings);
    }
    findings.extend(&case.story.tree_findings);
    let entries = counted(case.story.links.len(), "entry", "entries");
    findings.verdict(case.shallow, || format!("{entries}, hash-linked, no gaps"))
}

/// Refuses names that cannot stand side by side: on another system, one would hide the other.
fn check_names(entry: &Entry, findings: &mut Findings) {
    let names: Vec<&FilePath> = match &entry.event {
        Event::RunSubmitted(e) => e.artifacts.keys().collect(),
        Event::ItemReconciled(e) => {
            let mut outputs = Vec::new();
            for key in e.products.keys() {
                match key {
                    ProductKey::Patch => {}
                    ProductKey::Output(path) => outputs.push(path),
                    ProductKey::Document(name) => {
                        findings
                            .add(format!("entry {}: there is no product documents/{name} in this version", entry.seq));
                    }
                }
            }
            outputs
        }
        _ => return,
    };
    for (one, other) in clashes(names.into_iter().map(FilePath::as_str)) {
        findings.add(format!("entry {}: {one:?} and {other:?} cannot stand side by side", entry.seq));
    }
}
