//! The commits behind a ref, read once: every entry with its place, its signer and its share of the tree.

use std::collections::{BTreeMap, HashMap};

use crate::git::codec::{self, Decoded};
use crate::git::store::Store;
use crate::ledger::sign;
use crate::model::bounds::Meter;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, RunSubmitted};
use crate::model::format::{self, Layout};
use crate::model::name::{FilePath, ItemId};
use crate::model::printable::cut;

use super::findings::Findings;
use super::objects::{Fault, Objects, each};
use super::order::{self, End};
use super::tree::{self, Accounted, Changes, Held, Room};

/// How many commits are read before they are decoded, unless so many bytes were read first.
const BATCH: usize = 4096;

/// The bytes of commits after which those that were read are decoded.
const BATCH_BYTES: usize = 8 << 20;

/// A history with more commits than this that are no entries is not read further.
const MOST_STRANGERS: usize = 100;

/// A chain as far as it could be read.
#[derive(Default)]
pub(super) struct ReadChain {
    /// The entries, oldest first; commits that are none are left out and found fault with.
    pub(super) links: Vec<Link>,
    /// What is wrong with the commits.
    pub(super) findings: Findings,
    /// Whether the walk ended before a first entry, for want of an object or because one is damaged.
    pub(super) cut: bool,
    /// What is wrong with the trees.
    pub(super) tree_findings: Findings,
    /// The blob at `plan.json` after entry 0.
    pub(super) plan: Held,
    /// The blob at `rules.json` after entry 0.
    pub(super) rules: Held,
    /// The blobs sealed at submit.
    pub(super) artifacts: BTreeMap<FilePath, Held>,
}

/// One entry.
pub(super) struct Link {
    pub(super) commit: Oid,
    pub(super) tree: Oid,
    pub(super) parents: usize,
    pub(super) hash: Digest,
    pub(super) entry: Entry,
    /// The fingerprint of the key that made the signature, or what is wrong with it.
    pub(super) signer: Result<String, String>,
    /// The blob at the item's `state.json` after the entry, where the entry is about an item.
    pub(super) state: Held,
    /// The blob at the item's `manifest.json` after the entry, where the entry dispatched it.
    pub(super) manifest: Held,
    /// The blobs at the `item.json` of the items that the entry added.
    pub(super) definitions: BTreeMap<ItemId, Held>,
    /// Whether a mark vouches for its signature and for what it did to the tree: neither is looked at then.
    pub(super) vouched: bool,
    before: Option<Oid>,
}

/// The commit up to which a run was found continuable before, by entries of one key.
///
/// It names a commit, and so all that came before it, byte for byte. Whether that may be believed is for whoever kept it to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The commit of the last entry that was verified.
    pub commit: Oid,
    /// The fingerprint of the key that signed all entries.
    pub key: String,
}

/// A commit of the walk, newest first.
struct Step {
    commit: Oid,
    tree: Option<Oid>,
    read: Result<Box<Read>, String>,
    vouched: bool,
}

/// What is kept of a commit that carries an entry.
struct Read {
    tree: Oid,
    parents: usize,
    hash: Digest,
    entry: Entry,
    signer: Result<String, String>,
}

impl ReadChain {
    /// Reads the chain that ends at `tip`. Whatever the ref points at, this ends and says what it found.
    pub(super) fn read(from: &Store, tip: Oid) -> Self {
        Self::read_on(from, tip, None)
    }

    /// Reads like [`ReadChain::read`]; what a mark vouches for is decoded and put in order, and no more.
    pub(super) fn read_on(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let mut chain = Self::default();
        let mut steps = walk(from, tip, mark, &mut chain);
        steps.reverse();
        let mut before = None;
        for step in steps {
            let tree = step.tree;
            match step.read {
                Ok(read) => {
                    let link = Link::new(step.commit, *read, before);
                    chain.links.push(Link { vouched: step.vouched, ..link });
                }
                Err(why) => chain.findings.add(format!("commit {}: {why}", short(step.commit))),
            }
            before = tree;
        }
        if chain.cut {
            // Without the entry before, and without the layout in entry 0, nothing can be said of any tree.
            return chain;
        }
        let layout = Layout { fan_out: chain.submitted().is_some_and(|e| e.fan_out) };
        let room = Room::default();
        let changes = each(from, &chain.links, |objects, link| {
            if link.is_passed_over() {
                return Some(Changes::default());
            }
            room.left().then(|| room.take(link.changes(objects, layout)))
        });
        chain.fold(&Objects::new(from), layout, changes);
        chain
    }

    /// A chain of which nothing could be read.
    pub(super) fn unreadable(why: String) -> Self {
        let mut chain = Self::default();
        chain.findings.add(why);
        chain
    }

    /// Returns what entry 0 says, if it was read and is one.
    pub(super) fn submitted(&self) -> Option<&RunSubmitted> {
        match self.links.first().map(|link| &link.entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }

    /// Follows the tree through the entries, each with what it changed.
    fn fold(&mut self, objects: &Objects, layout: Layout, changes: Vec<Option<Changes>>) {
        let mut tree: HashMap<String, Held> = HashMap::new();
        let mut passed_over = false;
        for (link, changes) in self.links.iter_mut().zip(changes) {
            if link.is_passed_over() {
                passed_over = true;
                continue;
            }
            let seq = link.entry.seq;
            // What there was no room for is looked at now, one entry after the other.
            let changes = changes.unwrap_or_else(|| link.changes(objects, layout));
            for (_, fault) in &changes.faults {
                self.tree_findings.fault(&format!("entry {seq}"), fault);
            }
            self.tree_findings.more(changes.problems.count - changes.problems.shown.len());
            for problem in changes.problems.shown {
                self.tree_findings.add(format!("entry {seq} does not account for the change of {problem} in the tree"));
            }
            let accounted = Accounted::by(&link.entry, layout, objects);
            // Below a folder that cannot be read nobody knows what an entry set, until another sets it again.
            for (folder, fault) in &changes.faults {
                for path in accounted.set.keys().filter(|path| path.starts_with(folder.as_str())) {
                    tree.insert(path.clone(), Held::Unread(fault.clone()));
                }
            }
            for (path, blob) in changes.paths {
                match blob {
                    Some(blob) => tree.insert(path, Held::Blob(blob)),
                    None => tree.remove(&path),
                };
            }
            if passed_over && accounted.set.keys().any(|path| !tree.contains_key(path)) {
                // What it left as it was may have been set by an entry that was passed over.
                for (path, blob) in tree::changes(objects, None, link.tree, &accounted).paths {
                    tree.entry(path).or_insert(blob.map_or(Held::Nothing, Held::Blob));
                }
            }
            for (path, wanted) in accounted.set {
                let wrong = match tree.get(&path) {
                    None | Some(Held::Nothing) => true,
                    Some(Held::Blob(found)) => wanted.is_some_and(|wanted| wanted != *found),
                    Some(Held::Unread(_)) => false,
                };
                if wrong {
                    self.tree_findings
                        .add(format!("entry {seq}: the tree does not hold at {path} what the entry says"));
                }
            }
            let held = |path: String| tree.get(&path).cloned().unwrap_or_default();
            match &link.entry.event {
                Event::RunExtended(e) => {
                    let held = |item: &ItemId| (item.clone(), held(layout.definition(item)));
                    link.definitions = e.items.keys().map(held).collect();
                }
                Event::ItemFired(e) => link.manifest = held(layout.manifest(&e.item)),
                Event::RunSubmitted(e) => {
                    self.plan = held(format::PLAN.to_owned());
                    self.rules = held(format::RULES.to_owned());
                    let held = |path: &FilePath| (path.clone(), held(format::artifact_path(path)));
                    self.artifacts = e.artifacts.keys().map(held).collect();
                }
                _ => {}
            }
            link.state = link.entry.event.item().map(|(item, _)| held(layout.state(item))).unwrap_or_default();
        }
    }

    /// Adds what is wrong with the order of the entries, whoever they are about.
    pub(super) fn check_order(&self, findings: &mut Findings) {
        let mut last: Option<End> = None;
        for link in &self.links {
            // What the first of a chain that is cut off goes on from is not here.
            if !self.cut || last.is_some() {
                let parents = order::parents(&link.entry, last, link.parents);
                order::faults(&link.entry, last, parents).for_each(|fault| findings.add(fault));
            }
            last = Some(End::of(&link.entry, link.hash));
        }
    }
}

impl Link {
    /// Returns what the entry changed in the tree.
    fn changes(&self, objects: &Objects, layout: Layout) -> Changes {
        tree::changes(objects, self.before, self.tree, &Accounted::by(&self.entry, layout, objects))
    }

    fn new(commit: Oid, read: Read, before: Option<Oid>) -> Self {
        let Read { tree, parents, hash, entry, signer } = read;
        Self {
            commit,
            tree,
            parents,
            hash,
            entry,
            signer,
            state: Held::Nothing,
            manifest: Held::Nothing,
            definitions: BTreeMap::new(),
            vouched: false,
            before,
        }
    }

    /// Whether nothing of the tree after it is needed: what it says is vouched for, and no later entry rests on its blobs.
    fn is_passed_over(&self) -> bool {
        self.vouched && !matches!(self.entry.event, Event::RunSubmitted(_) | Event::RunExtended(_))
    }
}

impl Read {
    fn new(decoded: Decoded, vouched: Option<&Mark>) -> Self {
        let signer = vouched.map_or_else(|| signer(&decoded), |mark| Ok(mark.key.clone()));
        let Decoded { tree, parents, hash, entry, .. } = decoded;
        Self { tree, parents: parents.len(), hash, entry, signer }
    }
}

/// Reads the commits from `tip` to the first, along first parents, whatever git believes about them.
fn walk(from: &Store, tip: Oid, mark: Option<&Mark>, chain: &mut ReadChain) -> Vec<Step> {
    let findings = &mut chain.findings;
    let objects = Objects::new(from);
    let mut steps = Vec::new();
    let (mut strangers, mut meter) = (0, Meter::default());
    let mut next = Some(tip);
    let mut vouched = None;
    while next.is_some() && strangers <= MOST_STRANGERS {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(commit) = next
            && batch.len() < BATCH
            && bytes < BATCH_BYTES
        {
            match objects.commit(commit, &mut meter) {
                Ok(raw) => {
                    let (tree, parent) = links(&raw);
                    next = parent;
                    bytes += raw.len();
                    vouched = vouched.or(mark.filter(|mark| mark.commit == commit));
                    batch.push((commit, tree, raw, vouched));
                }
                Err(Fault::Kind(oid, kind, _)) => {
                    findings.add(format!("object {} is a {kind}, not an entry", short(oid)));
                    next = None;
                }
                Err(fault) => {
                    findings.fault("the chain", &fault);
                    chain.cut = true;
                    next = None;
                }
            }
        }
        let read = each(from, &batch, |objects, (commit, tree, raw, vouched)| {
            objects.take_turn(raw.len());
            let read = codec::decode(raw).map(|decoded| Box::new(Read::new(decoded, *vouched)));
            let read = read.map_err(|error| cut(error.to_string()));
            Step { commit: *commit, tree: *tree, read, vouched: vouched.is_some() }
        });
        strangers += read.iter().filter(|step| step.read.is_err()).count();
        steps.extend(read);
    }
    if next.is_some() {
        findings.add(format!("{strangers} commits are no entries; the history before them was not read"));
    }
    steps
}

/// Finds tree and first parent in a commit that need not be an entry.
pub(super) fn links(raw: &[u8]) -> (Option<Oid>, Option<Oid>) {
    let mut lines = raw.split(|b| *b == b'\n').map(|line| std::str::from_utf8(line).unwrap_or_default());
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.parse().ok();
    (field("tree "), field("parent "))
}

/// Returns the fingerprint of the key that signed an entry, or what is wrong with the signature.
pub(super) fn signer(decoded: &Decoded) -> Result<String, String> {
    let armour = decoded.signature.as_deref().ok_or("it is not signed")?;
    let key = sign::check(&decoded.payload, armour).map_err(|e| e.to_string())?;
    Ok(sign::fingerprint(&key))
}

/// Returns an object name as people write it.
pub(super) fn short(oid: Oid) -> String {
    oid.0.to_hex_with_len(7).to_string()
}
