//! The row `content`: the bytes at hand are those that the entries name, of the thread and of all that it goes back to.

use std::collections::BTreeSet;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;
use crate::model::thread::Checkpoint;

use super::lineage::Lineage;
use super::{Table, ThreadChain, reading};
use crate::verify::content::{bytes_for_people, hash};
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::objects::{Fault, Objects};

/// What was looked at so far; the same bytes are hashed once.
struct Count<'a> {
    store: &'a Store,
    objects: Objects,
    lazy: bool,
    findings: Findings,
    seen: BTreeSet<(Oid, Option<Digest>)>,
    bytes: u64,
    missing: usize,
}

pub(super) fn row(table: &Table<'_>, walked: &ThreadChain, lineage: &Lineage) -> Verdict {
    let mut count = Count {
        store: table.store,
        objects: Objects::new(table.store),
        lazy: table.lazy,
        findings: Findings::default(),
        seen: BTreeSet::new(),
        bytes: 0,
        missing: 0,
    };
    for checkpoint in &walked.trail.checkpoints {
        count.add("", checkpoint);
    }
    count.trees("", walked);
    for (ancestor, source) in lineage.ancestors.iter().zip(&lineage.sources) {
        for checkpoint in &source.trail.checkpoints {
            count.add(&format!("{}:", ancestor.thread), checkpoint);
        }
        count.trees(&format!("{}:", ancestor.thread), source);
    }
    let Count { findings, bytes, missing, .. } = count;
    if findings.first().is_none() && missing > 0 {
        return Verdict::not_applicable(format!("{missing} objects are not in this partial clone"));
    }
    let own = counted(walked.trail.checkpoints.len(), "checkpoint", "checkpoints");
    let before: usize = lineage.sources.iter().map(|source| source.trail.checkpoints.len()).sum();
    let before = if before > 0 { format!(" and {before} before it") } else { String::new() };
    findings.verdict(false, || format!("{own}{before}, {} re-hashed", bytes_for_people(bytes)))
}

impl Count<'_> {
    fn add(&mut self, whose: &str, checkpoint: &Checkpoint) {
        let content = &checkpoint.content;
        let claims = [("state", Some(&content.state)), ("packet", content.packet.as_ref())];
        for (what, product) in claims.into_iter().filter_map(|(what, product)| Some((what, product?))) {
            if !self.seen.insert((product.oid, Some(product.sha256))) {
                continue;
            }
            match self.claim(product) {
                Ok(()) => self.bytes += product.size,
                Err(Mismatch::Fault(Fault::Missing(_))) if self.lazy => self.missing += 1,
                Err(why) => self.findings.add(format!("{what} of {whose}{}: {why}", checkpoint.id)),
            }
        }
        let Some(worktree) = content.worktree.as_ref().filter(|worktree| self.seen.insert((worktree.tree, None)))
        else {
            return;
        };
        match reading::files(&self.objects, self.store, worktree.tree, &mut self.bytes) {
            Ok(()) => {}
            Err(Fault::Missing(_)) if self.lazy => self.missing += 1,
            Err(fault) => self.findings.add(format!("working tree of {whose}{}: {fault}", checkpoint.id)),
        }
    }

    /// Reads the trees of entries. What they hold follows from the entries, but nobody can hand on a thread that lacks one.
    fn trees(&mut self, whose: &str, walked: &ThreadChain) {
        for link in &walked.links {
            if !self.seen.insert((link.tree, None)) {
                continue;
            }
            match self.objects.tree(link.tree) {
                Ok(_) => {}
                Err(Fault::Missing(_)) if self.lazy => self.missing += 1,
                Err(fault) => self.findings.add(format!("tree of {whose}entry {}: {fault}", link.entry.seq)),
            }
        }
    }

    fn claim(&self, product: &Product) -> Result<(), Mismatch> {
        let (sha256, size) = hash(self.store, &self.objects, product.oid).map_err(Mismatch::Fault)?;
        if sha256 != product.sha256 || size != product.size {
            return Err(Mismatch::Other(sha256, product.sha256));
        }
        Ok(())
    }
}

/// Why a blob does not hold what an entry says.
#[derive(Debug, thiserror::Error)]
enum Mismatch {
    #[error("{0}")]
    Fault(Fault),
    #[error("it hashes to {}, not to {}", .0.short(), .1.short())]
    Other(Digest, Digest),
}
