//! Drivers and a remote, as far as they matter to a chain: what is pushed, what arrives, and who
//! knows what.

use std::collections::{BTreeMap, BTreeSet};

use git_handoff::model::driver::{Because, DriverId};
use git_handoff::model::state::{Phase, RunState};

use super::rules::{Act, Attempt, End, Entry, ITEMS, Id, OWNER, Rules, WORKERS, begin, is_locked};
use crate::chaos::dice::Dice;
use crate::model::name;

const DRIVERS: usize = 3;

/// A rule that drivers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// An attempt runs where its holder is, and not wherever the state says that it runs.
    StartsByHolder,
    /// A claim that turns out to be accepted is started.
    Adopts,
    /// A take-over moves the victim's beat in the same push.
    Fences,
    /// Only time in which the observer's own beats are accepted counts as silence.
    CountsHealthyTime,
    /// The worker of a driver without contact that holds a lock is ended before a take-over, and a
    /// driver reads after a pause before it uses an answer.
    SwitchesOff,
    /// The lock of an attempt that a person cancelled is free only when its worker has ended.
    WaitsForCut,
}

/// The rules that drivers follow: all, or all but one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Design {
    pub(super) without: Option<Rule>,
}

impl Design {
    fn has(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Up {
    Yes,
    Stopped,
    Dead,
}

/// The evidence for a take-over.
#[derive(Clone, Copy, Debug)]
struct Look {
    victim: Id,
    /// The victim's beat that was seen.
    beat: u64,
    /// False if the silence was that of the remote.
    is_healthy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Won,
    Lost,
}

#[derive(Clone, Debug)]
struct Push {
    /// The driver that pushed.
    by: Id,
    /// The length of the chain that it continues.
    base: usize,
    entries: Vec<Entry>,
    look: Option<Look>,
    answer: Option<Answer>,
}

/// One place with a clone; a new process there has a new id.
struct Driver {
    id: Id,
    key: &'static str,
    up: Up,
    /// The known entries, and the two states after them.
    known: usize,
    state: RunState,
    rules: Rules,
    running: BTreeSet<Attempt>,
    /// Ends that the remote has not accepted yet.
    results: BTreeMap<Attempt, End>,
    /// Claims that were pushed.
    claims: BTreeSet<Attempt>,
    push: Option<Push>,
    look: Option<Look>,
    /// The processes before it in this clone, whose attempts it gives back first.
    predecessors: BTreeSet<Id>,
}

pub(super) struct World {
    design: Design,
    chain: Vec<Entry>,
    state: RunState,
    rules: Rules,
    start: (RunState, Rules),
    drivers: Vec<Driver>,
    /// The last beat of each process that ever was.
    beats: BTreeMap<Id, u64>,
    /// Pushes without an answer that may still arrive.
    late: Vec<Push>,
    /// The process that started each attempt.
    started: BTreeMap<Attempt, Id>,
    /// The attempts that were ended by others, although their drivers live.
    cut: BTreeSet<Attempt>,
    had_outage: bool,
    pub(super) bad: BTreeSet<&'static str>,
    pub(super) trace: Vec<String>,
}

/// A step that is possible.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(usize),
    Arrive(usize),
    Read(usize),
    Poll(usize),
    Finish(usize, Attempt),
    SwitchOff(usize),
    Continue(usize),
    Look(usize, Id),
    Late(usize),
    Probe,
    // Faults and people.
    GiveUp(usize),
    ArriveTwice(usize),
    Stop(usize),
    Die(usize),
    Return(usize),
    Outage,
    Cancel(usize),
    TryAgain(usize),
    Dismiss(usize),
}

impl World {
    pub(super) fn new(design: Design, dice: &mut Dice) -> Self {
        let most = *dice.pick(&[None, None, Some(1), Some(2)]);
        let (mut state, mut rules) = begin(most);
        let mut chain = Vec::new();
        for act in [Act::Admit(WORKERS[0]), Act::Admit(WORKERS[1]), Act::Share] {
            let entry = Entry { act, key: OWNER };
            assert!(entry.fits(&mut state) && rules.apply(&entry));
            chain.push(entry);
        }
        let start = (state.clone(), rules.clone());
        let driver = |at: usize, key| Driver {
            id: u8::try_from(at).expect("there are few"),
            key,
            up: Up::Yes,
            known: chain.len(),
            state: state.clone(),
            rules: rules.clone(),
            running: BTreeSet::new(),
            results: BTreeMap::new(),
            claims: BTreeSet::new(),
            push: None,
            look: None,
            predecessors: BTreeSet::new(),
        };
        let keys = [OWNER, *dice.pick(&[OWNER, WORKERS[0]]), *dice.pick(&WORKERS)];
        let drivers: Vec<Driver> = (0..DRIVERS).map(|at| driver(at, keys[at])).collect();
        let beats = drivers.iter().map(|any_driver| (any_driver.id, 0)).collect();
        Self {
            design,
            chain,
            state,
            rules,
            start,
            drivers,
            beats,
            late: Vec::new(),
            started: BTreeMap::new(),
            cut: BTreeSet::new(),
            had_outage: false,
            bad: BTreeSet::new(),
            trace: Vec::new(),
        }
    }

    /// Returns true if the run is sealed, or broken.
    pub(super) fn is_over(&self) -> bool {
        self.rules.is_sealed || !self.bad.is_empty()
    }

    /// Does one of the steps that are possible.
    pub(super) fn step(&mut self, dice: &mut Dice, with_faults: bool) {
        if !self.bad.is_empty() {
            return;
        }
        let mut steps = self.calm_steps();
        if with_faults && dice.once_in(3) {
            let faults = self.faults();
            steps = if faults.is_empty() { steps } else { faults };
        }
        let step = *dice.pick(&steps);
        self.trace.push(format!("{step:?}"));
        self.take(step, dice);
        self.hold();
    }

    fn calm_steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Probe];
        for (at, driver) in self.drivers.iter().enumerate() {
            match (driver.up, &driver.push) {
                (Up::Yes, None) => {
                    steps.push(Step::Push(at));
                    if driver.known < self.chain.len() {
                        steps.push(Step::Poll(at));
                    }
                    if driver.look.is_none() {
                        steps.extend(self.silent_to(at).map(|victim| Step::Look(at, victim)));
                    }
                }
                (Up::Yes, Some(Push { answer: Some(_), .. })) => steps.push(Step::Read(at)),
                (Up::Stopped, _) => {
                    steps.push(Step::Continue(at));
                    if self.design.has(Rule::SwitchesOff)
                        && driver.running.iter().any(|attempt| is_locked(attempt.item))
                    {
                        steps.push(Step::SwitchOff(at));
                    }
                }
                (Up::Dead, _) => steps.push(Step::Return(at)),
                _ => {}
            }
            if driver.push.as_ref().is_some_and(|push| push.answer.is_none()) {
                steps.push(Step::Arrive(at));
            }
            steps.extend(driver.running.iter().map(|attempt| Step::Finish(at, *attempt)));
        }
        steps.extend((0..self.late.len()).map(Step::Late));
        steps
    }

    fn faults(&self) -> Vec<Step> {
        let mut faults = vec![Step::Outage];
        for (at, driver) in self.drivers.iter().enumerate() {
            if driver.up == Up::Yes {
                faults.extend([Step::Stop(at), Step::Die(at)]);
                if driver.push.is_some() {
                    faults.extend([Step::GiveUp(at), Step::ArriveTwice(at)]);
                }
            }
        }
        // People act more rarely than machines fail.
        match self.trace.len() % 8 {
            0 => faults.extend((0..ITEMS).map(Step::Cancel)),
            1 => faults.extend((0..ITEMS).map(Step::TryAgain)),
            2 => faults.extend((0..WORKERS.len()).map(Step::Dismiss)),
            _ => {}
        }
        faults
    }

    /// Returns the holders that a driver may find silent.
    fn silent_to(&self, at: usize) -> impl Iterator<Item = Id> + '_ {
        let own = self.drivers[at].id;
        let holders: BTreeSet<Id> =
            self.drivers[at].rules.items.iter().filter_map(|item| Some(item.holder?.0)).collect();
        holders.into_iter().filter(move |id| *id != own && self.looks_silent(*id))
    }

    fn looks_silent(&self, id: Id) -> bool {
        let Some(driver) = self.drivers.iter().find(|driver| driver.id == id) else { return true };
        let holds_lock = driver.running.iter().any(|attempt| is_locked(attempt.item));
        match driver.up {
            Up::Dead => true,
            // By then its supervisor ended what holds a lock.
            Up::Stopped => !(self.design.has(Rule::SwitchesOff) && holds_lock),
            Up::Yes => !self.design.has(Rule::CountsHealthyTime) && self.had_outage,
        }
    }

    fn take(&mut self, step: Step, dice: &mut Dice) {
        match step {
            Step::Push(at) => self.compose(at, dice),
            Step::Arrive(at) => self.arrive(at),
            Step::ArriveTwice(at) => {
                self.arrive(at);
                let push = self.drivers[at].push.clone();
                self.late.extend(push);
            }
            Step::Read(at) => self.read_answer(at),
            Step::Poll(at) => self.follow(at),
            Step::Finish(at, attempt) => {
                let end = *dice.pick(&[End::Done, End::Done, End::Done, End::Failed, End::Retried]);
                self.drivers[at].running.remove(&attempt);
                self.drivers[at].results.insert(attempt, end);
            }
            Step::SwitchOff(at) => self.switch_off(at),
            Step::Continue(at) => self.go_on(at),
            Step::Look(at, victim) => {
                let is_healthy = self.drivers.iter().all(|driver| driver.id != victim || driver.up != Up::Yes);
                let look = Look { victim, beat: self.beats[&victim], is_healthy };
                self.drivers[at].look = Some(look);
            }
            Step::Late(at) => {
                let push = self.late.swap_remove(at);
                if dice.once_in(2) {
                    self.land(&push);
                }
            }
            Step::Probe => self.probe(dice),
            Step::GiveUp(at) => self.give_up(at),
            Step::Stop(at) => self.drivers[at].up = Up::Stopped,
            Step::Die(at) => self.die(at),
            Step::Return(at) => self.come_back(at),
            Step::Outage => self.had_outage = true,
            Step::Cancel(item) => self.say(Act::Cancel, item),
            Step::TryAgain(item) => self.say(|attempt| Act::End(attempt, None, End::HandedBack), item),
            Step::Dismiss(at) => {
                let entry = Entry { act: Act::Dismiss(WORKERS[at]), key: OWNER };
                if self.rules.workers.len() > 1 {
                    self.append(entry);
                }
            }
        }
    }

    /// Appends an entry of the owner about the present attempt of an item.
    fn say(&mut self, act: impl Fn(Attempt) -> Act, item: usize) {
        // A running attempt is not taken from its holder without its name: nothing tells whether
        // its worker has ended.
        let act = act(Attempt { item, number: self.rules.items[item].attempts });
        let is_running = self.rules.items[item].phase == Phase::Running;
        if !(is_running && matches!(act, Act::End(..))) {
            self.append(Entry { act, key: OWNER });
        }
    }

    /// Appends an entry at the remote if it may follow. The fold and the rules must agree.
    fn append(&mut self, entry: Entry) -> bool {
        let (rules, before) = (self.rules.apply(&entry), self.chain.len());
        let fold = entry.fits(&mut self.state);
        assert_eq!(fold, rules, "the fold and the rules about {entry:?} after\n{:#?}", self.chain);
        if fold {
            if let Act::Cancel(attempt) | Act::Lose { attempt, because: Because::Dismissed, .. } = &entry.act {
                self.cut.insert(*attempt);
            }
            self.chain.push(entry);
        }
        self.chain.len() > before
    }

    /// Applies an entry to the states of a driver if it may follow.
    fn try_on(&self, state: &mut RunState, rules: &mut Rules, entry: &Entry) -> bool {
        let fits = rules.apply(entry);
        assert_eq!(entry.fits(state), fits, "the fold and the rules about {entry:?} after\n{:#?}", self.chain);
        fits
    }

    /// Composes what a driver has to write, and begins to push it.
    fn compose(&mut self, at: usize, dice: &mut Dice) {
        let driver = &self.drivers[at];
        let (mut state, mut rules, mut entries) = (driver.state.clone(), driver.rules.clone(), Vec::new());
        let mut add = |act: Act, run_state: &mut RunState, run_rules: &mut Rules| {
            let entry = Entry { act, key: driver.key };
            let fits = self.try_on(run_state, run_rules, &entry);
            entries.extend(fits.then_some(entry));
            fits
        };
        for (attempt, end) in &driver.results {
            add(Act::End(*attempt, Some(driver.id), *end), &mut state, &mut rules);
        }
        let (mut look, mut takes_over) = (None, false);
        for item in 0..ITEMS {
            let Some((victim, key)) = rules.items[item].holder.filter(|(victim, _)| *victim != driver.id) else {
                continue;
            };
            let is_dismissed = key != OWNER && !rules.workers.contains(key);
            let because = match driver.look {
                _ if driver.predecessors.contains(&victim) => Because::Lock,
                Some(previous) if previous.victim == victim => {
                    look = Some(previous);
                    Because::Silent
                }
                _ if is_dismissed => Because::Dismissed,
                _ => continue,
            };
            let attempt = Attempt { item, number: rules.items[item].attempts };
            let lose = Act::Lose { attempt, victim: Some(victim), taker: Some(driver.id), because };
            takes_over |= add(lose, &mut state, &mut rules);
        }
        for item in 0..ITEMS {
            add(Act::Skip(Attempt { item, number: rules.items[item].attempts }), &mut state, &mut rules);
        }
        let first = dice.index(ITEMS);
        let mut claims = BTreeSet::new();
        for item in (0..ITEMS).map(|item| (first + item) % ITEMS) {
            let attempt = Attempt { item, number: rules.items[item].attempts + 1 };
            // A take-over goes alone; then the locks count that it cut.
            let is_free = driver.running.is_empty() && claims.is_empty() && !takes_over && !self.is_cut(item);
            if is_free && add(Act::Fire(attempt, Some(driver.id)), &mut state, &mut rules) {
                claims.insert(attempt);
            }
        }
        if rules.is_settled() && driver.key == OWNER {
            let _ = rules.is_done() || add(Act::Close, &mut state, &mut rules);
            add(Act::Seal, &mut state, &mut rules);
        }
        if !entries.is_empty() {
            let push = Push { by: driver.id, base: driver.known, entries, look, answer: None };
            let second_driver = &mut self.drivers[at];
            second_driver.claims.extend(claims);
            second_driver.push = Some(push);
        }
        self.drivers[at].look = None;
    }

    /// Returns true if the lock of an item may be held by a worker whose attempt was ended by
    /// others. In the program, the time tells.
    fn is_cut(&self, item: usize) -> bool {
        // A claim that was accepted starts when its driver reads the answer.
        let is_cut = |attempt: &Attempt| is_locked(attempt.item) && self.cut.contains(attempt);
        let holds = |driver: &Driver| driver.running.iter().chain(&driver.claims).any(is_cut);
        self.design.has(Rule::WaitsForCut) && is_locked(item) && self.drivers.iter().any(holds)
    }

    /// Returns true if the chain says that an attempt runs.
    fn runs(&self, attempt: Attempt) -> bool {
        let item = &self.rules.items[attempt.item];
        item.phase == Phase::Running && item.attempts == attempt.number
    }

    /// Judges the push of a driver at the remote.
    fn arrive(&mut self, at: usize) {
        let Some(push) = self.drivers[at].push.clone().filter(|push| push.answer.is_none()) else { return };
        let answer = self.land(&push);
        if let Some(second_push) = &mut self.drivers[at].push {
            second_push.answer = Some(answer);
        }
    }

    fn land(&mut self, push: &Push) -> Answer {
        let is_fresh = push.look.is_none_or(|look| self.beats[&look.victim] == look.beat);
        if push.base != self.chain.len() || (self.design.has(Rule::Fences) && !is_fresh) {
            self.refuse_late(push);
            return Answer::Lost;
        }
        for entry in &push.entries {
            self.watch(push, entry);
            assert!(self.append(entry.clone()), "{entry:?} was composed upon the same chain");
        }
        Answer::Won
    }

    /// Notes what must not happen when the remote accepts an entry.
    fn watch(&mut self, push: &Push, entry: &Entry) {
        match &entry.act {
            Act::Lose { victim: Some(victim), because: Because::Silent, .. } => {
                let is_up = self.drivers.iter().any(|driver| driver.id == *victim && driver.up == Up::Yes);
                let saw = push.look.is_some_and(|look| look.is_healthy && self.beats[victim] == look.beat);
                if is_up && !saw {
                    self.bad.insert("a living driver was robbed");
                }
            }
            Act::End(attempt, by, end) => {
                let holder = self.rules.items[attempt.item].holder;
                if holder.map(|(holder, _)| holder) != *by || *by != Some(push.by) {
                    self.bad.insert("an attempt was ended by another");
                }
                let is_done = |listed_entry: &Entry| matches!(&listed_entry.act, Act::End(other, _, End::Done) if other.item == attempt.item);
                if *end == End::Done && self.chain.iter().any(is_done) {
                    self.bad.insert("an item was done twice");
                }
            }
            _ => {}
        }
    }

    /// Checks the entries of a push that came too late by the present state: a result counts only
    /// if its driver holds the attempt.
    fn refuse_late(&self, push: &Push) {
        for entry in &push.entries {
            let fits = self.agree(entry);
            let Act::End(attempt, by, _) = &entry.act else { continue };
            let holds = self.runs(*attempt) && self.rules.items[attempt.item].holder.map(|(holder, _)| holder) == *by;
            assert!(holds || !fits, "{entry:?} was accepted, and its driver does not hold the attempt");
        }
    }

    /// Returns whether an entry may follow now, by the fold and by the rules.
    fn agree(&self, entry: &Entry) -> bool {
        let fits = self.rules.clone().apply(entry);
        assert_eq!(entry.fits(&mut self.state.clone()), fits, "{entry:?} after\n{:#?}", self.chain);
        assert!(!fits || !self.rules.is_sealed, "{entry:?} followed the seal");
        fits
    }

    fn read_answer(&mut self, at: usize) {
        let Some(push) = self.drivers[at].push.take() else { return };
        if push.answer != Some(Answer::Won) {
            self.drivers[at].claims.retain(|_| self.design.has(Rule::Adopts));
            return self.follow(at);
        }
        self.advance(at, push.base + push.entries.len());
        for entry in &push.entries {
            match entry.act {
                Act::Fire(attempt, _) if self.drivers[at].claims.remove(&attempt) => self.start(at, attempt),
                Act::End(attempt, ..) => drop(self.drivers[at].results.remove(&attempt)),
                _ => {}
            }
        }
        self.drivers[at].predecessors.clear();
        self.compare(at);
    }

    /// Moves what a driver knows of the chain.
    fn advance(&mut self, at: usize, to: usize) {
        let driver = &mut self.drivers[at];
        if to < driver.known {
            return;
        }
        for entry in &self.chain[driver.known..to] {
            assert!(entry.fits(&mut driver.state) && driver.rules.apply(entry));
        }
        driver.known = to;
    }

    /// Reads the chain, and compares it with what runs.
    fn follow(&mut self, at: usize) {
        self.advance(at, self.chain.len());
        self.compare(at);
    }

    /// Stops what the driver does not hold, and starts what it holds. The fold says what that is.
    fn compare(&mut self, at: usize) {
        let by_holder = self.design.has(Rule::StartsByHolder);
        let driver = &self.drivers[at];
        let (id, key, state) = (DriverId::from_random([driver.id; 16]), driver.key, &driver.state);
        let holds = |attempt: &Attempt| {
            let place = state.graph.position(&name(attempt.item)).expect("the plan has it");
            let item = &state.items[place];
            let is_ours = item.holder.as_ref().is_some_and(|holder| holder.driver == id);
            item.phase == Phase::Running && item.attempts == attempt.number && (is_ours || !by_holder)
        };
        let running: BTreeSet<Attempt> = driver.running.iter().copied().filter(holds).collect();
        let results: BTreeMap<Attempt, End> = driver
            .results
            .iter()
            .filter(|(attempt, _)| holds(attempt))
            .map(|(attempt, end)| (*attempt, *end))
            .collect();
        let claims: Vec<Attempt> = driver.claims.iter().copied().filter(holds).collect();
        let is_known = |attempt: &Attempt| running.contains(attempt) || results.contains_key(attempt);
        let start: Vec<Attempt> = claims.into_iter().filter(|attempt| !is_known(attempt)).collect();
        let is_dismissed = key != OWNER && !driver.rules.workers.contains(key);
        let second_driver = &mut self.drivers[at];
        (second_driver.running, second_driver.results) = (running, results);
        second_driver.claims.retain(|attempt| attempt.number > second_driver.rules.items[attempt.item].attempts);
        for attempt in start {
            self.start(at, attempt);
        }
        if is_dismissed {
            self.die(at);
        }
    }

    fn start(&mut self, at: usize, attempt: Attempt) {
        let driver = &mut self.drivers[at];
        driver.running.insert(attempt);
        if *self.started.entry(attempt).or_insert(driver.id) != driver.id {
            self.bad.insert("an attempt was run by two");
        }
    }

    /// No answer comes: the push may still arrive.
    fn give_up(&mut self, at: usize) {
        let Some(push) = self.drivers[at].push.take() else { return };
        if push.answer.is_none() {
            self.late.push(push);
        }
        self.drivers[at].claims.retain(|_| self.design.has(Rule::Adopts));
        self.follow(at);
    }

    fn switch_off(&mut self, at: usize) {
        let driver = &mut self.drivers[at];
        let (ended, left) = driver.running.iter().partition(|attempt| is_locked(attempt.item));
        driver.running = left;
        driver.results.extend(BTreeSet::into_iter(ended).map(|attempt| (attempt, End::Crashed)));
    }

    /// A driver that was stopped beats, and reads before it does anything else.
    fn go_on(&mut self, at: usize) {
        self.drivers[at].up = Up::Yes;
        *self.beats.entry(self.drivers[at].id).or_default() += 1;
        if self.design.has(Rule::SwitchesOff) {
            self.give_up(at);
            self.follow(at);
        }
    }

    fn die(&mut self, at: usize) {
        let driver = &mut self.drivers[at];
        driver.up = Up::Dead;
        (driver.running, driver.results, driver.claims) = Default::default();
        driver.look = None;
        self.late.extend(driver.push.take().filter(|push| push.answer.is_none()));
    }

    /// A new process in the clone of a dead one. Its key may have been replaced.
    fn come_back(&mut self, at: usize) {
        let id = u8::try_from(self.beats.len()).expect("there are few");
        let driver = &mut self.drivers[at];
        let is_dismissed = driver.key != OWNER && !self.rules.workers.contains(driver.key);
        if is_dismissed {
            driver.key = self.rules.workers.first().copied().unwrap_or(OWNER);
        }
        driver.predecessors.insert(driver.id);
        (driver.id, driver.up) = (id, Up::Yes);
        (driver.state, driver.rules, driver.known) = (self.start.0.clone(), self.start.1.clone(), 3);
        self.beats.insert(id, 0);
        self.follow(at);
    }

    /// Offers a random entry to the fold and to the rules.
    fn probe(&self, dice: &mut Dice) {
        let item = dice.index(ITEMS);
        let attempts = u64::from(self.rules.items[item].attempts);
        let number = u32::try_from(dice.roll(attempts.saturating_sub(1)..attempts + 2)).expect("it is small");
        let attempt = Attempt { item, number };
        let holder = self.rules.items[item].holder;
        let ids: Vec<Option<Id>> =
            self.beats.keys().copied().map(Some).chain([None, holder.map(|(holder, _)| holder)]).collect();
        let keys = [OWNER, WORKERS[0], WORKERS[1], "SHA256:stranger", holder.map_or(OWNER, |(_, key)| key)];
        let because = *dice.pick(&[Because::Silent, Because::Told, Because::Lock, Because::Dismissed]);
        let act = match dice.index(11) {
            0 => Act::Share,
            1 => Act::Dismiss(WORKERS[dice.index(WORKERS.len())]),
            2 => Act::Skip(attempt),
            3 => Act::Cancel(attempt),
            4 => Act::Close,
            5 => Act::Seal,
            6 => Act::Fire(attempt, *dice.pick(&ids)),
            7 | 8 => Act::End(attempt, *dice.pick(&ids), *dice.pick(&End::ALL)),
            _ => Act::Lose { attempt, victim: *dice.pick(&ids), taker: *dice.pick(&ids), because },
        };
        let key = *dice.pick(&keys);
        self.agree(&Entry { act, key });
    }

    /// Checks what must be true after each step.
    fn hold(&mut self) {
        for (at, item) in self.rules.items.iter().enumerate() {
            let place = self.state.graph.position(&name(at)).expect("the plan has it");
            let folded = &self.state.items[place];
            let holder = folded.holder.as_ref().map(|holder| holder.driver.clone());
            let dispatcher = self.state.keys.dispatcher(&name(at));
            let expected = item.holder.map(|(id, _)| DriverId::from_random([id; 16]));
            let all = (folded.phase, folded.attempts, holder, dispatcher);
            assert_eq!(all, (item.phase, item.attempts, expected, item.holder.map(|(_, key)| key)), "i{at}");
            assert_eq!(item.holder.is_some(), item.phase == Phase::Running, "i{at} has one holder while it runs");
        }
        assert_eq!(usize::try_from(self.state.running()).ok(), Some(self.rules.running()));
        let state = (self.state.is_settled(), self.state.is_done(), self.state.sealed);
        assert_eq!(state, (self.rules.is_settled(), self.rules.is_done(), self.rules.is_sealed));
        let runs_item = |driver: &&Driver| driver.running.iter().any(|attempt| is_locked(attempt.item));
        if self.drivers.iter().filter(runs_item).count() > 1 {
            self.bad.insert("a lock was held by two");
        }
    }
}
