//! The entries of a thread, and the checkpoints that they make.

use gix::objs::TreeRefIter;
use gix::objs::tree::EntryKind;

use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::digest::Oid;
use crate::model::entry::Entry;
use crate::model::name::ThreadId;
use crate::model::thread::Trail;

use crate::verify::Mark;
use crate::verify::content::hash;
use crate::verify::entry_order::{self, Parents};
use crate::verify::findings::Findings;
use crate::verify::objects::{Fault, Objects};
use crate::verify::reader::{Extent, Link, Stop, Walk};

/// A thread as far as it could be read.
#[derive(Default)]
pub(super) struct ThreadChain {
    pub(super) links: Vec<Link>,
    pub(super) trail: Trail,
    pub(super) findings: Findings,
    /// True if the walk ended before the first entry.
    pub(super) cut: bool,
    /// The size of its commits and of the threads read before it.
    pub(super) meter: Meter,
}

impl ThreadChain {
    /// Reads the chain that ends at `tip`. Never fails: faults become findings.
    pub(super) fn read(store: &Store, thread: &ThreadId, tip: Oid) -> Self {
        Self::read_after(store, thread, tip, Meter::default())
    }

    /// Reads a chain whose entries up to the commit of `mark` were verified before, as entries of
    /// the mark's key.
    pub(super) fn read_on(store: &Store, thread: &ThreadId, tip: Oid, mark: Option<&Mark>) -> Self {
        let walk = Walk { verified_before: mark.map(|mark| mark.commit), ..Walk::new(Extent::ToFirstEntry) };
        let mut chain = Self::walked(store, thread, tip, walk);
        if let Some(mark) = mark {
            let marked = chain.links.iter_mut().filter(|link| link.verified_before);
            marked.for_each(|link| link.signer = Ok(mark.key.clone()));
        }
        chain
    }

    /// Returns the key that signed the entries that were verified before, if there are any.
    pub(super) fn marked_owner(&self) -> Option<&str> {
        self.links.first().filter(|link| link.verified_before)?.signer.as_deref().ok()
    }

    /// Reads a chain like [`ThreadChain::read`]; `meter` counts the threads that are in memory
    /// already.
    pub(super) fn read_after(store: &Store, thread: &ThreadId, tip: Oid, meter: Meter) -> Self {
        // The parent of the first entry is the checkpoint that the thread came from.
        Self::walked(store, thread, tip, Walk { meter, ..Walk::new(Extent::ToFirstEntry) })
    }

    fn walked(store: &Store, thread: &ThreadId, tip: Oid, walk: Walk) -> Self {
        let walked = walk.read(store, tip);
        let mut chain = Self { meter: walked.meter, ..Self::default() };
        match walked.stop {
            Some(Stop::Fault(fault)) => chain.findings.fault("the chain", &fault),
            Some(stop) => chain.findings.add(stop.to_string()),
            None => {}
        }
        for commit in walked.commits {
            match commit {
                Ok(link) => chain.links.push(*link),
                Err(why) => chain.findings.add(why),
            }
        }
        // Without its beginning, the rest of a chain cannot be judged.
        chain.cut = chain.findings.first().is_some();
        if !chain.cut {
            chain.check(thread);
        }
        chain
    }

    pub(super) fn unreadable(why: String) -> Self {
        let mut chain = Self::default();
        chain.findings.add(why);
        chain
    }

    /// Checks the order of the entries.
    fn check(&mut self, thread: &ThreadId) {
        let mut before = None;
        for link in &self.links {
            let Entry { seq, about, .. } = &link.entry;
            let findings = &mut self.findings;
            if about.thread() != Some(thread) {
                findings.add(format!("entry {seq} is of another thread, {:?}", about.as_str()));
            }
            entry_order::faults(link, before, Parents::Named).for_each(|fault| findings.add(fault));
            if let Err(why) = self.trail.push(&link.entry, link.hash, link.commit) {
                findings.add(format!("entry {seq}: {why}"));
            }
            before = Some(link);
        }
    }
}

/// Hashes every file of a saved working tree; adds their sizes to `bytes`.
pub(super) fn files(objects: &Objects, store: &Store, root: Oid, bytes: &mut u64) -> Result<(), Fault> {
    let mut folders = vec![root];
    let mut visited = std::collections::HashSet::new();
    while let Some(folder) = folders.pop() {
        if !visited.insert(folder) {
            continue;
        }
        let raw = objects.tree(folder)?;
        for node in TreeRefIter::from_bytes(&raw, folder.0.kind()) {
            let node = node.map_err(|_| Fault::Damaged(folder, "it is not a well-formed tree".to_owned()))?;
            let oid = Oid(node.oid.to_owned());
            match node.mode.kind() {
                EntryKind::Tree => folders.push(oid),
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link if visited.insert(oid) => {
                    *bytes += hash(store, objects, oid)?.1;
                }
                // A submodule's files are not part of the tree.
                EntryKind::Commit | EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {}
            }
        }
    }
    Ok(())
}
