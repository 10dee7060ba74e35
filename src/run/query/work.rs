//! The work of a run: the verdict of each check, the changes, the goal and the agents.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::model::claims::Reported;
use crate::model::entry::{CheckRun, Exit, ItemReconciled, VerifiedBy};
use crate::model::graph::Graph;
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{AGENT, DIRECTORY, ProductKey, Source};
use crate::model::quote::{quoted, quoted_words};
use crate::model::state::Phase;
use crate::repository::config::Preset;

use super::changes::{self, FileChange};
use super::test_output::TestFailure;
use super::view::View;
use super::{piece, show};

/// The largest patch whose lines are counted, in bytes.
const LARGEST_PATCH: u64 = 32 << 20;

/// The most lines that are shown of the end of an output.
const TAIL: usize = 5;

/// The work of a run.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The items that ended or can still end, in their listed order, without superseded ones.
    pub items: Vec<ItemWork>,
    /// The files that the patches change, sorted by path.
    pub files: Vec<FileChange>,
    /// False if the lines of a patch are not counted, because it is large or missing.
    pub is_counted: bool,
    /// The number of files and documents besides patches.
    pub outputs: usize,
    /// The goal that all items have.
    pub goal: Option<String>,
    /// The agents, each with what it says about itself.
    pub agents: Vec<(String, Option<Reported>)>,
    /// The sentences about checks without protected files and in worktrees of workers.
    pub check_remarks: Vec<String>,
}

/// The work of one item.
#[derive(Clone, Debug)]
pub struct ItemWork {
    /// The item.
    pub id: ItemId,
    /// How it stands.
    pub verdict: Verdict,
    /// The output that explains a failure.
    pub explained: Option<Explained>,
}

/// How the work of an item stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its check passed.
    Passed(Checked),
    /// Its check failed.
    CheckFailed(Checked),
    /// It is red for another reason, such as changes to protected files.
    Red(String),
    /// It is done, and nothing checked it.
    Unchecked,
    /// It takes a commit that was made before.
    Claimed,
    /// It failed.
    Failed {
        /// The recorded reason.
        reason: String,
        /// The exit of its command, if that ended.
        exit: Option<Exit>,
    },
    /// It has not ended, or was skipped or cancelled.
    Undone,
}

/// A check of an item's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its command line, if the check was one command of this run: reused products were checked in
    /// another run, and blocks of a pipeline have several.
    pub line: Option<String>,
    /// Whether it is only the item's own word.
    pub is_own_word: bool,
    /// Its duration in milliseconds, if it was run.
    pub took: Option<u64>,
    /// Its exit, if it was run.
    pub exit: Option<Exit>,
}

/// The part of an output that explains a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explained {
    /// The failure that a known test runner reports.
    Tests(TestFailure),
    /// The last lines, because no known test runner reports a failure.
    Tail(Vec<String>),
}

impl Work {
    /// Gathers the work of a run. Bytes that are not here are left out.
    pub fn read(store: &Store, view: &View) -> Self {
        let mut work = Self { is_counted: true, goal: view.goal().map(str::to_owned), ..Self::default() };
        let mut patches = BTreeMap::new();
        for at in view.state.listed().into_iter().filter(|at| !view.state.is_superseded(*at)) {
            let item = ItemWork::read(store, view, at);
            patches.extend(work.read_products(store, view, at).map(|changes| (at, changes)));
            if let Some(agent) = agent(store, view, at) {
                let claims = end_of(view, &item.id).and_then(|end| Reported::new(end.claims.as_deref(), end.usage));
                work.agents.push((agent, claims));
            }
            work.items.push(item);
        }
        work.files = together(view, &patches);
        work.check_remarks = view.check_remarks(store, None);
        work
    }

    /// Returns true if items are done, and none of them handed anything over.
    pub fn changed_nothing(&self) -> bool {
        self.files.is_empty() && self.is_counted && self.outputs == 0
    }

    /// Counts the products of an item, and returns the changes of its patch.
    fn read_products(&mut self, store: &Store, view: &View, at: ItemIndex) -> Option<Vec<FileChange>> {
        let products = &view.state.items[at].products;
        self.outputs += products.keys().filter(|key| !matches!(key, ProductKey::Patch)).count();
        let product = products.get(&ProductKey::Patch)?;
        let patch = Some(product.oid).filter(|oid| product.size <= LARGEST_PATCH && store.contains(*oid));
        let patch = patch.and_then(|oid| store.read_blob_of(oid, LARGEST_PATCH).ok());
        self.is_counted &= patch.is_some();
        patch.map(|patch| changes::read(&patch))
    }
}

/// Adds up the changes of several patches by file. The patch of an item may contain one that it
/// consumes, so only its own lines count for a file that both change.
fn together(view: &View, patches: &BTreeMap<ItemIndex, Vec<FileChange>>) -> Vec<FileChange> {
    let graph = &view.state.graph;
    let mut files: BTreeMap<String, FileChange> = BTreeMap::new();
    for (from, changes) in patches {
        let consumers: Vec<_> = patches.iter().filter(|(at, _)| consumes_patch(graph, **at, *from)).collect();
        for change in changes {
            if consumers.iter().any(|(_, later)| later.iter().any(|other| other.path == change.path)) {
                continue;
            }
            let sum = files
                .entry(change.path.clone())
                .or_insert_with(|| FileChange { path: change.path.clone(), ..FileChange::default() });
            sum.added += change.added;
            sum.removed += change.removed;
        }
    }
    files.into_values().collect()
}

/// Returns true if an item needs the patch of another one.
fn consumes_patch(graph: &Graph, at: ItemIndex, from: ItemIndex) -> bool {
    graph.item(at).needs.values().any(|need| {
        let is_patch = need.select.product_key() == ProductKey::Patch;
        is_patch && matches!(&need.from, Source::Item(id) if *id == graph.item(from).id)
    })
}

impl View {
    /// Returns the goal that all items have, or `None` if they have several or none.
    pub fn goal(&self) -> Option<&str> {
        let mut goals = self.state.graph.items().iter().map(|item| item.goal());
        let first = goals.next()??;
        goals.all(|goal| goal == Some(first)).then_some(first)
    }
}

impl ItemWork {
    fn read(store: &Store, view: &View, at: ItemIndex) -> Self {
        let (id, state) = (view.state.graph.item(at).id.clone(), &view.state.items[at]);
        let end = end_of(view, &id);
        let checked = end.and_then(|end| Some((end.verify?, checked(view, at, end))));
        let verdict = match (state.phase, end, checked) {
            (Phase::Failed, end, _) => Verdict::Failed {
                reason: state.reason.clone().unwrap_or_else(|| "no reason".to_owned()),
                exit: end.and_then(|end| end.exit),
            },
            (Phase::Done, _, Some((verify, checked))) if !verify.passed => Verdict::CheckFailed(checked),
            (Phase::Done, ..) if state.red => Verdict::Red(state.reason.clone().unwrap_or_default()),
            (Phase::Done, _, Some((_, checked))) => Verdict::Passed(checked),
            (Phase::Done, ..) if view.state.graph.item(at).is_claimed() => Verdict::Claimed,
            (Phase::Done, ..) => Verdict::Unchecked,
            _ => Verdict::Undone,
        };
        let explained = match &verdict {
            Verdict::CheckFailed(_) => piece::check_text(store, view, &id).ok().flatten(),
            Verdict::Failed { .. } => piece::transcript_text(store, view, &id).ok().flatten(),
            _ => None,
        };
        Self { explained: explained.and_then(|output| Explained::read(&output)), verdict, id }
    }
}

impl Explained {
    /// Returns the failure that a test runner reports, else the last lines, or `None` for an empty
    /// output.
    fn read(output: &str) -> Option<Self> {
        if let Some(failure) = TestFailure::read(output) {
            return Some(Self::Tests(failure));
        }
        let (lines, _) = piece::last_lines(output, TAIL);
        (!lines.is_empty()).then_some(Self::Tail(lines))
    }
}

/// Returns the entry that ends an item, if it ended by its own work.
fn end_of<'v>(view: &'v View, item: &ItemId) -> Option<&'v ItemReconciled> {
    view.links.iter().rev().find_map(|link| link.entry.event.end_of(item))
}

/// Returns the check of an item that ended.
fn checked(view: &View, at: ItemIndex, end: &ItemReconciled) -> Checked {
    let is_own_word = end.verify.is_some_and(|verify| verify.by == VerifiedBy::Itself);
    let run = end.check.as_ref().filter(|_| !is_own_word);
    let line = run.map(|run| check_line(view, at, run));
    Checked { line, is_own_word, took: run.map(|run| run.duration_ms), exit: run.and_then(|run| run.exit) }
}

/// Returns the command line of a check as its user wrote it.
fn check_line(view: &View, at: ItemIndex, run: &CheckRun) -> String {
    let [shell, flag, line] = run.argv.as_slice() else { return quoted_words(&run.argv) };
    if shell != "sh" || flag != "-c" {
        return quoted_words(&run.argv);
    }
    // A recorded check in a folder begins with a change of the folder.
    let folder = view.state.graph.item(at).inputs.get(DIRECTORY).and_then(serde_json::Value::as_str);
    let folder = folder.and_then(|folder| FilePath::parse(folder).ok());
    let own = folder.and_then(|folder| line.strip_prefix(&format!("cd {} || exit\n", quoted(folder.as_str()))));
    own.unwrap_or(line).to_owned()
}

/// Returns the name of the agent that did an item: its subagent, or that of the known agent that
/// its command starts.
fn agent(store: &Store, view: &View, at: ItemIndex) -> Option<String> {
    let item = view.state.graph.item(at);
    if let Some(agent) = item.inputs.get(AGENT).and_then(serde_json::Value::as_str).map(str::to_owned) {
        return Some(agent);
    }
    let manifest = show::manifest(store, view.state.items[at].manifest.as_ref()?).ok().flatten()?;
    manifest.subagent.or_else(|| {
        let program = manifest.argv.first()?;
        Preset::of_program(program).map(|(name, _)| name.to_owned())
    })
}
