//! Finds the missing blobs that verify needs, and oversized objects.
//!
//! A partial clone has commits and trees. Everything else that verify reads, except products, is
//! listed here, so that it can be fetched in one request. The entries of a run name it; of other
//! chains, it is what their trees hold.

use std::collections::BTreeSet;

use gix::hashtable::HashSet;

use crate::git::bounded_read;
use crate::git::codec;
use crate::git::history;
use crate::git::store::{self, Store};
use crate::ledger::chain;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Product, RunSubmitted};
use crate::model::files;
use crate::model::format;
use crate::model::rule::Rule;
use crate::plan;

use super::Kind;

/// The maximum depth of our folders: a path of 1,024 bytes has fewer segments.
const DEEPEST: usize = 600;

/// The needs of a chain.
#[derive(Default)]
pub(super) struct Needed {
    /// The missing blobs.
    pub(super) blobs: Vec<Oid>,
    /// The first entry of a run.
    submitted: Option<RunSubmitted>,
}

/// Collects the missing blobs of a chain; with `content`, products too. Fails with the first tree
/// that is missing.
///
/// This looks at every entry, because plain git may have fetched any of them without evidence.
pub(super) fn missing(store: &Store, kind: Kind, head: Oid, content: bool) -> Result<Needed, store::Error> {
    let mut walk = Walk::new(store, Search::Absent);
    if kind.is_chain() {
        history::each(store, head, None, |_, commit| match kind {
            Kind::Run => walk.entry(commit, content),
            // The files of a working tree are products.
            _ => walk.commit(commit, content || kind != Kind::Thread),
        })?;
    } else {
        walk.tree(head, true)?;
    }
    Ok(walk.needed())
}

/// Returns the first object of a thread, log or archive above its size limit, from the head back to
/// one checked before. Skips missing objects.
pub(super) fn oversized(
    store: &Store,
    kind: Kind,
    old: Option<Oid>,
    head: Oid,
) -> Result<Option<String>, store::Error> {
    // A thread's files are products, but its trees have a limit.
    let mut walk = Walk::new(store, if kind == Kind::Thread { Search::Folders } else { Search::Large });
    let walked = history::each(store, head, old, |_, commit| match walk.commit(commit, true) {
        Err(store::Error::Missing(_)) => Ok(()),
        other => other,
    });
    match walked {
        Err(store::Error::Whole(error)) => Ok(Some(in_words(&error))),
        other => other.map(|_| None),
    }
}

/// Collects the missing documents that a run's rules evaluate. Its plan and rules are here by now.
///
/// Ignores unreadable data; verify reports it.
pub(super) fn looked_into(store: &Store, head: Oid, needed: &Needed) -> Vec<Oid> {
    let Some(submitted) = &needed.submitted else { return Vec::new() };
    let read = |product: &Product| store.read_blob(product.oid).ok();
    let own = read(&submitted.plan).and_then(|bytes| plan::parse(&bytes).ok()).map(|plan| plan.rules);
    let added = submitted.rules.as_ref().and_then(read).and_then(|bytes| plan::parse_rules(&bytes).ok());
    let rules: Vec<Rule> = own.into_iter().chain(added).flatten().collect();
    let conditions = rules.iter().flat_map(|rule| &rule.when.conditions);
    let paths: BTreeSet<String> = conditions.map(|condition| format::document_path(&condition.document)).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let Ok((_, links)) = chain::read_at(store, "", head) else { return Vec::new() };
    let mut blobs = BTreeSet::new();
    for link in &links {
        let files = link.entry.event.files().into_iter();
        blobs.extend(files.filter(|(path, _)| paths.contains(path)).map(|(_, product)| product.oid));
    }
    blobs.into_iter().filter(|blob| !store.contains(*blob)).collect()
}

/// Parses the tree from the bytes of a commit.
fn tree_of(commit: &[u8]) -> Option<Oid> {
    let first = commit.split(|b| *b == b'\n').next().unwrap_or_default();
    first.strip_prefix(b"tree ").and_then(|id| std::str::from_utf8(id).ok()?.parse().ok())
}

/// The target of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Missing blobs.
    Absent,
    /// Oversized trees and blobs.
    Large,
    /// Oversized trees.
    Folders,
}

struct Walk {
    repo: gix::Repository,
    search: Search,
    /// Visited trees and blobs.
    visited: HashSet,
    needed: Needed,
}

impl Walk {
    fn new(store: &Store, search: Search) -> Self {
        Self { repo: history::reader(store), search, visited: HashSet::default(), needed: Needed::default() }
    }

    /// Looks for the bytes that an entry of a run names. Ignores what is no entry, and names of
    /// another object format; verify reports them.
    fn entry(&mut self, commit: &[u8], content: bool) -> Result<(), store::Error> {
        let Ok(decoded) = codec::decode(commit) else { return Ok(()) };
        let format = self.repo.object_hash();
        if decoded.tree.0.kind() != format || !self.repo.has_object(decoded.tree.0) {
            return Err(store::Error::Missing(decoded.tree));
        }
        let files = decoded.entry.event.files().into_iter();
        let needed = files.filter(|(path, _)| content || files::most_bytes(path).is_some());
        let oids = needed.map(|(_, product)| product.oid).filter(|oid| oid.0.kind() == format);
        self.needed.blobs.extend(oids.filter(|oid| self.visited.insert(oid.0)));
        if let Event::RunSubmitted(submitted) = decoded.entry.event {
            self.needed.submitted = Some(submitted);
        }
        Ok(())
    }

    fn commit(&mut self, commit: &[u8], is_deep: bool) -> Result<(), store::Error> {
        match tree_of(commit) {
            Some(tree) => self.tree(tree, is_deep),
            None => Ok(()),
        }
    }

    /// Looks through a tree, and if it is to be deep, through its folders.
    fn tree(&mut self, root: Oid, is_deep: bool) -> Result<(), store::Error> {
        let mut folders = vec![(root, 0)];
        while let Some((oid, depth)) = folders.pop() {
            if depth > DEEPEST || !self.visited.insert(oid.0) {
                continue;
            }
            let bytes = self.read(oid)?;
            for entry in gix::objs::TreeRefIter::from_bytes(&bytes, self.repo.object_hash()) {
                // Ignores a malformed tree; verify reports it.
                let Ok(entry) = entry else { break };
                let below = Oid(entry.oid.to_owned());
                if entry.mode.is_tree() {
                    folders.extend(is_deep.then_some((below, depth + 1)));
                } else if entry.mode.is_blob() && self.visited.insert(below.0) {
                    match self.search {
                        Search::Absent => self.needed.blobs.push(below),
                        Search::Large => bounded_read::within(&self.repo, below, bounds::BLOB)?,
                        Search::Folders => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns what the walk found; blobs that are here are not needed.
    fn needed(mut self) -> Needed {
        // Objects that the walk read are known. Looking on the disk for each missing blob would
        // cost more than the whole walk.
        self.repo.objects.refresh_never();
        self.needed.blobs.retain(|blob| !self.repo.has_object(blob.0));
        self.needed
    }

    fn read(&self, oid: Oid) -> Result<Vec<u8>, store::Error> {
        let found = bounded_read::read(&self.repo, oid, store::most)?;
        Ok(found.ok_or(store::Error::Missing(oid))?.bytes)
    }
}
