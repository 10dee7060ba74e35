//! The state of a run, computed from its entries, and the legality of events.

mod again;
pub mod checks;
mod counted;
mod decided;
mod documents;
mod drivers;
mod edges;
mod extend;
mod lines;
mod listed;
mod promises;
mod required_products;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::digest::Digest;
use super::document::Documents;
use super::driver::RunShared;
use super::entry::{
    Event, ItemDropped, ItemFired, ItemReconciled, Outcome, Product, RunEnded, RunSealed, RunSubmitted,
};
pub use super::extension::RunConcluded;
use super::graph::Graph;
pub use super::illegal::Illegal;
use super::item_index::{ItemIndex, ItemVec};
pub use super::item_state::{Holder, ItemState, Phase};
use super::name::ItemId;
use super::pipeline::BlockKind;
use super::plan::{Item, Plan};
use super::role::Keys;
use super::rule::values::LatestValues;
use super::rule::{Gate, Rule};
pub use edges::Edge;
pub use extend::{CANNOT, EARLY, Fitting};
use lines::Lines;

/// The state of a run.
#[derive(Clone, Debug)]
pub struct RunState {
    /// Entry 0.
    pub submitted: RunSubmitted,
    /// True if the plan lets actors add items until the run is closed.
    pub open_ended: bool,
    /// The most items that may run at once by the plan, over all drivers, or `None`.
    pub concurrency: Option<u32>,
    /// The items and their edges. Copies of a state share them until items are added.
    pub graph: Arc<Graph>,
    /// The items' states, by position.
    pub items: ItemVec<ItemState>,
    /// The reason of closing, if closed.
    pub closed: Option<String>,
    /// The reason of cancelling, if cancelled.
    pub cancelled: Option<String>,
    /// Whether the run is sealed.
    pub sealed: bool,
    /// The times of a shared run.
    pub shared: Option<RunShared>,
    /// The rules that stopped early, with reasons: from the seal, or from a reader of an open run's
    /// documents. The state itself has no documents' bytes.
    pub stopped: BTreeMap<ItemId, String>,
    /// The documents.
    pub documents: Documents,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The values in documents that the rules compare.
    pub(crate) values: LatestValues,
    /// The sealed pipelines, by reference.
    pub pipelines: BTreeMap<String, Product>,
    /// The first positions of the items of each extending entry.
    batches: Vec<ItemIndex>,
    /// The items created by each rule.
    created: BTreeMap<ItemId, Vec<ItemId>>,
    /// The number of times each rule acted.
    rounds: BTreeMap<ItemId, u64>,
    /// The recorded outcomes, in order.
    concluded: Vec<RunConcluded>,
    /// The replaced items and their replacements.
    successors: BTreeMap<ItemId, ItemId>,
    lines: Lines,
    /// The authorized keys with roles.
    pub keys: Keys,
    /// The recorded statements of other keys, by digest.
    recorded_statements: BTreeSet<Digest>,
    /// The gates, by item.
    gates: BTreeMap<ItemId, Gate>,
    /// The number of entries, to identify the entry of a revision.
    entries: u64,
    /// The number of entries other than dispatches.
    changes: u64,
    holders: HashMap<String, ItemIndex>,
    open: usize,
    /// The running items.
    running: BTreeSet<ItemIndex>,
}

impl RunState {
    /// Creates the state after entry 0 with the sealed plan.
    pub fn new(submitted: RunSubmitted, plan: &Plan) -> Self {
        let graph = Graph::new(plan);
        let count = graph.items().len();
        let mut documents = Documents::default();
        for declared in graph.items().iter().flat_map(Item::documents) {
            documents.take(&declared.name);
        }
        Self {
            keys: Keys::from_submitted(&submitted),
            recorded_statements: BTreeSet::new(),
            pipelines: submitted.pipelines.clone(),
            submitted,
            open_ended: plan.open_ended,
            concurrency: plan.concurrency,
            items: graph.items().map(|_| ItemState::default()),
            graph: Arc::new(graph),
            closed: None,
            cancelled: None,
            sealed: false,
            shared: None,
            running: BTreeSet::new(),
            stopped: BTreeMap::new(),
            documents,
            rules: Vec::new(),
            values: LatestValues::default(),
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

    /// Returns the number of entries other than dispatches; while it is unchanged, no item has
    /// changed its result.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns true if every item has ended.
    pub fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// Returns true if every item that counts is done.
    pub fn is_done(&self) -> bool {
        self.open == 0 && self.items.indices().all(|at| self.items[at].phase == Phase::Done || self.is_superseded(at))
    }

    /// Returns true if the run was closed or cancelled.
    pub fn is_ended(&self) -> bool {
        self.closed.is_some() || self.cancelled.is_some()
    }

    /// Returns true if the run can be sealed without closing: everything is done, and no key may
    /// add items.
    ///
    /// Rules must not be able to act either, which this state cannot know.
    pub fn seals_itself(&self) -> bool {
        self.is_done() && !self.open_ended
    }

    /// Returns the status word of an item, including `pending` and `ready`.
    pub fn status(&self, at: ItemIndex) -> &'static str {
        match self.items[at].phase.stored() {
            Some(status) => status,
            None if self.blocked_by(at).next().is_some() => "pending",
            None => "ready",
        }
    }

    /// Returns the dependencies that an item waits for or was skipped because of.
    pub fn blocked_by(&self, at: ItemIndex) -> impl Iterator<Item = ItemIndex> + '_ {
        self.graph.dependencies(at).iter().copied().filter(move |on| self.edge(at, *on) != Edge::Met)
    }

    /// Applies an event after entry 0, or returns why it is illegal; for `run.extended` see
    /// [`RunState::extend`].
    ///
    /// An error leaves the state unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        self.apply_signed(event, None)
    }

    /// Applies an event like [`RunState::apply`]; `key` signed its entry, if that was checked.
    pub fn apply_signed(&mut self, event: &Event, key: Option<&str>) -> Result<(), Illegal> {
        if self.sealed {
            return Err(Illegal::AfterSeal);
        }
        event.follow(self)?;
        self.keys.take(event, key);
        match event {
            Event::RunSealed(e) => self.stopped.clone_from(&e.stopped),
            _ => self.stopped.clear(),
        }
        self.entries += 1;
        self.changes += u64::from(!matches!(event, Event::ItemFired(_)));
        Ok(())
    }

    /// Notes who wrote an entry that was applied, by key or actor, if it says that the settings
    /// allowed changes to protected files.
    pub fn note_allowance(&mut self, event: &Event, writer: Option<&str>) {
        if let Event::ItemReconciled(e) = event
            && let Some(at) = self.graph.position(&e.item).filter(|_| e.protected_allowed)
        {
            self.items[at].allowed_by = writer.map(str::to_owned);
        }
    }

    pub(super) fn skip(&mut self, e: &ItemDropped) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        self.expect_phase(at, &[Phase::Waiting], e.attempt)?;
        if !self.graph.dependencies(at).iter().any(|on| self.edge(at, *on) == Edge::Lost) {
            return Err(Illegal::SkippedForNothing(e.item.clone()));
        }
        self.settle(at, Phase::Skipped, Some(e.reason.clone()));
        Ok(())
    }

    pub(super) fn cancel(&mut self, e: &ItemDropped) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        self.expect_phase(at, &[Phase::Waiting, Phase::Running], e.attempt)?;
        self.settle(at, Phase::Cancelled, Some(e.reason.clone()));
        Ok(())
    }

    pub(super) fn close(&mut self, e: &RunEnded) -> Result<(), Illegal> {
        self.end()?;
        self.closed = Some(e.reason.clone());
        Ok(())
    }

    pub(super) fn cancel_run(&mut self, e: &RunEnded) -> Result<(), Illegal> {
        self.end()?;
        self.cancelled = Some(e.reason.clone());
        Ok(())
    }

    pub(super) fn seal(&mut self, e: &RunSealed) -> Result<(), Illegal> {
        if !self.is_settled() || !(self.is_ended() || self.seals_itself()) {
            return Err(Illegal::SealedUnsettled);
        }
        if let Some(rule) = e.stopped.keys().find(|rule| self.rule(rule).is_none() || self.has_said()) {
            return Err(Illegal::WrongStop(rule.clone()));
        }
        self.sealed = true;
        Ok(())
    }

    pub(super) fn fire(&mut self, e: &ItemFired) -> Result<(), Illegal> {
        let ItemFired { item, attempt, input_refs: inputs, .. } = e;
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
        if *attempt != self.items[at].attempts + 1 {
            return Err(Illegal::WrongAttempt(item.clone(), *attempt));
        }
        self.expect_attempt_left(at)?;
        self.expect_place_to_run(e)?;
        if let Some(on) = self.blocked_by(at).next() {
            return Err(Illegal::BeforeDependency(item.clone(), self.graph.item(on).id.clone()));
        }
        let locks = self.graph.item(at).resource_locks.clone();
        if let Some(key) = locks.iter().find(|key| self.holders.contains_key(*key)) {
            return Err(Illegal::LockHeld(item.clone(), key.clone()));
        }
        self.holders.extend(locks.into_iter().map(|key| (key, at)));
        self.running.insert(at);
        let state = &mut self.items[at];
        state.phase = Phase::Running;
        state.attempts = *attempt;
        state.holder = Holder::from_fired(e);
        state.manifest = Some(e.manifest);
        state.not_before = None;
        state.reason = None;
        state.inputs.clone_from(inputs);
        self.items[at].reference = self.reference_patches(at, inputs);
        Ok(())
    }

    pub(super) fn reconcile(&mut self, e: &ItemReconciled) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        self.expect_attempt(at, e.attempt, e.attempt == 0)?;
        self.expect_holder(at, e.driver.as_ref())?;
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
        self.items[at].protected.clone_from(&e.protected);
        self.items[at].judged = e.protected_judged;
        self.items[at].unprotected = e.is_check_unprotected();
        self.items[at].clearable = e.is_red() && !e.is_check_failed();
        self.items[at].summary = e.summary().map(str::to_owned);
        let captures = e.blocks.iter().any(|block| block.kind == BlockKind::Capture);
        self.items[at].only_checks = !e.blocks.is_empty() && !captures;
        self.items[at].reused = e.reused.as_ref().map(|reused| (reused.run.clone(), reused.item.clone()));
        Ok(())
    }

    fn end(&mut self) -> Result<(), Illegal> {
        if !self.is_settled() || self.is_ended() {
            return Err(Illegal::EndedUnsettled);
        }
        self.end_early();
        Ok(())
    }

    fn find(&self, item: &ItemId) -> Result<ItemIndex, Illegal> {
        self.graph.position(item).ok_or_else(|| Illegal::UnknownItem(item.clone()))
    }

    /// Validates that an attempt is running, or with `undispatched`, that the item waits.
    fn expect_attempt(&self, at: ItemIndex, attempt: u32, undispatched: bool) -> Result<(), Illegal> {
        let id = &self.graph.item(at).id;
        let state = &self.items[at];
        if undispatched {
            return if state.phase == Phase::Waiting { Ok(()) } else { Err(Illegal::NotWaiting(id.clone())) };
        }
        self.expect_phase(at, &[Phase::Running], attempt)
    }

    fn expect_phase(&self, at: ItemIndex, phases: &[Phase], attempt: u32) -> Result<(), Illegal> {
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

    fn settle(&mut self, at: ItemIndex, phase: Phase, reason: Option<String>) {
        self.release(at);
        let state = &mut self.items[at];
        state.phase = phase;
        state.not_before = None;
        state.reason = reason;
        self.open -= 1;
    }

    /// Releases everything that an item holds while it runs.
    fn release(&mut self, at: ItemIndex) {
        self.running.remove(&at);
        self.items[at].holder = None;
        for key in &self.graph.item(at).resource_locks {
            if self.holders.get(key) == Some(&at) {
                self.holders.remove(key);
            }
        }
    }
}
