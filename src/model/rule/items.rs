//! A condition on what became of items. Pure.

use std::fmt;

use super::{Check, Op};
use crate::model::name::{FilePath, ItemId};
use crate::model::state::{Phase, RunState};

/// A condition on items: on how many of them something became, or on how much they have of something.
///
/// An item that another one stands for is spoken of as that one: see [`RunState::newest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemCondition {
    /// Which items.
    pub of: Of,
    /// What is counted.
    pub what: What,
    /// What the number is compared with; where nothing is said, it is to be that of the items, and not 0.
    pub compared: Option<(Op, u64)>,
}

/// Which items a condition is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// These.
    Items(Vec<ItemId>),
    /// Those that a rule created so far.
    CreatedBy(ItemId),
}

/// What a condition counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The items of which one of these is true.
    Are(Vec<Became>),
    /// The items that hand over this output.
    Have(FilePath),
    /// The outputs of all of them.
    Outputs,
    /// The attempts of all of them.
    Attempts,
    /// How often the rule that created them did.
    Rounds,
}

/// What can have become of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is done.
    Done,
    /// It is done, and no check says that it is not good.
    Green,
    /// It is done, and its check failed.
    Red,
    /// It failed for good.
    Failed,
    /// It was skipped.
    Skipped,
    /// It was cancelled.
    Cancelled,
    /// It has come to an end, whichever.
    Ended,
}

impl Became {
    /// Every word.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Green, Self::Red, Self::Failed, Self::Skipped, Self::Cancelled, Self::Ended];

    /// Returns the word as rules write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Green => "green",
            Self::Red => "red",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Ended => "ended",
        }
    }

    fn is_true_of(self, state: &RunState, at: usize) -> bool {
        let phase = state.items[at].phase;
        match self {
            Self::Done => phase == Phase::Done,
            Self::Green => phase == Phase::Done && !state.items[at].red,
            Self::Red => phase == Phase::Done && state.items[at].red,
            Self::Failed => phase == Phase::Failed,
            Self::Skipped => phase == Phase::Skipped,
            Self::Cancelled => phase == Phase::Cancelled,
            Self::Ended => phase.is_terminal(),
        }
    }
}

impl ItemCondition {
    /// Returns whether it holds in a run.
    pub fn holds(&self, state: &RunState) -> bool {
        let named = self.named(state);
        match (self.compared, self.single()) {
            // From the end: what was created last comes to an end last, and one that has not decides.
            (None, Some(is_so)) => {
                !named.is_empty() && named.iter().rev().all(|id| state.newest(id).is_some_and(|at| is_so(state, at)))
            }
            (None, None) => named.len() as u64 == self.count(state) && !named.is_empty(),
            (Some((op, value)), _) => op.compare(self.count(state).cmp(&value)),
        }
    }

    /// Returns whether it holds once all of the items are done, and asks for nothing else.
    pub fn is_all_done(&self) -> bool {
        self.compared.is_none() && self.what == What::Are(vec![Became::Done])
    }

    /// Holds a run against the condition, in words.
    pub fn check(&self, state: &RunState) -> Check {
        let found = self.found(self.count(state), self.named(state).len());
        Check::new(self.holds(state), format!("{self}: {found}"))
    }

    fn named<'s>(&'s self, state: &'s RunState) -> &'s [ItemId] {
        match &self.of {
            Of::Items(items) => items,
            Of::CreatedBy(rule) => state.created_by(rule),
        }
    }

    /// Returns what is to be true of each item, where items are counted.
    fn single(&self) -> Option<impl Fn(&RunState, usize) -> bool + '_> {
        let of_one = |state: &RunState, at: usize| match &self.what {
            What::Are(words) => words.iter().any(|word| word.is_true_of(state, at)),
            What::Have(path) => state.output(at, path).is_some(),
            What::Outputs | What::Attempts | What::Rounds => false,
        };
        matches!(self.what, What::Are(_) | What::Have(_)).then_some(of_one)
    }

    fn count(&self, state: &RunState) -> u64 {
        if let (What::Rounds, Of::CreatedBy(rule)) = (&self.what, &self.of) {
            return state.rounds(rule);
        }
        // What is not there, or not yet, is nothing that anything could be true of.
        let places = self.named(state).iter().filter_map(|id| state.newest(id));
        match (&self.what, self.single()) {
            (_, Some(is_so)) => places.filter(|at| is_so(state, *at)).count() as u64,
            (What::Attempts, _) => places.map(|at| u64::from(state.items[at].attempts)).sum(),
            _ => places.map(|at| state.outputs(at).count() as u64).sum(),
        }
    }

    fn found(&self, count: u64, of: usize) -> String {
        match (&self.what, of) {
            (What::Outputs | What::Attempts | What::Rounds, _) => format!("it is {count}"),
            (_, 1) => if count == 1 { "it is so" } else { "it is not so" }.to_owned(),
            _ => format!("it is so of {count} of {of}"),
        }
    }
}

impl fmt::Display for ItemCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match &self.of {
            Of::Items(items) => items.iter().map(ItemId::as_str).collect::<Vec<_>>().join(", "),
            Of::CreatedBy(rule) => format!("what {rule} created"),
        };
        match &self.what {
            What::Are(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
                write!(f, "{of} {}", words.join(" or "))?;
            }
            What::Have(path) => write!(f, "{of} with the output {path}")?,
            What::Outputs => write!(f, "outputs of {of}")?,
            What::Attempts => write!(f, "attempts of {of}")?,
            What::Rounds => write!(f, "rounds of {of}")?,
        }
        match self.compared {
            Some((op, value)) => write!(f, " {op} {value}"),
            None => Ok(()),
        }
    }
}
