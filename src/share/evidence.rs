//! Which blobs of a chain verify needs, found in its trees without reading a blob: those that are not here, and those that are too
//! large.
//!
//! A partial clone has commits and trees. Everything verify reads besides, but for the products themselves, is named here, so
//! that it can be brought in one batch.

use std::collections::BTreeSet;

use gix::hashtable::HashSet;

use crate::git::history;
use crate::git::store::{self, Store};
use crate::git::whole;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::rule::Rule;
use crate::plan;

use super::Kind;

/// Deeper folders than this hold nothing of ours: a path of 1,024 bytes has fewer segments.
const DEEPEST: usize = 600;

/// How many spots there are.
const SPOTS: usize = Spot::Content as usize + 1;

/// Where in a chain's tree a folder lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    Root,
    /// `items/`.
    Items,
    /// `items/<2 hex>/`: an item, or a folder of the fan-out. Read as both.
    Fan,
    /// The folder of an item.
    Item,
    /// All of it is evidence.
    All,
    /// `imports/` and each folder in it: what shows where a product comes from stands beside the product.
    Import,
    /// Products and what was given.
    Content,
}

/// Collects the blobs of a chain that are not here, from its head back to one that was fetched before.
///
/// `content` asks for products as well. Of a head that was fetched before, one look at its own tree shows whether its
/// evidence came along; it may have been brought by plain git.
pub(super) fn missing(
    store: &Store,
    kind: Kind,
    old: Option<Oid>,
    head: Oid,
    content: bool,
) -> Result<Vec<Oid>, store::Error> {
    let mut walk = Walk::new(store, content);
    if !kind.is_chain() {
        walk.tree(head, Spot::All)?;
        return Ok(walk.absent());
    }
    let root = if kind.is_of_key() { Spot::All } else { Spot::Root };
    if let Some(old) = old {
        walk.commit(old, root)?;
    }
    let known = if walk.absent().is_empty() { old } else { None };
    for commit in history::since(store, head, known)? {
        walk.commit(commit, root)?;
    }
    Ok(walk.absent())
}

/// Says which object of a chain is larger than what is read in its place, from the head back to one that was looked at before.
///
/// What is not here is not too large; products may be of any size.
pub(super) fn oversized(
    store: &Store,
    kind: Kind,
    old: Option<Oid>,
    head: Oid,
) -> Result<Option<String>, store::Error> {
    // The files that a thread holds are products; its folders are read whole all the same.
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

/// Collects the documents that the rules of a run look into and that are not here; its plan and its rules are by now.
///
/// What cannot be read holds nothing that is asked for here: it is for verify to find.
pub(super) fn looked_into(store: &Store, head: Oid) -> Result<Vec<Oid>, store::Error> {
    let tree = |commit: Oid| Ok::<_, store::Error>(tree_of(&store.read(commit)?.1));
    // Neither changes after entry 0, so that the latest tree has them as well.
    let Some(latest) = tree(head)? else { return Ok(Vec::new()) };
    let read = |path| Ok::<_, store::Error>(store.blob_at(latest, path)?.and_then(|blob| store.read_blob(blob).ok()));
    let own = read(format::PLAN)?.and_then(|bytes| plan::parse(&bytes).ok()).map(|plan| plan.rules);
    let added = read(format::RULES)?.and_then(|bytes| plan::parse_rules(&bytes).ok());
    let rules: Vec<Rule> = own.into_iter().chain(added).flatten().collect();
    let conditions = rules.iter().flat_map(|rule| &rule.when.conditions);
    let paths: BTreeSet<String> = conditions.map(|condition| format::document_path(&condition.document)).collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut wanted = BTreeSet::new();
    for commit in history::since(store, head, None)? {
        let Some(tree) = tree(commit)? else { continue };
        for path in &paths {
            wanted.extend(store.blob_at(tree, path)?);
        }
    }
    Ok(wanted.into_iter().filter(|blob| !store.contains(*blob)).collect())
}

/// Finds the tree in the bytes of a commit.
fn tree_of(commit: &[u8]) -> Option<Oid> {
    let first = commit.split(|b| *b == b'\n').next().unwrap_or_default();
    first.strip_prefix(b"tree ").and_then(|id| std::str::from_utf8(id).ok()?.parse().ok())
}

/// What a walk looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Blobs that are not here.
    Absent,
    /// Folders and blobs that are too large.
    Large,
    /// Folders that are too large.
    Folders,
}

struct Walk {
    repo: gix::Repository,
    content: bool,
    search: Search,
    /// What was seen at each spot; every tree names all of its folders again, so that most of the walk is to ask this.
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
                // A malformed tree is for verify to find.
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
                        Search::Large => self.bound(below, name)?,
                        Search::Folders => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a blob that is larger than what is read in its place.
    fn bound(&self, oid: Oid, name: &[u8]) -> Result<(), store::Error> {
        let most = match name {
            b"plan.json" | b"rules.json" | b"item.json" => bounds::PLAN,
            b"manifest.json" => bounds::MANIFEST,
            _ => bounds::BLOB,
        };
        match whole::header(&self.repo, oid).map_err(store::Error::from)? {
            Some((kind, size)) if size > most => Err(whole::Error::TooLarge { oid, kind, size, most }.into()),
            _ => Ok(()),
        }
    }

    /// Returns where a folder leads; none where nothing below it is asked for.
    fn inside(&self, spot: Spot, name: &[u8]) -> Option<Spot> {
        let next = match spot {
            Spot::Root if name == b"items" => Spot::Items,
            Spot::Root if name == format::PIPELINES.as_bytes() => Spot::All,
            Spot::Root if name == format::IMPORTS.as_bytes() => Spot::Import,
            Spot::Import => Spot::Import,
            Spot::Items if name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit) => Spot::Fan,
            Spot::Items | Spot::Fan => Spot::Item,
            Spot::All => Spot::All,
            Spot::Root | Spot::Item | Spot::Content => Spot::Content,
        };
        // Every folder is read whole by verify.
        (next != Spot::Content || self.content || self.search != Search::Absent).then_some(next)
    }

    fn counts(&self, spot: Spot, name: &[u8]) -> bool {
        let evidence = match spot {
            Spot::Root | Spot::All => true,
            Spot::Fan | Spot::Item => matches!(name, b"item.json" | b"state.json" | b"manifest.json" | b"reused.json"),
            Spot::Import => name == b"evidence.json",
            Spot::Items | Spot::Content => false,
        };
        evidence || self.content
    }

    /// Returns what was found so far and is not here.
    fn absent(&mut self) -> Vec<Oid> {
        let mut repo = self.repo.clone();
        // What the walk read is known by now; a look at the disk for each blob that is not there would cost more than all of it.
        repo.objects.refresh_never();
        self.wanted.retain(|blob| !repo.has_object(blob.0));
        self.wanted.clone()
    }

    fn read(&self, oid: Oid) -> Result<Vec<u8>, store::Error> {
        let found = whole::read(&self.repo, oid, store::most)?;
        Ok(found.ok_or(store::Error::Missing(oid))?.bytes)
    }
}
