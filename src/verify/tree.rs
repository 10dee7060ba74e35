//! The changes that one entry made to the tree, compared with the changes it may make.
//!
//! The comparison reads only folders whose ids differ and that the entry may change. So neither the
//! number of items nor a maliciously deep tree costs time.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event};
use crate::model::format::{self, Layout};
use crate::model::printable::cut;

use super::objects::{Fault, Objects};

/// The most changed paths that are listed. No entry changes so many.
const MAX_PATHS: usize = 100_000;

const MAX_PROBLEMS: usize = 20;

const MAX_PATH_BYTES: usize = 4096;

/// The size of changes that are in memory at once, for all entries together.
const MAX_CHANGE_BYTES: usize = 16 << 20;

/// The paths that an entry may change.
#[derive(Default)]
pub(super) struct AllowedChanges {
    /// The paths that hold a blob afterwards, with its id if the entry states it.
    pub(super) set: BTreeMap<String, Option<Oid>>,
    /// The paths that may be removed. A final slash marks a folder.
    removable: Vec<String>,
}

impl AllowedChanges {
    /// Derives the paths from the entry alone.
    pub(super) fn by(entry: &Entry, layout: Layout, _: &Objects) -> Self {
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
                paths.set.insert(layout.manifest(&e.item), None);
            }
            Event::ItemReconciled(e) => {
                paths.removable = layout.products(&e.item).collect();
                for (key, product) in &e.products {
                    paths.set.insert(layout.product(&e.item, key), Some(product.oid));
                }
                paths.set.extend(e.reused.iter().map(|_| (layout.reused(&e.item), None)));
            }
            Event::RunExtended(e) => {
                paths.set.extend(e.items.keys().map(|item| (layout.definition(item), None)));
                paths.set.extend(e.pipelines.values().map(|digest| (format::pipeline_path(*digest), None)));
            }
            Event::DocumentWritten(e) => paths.set.extend([(format::document_path(&e.name), Some(e.oid))]),
            // The trees of threads and archives follow from their entries, and are compared
            // elsewhere. Those of logs are not judged.
            Event::ItemRetried(_)
            | Event::ItemRequeued(_)
            | Event::ItemSkipped(_)
            | Event::ItemCancelled(_)
            | Event::ItemDecided(_)
            | Event::RunAdmitted(_)
            | Event::RunDismissed(_)
            | Event::RunShared(_)
            | Event::RunConcluded(_)
            | Event::RunClosed(_)
            | Event::RunCancelled(_)
            | Event::RunSealed(_)
            | Event::ThreadCheckpointed(_)
            | Event::ThreadAdopted(_)
            | Event::ThreadForked(_)
            | Event::ThreadRolledBack(_)
            | Event::ThreadResumed(_)
            | Event::ArchiveAdded(_)
            | Event::LogRecorded(_)
            | Event::LogDecided(_)
            | Event::LogWritten(_) => {}
        }
        paths
    }

    fn may_remove(&self, path: &str) -> bool {
        self.removable
            .iter()
            .any(|to_remove| path == to_remove || (to_remove.ends_with('/') && path.starts_with(to_remove.as_str())))
    }

    /// Returns true if the entry may change a path below the folder `dir`, which ends with a slash.
    fn reaches(&self, dir: &str) -> bool {
        let next = self.set.range(dir.to_owned()..).next();
        next.is_some_and(|(path, _)| path.starts_with(dir))
            || self.removable.iter().any(|to_remove| {
                to_remove.starts_with(dir) || (to_remove.ends_with('/') && dir.starts_with(to_remove.as_str()))
            })
    }
}

#[derive(Default)]
pub(super) struct Changes {
    /// The allowed paths that changed, with the blob that is there now.
    pub(super) paths: Vec<(String, Option<Oid>)>,
    /// The changes that the entry does not account for.
    pub(super) problems: Problems,
    /// The unreadable folders, each with a final slash except the root.
    pub(super) faults: Vec<(String, Fault)>,
}

#[derive(Default)]
pub(super) struct Problems {
    pub(super) shown: Vec<String>,
    pub(super) count: usize,
}

/// A memory budget for changes that are computed ahead.
#[derive(Default)]
pub(super) struct ChangeBudget(AtomicUsize);

impl ChangeBudget {
    pub(super) fn is_left(&self) -> bool {
        self.0.load(Relaxed) < MAX_CHANGE_BYTES
    }

    pub(super) fn count(&self, changes: Changes) -> Changes {
        let bytes = changes.paths.iter().map(|path| size_of_val(path) + path.0.len()).sum();
        self.0.fetch_add(bytes, Relaxed);
        changes
    }
}

/// The content of a path after an entry.
#[derive(Clone, Debug, Default)]
pub(super) enum Slot {
    /// Nothing.
    #[default]
    Nothing,
    /// A blob.
    Blob(Oid),
    /// Unknown, because a parent folder cannot be read.
    Unread(Fault),
}

impl Slot {
    pub(super) fn blob(&self) -> Option<Oid> {
        match self {
            Self::Blob(oid) => Some(*oid),
            Self::Nothing | Self::Unread(_) => None,
        }
    }

    /// Reads a blob of at most `most` bytes, which may be missing in a partial clone; returns
    /// `None` if there is none.
    pub(super) fn read(&self, objects: &Objects, lazy: bool, most: u64) -> Option<Result<Vec<u8>, Fault>> {
        self.read_with(lazy, |oid| objects.read_of(oid, gix::objs::Kind::Blob, most))
    }

    /// Reads the blob with a function, like [`Slot::read`].
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

/// Compares the tree after an entry with the tree before it.
pub(super) fn changes(objects: &Objects, old: Option<Oid>, new: Oid, allowed: &AllowedChanges) -> Changes {
    let mut changes = Changes::default();
    if old != Some(new) {
        TreeWalk { objects, allowed, out: &mut changes }.folder(old, Some(new), "");
    }
    changes
}

/// Returns the content of one path of a tree.
pub(super) fn slot(objects: &Objects, tree: Oid, path: &str) -> Slot {
    let allowed = AllowedChanges { set: BTreeMap::from([(path.to_owned(), None)]), ..AllowedChanges::default() };
    let Changes { paths, mut faults, .. } = changes(objects, None, tree, &allowed);
    match (paths.into_iter().find_map(|(_, blob)| blob), faults.pop()) {
        (Some(blob), _) => Slot::Blob(blob),
        (None, Some((_, fault))) => Slot::Unread(fault),
        (None, None) => Slot::Nothing,
    }
}

struct TreeWalk<'a> {
    objects: &'a Objects,
    allowed: &'a AllowedChanges,
    out: &'a mut Changes,
}

impl TreeWalk<'_> {
    fn folder(&mut self, old: Option<Oid>, new: Option<Oid>, dir: &str) {
        if self.out.paths.len() + self.out.problems.count > MAX_PATHS {
            return;
        }
        if dir.len() > MAX_PATH_BYTES {
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

    /// If there are two nodes, they have the same name and type.
    fn node(&mut self, old: Option<&Node>, new: Option<&Node>, dir: &str) {
        let Some(node) = new.or(old) else { return };
        let Ok(name) = std::str::from_utf8(node.name) else {
            return self.problem(format!("{}{:?}", dir, String::from_utf8_lossy(node.name)));
        };
        let path = format!("{dir}{name}");
        if node.is_tree() {
            let below = path + "/";
            if !self.allowed.reaches(&below) {
                return self.problem(below);
            }
            return self.folder(old.map(Node::oid), new.map(Node::oid), &below);
        }
        let Some(new) = new else {
            if self.allowed.may_remove(&path) && !self.allowed.set.contains_key(&path) {
                return self.out.paths.push((path, None));
            }
            return self.problem(format!("{path} (removed)"));
        };
        match self.allowed.set.get(&path) {
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
        if problems.shown.len() < MAX_PROBLEMS {
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

    /// Git's order: folders sort as if their name ended with a slash.
    fn cmp(&self, other: &Self) -> Ordering {
        let both = self.name.len().min(other.name.len());
        let next = |node: &Self| node.name.get(both).copied().or(node.is_tree().then_some(b'/'));
        self.name[..both].cmp(&other.name[..both]).then_with(|| next(self).cmp(&next(other)))
    }
}

/// Returns mode and id of each node of a tree, or `None` if git would not write it like this.
pub(super) fn nodes(bytes: &[u8], oid: Oid) -> Option<Vec<(&[u8], Oid)>> {
    Some(parse(bytes, Some(oid))?.iter().map(|node| (node.mode, node.oid())).collect())
}

/// Parses a tree; returns `None` if git would not write it like this.
fn parse(bytes: &[u8], oid: Option<Oid>) -> Option<Vec<Node<'_>>> {
    let width = oid.map_or(0, |oid| oid.0.as_slice().len());
    // The shortest node, so that the list need not grow.
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
