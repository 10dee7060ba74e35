//! A run's chain: its entries, and what each did to the tree.

use std::collections::{BTreeMap, HashMap};

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, RunSubmitted};
use crate::model::format::{self, Layout};
use crate::model::name::{FilePath, ItemId};
use crate::model::role::{Keys, Role};

use super::codes::Code;
use super::findings::Findings;
use super::objects::{Fault, Objects, each};
use super::order::{self, Parents};
use super::reader::{Back, Link, Stop, Walk, short};
use super::tree::{self, Accounted, Changes, Room, Slot};

/// A history with more commits than this that are no entries is not read further.
const MOST_STRANGERS: usize = 100;

/// A run's chain as far as it could be read.
#[derive(Default)]
pub(super) struct RunChain {
    /// The entries, oldest first; commits that are none are left out and found fault with.
    pub(super) links: Vec<Link>,
    /// What the tree holds after each of the entries.
    after: Vec<After>,
    /// What is wrong with the commits.
    pub(super) findings: Findings,
    /// Whether the walk ended before a first entry, for want of an object or because one is damaged.
    pub(super) cut: bool,
    /// What is wrong with the trees.
    pub(super) tree_findings: Findings,
    /// The blob at `plan.json` after entry 0.
    pub(super) plan: Slot,
    /// The blob at `rules.json` after entry 0.
    pub(super) rules: Slot,
    /// The blobs of the pipelines that were sealed at submit or came with items, by what they are to hash to.
    pub(super) pipelines: BTreeMap<Digest, Slot>,
    /// What shows the run that this one continues.
    pub(super) continues: Slot,
    /// The blobs of the evidence of what was sealed from elsewhere, by the names that entry 0 gives it.
    pub(super) imports: BTreeMap<String, Slot>,
    /// The blobs sealed at submit.
    pub(super) artifacts: BTreeMap<FilePath, Slot>,
}

/// What the tree holds after an entry of that which the entry is about; nothing where the chain is cut.
#[derive(Default)]
pub(super) struct After {
    /// The blob at the item's `state.json`, where the entry is about an item.
    pub(super) state: Slot,
    /// The blob at the item's `manifest.json`, where the entry dispatched it.
    pub(super) manifest: Slot,
    /// The blob at the item's `reused.json`, where the entry takes its products from another run.
    pub(super) reused: Slot,
    /// The blobs at the `item.json` of the items that the entry added.
    pub(super) definitions: BTreeMap<ItemId, Slot>,
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

impl RunChain {
    /// Reads the chain that ends at `tip`. Whatever the ref points at, this ends and says what it found.
    pub(super) fn read(from: &Store, tip: Oid) -> Self {
        Self::read_on(from, tip, None)
    }

    /// Reads like [`RunChain::read`]; what a mark vouches for is decoded and put in order, and no more.
    pub(super) fn read_on(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let mut chain = Self::walked(from, tip, mark);
        chain.after.resize_with(chain.links.len(), After::default);
        if chain.cut {
            // Without the entry before, and without the layout in entry 0, nothing can be said of any tree.
            return chain;
        }
        let layout = Layout { fan_out: chain.submitted().is_some_and(|e| e.fan_out) };
        let room = Room::default();
        let changed = each(from, &chain.links, |objects, link| {
            if is_passed_over(link) {
                return Some(Changes::default());
            }
            room.left().then(|| room.take(changes(link, objects, layout)))
        });
        chain.fold(&Objects::new(from), layout, changed);
        chain
    }

    /// Walks the commits, and says what is wrong with them.
    fn walked(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let back = Back::ToRoot { strangers: MOST_STRANGERS, commits: usize::MAX };
        let walked = Walk { vouched: mark.map(|mark| mark.commit), ..Walk::new(back) }.read(from, tip);
        let mut chain = Self::default();
        match walked.stop {
            // What the ref itself names is no chain at all; behind an entry, the chain is cut.
            Some(Stop::Fault(Fault::Kind(oid, kind, _))) if oid == tip => {
                chain.findings.report(Code::Ref, format!("object {} is a {kind}, not an entry", short(oid)));
            }
            Some(Stop::Fault(fault)) => {
                chain.findings.report_fault(Code::Object, "the chain", &fault);
                chain.cut = true;
            }
            Some(stop) => {
                chain.findings.report(Code::NotRead, stop.to_string());
                chain.cut = true;
            }
            None => {}
        }
        for commit in walked.commits {
            match commit {
                Ok(link) => chain.links.push(*link),
                Err(why) => chain.findings.report(Code::Entry, why),
            }
        }
        chain
    }

    /// A chain of which nothing could be read.
    pub(super) fn unreadable(why: String) -> Self {
        let mut chain = Self::default();
        chain.findings.report(Code::Ref, why);
        chain
    }

    /// Returns each entry with what the tree holds after it.
    pub(super) fn with_trees(&self) -> impl Iterator<Item = (&Link, &After)> {
        self.links.iter().zip(&self.after)
    }

    /// Returns what entry 0 says, if it was read and is one.
    pub(super) fn submitted(&self) -> Option<&RunSubmitted> {
        match self.links.first().map(|link| &link.entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }

    /// Returns the keys that may seal the run: those that entry 0 names for that, and those that one of its owners admitted.
    pub(super) fn sealers(&self) -> Vec<String> {
        let Some(submitted) = self.submitted() else { return Vec::new() };
        let (mut sealers, keys) = (submitted.sealers(), Keys::of(submitted));
        for link in &self.links {
            let Event::RunAdmitted(e) = &link.entry.event else { continue };
            let by_owner = link.signer.as_ref().is_ok_and(|key| keys.refuse(key, &link.entry.event).is_none());
            if e.role == Role::Seal && by_owner && !sealers.contains(&e.key) {
                sealers.push(e.key.clone());
            }
        }
        sealers
    }

    /// Follows the tree through the entries, each with what it changed.
    fn fold(&mut self, objects: &Objects, layout: Layout, changed: Vec<Option<Changes>>) {
        let mut tree: HashMap<String, Slot> = HashMap::new();
        let mut passed_over = false;
        for (at, ((link, after), changed)) in self.links.iter().zip(&mut self.after).zip(changed).enumerate() {
            if is_passed_over(link) {
                passed_over = true;
                continue;
            }
            let seq = link.entry.seq;
            // What there was no room for is looked at now, one entry after the other.
            let changes = changed.unwrap_or_else(|| changes(link, objects, layout));
            for (_, fault) in &changes.faults {
                self.tree_findings.report_fault(Code::Object, &format!("entry {seq}"), fault);
            }
            self.tree_findings.more(changes.problems.count - changes.problems.shown.len());
            for problem in changes.problems.shown {
                self.tree_findings.report(
                    Code::TreeChange,
                    format!("entry {seq} does not account for the change of {problem} in the tree"),
                );
            }
            let accounted = Accounted::by(&link.entry, layout, objects);
            // Below a folder that cannot be read nobody knows what an entry set, until another sets it again.
            for (folder, fault) in &changes.faults {
                for path in accounted.set.keys().filter(|path| path.starts_with(folder.as_str())) {
                    tree.insert(path.clone(), Slot::Unread(fault.clone()));
                }
            }
            for (path, blob) in changes.paths {
                match blob {
                    Some(blob) => tree.insert(path, Slot::Blob(blob)),
                    None => tree.remove(&path),
                };
            }
            if passed_over && accounted.set.keys().any(|path| !tree.contains_key(path)) {
                // What it left as it was may have been set by an entry that was passed over.
                for (path, blob) in tree::changes(objects, None, link.tree, &accounted).paths {
                    tree.entry(path).or_insert(blob.map_or(Slot::Nothing, Slot::Blob));
                }
            }
            for (path, wanted) in accounted.set {
                let wrong = match tree.get(&path) {
                    None | Some(Slot::Nothing) => true,
                    Some(Slot::Blob(found)) => wanted.is_some_and(|wanted| wanted != *found),
                    Some(Slot::Unread(_)) => false,
                };
                if wrong {
                    self.tree_findings.report(
                        Code::TreeHolds,
                        format!("entry {seq}: the tree does not hold at {path} what the entry says"),
                    );
                }
            }
            let held = |path: String| tree.get(&path).cloned().unwrap_or_default();
            match &link.entry.event {
                Event::RunExtended(e) => {
                    let held = |item: &ItemId| (item.clone(), held(layout.definition(item)));
                    after.definitions = e.items.keys().map(held).collect();
                    hold_pipelines(&mut self.pipelines, &e.pipelines, &tree);
                }
                Event::ItemFired(e) => after.manifest = held(layout.manifest(&e.item)),
                Event::ItemReconciled(e) if e.reused.is_some() => after.reused = held(layout.reused(&e.item)),
                // A second one is misplaced, and the run goes on with what entry 0 sealed.
                Event::RunSubmitted(e) if at == 0 => {
                    self.plan = held(format::PLAN.to_owned());
                    self.rules = held(format::RULES.to_owned());
                    self.continues = held(format::CONTINUES.to_owned());
                    let evidence = |name: &String| (name.clone(), held(format::import_paths(name)[1].clone()));
                    self.imports = e.imports.keys().map(evidence).collect();
                    let held = |path: &FilePath| (path.clone(), held(format::artifact_path(path)));
                    self.artifacts = e.artifacts.keys().map(held).collect();
                    hold_pipelines(&mut self.pipelines, &e.pipelines, &tree);
                }
                _ => {}
            }
            after.state = link.entry.event.item().map(|(item, _)| held(layout.state(item))).unwrap_or_default();
        }
    }

    /// Adds what is wrong with the order of the entries, whoever they are about.
    pub(super) fn check_order(&self, findings: &mut Findings) {
        let mut before = None;
        for link in &self.links {
            // What the first of a chain that is cut off goes on from is not here.
            if !self.cut || before.is_some() {
                order::faults(link, before, Parents::Counted).for_each(|(code, fault)| findings.report(code, fault));
            }
            before = Some(link);
        }
    }
}

/// Takes in what the tree holds at the places of pipelines that an entry brings.
fn hold_pipelines(all: &mut BTreeMap<Digest, Slot>, brought: &BTreeMap<String, Digest>, tree: &HashMap<String, Slot>) {
    for digest in brought.values() {
        let held = tree.get(&format::pipeline_path(*digest)).cloned().unwrap_or_default();
        all.entry(*digest).or_insert(held);
    }
}

/// Returns what an entry changed in the tree.
fn changes(link: &Link, objects: &Objects, layout: Layout) -> Changes {
    tree::changes(objects, link.before, link.tree, &Accounted::by(&link.entry, layout, objects))
}

/// Whether nothing of the tree after an entry is needed: what it says is vouched for, and no later entry rests on its blobs.
fn is_passed_over(link: &Link) -> bool {
    link.vouched && !matches!(link.entry.event, Event::RunSubmitted(_) | Event::RunExtended(_))
}
