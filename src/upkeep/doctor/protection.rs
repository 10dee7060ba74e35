//! Checks that rest on files which their workers can edit.

use std::collections::BTreeSet;

use super::{Finding, Patient};
use crate::git::protectable::committed;
use crate::model::hints;
use crate::model::protect_rule::ProtectRule;
use crate::model::protectable::runner;
use crate::run::query::Target;
use crate::run::query::target::own_runs;
use crate::upkeep::protection::suggest;

/// Finds pathspecs of the settings that select no committed file. Known ones name files that a
/// worker could add.
pub(super) fn unmatched(patient: &Patient<'_>) -> Vec<Finding> {
    // Without a commit or a work tree, no pathspec selects anything.
    if committed(patient.store, ".").is_empty() {
        return Vec::new();
    }
    let config = &patient.repository.config;
    let executors = config.executors.values().chain(config.subagents.values());
    let rules = config.protect.iter().chain(executors.flat_map(|one| &one.protect));
    let pathspecs: BTreeSet<&String> = rules.filter_map(ProtectRule::pathspec).collect();
    let pathspecs = pathspecs.into_iter().filter(|pathspec| runner(pathspec).is_none());
    let unmatched = pathspecs.filter(|pathspec| committed(patient.store, pathspec).is_empty());
    unmatched
        .map(|pathspec| {
            let message = format!("the pathspec {pathspec:?} selects no committed file, so it protects nothing");
            Finding::note("protects-nothing", message).hint(hints::list_files(pathspec))
        })
        .collect()
}

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
