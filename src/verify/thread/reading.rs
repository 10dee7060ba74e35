//! The entries of a thread, read from the commits behind its ref, and the checkpoints that they make.

use gix::objs::Kind;

use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::digest::Oid;
use crate::model::entry::Entry;
use crate::model::name::ThreadId;
use crate::model::thread::Trail;

use crate::verify::content::hash;
use crate::verify::findings::Findings;
use crate::verify::objects::{Fault, Objects};
use crate::verify::order::{self, Parents};
use crate::verify::reader::{Back, Link, Stop, Walk};
use crate::verify::tree;

/// A thread as far as it could be read.
#[derive(Default)]
pub(super) struct ThreadChain {
    /// The entries, oldest first.
    pub(super) links: Vec<Link>,
    /// The checkpoints that they make.
    pub(super) trail: Trail,
    /// What is wrong with the chain.
    pub(super) findings: Findings,
    /// Whether the walk ended before the first entry.
    pub(super) cut: bool,
    /// What its commits and those of the threads that were read before it come to.
    pub(super) meter: Meter,
}

impl ThreadChain {
    /// Reads the chain that ends at `tip`. Whatever that is, this ends and says what it found.
    pub(super) fn read(store: &Store, thread: &ThreadId, tip: Oid) -> Self {
        Self::read_after(store, thread, tip, Meter::default())
    }

    /// Reads a chain like [`ThreadChain::read`], where others are held beside it.
    pub(super) fn read_after(store: &Store, thread: &ThreadId, tip: Oid, meter: Meter) -> Self {
        // The parent of the first entry, if it has one, is the checkpoint that the thread began as.
        let walked = Walk { meter, ..Walk::new(Back::ToFirstEntry) }.read(store, tip);
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
        // Of a chain without its beginning, nothing can be said but that.
        chain.cut = chain.findings.first().is_some();
        if !chain.cut {
            chain.check(thread, &Objects::new(store));
        }
        chain
    }

    /// A thread of which nothing could be read.
    pub(super) fn unreadable(why: String) -> Self {
        let mut walked = Self::default();
        walked.findings.add(why);
        walked
    }

    /// Holds every entry against the one before it, and its commit and tree against what it says.
    fn check(&mut self, thread: &ThreadId, objects: &Objects) {
        let mut before = None;
        for link in &self.links {
            let Entry { seq, about, .. } = &link.entry;
            let findings = &mut self.findings;
            if about.thread() != Some(thread) {
                findings.add(format!("entry {seq} is of another thread, {:?}", about.as_str()));
            }
            order::faults(link, before, Parents::Named).for_each(|(_, fault)| findings.add(fault));
            if let Err(why) = self.trail.push(&link.entry, link.hash, link.commit) {
                findings.add(format!("entry {seq}: {why}"));
            }
            let tree = self.trail.latest().and_then(|latest| objects.hash(Kind::Tree, &latest.content.tree()));
            if tree != Some(link.tree) {
                findings.add(format!("entry {seq}: the tree is not what the entry says"));
            }
            before = Some(link);
        }
    }
}

/// Re-hashes every file of a saved working tree, and adds up their bytes.
pub(super) fn files(objects: &Objects, store: &Store, root: Oid, bytes: &mut u64) -> Result<(), Fault> {
    let mut folders = vec![root];
    let mut seen = std::collections::HashSet::new();
    while let Some(folder) = folders.pop() {
        if !seen.insert(folder) {
            continue;
        }
        let raw = objects.tree(folder)?;
        let nodes = tree::nodes(&raw, folder)
            .ok_or_else(|| Fault::Damaged(folder, "it is not a well-formed tree".to_owned()))?;
        for (mode, oid) in nodes {
            match mode {
                b"40000" => folders.push(oid),
                // What a submodule has checked out is named, not held.
                b"160000" => {}
                _ if seen.insert(oid) => *bytes += hash(store, objects, oid)?.1,
                _ => {}
            }
        }
    }
    Ok(())
}
