//! A run's chain: its entries, and the changes that each made to the tree.

use std::collections::{BTreeMap, HashMap};

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, RunSubmitted};
use crate::model::format::{self, Layout};
use crate::model::name::{FilePath, ItemId};
use crate::model::role::{Keys, Role};

use super::codes::Code;
use super::entry_order::{self, Parents};
use super::findings::{At, Findings};
use super::objects::{Fault, Objects, map_objects};
use super::reader::{Extent, Link, Stop, Walk, short};
use super::tree::{self, AllowedChanges, ChangeBudget, Changes, Slot};

/// The number of commits that are not entries, above which the walk stops.
const MAX_NON_ENTRIES: usize = 100;

#[derive(Default)]
pub(super) struct RunChain {
    /// The entries, oldest first. Commits that are not entries are findings.
    pub(super) links: Vec<Link>,
    after: Vec<TreeAfter>,
    pub(super) findings: Findings,
    /// True if a missing or damaged object ended the walk before the first entry.
    pub(super) cut: bool,
    pub(super) tree_findings: Findings,
    pub(super) sealed: SealedBlobs,
}

/// The blobs that entry 0 seals. Pipelines may also come with added items.
#[derive(Default)]
pub(super) struct SealedBlobs {
    pub(super) plan: Slot,
    pub(super) rules: Slot,
    /// Each pipeline, with the number of the first entry that names it.
    pub(super) pipelines: BTreeMap<Digest, (u64, Slot)>,
    pub(super) continues: Slot,
    /// The evidence of imports, by the names in entry 0.
    pub(super) imports: BTreeMap<String, Slot>,
    pub(super) artifacts: BTreeMap<FilePath, Slot>,
}

impl SealedBlobs {
    fn read(e: &RunSubmitted, tree: &HashMap<String, Slot>) -> Self {
        let held = |path: String| held(tree, &path);
        let evidence = |name: &String| (name.clone(), held(format::import_paths(name)[1].clone()));
        let artifact = |path: &FilePath| (path.clone(), held(format::artifact_path(path)));
        let mut pipelines = BTreeMap::new();
        hold_pipelines(&mut pipelines, 0, &e.pipelines, tree);
        Self {
            plan: held(format::PLAN.to_owned()),
            rules: held(format::RULES.to_owned()),
            continues: held(format::CONTINUES.to_owned()),
            imports: e.imports.keys().map(evidence).collect(),
            artifacts: e.artifacts.keys().map(artifact).collect(),
            pipelines,
        }
    }
}

fn held(tree: &HashMap<String, Slot>, path: &str) -> Slot {
    tree.get(path).cloned().unwrap_or_default()
}

/// The blobs in the tree after an entry, as far as the entry is about them. Empty if the chain is
/// cut.
#[derive(Default)]
pub(super) struct TreeAfter {
    pub(super) manifest: Slot,
    /// `reused.json` of an item that reuses products.
    pub(super) reused: Slot,
    /// `item.json` of each added item.
    pub(super) definitions: BTreeMap<ItemId, Slot>,
}

impl TreeAfter {
    fn read(event: &Event, tree: &HashMap<String, Slot>, layout: Layout) -> Self {
        let held = |path: String| held(tree, &path);
        let mut after = Self::default();
        match event {
            Event::RunExtended(e) => {
                let definition = |item: &ItemId| (item.clone(), held(layout.definition(item)));
                after.definitions = e.items.keys().map(definition).collect();
            }
            Event::ItemFired(e) => after.manifest = held(layout.manifest(&e.item)),
            Event::ItemReconciled(e) if e.reused.is_some() => after.reused = held(layout.reused(&e.item)),
            _ => {}
        }
        after
    }
}

/// The commit up to which a run was verified before, with entries of one key.
///
/// The commit id covers everything before it. The caller must have stored the
/// mark where no other program writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The commit of the last verified entry.
    pub commit: Oid,
    /// The fingerprint of the key that signed all entries.
    pub key: String,
}

impl RunChain {
    /// Reads the chain that ends at `tip`. Never fails: faults become findings.
    pub(super) fn read(from: &Store, tip: Oid) -> Self {
        Self::read_on(from, tip, None)
    }

    /// Reads like [`RunChain::read`], but only decodes and orders the entries up to the mark.
    pub(super) fn read_on(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let mut chain = Self::walked(from, tip, mark);
        chain.after.resize_with(chain.links.len(), TreeAfter::default);
        if chain.cut {
            // The first entry states the layout of the tree, and each tree is compared with the
            // previous one.
            return chain;
        }
        let layout = Layout { fan_out: chain.submitted().is_some_and(|e| e.fan_out) };
        let budget = ChangeBudget::default();
        let changed = map_objects(from, &chain.links, |objects, link| {
            if is_passed_over(link) {
                return Some(Changes::default());
            }
            budget.is_left().then(|| budget.count(changes(link, objects, layout)))
        });
        chain.fold(&Objects::new(from), layout, changed, false);
        chain
    }

    /// Returns a chain of one entry, whose predecessors were checked before.
    pub(super) fn of_next(from: &Store, link: Link, layout: Layout) -> Self {
        let mut chain = Self { links: vec![link], after: vec![TreeAfter::default()], ..Self::default() };
        chain.fold(&Objects::new(from), layout, vec![None], true);
        chain
    }

    fn walked(from: &Store, tip: Oid, mark: Option<&Mark>) -> Self {
        let back = Extent::ToRoot { max_non_entries: MAX_NON_ENTRIES, max_commits: usize::MAX };
        let walked = Walk { verified_before: mark.map(|mark| mark.commit), ..Walk::new(back) }.read(from, tip);
        let mut chain = Self::default();
        match walked.stop {
            // A ref to another object is no chain. Behind an entry, the chain is cut.
            Some(Stop::Fault(Fault::Kind(oid, kind, _))) if oid == tip => {
                chain.findings.report(Code::Ref, format!("object {} is a {kind}, not an entry", short(oid)));
            }
            Some(Stop::Fault(fault)) => {
                chain.findings.report_fault(Code::Object, "the chain", &fault);
                chain.cut = true;
            }
            Some(stop) => {
                chain.findings.report(Code::Entry, stop.to_string());
                chain.cut = true;
            }
            None => {}
        }
        chain.links.reserve_exact(walked.commits.len());
        for commit in walked.commits {
            match commit {
                Ok(link) => chain.links.push(*link),
                Err(why) => chain.findings.report(Code::Entry, why),
            }
        }
        chain
    }

    pub(super) fn unreadable(why: String) -> Self {
        let mut chain = Self::default();
        chain.findings.report(Code::Ref, why);
        chain
    }

    pub(super) fn with_trees(&self) -> impl Iterator<Item = (&Link, &TreeAfter)> {
        self.links.iter().zip(&self.after)
    }

    /// Returns the event of entry 0, if it is readable and valid.
    pub(super) fn submitted(&self) -> Option<&RunSubmitted> {
        match self.links.first().map(|link| &link.entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }

    /// Returns the keys that may seal the run: those in entry 0 and those that an owner admitted.
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

    /// Applies the changes of each entry to the tree, and checks the result. `passed_over` is true
    /// if there are entries before the first.
    fn fold(&mut self, objects: &Objects, layout: Layout, changed: Vec<Option<Changes>>, mut passed_over: bool) {
        let mut tree: HashMap<String, Slot> = HashMap::new();
        for (at, ((link, after), changed)) in self.links.iter().zip(&mut self.after).zip(changed).enumerate() {
            if is_passed_over(link) {
                passed_over = true;
                continue;
            }
            // Changes beyond the memory budget are computed now, one entry at a time.
            let changes = changed.unwrap_or_else(|| changes(link, objects, layout));
            let allowed = AllowedChanges::by(&link.entry, layout, objects);
            report_changes(&mut self.tree_findings, link.entry.seq, &changes);
            apply_changes(&mut tree, changes, &allowed);
            if passed_over && allowed.set.keys().any(|path| !tree.contains_key(path)) {
                // Skipped entries may have set paths that this entry left unchanged.
                for (path, blob) in tree::changes(objects, None, link.tree, &allowed).paths {
                    tree.entry(path).or_insert(blob.map_or(Slot::Nothing, Slot::Blob));
                }
            }
            for (path, wanted) in allowed.set {
                let wrong = match tree.get(&path) {
                    None | Some(Slot::Nothing) => true,
                    Some(Slot::Blob(found)) => wanted.is_some_and(|wanted| wanted != *found),
                    Some(Slot::Unread(_)) => false,
                };
                if wrong {
                    let seq = link.entry.seq;
                    let why = format!("entry {seq}: the tree does not hold at {path} what the entry says");
                    self.tree_findings.report_at(At::entry(seq).path(&path), Code::Tree, why);
                }
            }
            match &link.entry.event {
                // A second one is misplaced, and changes nothing.
                Event::RunSubmitted(e) if at == 0 => self.sealed = SealedBlobs::read(e, &tree),
                Event::RunExtended(e) => {
                    hold_pipelines(&mut self.sealed.pipelines, link.entry.seq, &e.pipelines, &tree);
                }
                _ => {}
            }
            *after = TreeAfter::read(&link.entry.event, &tree, layout);
        }
    }

    pub(super) fn check_order(&self, findings: &mut Findings) {
        let mut before = None;
        for link in &self.links {
            // The predecessor of the first entry in a cut chain is unknown.
            if !self.cut || before.is_some() {
                entry_order::faults(link, before, Parents::Counted)
                    .for_each(|fault| findings.report_at(At::entry(link.entry.seq), Code::Order, fault));
            }
            before = Some(link);
        }
    }
}

fn hold_pipelines(
    all: &mut BTreeMap<Digest, (u64, Slot)>,
    seq: u64,
    brought: &BTreeMap<String, Digest>,
    tree: &HashMap<String, Slot>,
) {
    for digest in brought.values() {
        all.entry(*digest).or_insert_with(|| (seq, held(tree, &format::pipeline_path(*digest))));
    }
}

fn report_changes(findings: &mut Findings, seq: u64, changes: &Changes) {
    for (_, fault) in &changes.faults {
        findings.report_fault_at(At::entry(seq), Code::Object, &format!("entry {seq}"), fault);
    }
    findings.count_unlisted(changes.problems.count - changes.problems.shown.len());
    for problem in &changes.problems.shown {
        let why = format!("entry {seq} does not account for the change of {problem} in the tree");
        findings.report_at(At::entry(seq), Code::Tree, why);
    }
}

fn apply_changes(tree: &mut HashMap<String, Slot>, changes: Changes, allowed: &AllowedChanges) {
    // The paths below an unreadable folder are unknown until another entry sets them.
    for (folder, fault) in &changes.faults {
        for path in allowed.set.keys().filter(|path| path.starts_with(folder.as_str())) {
            tree.insert(path.clone(), Slot::Unread(fault.clone()));
        }
    }
    for (path, blob) in changes.paths {
        match blob {
            Some(blob) => tree.insert(path, Slot::Blob(blob)),
            None => tree.remove(&path),
        };
    }
}

fn changes(link: &Link, objects: &Objects, layout: Layout) -> Changes {
    tree::changes(objects, link.before, link.tree, &AllowedChanges::by(&link.entry, layout, objects))
}

/// Returns true if the tree after the entry is not needed: the entry was verified before, and no
/// later row reads its blobs.
fn is_passed_over(link: &Link) -> bool {
    link.verified_before && !matches!(link.entry.event, Event::RunSubmitted(_) | Event::RunExtended(_))
}
