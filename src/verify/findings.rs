//! What a row found, and the verdict that follows.

use crate::model::printable::{cut, cut_to};

use std::collections::BTreeSet;

use super::objects::Fault;
use super::{Code, Row, State};

/// More findings than this are counted, not kept.
const KEPT: usize = 20;

/// What a row says has so many letters at most: it may name every key that signed.
const LONGEST: usize = 4000;

/// Everything that is wrong with one row.
#[derive(Clone, Default)]
pub(crate) struct Findings {
    wrong: Vec<String>,
    count: usize,
    missing: Vec<String>,
    missing_count: usize,
    /// The codes of what is wrong, as far as it has some.
    codes: BTreeSet<Code>,
    /// The codes of what is not here.
    missing_codes: BTreeSet<Code>,
}

impl Findings {
    /// Adds something that is wrong.
    pub(crate) fn add(&mut self, finding: String) {
        self.count += 1;
        if self.wrong.len() < KEPT {
            self.wrong.push(cut(finding));
        }
    }

    /// Adds something that is wrong with a row of a run.
    pub(crate) fn report(&mut self, code: Code, finding: String) {
        self.codes.insert(code);
        self.add(finding);
    }

    /// Adds so many things that are wrong and were not kept.
    pub(crate) fn more(&mut self, count: usize) {
        self.count += count;
    }

    /// Adds an object that is no evidence.
    pub(super) fn fault(&mut self, whose: &str, fault: &Fault) {
        match fault {
            Fault::Missing(_) => self.missing(format!("{whose}: {fault}")),
            Fault::Gone(_) | Fault::Damaged(..) | Fault::Kind(..) | Fault::TooLarge(..) => {
                self.add(format!("{whose}: {fault}"));
            }
        }
    }

    /// Adds an object that is no evidence for a row of a run.
    pub(super) fn report_fault(&mut self, code: Code, whose: &str, fault: &Fault) {
        match fault {
            Fault::Missing(_) => self.missing_codes.insert(code),
            Fault::Gone(_) | Fault::Damaged(..) | Fault::Kind(..) | Fault::TooLarge(..) => self.codes.insert(code),
        };
        self.fault(whose, fault);
    }

    /// Adds something that is not here.
    pub(crate) fn missing(&mut self, finding: String) {
        self.missing_count += 1;
        if self.missing.len() < KEPT {
            self.missing.push(cut(finding));
        }
    }

    /// Whether anything is wrong, as opposed to not here.
    pub(crate) fn wrong(&self) -> bool {
        self.count > 0
    }

    /// Adds all of another's.
    pub(crate) fn extend(&mut self, other: &Self) {
        for finding in &other.wrong {
            self.add(finding.clone());
        }
        self.count += other.count - other.wrong.len();
        for finding in &other.missing {
            self.missing(finding.clone());
        }
        self.missing_count += other.missing_count - other.missing.len();
        self.codes.extend(&other.codes);
        self.missing_codes.extend(&other.missing_codes);
    }

    /// Returns the first finding, objects that are not here included.
    pub(crate) fn first(&self) -> Option<&str> {
        self.wrong.first().or(self.missing.first()).map(String::as_str)
    }

    /// Returns the verdict: what is not here is held against the row unless the repository is one that leaves things out.
    pub(crate) fn verdict(mut self, lazy: bool, fine: impl FnOnce() -> String) -> Verdict {
        if !lazy {
            self.count += self.missing_count - self.missing.len();
            for finding in std::mem::take(&mut self.missing) {
                self.add(finding);
            }
            self.codes.append(&mut self.missing_codes);
        }
        if let Some(first) = self.wrong.first() {
            return Verdict { codes: self.codes, ..Verdict::failed(and_more(first, self.count)) };
        }
        match self.missing.first() {
            Some(first) => Verdict::incomplete(and_more(first, self.missing_count)),
            None => Verdict::ok(fine()),
        }
    }
}

fn and_more(first: &str, count: usize) -> String {
    if count > 1 { format!("{first} (and {} more)", count - 1) } else { first.to_owned() }
}

/// What one row says.
#[derive(Clone)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    pub(crate) detail: String,
    /// Whether it could say more with objects that are not here.
    pub(crate) incomplete: bool,
    /// Whether it fails only because the verifier expected something else, and nothing contradicts the run.
    pub(crate) mismatch: bool,
    /// Whether it fails only because another run has the same id, and nothing contradicts either.
    pub(crate) conflict: bool,
    /// The codes of what fails it: of a run at least one, of anything else perhaps none.
    pub(crate) codes: BTreeSet<Code>,
}

impl Verdict {
    pub(crate) fn ok(detail: impl Into<String>) -> Self {
        Self::of(State::Ok, detail.into(), false)
    }

    pub(crate) fn failed(detail: impl Into<String>) -> Self {
        Self::of(State::Failed, detail.into(), false)
    }

    /// Fails a row of a run.
    pub(crate) fn fails(codes: impl IntoIterator<Item = Code>, detail: impl Into<String>) -> Self {
        Self { codes: codes.into_iter().collect(), ..Self::failed(detail) }
    }

    /// Fails a row because what the verifier expected does not hold.
    pub(crate) fn mismatch(codes: impl IntoIterator<Item = Code>, detail: impl Into<String>) -> Self {
        Self { mismatch: true, ..Self::fails(codes, detail) }
    }

    /// Fails a row because another run has the same id.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self { conflict: true, ..Self::fails([Code::SameId], detail) }
    }

    pub(crate) fn not_applicable(detail: impl Into<String>) -> Self {
        Self::of(State::NotApplicable, detail.into(), false)
    }

    fn of(state: State, detail: String, incomplete: bool) -> Self {
        Self {
            state,
            detail: cut_to(detail, LONGEST),
            incomplete,
            mismatch: false,
            conflict: false,
            codes: BTreeSet::new(),
        }
    }

    pub(crate) fn incomplete(detail: impl Into<String>) -> Self {
        Self::of(State::NotApplicable, detail.into(), true)
    }

    /// Returns the row of a report that it is.
    pub(crate) fn row(name: &'static str, verdict: &Self) -> Row {
        Row {
            name,
            state: verdict.state,
            detail: verdict.detail.clone(),
            codes: verdict.codes.iter().copied().collect(),
        }
    }
}

/// Returns `1 entry`, `2 entries`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_findings_are_counted_and_few_are_kept() {
        let mut findings = Findings::default();
        (0..1_000_000).for_each(|at| findings.add(format!("{at} {}", "x".repeat(at % 3000))));
        (0..1_000_000).for_each(|_| findings.missing("gone".to_owned()));
        assert!(findings.wrong.len() == KEPT && findings.missing.len() == KEPT);
        let mut all = Findings::default();
        all.add("x".repeat(1 << 20));
        all.extend(&findings);
        let verdict = all.clone().verdict(true, String::new);
        assert!(verdict.detail.len() < 1100 && verdict.detail.ends_with("(and 1000000 more)"), "{}", verdict.detail);
        let verdict = all.verdict(false, String::new);
        assert!(verdict.detail.ends_with("(and 2000000 more)"), "{}", verdict.detail);
    }
}
