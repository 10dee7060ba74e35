//! Hints for a report: how to make a key known, and how to anchor a run.

use git_handoff::model::hints::{self, Hint};
use git_handoff::verify::{Failure as Lack, LOCAL, Report, SignerSeen, Standing};

use super::super::Output;

/// Prints the hints for the report of a run or proof.
pub(super) fn advise(report: &Report, output: &mut Output) {
    of_signers(report.signers.iter(), output);
    if report.failure == Some(Lack::AnchorMissing) {
        output.hint_once(anchoring(report));
    }
    if report.failure == Some(Lack::Conflict) && report.same_id.is_none() {
        output.hint_once(hints::adopt_and_delete(&report.run));
    } else if report.failure == Some(Lack::Conflict) {
        if let Some(key) = report.same_id.as_ref().and_then(|same| same.key.as_ref()) {
            output.hint_once(hints::verify_signed_by(run_name(report), key));
        }
        output.hint_once(hints::run_under_another_id());
    }
}

/// Prints how to make an unknown signer's key known.
pub(crate) fn of_signers<'s>(mut signers: impl Iterator<Item = &'s SignerSeen>, output: &mut Output) {
    if signers.any(|signer| signer.unknown) {
        output.hint_once(hints::know_key());
    }
}

/// Returns the name of the run for commands.
fn run_name(report: &Report) -> String {
    report.remote.as_ref().map_or_else(|| report.run.clone(), |remote| format!("{remote}/{}", report.run))
}

/// Returns the command that publishes a run to the first anchor that lacks it.
fn anchoring(report: &Report) -> Hint {
    let run = run_name(report);
    // Local logs come first. They count only if no anchor is configured, or if one of them is
    // broken.
    let outside = report
        .anchors
        .iter()
        .filter(|one| one.kind != LOCAL)
        .find(|one| matches!(one.standing, Standing::Missing | Standing::Unreachable));
    let local = report.anchors.iter().find(|one| one.kind == LOCAL).map(|one| one.standing);
    match (outside, &report.remote) {
        (Some(one), _) if one.standing == Standing::Unreachable => hints::check_anchors(run),
        (Some(one), None) => hints::push_run_to_anchor(&one.name, &report.run),
        (Some(one), Some(_)) => hints::ask_to_anchor(&one.name, &report.run),
        (None, _) if local == Some(Standing::Unreachable) => hints::doctor(),
        (None, Some(remote)) => hints::fetch_logs(remote),
        (None, None) => hints::log_run(&report.run),
    }
}
