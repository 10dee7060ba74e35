//! The entries of a thread, read from the commits behind its ref.

use gix::objs::Kind;

use crate::git::codec::{self, Decoded};
use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Entry;
use crate::model::name::ThreadId;
use crate::model::thread::Trail;

use crate::verify::content::hash;
use crate::verify::findings::Findings;
use crate::verify::objects::{Fault, Objects};
use crate::verify::order::{self, End};
use crate::verify::reader::{short, signer};
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

/// One entry.
pub(super) struct Link {
    pub(super) commit: Oid,
    pub(super) tree: Oid,
    pub(super) hash: Digest,
    pub(super) entry: Entry,
    /// The fingerprint of the key that made the signature, or what is wrong with it.
    pub(super) signer: Result<String, String>,
    parents: Vec<Oid>,
}

impl ThreadChain {
    /// Reads the chain that ends at `tip`. Whatever that is, this ends and says what it found.
    pub(super) fn read(store: &Store, thread: &ThreadId, tip: Oid) -> Self {
        Self::read_after(store, thread, tip, Meter::default())
    }

    /// Reads a chain like [`ThreadChain::read`], where others are held beside it.
    pub(super) fn read_after(store: &Store, thread: &ThreadId, tip: Oid, meter: Meter) -> Self {
        let mut walked = Self { meter, ..Self::default() };
        let objects = Objects::new(store);
        let mut next = Some(tip);
        while let Some(commit) = next {
            let decoded = match objects.commit(commit, &mut walked.meter) {
                Ok(raw) => codec::decode(&raw),
                Err(fault) => {
                    walked.findings.fault("the chain", &fault);
                    break;
                }
            };
            match decoded {
                Ok(decoded) => {
                    let link = Link::new(commit, decoded);
                    // The parent of the first entry, if it has one, is the checkpoint that the thread began as.
                    next = link.entry.prev.and_then(|_| link.parents.first().copied());
                    walked.links.push(link);
                }
                Err(error) => {
                    walked.findings.add(format!("commit {}: {error}", short(commit)));
                    break;
                }
            }
        }
        walked.links.reverse();
        // Of a chain without its beginning, nothing can be said but that.
        walked.cut = walked.findings.first().is_some();
        if !walked.cut {
            walked.check(thread, &objects);
        }
        walked
    }

    /// A thread of which nothing could be read.
    pub(super) fn unreadable(why: String) -> Self {
        let mut walked = Self::default();
        walked.findings.add(why);
        walked
    }

    /// Holds every entry against the one before it, and its commit and tree against what it says.
    fn check(&mut self, thread: &ThreadId, objects: &Objects) {
        let mut before: Option<&Link> = None;
        for link in &self.links {
            let Entry { seq, event, about, .. } = &link.entry;
            let findings = &mut self.findings;
            if about.thread() != Some(thread) {
                findings.add(format!("entry {seq} is of another thread, {:?}", about.as_str()));
            }
            let end = before.map(|before| End::of(&before.entry, before.hash));
            order::faults(&link.entry, end, None).for_each(|fault| findings.add(fault));
            let parents = before.map(|before| before.commit).into_iter().chain(event.further_parent());
            if !parents.eq(link.parents.iter().copied()) {
                findings.add(format!("entry {seq} has other parents than it says"));
            }
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

impl Link {
    fn new(commit: Oid, decoded: Decoded) -> Self {
        let signer = signer(&decoded);
        Self { commit, tree: decoded.tree, hash: decoded.hash, entry: decoded.entry, parents: decoded.parents, signer }
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
