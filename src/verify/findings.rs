//! What a row found, and the verdict that follows.

use super::State;
use super::objects::Fault;
use crate::model::printable::beginning;

/// The longest finding that is shown whole, in bytes: what it quotes may have any length.
const MAX_SAID: usize = 2048;

/// More findings than this are counted, not kept.
const KEPT: usize = 20;

/// Everything that is wrong with one row.
#[derive(Clone, Default)]
pub(super) struct Findings {
    wrong: Vec<String>,
    count: usize,
    missing: Vec<String>,
}

impl Findings {
    /// Adds something that is wrong.
    pub(super) fn add(&mut self, finding: String) {
        self.count += 1;
        if self.wrong.len() < KEPT {
            self.wrong.push(if finding.len() > MAX_SAID { beginning(&finding, MAX_SAID) } else { finding });
        }
    }

    /// Adds an object that is no evidence.
    pub(super) fn fault(&mut self, whose: &str, fault: &Fault) {
        match fault {
            Fault::Missing(_) => self.missing.push(format!("{whose}: {fault}")),
            Fault::Gone(_) | Fault::Damaged(..) | Fault::Kind(..) => self.add(format!("{whose}: {fault}")),
        }
    }

    /// Adds something that is not here.
    pub(super) fn missing(&mut self, finding: String) {
        self.missing.push(finding);
    }

    /// Whether anything is wrong, as opposed to not here.
    pub(super) fn wrong(&self) -> bool {
        self.count > 0
    }

    /// Adds all of another's.
    pub(super) fn extend(&mut self, other: &Self) {
        for finding in &other.wrong {
            self.add(finding.clone());
        }
        self.count += other.count - other.wrong.len();
        self.missing.extend(other.missing.iter().cloned());
    }

    /// Returns the first finding, objects that are not here included.
    pub(super) fn first(&self) -> Option<&str> {
        self.wrong.first().or(self.missing.first()).map(String::as_str)
    }

    /// Returns the verdict: what is not here is held against the row unless the repository is one that leaves things out.
    pub(super) fn verdict(mut self, lazy: bool, fine: impl FnOnce() -> String) -> Verdict {
        if !lazy {
            for finding in std::mem::take(&mut self.missing) {
                self.add(finding);
            }
        }
        if let Some(first) = self.wrong.first() {
            return Verdict::failed(and_more(first, self.count));
        }
        match self.missing.first() {
            Some(first) => Verdict::incomplete(and_more(first, self.missing.len())),
            None => Verdict::ok(fine()),
        }
    }
}

fn and_more(first: &str, count: usize) -> String {
    if count > 1 { format!("{first} (and {} more)", count - 1) } else { first.to_owned() }
}

/// What one row says.
#[derive(Clone)]
pub(super) struct Verdict {
    pub(super) state: State,
    pub(super) detail: String,
    /// Whether it could say more with objects that are not here.
    pub(super) incomplete: bool,
}

impl Verdict {
    pub(super) fn ok(detail: impl Into<String>) -> Self {
        Self { state: State::Ok, detail: detail.into(), incomplete: false }
    }

    pub(super) fn failed(detail: impl Into<String>) -> Self {
        Self { state: State::Failed, detail: detail.into(), incomplete: false }
    }

    pub(super) fn not_applicable(detail: impl Into<String>) -> Self {
        Self { state: State::NotApplicable, detail: detail.into(), incomplete: false }
    }

    pub(super) fn incomplete(detail: impl Into<String>) -> Self {
        Self { state: State::NotApplicable, detail: detail.into(), incomplete: true }
    }
}

/// Returns `1 entry`, `2 entries`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
