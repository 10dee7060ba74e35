//! Conditions on items. Pure.

use std::fmt;

use super::{Check, Op};
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId};
use crate::model::state::{Phase, RunState};
use crate::model::words::words;

/// A condition on a number of items, outputs or attempts.
///
/// A replaced item means its replacement; see [`RunState::newest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemCondition {
    /// The items.
    pub of: Of,
    /// The counted quantity.
    pub quantity: Quantity,
    /// The comparison; by default, equal to the number of items, and not 0.
    pub compared: Option<(Op, u64)>,
}

/// The items of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Named items.
    Items(Vec<ItemId>),
    /// The items that a rule has created.
    CreatedBy(ItemId),
}

/// The quantity of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Items with one of these statuses.
    Are(Vec<Became>),
    /// Items with this output.
    Have(FilePath),
    /// All outputs.
    Outputs,
    /// All attempts.
    Attempts,
    /// The number of times the rule acted.
    Rounds,
}

words! {
    as_str
    /// A status word in conditions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Became {
        /// It is done.
        Done = "done",
        /// Done and not red.
        Green = "green",
        /// Done and red.
        Red = "red",
        /// It failed for good.
        Failed = "failed",
        /// It was skipped.
        Skipped = "skipped",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Ended in any way.
        Ended = "ended",
    }
}

impl Became {
    fn is_true_of(self, state: &RunState, at: ItemIndex) -> bool {
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
    /// Returns true if the condition holds.
    pub fn holds(&self, state: &RunState) -> bool {
        let ids = self.matching_ids(state);
        match (self.compared, self.single()) {
            // From the end, because later items end later and one undecided item decides.
            (None, Some(is_so)) => {
                !ids.is_empty() && ids.iter().rev().all(|id| state.newest(id).is_some_and(|at| is_so(state, at)))
            }
            (None, None) => ids.len() as u64 == self.count(state) && !ids.is_empty(),
            (Some((op, value)), _) => op.compare(self.count(state).cmp(&value)),
        }
    }

    /// Returns true if the condition only requires that all items are done.
    pub fn is_all_done(&self) -> bool {
        self.compared.is_none() && self.quantity == Quantity::Are(vec![Became::Done])
    }

    /// Formats the evaluation.
    pub fn check(&self, state: &RunState) -> Check {
        let found = self.found(self.count(state), self.matching_ids(state).len());
        Check::new(self.holds(state), format!("{self}: {found}"))
    }

    fn matching_ids<'s>(&'s self, state: &'s RunState) -> &'s [ItemId] {
        match &self.of {
            Of::Items(items) => items,
            Of::CreatedBy(rule) => state.created_by(rule),
        }
    }

    /// Returns the status words, if items are counted.
    fn single(&self) -> Option<impl Fn(&RunState, ItemIndex) -> bool + '_> {
        matches!(self.quantity, Quantity::Are(_) | Quantity::Have(_)).then_some(|state: &RunState, at: ItemIndex| {
            match &self.quantity {
                Quantity::Are(words) => words.iter().any(|word| word.is_true_of(state, at)),
                Quantity::Have(path) => state.output(at, path).is_some(),
                Quantity::Outputs | Quantity::Attempts | Quantity::Rounds => false,
            }
        })
    }

    fn count(&self, state: &RunState) -> u64 {
        if let (Quantity::Rounds, Of::CreatedBy(rule)) = (&self.quantity, &self.of) {
            return state.rounds(rule);
        }
        // A missing item has no status.
        let places = self.matching_ids(state).iter().filter_map(|id| state.newest(id));
        match (&self.quantity, self.single()) {
            (_, Some(is_so)) => places.filter(|at| is_so(state, *at)).count() as u64,
            (Quantity::Attempts, _) => places.map(|at| u64::from(state.items[at].attempts)).sum(),
            _ => places.map(|at| state.outputs(at).count() as u64).sum(),
        }
    }

    fn found(&self, count: u64, of: usize) -> String {
        match (&self.quantity, of) {
            (Quantity::Outputs | Quantity::Attempts | Quantity::Rounds, _) => format!("it is {count}"),
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
        match &self.quantity {
            Quantity::Are(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
                write!(f, "{of} {}", words.join(" or "))?;
            }
            Quantity::Have(path) => write!(f, "{of} with the output {path}")?,
            Quantity::Outputs => write!(f, "outputs of {of}")?,
            Quantity::Attempts => write!(f, "attempts of {of}")?,
            Quantity::Rounds => write!(f, "rounds of {of}")?,
        }
        match self.compared {
            Some((op, value)) => write!(f, " {op} {value}"),
            None => Ok(()),
        }
    }
}
