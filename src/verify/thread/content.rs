//! The row `content`: the bytes of the thread and of its ancestors are the recorded ones.

use std::collections::BTreeSet;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::thread::Checkpoint;

use super::lineage::Lineage;
use super::{ThreadChain, ThreadVerifier, chain};
use crate::verify::content::{bytes_for_people, hash};
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::objects::{Fault, Objects};

/// The progress of the row. Equal bytes are hashed once.
struct Count<'a> {
    store: &'a Store,
    objects: Objects,
    lazy: bool,
    findings: Findings,
    checked: BTreeSet<(Oid, Option<(Digest, u64)>)>,
    bytes: u64,
    missing: usize,
}

pub(super) fn row(verifier: &ThreadVerifier<'_>, chain: &ThreadChain, lineage: &Lineage) -> Verdict {
    let mut count = Count {
        store: verifier.store,
        objects: Objects::new(verifier.store),
        lazy: verifier.lazy,
        findings: Findings::default(),
        checked: BTreeSet::new(),
        bytes: 0,
        missing: 0,
    };
    for checkpoint in &chain.trail.checkpoints {
        count.add("", checkpoint);
    }
    for (ancestor, source) in lineage.ancestors.iter().zip(&lineage.sources) {
        for checkpoint in &source.trail.checkpoints {
            count.add(&format!("{}:", ancestor.source.thread), checkpoint);
        }
    }
    let Count { findings, bytes, missing, .. } = count;
    if findings.first().is_none() && missing > 0 {
        return Verdict::not_applicable(format!("{missing} objects are not in this partial clone"));
    }
    let own = counted(chain.trail.checkpoints.len(), "checkpoint", "checkpoints");
    let before: usize = lineage.sources.iter().map(|source| source.trail.checkpoints.len()).sum();
    let before = if before > 0 { format!(" and {before} before it") } else { String::new() };
    findings.verdict(false, || format!("{own}{before}, {} re-hashed", bytes_for_people(bytes)))
}

impl Count<'_> {
    fn add(&mut self, label: &str, checkpoint: &Checkpoint) {
        let content = checkpoint.content();
        let claims = [("state", Some(&content.state)), ("packet", content.packet.as_ref())];
        for (what, product) in claims.into_iter().filter_map(|(what, product)| Some((what, product?))) {
            if !self.checked.insert((product.oid, Some((product.sha256, product.size)))) {
                continue;
            }
            match hash(self.store, &self.objects, product.oid) {
                Ok(found) if found == (product.sha256, product.size) => self.bytes += product.size,
                Ok((sha256, _)) => self.findings.add(format!(
                    "{what} of {label}{}: it hashes to {}, not to {}",
                    checkpoint.id,
                    sha256.short(),
                    product.sha256.short()
                )),
                Err(Fault::Missing(_)) if self.lazy => self.missing += 1,
                Err(fault) => self.findings.add(format!("{what} of {label}{}: {fault}", checkpoint.id)),
            }
        }
        let Some(worktree) = content.worktree.as_ref().filter(|worktree| self.checked.insert((worktree.tree, None)))
        else {
            return;
        };
        match chain::files(&self.objects, self.store, worktree.tree, &mut self.bytes) {
            Ok(()) => {}
            Err(Fault::Missing(_)) if self.lazy => self.missing += 1,
            Err(fault) => self.findings.add(format!("working tree of {label}{}: {fault}", checkpoint.id)),
        }
    }
}
