//! The findings of a row, and the verdict that follows from them.

use crate::model::printable::{cut, cut_to};

use std::collections::BTreeSet;

use super::objects::Fault;
use super::{Code, Row, State};

/// Further findings are counted, not kept.
const MAX_KEPT: usize = 20;

/// The longest text of a row, in letters. It may name every key that signed.
const MAX_DETAIL: usize = 4000;

#[derive(Clone, Default)]
pub(crate) struct Findings {
    wrong: List,
    missing: List,
}

/// Contradictions, or missing objects.
#[derive(Clone, Default)]
struct List {
    kept: Vec<String>,
    count: usize,
    codes: BTreeSet<Code>,
}

impl List {
    fn add(&mut self, finding: String) {
        self.count += 1;
        if self.kept.len() < MAX_KEPT {
            self.kept.push(cut(finding));
        }
    }

    fn extend(&mut self, other: &Self) {
        other.kept.iter().for_each(|finding| self.add(finding.clone()));
        self.count += other.count - other.kept.len();
        self.codes.extend(&other.codes);
    }

    /// Returns the first finding and the number of the others.
    fn summary(&self) -> Option<String> {
        let first = self.kept.first()?;
        Some(if self.count > 1 { format!("{first} (and {} more)", self.count - 1) } else { first.clone() })
    }
}

impl Findings {
    /// Adds a contradiction without a code.
    pub(crate) fn add(&mut self, finding: String) {
        self.wrong.add(finding);
    }

    /// Adds a contradiction in a run.
    pub(crate) fn report(&mut self, code: Code, finding: String) {
        self.wrong.codes.insert(code);
        self.wrong.add(finding);
    }

    pub(super) fn count_unlisted(&mut self, count: usize) {
        self.wrong.count += count;
    }

    /// Adds an unusable object without a code.
    pub(super) fn fault(&mut self, label: &str, fault: &Fault) {
        self.list_for(fault).add(format!("{label}: {fault}"));
    }

    /// Adds an unusable object of a run.
    pub(super) fn report_fault(&mut self, code: Code, label: &str, fault: &Fault) {
        self.list_for(fault).codes.insert(code);
        self.fault(label, fault);
    }

    fn list_for(&mut self, fault: &Fault) -> &mut List {
        match fault {
            Fault::Missing(_) => &mut self.missing,
            Fault::Gone(_) | Fault::Damaged(..) | Fault::Kind(..) | Fault::TooLarge(..) => &mut self.wrong,
        }
    }

    pub(crate) fn missing(&mut self, finding: String) {
        self.missing.add(finding);
    }

    /// Returns true if there is a contradiction, as opposed to a missing object.
    pub(crate) fn is_contradicted(&self) -> bool {
        self.wrong.count > 0
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.wrong.extend(&other.wrong);
        self.missing.extend(&other.missing);
    }

    /// Returns the first finding, contradictions first.
    pub(crate) fn first(&self) -> Option<&str> {
        self.wrong.kept.first().or(self.missing.kept.first()).map(String::as_str)
    }

    /// Returns the verdict. In a complete repository (`lazy` is false), a missing object is a
    /// contradiction.
    pub(crate) fn verdict(mut self, lazy: bool, fine: impl FnOnce() -> String) -> Verdict {
        if !lazy {
            self.wrong.extend(&std::mem::take(&mut self.missing));
        }
        match (self.wrong.summary(), self.missing.summary()) {
            (Some(wrong), _) => Verdict { codes: self.wrong.codes, ..Verdict::failed(wrong) },
            (None, Some(missing)) => Verdict::incomplete(missing),
            (None, None) => Verdict::ok(fine()),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    pub(crate) detail: String,
    /// True if missing objects could change the verdict.
    pub(crate) incomplete: bool,
    /// True if the row fails only because the verifier expected something else.
    pub(crate) mismatch: bool,
    /// True if the row fails only because another run has the same id.
    pub(crate) conflict: bool,
    /// The codes of the failure; a failed row of a run has at least one.
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

    /// Fails a row because the run is not as the verifier expects.
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
            detail: cut_to(detail, MAX_DETAIL),
            incomplete,
            mismatch: false,
            conflict: false,
            codes: BTreeSet::new(),
        }
    }

    pub(crate) fn incomplete(detail: impl Into<String>) -> Self {
        Self::of(State::NotApplicable, detail.into(), true)
    }

    pub(crate) fn row(name: &'static str, verdict: &Self) -> Row {
        Row {
            name,
            state: verdict.state,
            detail: verdict.detail.clone(),
            codes: verdict.codes.iter().copied().collect(),
        }
    }
}

/// Returns `1 entry` or `2 entries`.
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
        assert!(findings.wrong.kept.len() == MAX_KEPT && findings.missing.kept.len() == MAX_KEPT);
        let mut all = Findings::default();
        all.add("x".repeat(1 << 20));
        all.extend(&findings);
        let verdict = all.clone().verdict(true, String::new);
        assert!(verdict.detail.len() < 1100 && verdict.detail.ends_with("(and 1000000 more)"), "{}", verdict.detail);
        let verdict = all.verdict(false, String::new);
        assert!(verdict.detail.ends_with("(and 2000000 more)"), "{}", verdict.detail);
    }
}
