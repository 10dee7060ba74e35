//! The state of a run as a fold over its entries, and the table of what may follow what.

mod again;
mod counted;
mod decided;
mod edges;
mod extend;
mod lines;
mod listed;
mod promises;
mod wanted;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::digest::Digest;
use super::document::{Author, DocumentWritten, Documents};
use super::entry::{Event, InputRef, ItemReconciled, Outcome, RunSubmitted};
pub use super::extension::RunConcluded;
use super::format;
use super::graph::Graph;
pub use super::illegal::Illegal;
pub use super::item_state::{ItemState, Phase};
use super::name::{FilePath, ItemId};
use super::pipeline::BlockKind;
use super::plan::{Item, ProductKey};
use super::role::Keys;
use super::rule::{Gate, Rule};
pub use edges::Edge;
pub use extend::{CANNOT, EARLY, Fitting};
use lines::Lines;

/// The state of a run.
#[derive(Clone, Debug)]
pub struct RunState {
    /// What entry 0 says.
    pub submitted: RunSubmitted,
    /// The items and their edges.
    pub graph: Graph,
    /// The items' states, by position.
    pub items: Vec<ItemState>,
    /// Why the run was closed, if it was.
    pub closed: Option<String>,
    /// Why the run was cancelled, if it was.
    pub cancelled: Option<String>,
    /// Whether the seal stands.
    pub sealed: bool,
    /// The rules that stopped before the run was done, each with the reason: as the seal says, or as who read the
    /// documents of an open run found. The fold itself reads no documents.
    pub stopped: BTreeMap<ItemId, String>,
    /// The documents, whoever wrote them.
    pub documents: Documents,
    /// The rules that may add items.
    pub rules: Vec<Rule>,
    /// The digests of the pipelines that were sealed with the run, as items name them.
    pub pipelines: BTreeMap<String, Digest>,
    /// The positions at which what one entry added begins.
    batches: Vec<usize>,
    /// What each rule created.
    created: BTreeMap<ItemId, Vec<ItemId>>,
    /// How often each rule created something.
    rounds: BTreeMap<ItemId, u64>,
    /// What rules had the run say, in the order in which they did.
    concluded: Vec<RunConcluded>,
    /// The items that others stand for now, and which ones.
    successors: BTreeMap<ItemId, ItemId>,
    lines: Lines,
    /// The keys that may append, with their roles.
    pub keys: Keys,
    /// The statements of others that were taken in, by their digests.
    said: BTreeSet<Digest>,
    /// The gates, by their items.
    gates: BTreeMap<ItemId, Gate>,
    /// How many entries there are, so that a revision knows which one it came by.
    entries: u64,
    /// How many of them are no dispatches.
    changes: u64,
    holders: HashMap<String, usize>,
    open: usize,
}

impl RunState {
    /// Starts from entry 0 and the plan it seals.
    pub fn new(submitted: RunSubmitted, graph: Graph) -> Self {
        let count = graph.items().len();
        let mut documents = Documents::default();
        for declared in graph.items().iter().flat_map(Item::documents) {
            documents.take(&declared.name);
        }
        Self {
            keys: Keys::of(&submitted),
            said: BTreeSet::new(),
            pipelines: submitted.pipelines.clone(),
            submitted,
            items: vec![ItemState::new(); count],
            graph,
            closed: None,
            cancelled: None,
            sealed: false,
            stopped: BTreeMap::new(),
            documents,
            rules: Vec::new(),
            batches: Vec::new(),
            created: BTreeMap::new(),
            rounds: BTreeMap::new(),
            concluded: Vec::new(),
            successors: BTreeMap::new(),
            lines: Lines::default(),
            gates: BTreeMap::new(),
            entries: 1,
            changes: 0,
            holders: HashMap::new(),
            open: count,
        }
    }

    /// Returns how the run's tree is laid out.
    pub fn layout(&self) -> format::Layout {
        format::Layout { fan_out: self.submitted.fan_out }
    }

    /// Returns how many entries there are that are no dispatches: as long as that is the same, nothing became of any item.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns whether every item has a terminal status.
    pub fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// Returns whether every item that counts is done.
    pub fn is_done(&self) -> bool {
        let counts = |at: &usize| self.items[*at].phase != Phase::Done && !self.is_superseded(*at);
        self.open == 0 && !(0..self.items.len()).any(|at| counts(&at))
    }

    /// Returns whether the run was closed or cancelled.
    pub fn is_ended(&self) -> bool {
        self.closed.is_some() || self.cancelled.is_some()
    }

    /// Returns whether the run needs nobody to close it: everything is done, and nobody may add to it.
    ///
    /// Where there are rules, none of them may create anything either; that is not for the fold to say.
    pub fn seals_itself(&self) -> bool {
        self.is_done() && !self.submitted.open_ended
    }

    /// Returns the status word of an item, `pending` and `ready` included.
    pub fn status(&self, at: usize) -> &'static str {
        let blocked = || self.blocked_by(at).next().is_some();
        match self.items[at].phase.stored() {
            Some(status) => status,
            None if blocked() => "pending",
            None => "ready",
        }
    }

    /// Returns the dependencies of an item that it waits for, or was lost with.
    pub fn blocked_by(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.graph.dependencies(at).iter().copied().filter(move |on| self.edge(at, *on) != Edge::Met)
    }

    /// Applies the event after entry 0, or says why it may not follow what came before; for `run.extended` see
    /// [`RunState::extend`].
    ///
    /// On an error the state is as it was.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        if self.sealed {
            return Err(Illegal::AfterSeal);
        }
        self.follow(event)?;
        match event {
            Event::RunSealed(e) => self.stopped.clone_from(&e.stopped),
            _ => self.stopped.clear(),
        }
        self.entries += 1;
        self.changes += u64::from(!matches!(event, Event::ItemFired(_)));
        Ok(())
    }

    fn follow(&mut self, event: &Event) -> Result<(), Illegal> {
        match event {
            Event::ItemFired(e) => self.fire(&e.item, e.attempt, &e.input_refs),
            Event::ItemReconciled(e) => self.reconcile(e),
            Event::ItemRetried(e) => self.retry(e),
            Event::ItemRequeued(e) => self.requeue(e),
            Event::ItemDecided(e) => self.decide(e),
            Event::RunAdmitted(e) => self.admit(e),
            Event::ItemSkipped(e) => {
                let at = self.find(&e.item)?;
                self.expect_phase(at, &[Phase::Waiting], e.attempt)?;
                if !self.graph.dependencies(at).iter().any(|on| self.edge(at, *on) == Edge::Lost) {
                    return Err(Illegal::SkippedForNothing(e.item.clone()));
                }
                self.settle(at, Phase::Skipped, Some(e.reason.clone()));
                Ok(())
            }
            Event::ItemCancelled(e) => {
                let at = self.find(&e.item)?;
                self.expect_phase(at, &[Phase::Waiting, Phase::Running], e.attempt)?;
                self.settle(at, Phase::Cancelled, Some(e.reason.clone()));
                Ok(())
            }
            Event::RunClosed(e) => self.end(|state| &mut state.closed, &e.reason),
            Event::RunCancelled(e) => self.end(|state| &mut state.cancelled, &e.reason),
            Event::RunSealed(e) => {
                if !self.is_settled() || !(self.is_ended() || self.seals_itself()) {
                    return Err(Illegal::SealedUnsettled);
                }
                if let Some(rule) = e.stopped.keys().find(|rule| self.rule(rule).is_none() || self.has_said()) {
                    return Err(Illegal::WrongStop(rule.clone()));
                }
                self.sealed = true;
                Ok(())
            }
            Event::DocumentWritten(e) => self.write_document(e),
            Event::RunConcluded(e) => self.conclude(e),
            Event::RunExtended(_) => Err(Illegal::OtherItems),
            _ => Err(Illegal::Misplaced(event.kind())),
        }
    }

    fn fire(&mut self, item: &ItemId, attempt: u32, inputs: &BTreeMap<FilePath, InputRef>) -> Result<(), Illegal> {
        let at = self.find(item)?;
        if self.cancelled.is_some() || self.closed.is_some() {
            return Err(Illegal::AfterEnd(item.clone()));
        }
        if self.graph.item(at).is_for_people() {
            return Err(Illegal::ForPeople(item.clone()));
        }
        if self.items[at].phase != Phase::Waiting {
            return Err(Illegal::NotWaiting(item.clone()));
        }
        if attempt != self.items[at].attempts + 1 {
            return Err(Illegal::WrongAttempt(item.clone(), attempt));
        }
        self.expect_attempt_left(at)?;
        if let Some(on) = self.blocked_by(at).next() {
            return Err(Illegal::BeforeDependency(item.clone(), self.graph.item(on).id.clone()));
        }
        let locks = self.graph.item(at).resource_locks.clone();
        if let Some(key) = locks.iter().find(|key| self.holders.contains_key(*key)) {
            return Err(Illegal::LockHeld(item.clone(), key.clone()));
        }
        self.holders.extend(locks.into_iter().map(|key| (key, at)));
        let state = &mut self.items[at];
        state.phase = Phase::Running;
        state.attempts = attempt;
        state.not_before = None;
        state.reason = None;
        state.inputs.clone_from(inputs);
        state.touched = true;
        Ok(())
    }

    fn reconcile(&mut self, e: &ItemReconciled) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        self.expect_attempt(at, e.attempt, e.attempt == 0)?;
        let done = e.status == Outcome::Done;
        if !done && !e.products.is_empty() {
            return Err(Illegal::ProductsOfFailed(e.item.clone()));
        }
        if e.reused.is_some() && (!done || e.exit.is_some() || e.transcript.is_some()) {
            return Err(Illegal::RanAndReused(e.item.clone()));
        }
        if done && e.attempt == 0 {
            return Err(Illegal::NotRunning(e.item.clone()));
        }
        self.expect_kept(at, e)?;
        if done {
            self.take_documents(at, e)?;
        }
        self.settle(at, if done { Phase::Done } else { Phase::Failed }, e.reason.clone());
        self.items[at].products.clone_from(&e.products);
        self.items[at].red = e.is_red();
        self.items[at].summary.clone_from(&e.summary);
        let captures = e.blocks.iter().any(|block| block.kind == BlockKind::Capture);
        self.items[at].only_checks = !e.blocks.is_empty() && !captures;
        self.items[at].reused = e.reused.as_ref().map(|reused| (reused.run.clone(), reused.item.clone()));
        Ok(())
    }

    /// Makes the outputs that the plan declares as documents the next revisions of these.
    fn take_documents(&mut self, at: usize, e: &ItemReconciled) -> Result<(), Illegal> {
        let declared: Vec<_> = self.graph.item(at).documents().collect();
        let wrong = |name: &FilePath| Illegal::DocumentOfItem(e.item.clone(), name.clone());
        for document in &declared {
            let product = e.products.get(&ProductKey::Document(document.name.clone()));
            if product.is_none() || product != e.products.get(&ProductKey::Output(document.path.clone())) {
                return Err(wrong(&document.name));
            }
            self.expect_place(&document.name)?;
        }
        let names: BTreeSet<&FilePath> = declared.iter().map(|document| &document.name).collect();
        for key in e.products.keys() {
            if let ProductKey::Document(name) = key
                && !names.contains(name)
            {
                return Err(wrong(name));
            }
        }
        for document in declared {
            let product = e.products[&ProductKey::Document(document.name.clone())];
            let author = Author::Item(e.item.clone());
            self.documents.push(&document.name, product, document.schema, author, self.entries);
        }
        Ok(())
    }

    fn write_document(&mut self, e: &DocumentWritten) -> Result<(), Illegal> {
        if self.cancelled.is_some() || self.closed.is_some() {
            return Err(Illegal::WrittenAfterEnd(e.name.clone()));
        }
        self.expect_place(&e.name)?;
        self.expect_unsaid(e.said.as_deref())?;
        let latest = self.documents.latest(&e.name);
        if e.revision != latest.map_or(1, |latest| latest.number + 1) {
            return Err(Illegal::WrongRevision(e.name.clone(), e.revision));
        }
        if e.previous != latest.map(|latest| latest.product.sha256) {
            return Err(Illegal::WrongPrevious(e.name.clone(), e.revision));
        }
        self.say(e.said.as_deref());
        let author = Author::Actor(e.author.clone());
        self.documents.push(&e.name, e.product(), e.schema.clone(), author, self.entries);
        Ok(())
    }

    fn expect_place(&self, name: &FilePath) -> Result<(), Illegal> {
        match self.documents.clash(name) {
            Some(other) => Err(Illegal::NoPlace(name.clone(), other.clone())),
            None => Ok(()),
        }
    }

    fn end(&mut self, field: fn(&mut Self) -> &mut Option<String>, reason: &str) -> Result<(), Illegal> {
        if !self.is_settled() || self.closed.is_some() || self.cancelled.is_some() {
            return Err(Illegal::EndedUnsettled);
        }
        self.end_early();
        *field(self) = Some(reason.to_owned());
        Ok(())
    }

    fn find(&self, item: &ItemId) -> Result<usize, Illegal> {
        self.graph.position(item).ok_or_else(|| Illegal::UnknownItem(item.clone()))
    }

    /// Checks that an attempt is the running one, or, with `undispatched`, that the item waits.
    fn expect_attempt(&self, at: usize, attempt: u32, undispatched: bool) -> Result<(), Illegal> {
        let id = &self.graph.item(at).id;
        let state = &self.items[at];
        if undispatched {
            return if state.phase == Phase::Waiting { Ok(()) } else { Err(Illegal::NotWaiting(id.clone())) };
        }
        self.expect_phase(at, &[Phase::Running], attempt)
    }

    fn expect_phase(&self, at: usize, phases: &[Phase], attempt: u32) -> Result<(), Illegal> {
        let id = &self.graph.item(at).id;
        let state = &self.items[at];
        if !phases.contains(&state.phase) {
            return Err(match phases {
                [Phase::Running] => Illegal::NotRunning(id.clone()),
                _ => Illegal::NotWaiting(id.clone()),
            });
        }
        if attempt != state.attempts {
            return Err(Illegal::WrongAttempt(id.clone(), attempt));
        }
        Ok(())
    }

    fn settle(&mut self, at: usize, phase: Phase, reason: Option<String>) {
        self.release(at);
        let state = &mut self.items[at];
        state.phase = phase;
        state.not_before = None;
        state.reason = reason;
        state.touched = true;
        self.open -= 1;
    }

    fn release(&mut self, at: usize) {
        for key in &self.graph.item(at).resource_locks {
            if self.holders.get(key) == Some(&at) {
                self.holders.remove(key);
            }
        }
    }
}
