//! The findings of a row, and the verdict that follows from them.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::model::name::ItemId;
use crate::model::printable::{cut, cut_to};

use super::objects::Fault;
use super::{Code, Failure, Row, Stage, State};

/// Further findings are counted, not kept.
const MAX_KEPT: usize = 20;

/// The longest text of a row, in letters. It may name every key that signed.
const MAX_DETAIL: usize = 4000;

#[derive(Clone, Default)]
pub(crate) struct Findings {
    wrong: List,
    missing: List,
}

/// One contradiction, or one missing object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The code; `None` for proofs, threads and missing objects.
    #[serde(serialize_with = "word")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<String>"))]
    pub code: Option<Code>,
    /// The number of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The path in the tree of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A sentence for people.
    pub text: String,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn word<S: Serializer>(code: &Option<Code>, serializer: S) -> Result<S::Ok, S::Error> {
    code.map(Code::word).serialize(serializer)
}

/// The place of a finding in the order of all findings of a verification: by stage, then by entry,
/// then by code.
///
/// A finding about the whole chain counts as one of entry 0. A requirement of the reader that is
/// not met counts as one after the last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct First {
    /// The stage.
    pub stage: Stage,
    entry: u64,
    /// The code; `None` in evidence of another format.
    pub code: Option<Code>,
    /// The row that it fails.
    pub row: &'static str,
}

impl First {
    fn new(code: Code, entry: Option<u64>) -> Self {
        let entry = if code.is_requirement() { u64::MAX } else { entry.unwrap_or(0) };
        Self { stage: code.stage(), entry, code: Some(code), row: code.row() }
    }

    /// Returns the first finding of a row that fails.
    pub(crate) fn from_verdict(row: &'static str, verdict: &Verdict) -> Option<Self> {
        let without_code = Self { stage: Code::of_row(row).stage(), entry: 0, code: None, row };
        (verdict.state == State::Failed).then(|| verdict.first.unwrap_or(without_code))
    }

    /// Returns the number of the entry; `None` for a requirement.
    pub fn entry(self) -> Option<u64> {
        (self.entry < u64::MAX).then_some(self.entry)
    }

    /// Returns the failure that follows from it.
    pub fn failure(self) -> Failure {
        self.code.unwrap_or_else(|| Code::of_row(self.row)).failure()
    }

    /// Returns true if it is in the chain or the plan. What the entries say later than that has no
    /// defined meaning, and no other bytes are judged.
    pub fn precedes_content(self) -> bool {
        self.stage < Stage::Content
    }

    /// Returns true if it contradicts the run, as opposed to evidence that is missing or not
    /// trusted.
    pub fn contradicts(self) -> bool {
        self.code.is_none_or(Code::contradicts)
    }
}

/// Where a finding is.
#[derive(Clone, Copy, Default)]
pub(crate) struct At<'a> {
    entry: Option<u64>,
    item: Option<&'a ItemId>,
    path: Option<&'a str>,
}

impl<'a> At<'a> {
    pub(crate) fn entry(seq: u64) -> Self {
        Self { entry: Some(seq), ..Self::default() }
    }

    pub(crate) fn item(item: &'a ItemId) -> Self {
        Self::default().for_item(item)
    }

    pub(crate) fn for_item(self, item: &'a ItemId) -> Self {
        Self { item: Some(item), ..self }
    }

    pub(crate) fn path(self, path: &'a str) -> Self {
        Self { path: Some(path), ..self }
    }

    fn finding(self, code: Option<Code>, text: String) -> Finding {
        let path = self.path.map(|path| cut(path.to_owned()));
        Finding { code, entry: self.entry, item: self.item.cloned(), path, text: cut(text) }
    }
}

/// Contradictions, or missing objects.
#[derive(Clone, Default)]
struct List {
    findings: Vec<Finding>,
    count: usize,
    codes: BTreeSet<Code>,
    first: Option<First>,
}

impl List {
    fn add(&mut self, finding: impl FnOnce() -> Finding) {
        self.count += 1;
        if self.findings.len() < MAX_KEPT {
            self.findings.push(finding());
        }
    }

    fn note(&mut self, code: Code, at: At<'_>) {
        self.codes.insert(code);
        self.first = earliest(self.first, Some(First::new(code, at.entry)));
    }

    fn extend(&mut self, other: &Self) {
        other.findings.iter().for_each(|finding| self.add(|| finding.clone()));
        self.count += other.count - other.findings.len();
        self.codes.extend(&other.codes);
        self.first = earliest(self.first, other.first);
    }

    /// Returns the first finding and the number of the others.
    fn summary(&self) -> Option<String> {
        let first = &self.findings.first()?.text;
        Some(if self.count > 1 { format!("{first} (and {} more)", self.count - 1) } else { first.clone() })
    }
}

impl Findings {
    /// Adds a contradiction without a code.
    pub(crate) fn add(&mut self, text: String) {
        self.wrong.add(|| At::default().finding(None, text));
    }

    /// Adds a contradiction in a run.
    pub(crate) fn report(&mut self, code: Code, text: String) {
        self.report_at(At::default(), code, text);
    }

    /// Adds a contradiction in a run with its place.
    pub(crate) fn report_at(&mut self, at: At<'_>, code: Code, text: String) {
        self.wrong.note(code, at);
        self.wrong.add(|| at.finding(Some(code), text));
    }

    /// Adds an unusable object without a code.
    pub(super) fn fault(&mut self, label: &str, fault: &Fault) {
        self.list_for(fault).add(|| At::default().finding(None, format!("{label}: {fault}")));
    }

    /// Adds an unusable object of a run.
    pub(super) fn report_fault(&mut self, code: Code, label: &str, fault: &Fault) {
        self.report_fault_at(At::default(), code, label, fault);
    }

    /// Adds an unusable object of a run with its place.
    pub(super) fn report_fault_at(&mut self, at: At<'_>, code: Code, label: &str, fault: &Fault) {
        let list = self.list_for(fault);
        list.note(code, at);
        list.add(|| at.finding(Some(code), format!("{label}: {fault}")));
    }

    fn list_for(&mut self, fault: &Fault) -> &mut List {
        match fault {
            Fault::Missing(_) => &mut self.missing,
            Fault::Gone(_) | Fault::Damaged(..) | Fault::Kind(..) | Fault::TooLarge(..) | Fault::Differs { .. } => {
                &mut self.wrong
            }
        }
    }

    pub(crate) fn missing(&mut self, text: String) {
        self.missing.add(|| At::default().finding(None, text));
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
        self.wrong.findings.first().or(self.missing.findings.first()).map(|finding| finding.text.as_str())
    }

    /// Returns the verdict. In a complete repository (`lazy` is false), a missing object is a
    /// contradiction.
    pub(crate) fn verdict(mut self, lazy: bool, fine: impl FnOnce() -> String) -> Verdict {
        if !lazy {
            self.wrong.extend(&std::mem::take(&mut self.missing));
        }
        match (self.wrong.summary(), self.missing.summary()) {
            (Some(wrong), _) => {
                let List { codes, first, findings, .. } = self.wrong;
                Verdict { codes, first, findings, ..Verdict::failed(wrong) }
            }
            (None, Some(missing)) => Verdict { findings: self.missing.findings, ..Verdict::incomplete(missing) },
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
    /// The codes of the failure; a failed row of a run has at least one.
    pub(crate) codes: BTreeSet<Code>,
    /// The first finding with a code.
    pub(crate) first: Option<First>,
    /// The findings that are kept.
    pub(crate) findings: Vec<Finding>,
}

impl Verdict {
    pub(crate) fn ok(detail: impl Into<String>) -> Self {
        Self::with_state(State::Ok, detail.into(), false)
    }

    pub(crate) fn failed(detail: impl Into<String>) -> Self {
        Self::with_state(State::Failed, detail.into(), false)
    }

    /// Fails a row of a run.
    pub(crate) fn fails(codes: impl IntoIterator<Item = Code>, detail: impl Into<String>) -> Self {
        let codes: BTreeSet<Code> = codes.into_iter().collect();
        let detail = detail.into();
        let findings = codes.iter().map(|code| At::default().finding(Some(*code), detail.clone())).collect();
        let first = codes.iter().map(|code| First::new(*code, None)).min();
        Self { codes, first, findings, ..Self::failed(detail) }
    }

    /// Returns true if the row fails only because the reader requires something else.
    pub(crate) fn is_mismatch(&self) -> bool {
        self.first.is_some_and(|first| first.failure() == Failure::Mismatch)
    }

    /// Returns the verdict once the first finding of all rows is known: later stages are not
    /// judged.
    pub(crate) fn up_to(&self, row: &'static str, first: First) -> Self {
        let stage = First::from_verdict(row, self).map_or_else(|| Code::of_row(row).stage(), |own| own.stage);
        if stage > first.stage {
            return Self::not_applicable(format!("not judged, since the row {} fails", first.row));
        }
        self.clone()
    }

    pub(crate) fn not_applicable(detail: impl Into<String>) -> Self {
        Self::with_state(State::NotApplicable, detail.into(), false)
    }

    fn with_state(state: State, detail: String, incomplete: bool) -> Self {
        Self {
            state,
            detail: cut_to(detail, MAX_DETAIL),
            incomplete,
            codes: BTreeSet::new(),
            first: None,
            findings: Vec::new(),
        }
    }

    /// Leaves a row open that would hold.
    pub(crate) fn open_if(self, is_open: bool) -> Self {
        let state = if is_open && self.state == State::Ok { State::NotApplicable } else { self.state };
        Self { state, ..self }
    }

    pub(crate) fn incomplete(detail: impl Into<String>) -> Self {
        Self::with_state(State::NotApplicable, detail.into(), true)
    }

    pub(crate) fn row(name: &'static str, verdict: &Self) -> Row {
        Row {
            name,
            state: verdict.state,
            detail: verdict.detail.clone(),
            codes: verdict.codes.iter().copied().collect(),
            findings: verdict.findings.clone(),
        }
    }
}

fn earliest(one: Option<First>, other: Option<First>) -> Option<First> {
    one.into_iter().chain(other).min()
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
        assert!(findings.wrong.findings.len() == MAX_KEPT && findings.missing.findings.len() == MAX_KEPT);
        let mut all = Findings::default();
        all.add("x".repeat(1 << 20));
        all.extend(&findings);
        let verdict = all.clone().verdict(true, String::new);
        assert!(verdict.detail.len() < 1100 && verdict.detail.ends_with("(and 1000000 more)"), "{}", verdict.detail);
        let merged = all.verdict(false, String::new);
        assert!(merged.detail.ends_with("(and 2000000 more)"), "{}", merged.detail);
    }
}
