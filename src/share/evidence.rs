//! Finds missing and oversized blobs that verify needs, by walking trees only.
//!
//! A partial clone has commits and trees. Everything else that verify reads, except products, is
//! listed here, so that it can be fetched in one request.

use std::collections::BTreeSet;

use gix::hashtable::HashSet;

use crate::git::bounded_read;
use crate::git::history;
use crate::git::store::{self, Store};
use crate::ledger::chain;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Product};
use crate::model::format;
use crate::model::rule::Rule;
use crate::plan;

use super::Kind;

/// The maximum depth of our folders: a path of 1,024 bytes has fewer segments.
const DEEPEST: usize = 600;

/// The number of spots.
const SPOTS: usize = Spot::Content as usize + 1;

/// The role of a folder in the tree of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    Root,
    /// `items/`: definitions of added items.
    Items,
    /// Everything is evidence.
    All,
    /// `imports/` and its folders: evidence stands beside each product.
    Import,
    /// Products and given files.
    Content,
}

/// Collects the missing blobs of a chain; with `content`, products too.
///
/// This looks at every entry, because plain git may have fetched any of them without evidence.
pub(super) fn missing(store: &Store, kind: Kind, head: Oid, content: bool) -> Result<Vec<Oid>, store::Error> {
    let mut walk = Walk::new(store, content);
    if !kind.is_chain() {
        walk.tree(head, Spot::All)?;
        return Ok(walk.absent());
    }
    let root = if kind.is_of_key() { Spot::All } else { Spot::Root };
    for commit in history::since(store, head, None)? {
        walk.commit(commit, root)?;
    }
    Ok(walk.absent())
}

/// Returns the first object above its size limit, from the head back to one checked before.
///
/// Skips missing objects, and products, which have no limit here.
pub(super) fn oversized(
    store: &Store,
    kind: Kind,
    old: Option<Oid>,
    head: Oid,
) -> Result<Option<String>, store::Error> {
    // A thread's files are products, but its trees have a limit.
    let search = if kind == Kind::Thread { Search::Folders } else { Search::Large };
    let mut walk = Walk { search, ..Walk::new(store, false) };
    let root = if kind == Kind::Run { Spot::Root } else { Spot::All };
    for commit in history::since(store, head, old)? {
        match walk.commit(commit, root) {
            Err(store::Error::Missing(_)) => {}
            Err(store::Error::Whole(error)) => return Ok(Some(in_words(&error))),
            other => other?,
        }
    }
    Ok(None)
}

/// Collects the missing documents that a run's rules evaluate. Its plan and rules are here.
///
/// Ignores unreadable data; verify reports it.
pub(super) fn looked_into(store: &Store, head: Oid) -> Vec<Oid> {
    let Ok((_, links)) = chain::read_at(store, "", head) else { return Vec::new() };
    let Some(Event::RunSubmitted(submitted)) = links.first().map(|link| &link.entry.event) else {
        return Vec::new();
    };
    let read = |named: &Product| store.read_blob(named.oid).ok();
    let own = read(&submitted.plan).and_then(|bytes| plan::parse(&bytes).ok()).map(|plan| plan.rules);
    let added = submitted.rules.as_ref().and_then(read).and_then(|bytes| plan::parse_rules(&bytes).ok());
    let rules: Vec<Rule> = own.into_iter().chain(added).flatten().collect();
    let conditions = rules.iter().flat_map(|rule| &rule.when.conditions);
    let paths: BTreeSet<String> = conditions.map(|condition| format::document_path(&condition.document)).collect();
    let mut wanted = BTreeSet::new();
    for link in links.iter().filter(|_| !paths.is_empty()) {
        let files = link.entry.event.files().into_iter();
        wanted.extend(files.filter(|(path, _)| paths.contains(path)).map(|(_, named)| named.oid));
    }
    wanted.into_iter().filter(|blob| !store.contains(*blob)).collect()
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
    content: bool,
    search: Search,
    /// Visited trees by spot.
    seen: [HashSet; SPOTS],
    wanted: Vec<Oid>,
}

impl Walk {
    fn new(store: &Store, content: bool) -> Self {
        let repo = history::reader(store);
        Self { repo, content, search: Search::Absent, seen: Default::default(), wanted: Vec::new() }
    }

    fn commit(&mut self, commit: Oid, root: Spot) -> Result<(), store::Error> {
        match tree_of(&self.read(commit)?) {
            Some(tree) => self.tree(tree, root),
            None => Ok(()),
        }
    }

    fn tree(&mut self, root: Oid, spot: Spot) -> Result<(), store::Error> {
        let mut folders = vec![(root, spot, 0)];
        while let Some((oid, spot, depth)) = folders.pop() {
            if depth > DEEPEST || !self.seen[spot as usize].insert(oid.0) {
                continue;
            }
            let bytes = self.read(oid)?;
            let hash = self.repo.object_hash();
            for entry in gix::objs::TreeRefIter::from_bytes(&bytes, hash) {
                // Ignores a malformed tree; verify reports it.
                let Ok(entry) = entry else { break };
                let (below, name) = (Oid(entry.oid.to_owned()), entry.filename);
                if entry.mode.is_tree() {
                    if let Some(next) = self.inside(spot, name) {
                        folders.push((below, next, depth + 1));
                    }
                } else if entry.mode.is_blob()
                    && self.counts(spot, name)
                    && self.seen[Spot::All as usize].insert(below.0)
                {
                    match self.search {
                        Search::Absent => self.wanted.push(below),
                        Search::Large => self.bound(below, spot, name)?,
                        Search::Folders => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Fails if a blob is above its size limit.
    fn bound(&self, oid: Oid, spot: Spot, name: &[u8]) -> Result<(), store::Error> {
        let most = match (spot, name) {
            (Spot::Items, _) | (Spot::Root, b"plan.json" | b"rules.json") => bounds::PLAN,
            (Spot::Root, b"manifest.json") => bounds::MANIFEST,
            _ => bounds::BLOB,
        };
        match bounded_read::header(&self.repo, oid).map_err(store::Error::from)? {
            Some((kind, size)) if size > most => Err(bounded_read::Error::TooLarge { oid, kind, size, most }.into()),
            _ => Ok(()),
        }
    }

    /// Returns the role of a folder, or `None` if nothing below it is needed.
    fn inside(&self, spot: Spot, name: &[u8]) -> Option<Spot> {
        let next = match spot {
            Spot::Root if name == b"items" => Spot::Items,
            Spot::Root if name == format::PIPELINES.as_bytes() => Spot::All,
            Spot::Root if name == format::IMPORTS.as_bytes() => Spot::Import,
            Spot::Import => Spot::Import,
            Spot::All => Spot::All,
            Spot::Root | Spot::Items | Spot::Content => Spot::Content,
        };
        // Verify reads whole trees, so each must be within the limit.
        (next != Spot::Content || self.content || self.search != Search::Absent).then_some(next)
    }

    fn counts(&self, spot: Spot, name: &[u8]) -> bool {
        let evidence = match spot {
            Spot::Root => name != b"patch",
            Spot::Items | Spot::All => true,
            Spot::Import => name == b"evidence.json",
            Spot::Content => false,
        };
        evidence || self.content
    }

    /// Returns the missing blobs so far.
    fn absent(&mut self) -> Vec<Oid> {
        let mut repo = self.repo.clone();
        // Objects that the walk read are known. Looking on the disk for each missing blob would
        // cost more than the whole walk.
        repo.objects.refresh_never();
        self.wanted.retain(|blob| !repo.has_object(blob.0));
        self.wanted.clone()
    }

    fn read(&self, oid: Oid) -> Result<Vec<u8>, store::Error> {
        let found = bounded_read::read(&self.repo, oid, store::most)?;
        Ok(found.ok_or(store::Error::Missing(oid))?.bytes)
    }
}
