//! Checks that rest on files which their workers can edit.

use super::{Finding, Patient};
use crate::run::query::Target;
use crate::run::query::target::own_runs;
use crate::upkeep::protection::suggest;

/// Suggests protected files, unless a plan of a run here protects some.
pub(super) fn examine(patient: &Patient<'_>) -> Option<Finding> {
    let suggestion = suggest(patient.store, &patient.repository.config).filter(|_| !is_done_by_plans(patient))?;
    let message = format!(
        "no files are protected from {}, which can edit what its check rests on",
        suggestion.checked.join(", ")
    );
    Some(Finding::note("checks-unprotected", message).hint(suggestion.hint()))
}

/// Returns true if an item of a run here protects files. Unreadable runs have findings of their
/// own.
fn is_done_by_plans(patient: &Patient<'_>) -> bool {
    let runs = own_runs(patient.store).unwrap_or_default().into_iter();
    let views = runs.filter_map(|run| Target::own(run).view(patient.store).ok());
    let mut items =
        views.flat_map(|view| view.state.graph.items().iter().map(|item| !item.protect.is_empty()).collect::<Vec<_>>());
    items.any(|protects| protects)
}
