//! The row `lineage`: a thread that began as another's checkpoint holds exactly what that checkpoint held.

use gix::objs::Kind;

use crate::git::codec;
use crate::git::store::Store;
use crate::model::entry::{Event, Origin};
use crate::model::thread::Content;

use super::Told;
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::objects::Objects;

/// A line of descent that is longer than this is not followed to its end.
const MOST: usize = 1000;

/// Walks from thread to thread, and looks at the runs that checkpoints are tied to.
pub(super) fn row(store: &Store, told: &Told, shallow: bool) -> Verdict {
    let mut findings = Findings::default();
    let runs = ties(store, told, &mut findings);
    let mut threads = 0;
    let mut from = origin(told);
    while let Some((origin, content, signer)) = from {
        threads += 1;
        if threads > MOST {
            findings.add(format!("the thread has more than {MOST} ancestors"));
            break;
        }
        let source = Told::read(store, &origin.thread, origin.commit);
        let whose = format!("the source {}:{}", origin.thread, origin.checkpoint);
        if let Some(first) = source.findings.first() {
            if source.findings.wrong() {
                findings.add(format!("{whose}: {first}"));
            } else {
                findings.missing(format!("{whose}: {first}"));
            }
            break;
        }
        match source.trail.latest() {
            Some(latest) if latest.id == origin.checkpoint && latest.commit == origin.commit => {
                if latest.content != content {
                    findings.add(format!("{whose} holds something else"));
                }
            }
            _ => findings.add(format!("commit {} is not {whose}", origin.commit)),
        }
        for link in &source.links {
            match &link.signer {
                Err(why) => findings.add(format!("{whose}: entry {}: {why}", link.entry.seq)),
                Ok(key) if source.links[0].signer.as_ref().is_ok_and(|owner| owner != key) => {
                    findings.add(format!("{whose}: entry {} is signed by another key, {key}", link.entry.seq));
                }
                Ok(key) if signer.as_ref().is_some_and(|signer| signer != key) => {
                    findings.add(format!("{whose} is signed by {key}, which is not the key that offered it"));
                }
                Ok(_) => {}
            }
        }
        from = self::origin(&source);
    }
    let detail = match (threads, runs) {
        (0, 0) => return nothing(findings, shallow),
        (0, runs) => format!("tied to {}", counted(runs, "run", "runs")),
        (threads, 0) => format!("goes back to {}", counted(threads, "thread", "threads")),
        (threads, runs) => {
            format!("goes back to {}, tied to {}", counted(threads, "thread", "threads"), counted(runs, "run", "runs"))
        }
    };
    findings.verdict(shallow, || detail)
}

fn nothing(findings: Findings, shallow: bool) -> Verdict {
    let verdict = findings.verdict(shallow, String::new);
    if verdict.state == crate::verify::State::Ok { Verdict::not_applicable("began by itself") } else { verdict }
}

/// Returns what a thread says it began as, and by whose offer.
fn origin(told: &Told) -> Option<(Origin, Content, Option<String>)> {
    match &told.links.first()?.entry.event {
        Event::ThreadForked(e) => Some((e.from.clone(), e.content(), None)),
        Event::ThreadAdopted(e) => {
            let from = &e.adopted_from;
            let origin =
                Origin { thread: from.thread.clone(), checkpoint: from.checkpoint.clone(), commit: from.commit };
            Some((origin, e.content(), Some(from.signer.clone())))
        }
        _ => None,
    }
}

/// Holds each tie against the commit that it names.
fn ties(store: &Store, told: &Told, findings: &mut Findings) -> usize {
    let objects = Objects::new(store);
    let mut runs = std::collections::BTreeSet::new();
    for link in &told.links {
        let Event::ThreadCheckpointed(e) = &link.entry.event else { continue };
        let Some(tie) = &e.run else { continue };
        runs.insert(tie.id.clone());
        match objects.read(tie.commit, Kind::Commit) {
            Err(fault) => findings.fault(&format!("run {}", tie.id), &fault),
            Ok(raw) => {
                let is_of = codec::decode(&raw).is_ok_and(|decoded| decoded.entry.about.run() == Some(&tie.id));
                if !is_of {
                    findings.add(format!("commit {} is no entry of run {}", tie.commit, tie.id));
                }
            }
        }
    }
    runs.len()
}
