//! Makes the answers from the reports.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    ContinuesShown, DecidedShown, FirstShown, HeadShown, OtherRunShown, ReportShown, RowShown, SameIdShown, SinceShown,
    TakenOverShown, UpstreamShown,
};
use crate::ledger::merkle::TreeHead;
use crate::model::continued::Continues;
use crate::model::printable::cut;
use crate::verify::{Code, CopyState, Decided, First, LOCAL, Report, Row, SameId, TakenOver, Upstream, Voucher};

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl Report {
    /// Returns the report as `git-handoff.verify/1`.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(ReportShown::new(self)).expect("every report can be written as JSON")
    }
}

impl<'a> ReportShown<'a> {
    fn new(report: &'a Report) -> Self {
        let (has_pipelines, anchors) = (!report.pipelines.is_empty(), report.anchors.as_slice());
        Self {
            run: &report.run,
            remote: report.remote.as_deref(),
            unmet: report.unmet.as_deref(),
            sealed: report.sealed,
            intact: report.intact,
            trusted: report.is_trusted(),
            claim: report.claim,
            guarantee: report.guarantee,
            finding: report.finding.map(FirstShown::from),
            failure: report.failure,
            outcome: report.outcome.as_ref(),
            entries: report.entries,
            root: report.root,
            so_far: report.so_far.map(HeadShown::from),
            since: report.since.map(|it| SinceShown { entries: it.head.size, root: it.head.root, known: it.known }),
            continues: report.continues.as_ref().map(ContinuesShown::from),
            plan: report.plan,
            rules: report.rules,
            base: report.base,
            checks: report.rows.map_ref(RowShown::from),
            signers: &report.signers,
            decisions: report.decisions.iter().map(DecidedShown::from).collect(),
            takeovers: report.takeovers.iter().map(TakenOverShown::from).collect(),
            protected: &report.protected,
            not_recomputed: &report.not_recomputed,
            unprotected: &report.unprotected,
            same_id: report.same_id.as_ref().map(SameIdShown::from),
            taken_from: report.upstream.iter().map(UpstreamShown::from).collect(),
            pipelines: has_pipelines.then_some(&report.pipelines),
            blocks: has_pipelines.then_some(&report.blocks),
            anchors: anchors.iter().any(|anchored| anchored.kind != LOCAL).then_some(anchors),
            times: &report.times,
            sandbox: &report.sandbox,
            home: report.real_home.then_some("real"),
            writable: &report.writable,
            clock: report.pinned_clock.then_some("pinned"),
            uncovered: &report.uncovered,
        }
    }
}

impl From<First> for FirstShown {
    fn from(first: First) -> Self {
        Self { stage: first.stage, code: first.code.map(Code::word), entry: first.entry() }
    }
}

impl From<TreeHead> for HeadShown {
    fn from(head: TreeHead) -> Self {
        Self { entries: head.size, root: head.root }
    }
}

impl<'a> From<&'a Continues> for ContinuesShown<'a> {
    fn from(continues: &'a Continues) -> Self {
        Self { run: &continues.run, entries: continues.entries, root: continues.root }
    }
}

impl<'a> From<&'a Row> for RowShown<'a> {
    fn from(row: &'a Row) -> Self {
        let codes = row.codes.iter().map(|code| code.word()).collect();
        Self { ok: row.state, detail: &row.detail, codes, findings: &row.findings }
    }
}

impl<'a> From<&'a Decided> for DecidedShown<'a> {
    fn from(it: &'a Decided) -> Self {
        Self {
            item: &it.item,
            decision: it.decision,
            by: &it.by,
            signed: it.voucher == Voucher::Decider,
            on_word_of: it.voucher.other_key(),
            role_shown: (!it.role_shown).then_some(false),
        }
    }
}

impl<'a> From<&'a TakenOver> for TakenOverShown<'a> {
    fn from(taken: &'a TakenOver) -> Self {
        let it = &taken.takeover;
        Self {
            entry: it.entry,
            item: &it.item,
            attempt: it.attempt,
            driver: &it.driver,
            host: it.host.as_deref(),
            taker: it.taker.as_ref(),
            because: it.because,
            key: taken.key.as_deref(),
        }
    }
}

impl<'a> From<&'a Upstream> for UpstreamShown<'a> {
    fn from(it: &'a Upstream) -> Self {
        let here = it.here != CopyState::Absent;
        let detail = match &it.here {
            CopyState::Unproven(why) | CopyState::Contradicts(why) => Some(cut(why.clone())),
            CopyState::Intact | CopyState::Absent => None,
        };
        Self {
            kind: it.word(),
            name: &it.name,
            depth: it.depth,
            root: it.run.then_some(&it.is),
            checkpoint: (!it.run).then_some(&it.is),
            here,
            intact: here.then_some(it.here == CopyState::Intact),
            detail,
        }
    }
}

impl<'a> From<&'a SameId> for SameIdShown<'a> {
    fn from(it: &'a SameId) -> Self {
        let others = it.others.iter().map(|other| OtherRunShown {
            key: &other.key,
            principal: other.principal.as_deref(),
            first: other.first,
            named_by: &other.named_by,
            conflicts: other.conflicts,
        });
        Self { key: it.key.as_deref(), first: it.first, others: others.collect() }
    }
}
