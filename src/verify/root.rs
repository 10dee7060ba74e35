//! The row `root`: the seal states what the entries before it give.

use crate::ledger::merkle::{self, TreeHead};
use crate::model::digest::Digest;
use crate::model::entry::Event;

use super::codes::Code;
use super::findings::{At, Findings, Verdict};
use super::{Case, State};

/// Returns the Merkle root over the entries before `seal`.
pub(super) fn over(case: &Case<'_>, seal: usize) -> Digest {
    merkle::root(case.chain.links[..seal].iter().map(|link| link.hash))
}

/// Returns the entries and root of an unsealed run whose entries follow one another from the first.
pub(super) fn so_far(case: &Case<'_>) -> Option<TreeHead> {
    let entries = case.chain.links.len();
    let mut findings = case.chain.findings.clone();
    case.chain.check_order(&mut findings);
    let goes_on = !case.chain.cut && case.seal().is_none() && findings.first().is_none() && entries > 0;
    goes_on.then(|| TreeHead { size: entries as u64, root: over(case, entries) })
}

pub(super) fn row(case: &Case<'_>, anchor: State) -> Verdict {
    if let Some(cut_off) = case.cut_off() {
        return cut_off;
    }
    let Some(seal) = case.seal() else {
        let so_far =
            so_far(case).map_or_else(String::new, |head| format!("; {} over {} entries so far", head.root, head.size));
        return Verdict::fails([Code::NotSealed], format!("not sealed{so_far}"));
    };
    let Event::RunSealed(stated) = &case.chain.links[seal].entry.event else {
        unreachable!("the place of the seal holds a seal");
    };
    let root = over(case, seal);
    let at = At::entry(case.chain.links[seal].entry.seq);
    let mut findings = Findings::default();
    if stated.root != root {
        findings.report_at(
            at,
            Code::SealRoot,
            format!("merkle {} recomputed, but the seal says {}", root.short(), stated.root.short()),
        );
    }
    let label = if anchor == State::Ok { "anchored" } else { "sealed" };
    findings.verdict(false, || format!("merkle {} = {label} root", root.short()))
}
