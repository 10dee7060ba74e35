//! What one entry changed in the tree, held against what it may change.
//!
//! Two trees are compared by walking only the folders whose ids differ, and only into folders that the entry accounts for,
//! so that neither the number of items nor a tree that was built to be endless costs anything.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event};
use crate::model::format::{self, Layout};
use crate::model::log_record::{self, Record};
use crate::model::printable::cut;

use super::objects::{Fault, Objects};

/// More changed paths than this are not listed: no entry accounts for so many.
const MOST: usize = 100_000;

/// More problems than this are counted, not listed.
const SHOWN: usize = 20;

/// A folder whose path has more bytes than this is not looked into: no path of ours is nearly as long.
const LONGEST: usize = 4096;

/// The bytes of listed changes that are kept at once, of however many entries.
const KEPT: usize = 16 << 20;

/// The paths that one entry accounts for.
#[derive(Default)]
pub(super) struct Accounted {
    /// Paths that hold a blob afterwards; which one, where the entry says so.
    pub(super) set: BTreeMap<String, Option<Oid>>,
    /// Paths, or folders with a slash at the end, that may go.
    go: Vec<String>,
}

impl Accounted {
    /// Derives the paths from the entry alone.
    pub(super) fn by(entry: &Entry, layout: Layout, objects: &Objects) -> Self {
        let mut paths = Self::default();
        match &entry.event {
            Event::RunSubmitted(e) => {
                paths.set.insert(format::PLAN.to_owned(), None);
                paths.set.extend(e.rules.map(|_| (format::RULES.to_owned(), None)));
                paths.set.extend(e.continues.iter().map(|_| (format::CONTINUES.to_owned(), None)));
                paths.set.extend(e.artifacts.keys().map(|path| (format::artifact_path(path), None)));
                paths.set.extend(e.pipelines.values().map(|digest| (format::pipeline_path(*digest), None)));
                for (name, import) in &e.imports {
                    let [product, evidence] = format::import_paths(name);
                    paths.set.extend([(product, Some(import.product.oid)), (evidence, None)]);
                }
            }
            Event::ItemFired(e) => {
                paths.set.insert(layout.state(&e.item), None);
                paths.set.insert(layout.manifest(&e.item), None);
            }
            Event::ItemReconciled(e) => {
                paths.set.insert(layout.state(&e.item), None);
                paths.go = layout.products(&e.item).collect();
                for (key, product) in &e.products {
                    paths.set.insert(layout.product(&e.item, key), Some(product.oid));
                }
                paths.set.extend(e.reused.iter().map(|_| (layout.reused(&e.item), None)));
            }
            Event::ItemRetried(_)
            | Event::ItemRequeued(_)
            | Event::ItemSkipped(_)
            | Event::ItemCancelled(_)
            | Event::ItemDecided(_) => {
                let item = entry.event.item().map(|(item, _)| layout.state(item));
                paths.set.extend(item.map(|path| (path, None)));
            }
            Event::RunExtended(e) => {
                paths.set.extend(e.items.keys().map(|item| (layout.definition(item), None)));
                paths.set.extend(e.pipelines.values().map(|digest| (format::pipeline_path(*digest), None)));
            }
            Event::DocumentWritten(e) => {
                paths.set.insert(format::document_path(&e.name), Some(e.oid));
            }
            // The trees of threads and archives follow from their entries; they are not walked like this.
            Event::RunAdmitted(_)
            | Event::RunConcluded(_)
            | Event::RunClosed(_)
            | Event::RunCancelled(_)
            | Event::RunSealed(_)
            | Event::ThreadCheckpointed(_)
            | Event::ThreadAdopted(_)
            | Event::ThreadForked(_)
            | Event::ThreadRolledBack(_)
            | Event::ThreadResumed(_)
            | Event::ArchiveAdded(_) => {}
            Event::LogSubmitted(_) | Event::LogSealed(_) | Event::LogThread(_) => {
                let oid = Record::of(entry).and_then(|record| objects.hash(gix::objs::Kind::Blob, &record.canonical()));
                paths.set.extend(log_record::path(&entry.about).map(|path| (path, oid)));
            }
            Event::LogDecided(e) => {
                let oid = objects.hash(gix::objs::Kind::Blob, &e.canonical());
                paths.set.extend(entry.about.run().map(|run| (format::decided_path(run, &e.item), oid)));
            }
            Event::LogWritten(e) => {
                paths.set.extend(entry.about.run().map(|run| (format::written_path(run, &e.name), Some(e.oid))));
            }
        }
        paths
    }

    fn may_go(&self, path: &str) -> bool {
        self.go.iter().any(|go| path == go || (go.ends_with('/') && path.starts_with(go.as_str())))
    }

    /// Whether anything below the folder `dir`, which ends with a slash, is accounted for.
    fn reaches(&self, dir: &str) -> bool {
        let next = self.set.range(dir.to_owned()..).next();
        next.is_some_and(|(path, _)| path.starts_with(dir))
            || self.go.iter().any(|go| go.starts_with(dir) || (go.ends_with('/') && dir.starts_with(go.as_str())))
    }
}

/// What one entry changed.
#[derive(Default)]
pub(super) struct Changes {
    /// The accounted paths that changed: the blob there now, or none.
    pub(super) paths: Vec<(String, Option<Oid>)>,
    /// What the entry does not account for.
    pub(super) problems: Problems,
    /// Folders that could not be read, each with a slash at the end but for the tree itself.
    pub(super) faults: Vec<(String, Fault)>,
}

/// What is wrong with a tree.
#[derive(Default)]
pub(super) struct Problems {
    /// The first of it.
    pub(super) shown: Vec<String>,
    /// How much there is.
    pub(super) count: usize,
}

/// The room for changes that are looked at before it is their turn.
#[derive(Default)]
pub(super) struct Room(AtomicUsize);

impl Room {
    /// Returns whether there is any.
    pub(super) fn left(&self) -> bool {
        self.0.load(Relaxed) < KEPT
    }

    /// Counts changes that are kept.
    pub(super) fn take(&self, changes: Changes) -> Changes {
        let bytes = changes.paths.iter().map(|path| size_of_val(path) + path.0.len()).sum();
        self.0.fetch_add(bytes, Relaxed);
        changes
    }
}

/// What the tree holds at a path after an entry.
#[derive(Clone, Debug, Default)]
pub(super) enum Slot {
    /// Nothing.
    #[default]
    Nothing,
    /// A blob.
    Blob(Oid),
    /// What cannot be told, since a folder on the way cannot be read.
    Unread(Fault),
}

impl Slot {
    /// Returns the blob that is there.
    pub(super) fn blob(&self) -> Option<Oid> {
        match self {
            Self::Blob(oid) => Some(*oid),
            Self::Nothing | Self::Unread(_) => None,
        }
    }

    /// Reads the blob, which may be elsewhere if the repository is a partial clone, and has at most so many bytes; none where there
    /// is nothing.
    pub(super) fn read(&self, objects: &Objects, lazy: bool, most: u64) -> Option<Result<Vec<u8>, Fault>> {
        self.read_with(lazy, |oid| objects.read_of(oid, gix::objs::Kind::Blob, most))
    }

    /// Reads the blob like [`Slot::read`], by a function.
    pub(super) fn read_with(
        &self,
        lazy: bool,
        read: impl FnOnce(Oid) -> Result<Vec<u8>, Fault>,
    ) -> Option<Result<Vec<u8>, Fault>> {
        match self {
            Self::Nothing => None,
            Self::Blob(oid) => Some(read(*oid).map_err(|fault| fault.of_blob(lazy))),
            Self::Unread(fault) => Some(Err(fault.clone())),
        }
    }
}

/// Compares the tree after an entry with the one before it.
pub(super) fn changes(objects: &Objects, old: Option<Oid>, new: Oid, accounted: &Accounted) -> Changes {
    let mut changes = Changes::default();
    if old != Some(new) {
        TreeWalk { objects, accounted, out: &mut changes }.folder(old, Some(new), "");
    }
    changes
}

struct TreeWalk<'a> {
    objects: &'a Objects,
    accounted: &'a Accounted,
    out: &'a mut Changes,
}

impl TreeWalk<'_> {
    fn folder(&mut self, old: Option<Oid>, new: Option<Oid>, dir: &str) {
        if self.out.paths.len() + self.out.problems.count > MOST {
            return;
        }
        if dir.len() > LONGEST {
            return self.problem("a folder that is deeper than any path".to_owned());
        }
        let (before, after) = match (self.read(old), self.read(new)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(fault), _) | (_, Err(fault)) => return self.out.faults.push((dir.to_owned(), fault)),
        };
        let (Some(before), Some(after)) = (parse(&before, old), parse(&after, new)) else {
            return self.problem(format!("{}, which is not a well-formed tree", shown(dir)));
        };
        if new.is_some() && after.is_empty() && !dir.is_empty() {
            self.problem(format!("{} (an empty folder)", shown(dir)));
        }
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(b), Some(a)) => b.cmp(a),
            };
            let gone = if order.is_le() { before.next() } else { None };
            let come = if order.is_ge() { after.next() } else { None };
            if gone.map(|node| (node.mode, node.oid)) != come.map(|node| (node.mode, node.oid)) {
                self.node(gone, come, dir);
            }
        }
    }

    /// Both nodes, where there are two, have the same name and are both folders or both not.
    fn node(&mut self, old: Option<&Node>, new: Option<&Node>, dir: &str) {
        let Some(node) = new.or(old) else { return };
        let Ok(name) = std::str::from_utf8(node.name) else {
            return self.problem(format!("{}{:?}", dir, String::from_utf8_lossy(node.name)));
        };
        let path = format!("{dir}{name}");
        if node.is_tree() {
            let below = path + "/";
            if !self.accounted.reaches(&below) {
                return self.problem(below);
            }
            return self.folder(old.map(Node::oid), new.map(Node::oid), &below);
        }
        let Some(new) = new else {
            if self.accounted.may_go(&path) && !self.accounted.set.contains_key(&path) {
                return self.out.paths.push((path, None));
            }
            return self.problem(format!("{path} (removed)"));
        };
        match self.accounted.set.get(&path) {
            None => self.problem(path),
            Some(_) if new.mode != b"100644" => {
                self.problem(format!("{path} (mode {})", String::from_utf8_lossy(new.mode)));
            }
            Some(_) => self.out.paths.push((path, Some(new.oid()))),
        }
    }

    fn read(&self, tree: Option<Oid>) -> Result<std::rc::Rc<Vec<u8>>, Fault> {
        tree.map_or_else(|| Ok(std::rc::Rc::default()), |oid| self.objects.tree(oid))
    }

    fn problem(&mut self, problem: String) {
        let problems = &mut self.out.problems;
        problems.count += 1;
        if problems.shown.len() < SHOWN {
            problems.shown.push(cut(problem));
        }
    }
}

struct Node<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    oid: &'a [u8],
}

impl Node<'_> {
    fn is_tree(&self) -> bool {
        self.mode == b"40000"
    }

    fn oid(&self) -> Oid {
        Oid(gix::ObjectId::from_bytes_or_panic(self.oid))
    }

    /// Git's order: folders sort as if a slash followed their name. No name holds one.
    fn cmp(&self, other: &Self) -> Ordering {
        let both = self.name.len().min(other.name.len());
        let next = |node: &Self| node.name.get(both).copied().or(node.is_tree().then_some(b'/'));
        self.name[..both].cmp(&other.name[..both]).then_with(|| next(self).cmp(&next(other)))
    }
}

/// Returns mode and id of each node of a tree; none if its bytes are not those that git writes.
pub(super) fn nodes(bytes: &[u8], oid: Oid) -> Option<Vec<(&[u8], Oid)>> {
    Some(parse(bytes, Some(oid))?.iter().map(|node| (node.mode, node.oid())).collect())
}

/// Reads a tree's bytes; none if they are not those that git writes.
fn parse(bytes: &[u8], oid: Option<Oid>) -> Option<Vec<Node<'_>>> {
    let width = oid.map_or(0, |oid| oid.0.as_slice().len());
    // A folder of folders with short names, the most there can be of, so that the list need not grow.
    let shortest = "40000 aa".len() + 1 + width;
    let mut nodes: Vec<Node<'_>> = Vec::with_capacity(bytes.len() / shortest + 1);
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = rest.iter().position(|b| *b == b' ')?;
        let end = space + rest[space..].iter().position(|b| *b == 0)?;
        let node = Node { mode: &rest[..space], name: &rest[space + 1..end], oid: rest.get(end + 1..end + 1 + width)? };
        if node.name.is_empty() || node.name.contains(&b'/') {
            return None;
        }
        if nodes.last().is_some_and(|last| last.cmp(&node).is_ge()) {
            return None;
        }
        rest = &rest[end + 1 + width..];
        nodes.push(node);
    }
    Some(nodes)
}

fn shown(dir: &str) -> &str {
    if dir.is_empty() { "/" } else { dir }
}
