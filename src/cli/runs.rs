//! `git handoff runs`

use git_handoff::git::store::Store;
use git_handoff::model::format;
use serde_json::{Value, json};

use super::target::{Target, own_runs};
use super::{Ending, Failure, Output, table};
use git_handoff::repository::Repository;

/// List the runs of this repository
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line a run. A run that cannot be read is listed as such and does not hide the others.
pub(crate) fn run(_: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (rows, value) = list(&repository.store)?;
    if output.json {
        output.value(&value);
    } else {
        table::lines(&rows).iter().for_each(|line| output.line(line));
        if rows.is_empty() {
            output.note("there are no runs here");
        }
    }
    Ok(Ending::Done)
}

/// Returns the runs as rows of a table, and as `runs --json` has them.
pub(crate) fn list(store: &Store) -> Result<(Vec<Vec<String>>, Value), Failure> {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for run in own_runs(store)? {
        let target = Target { run: run.clone(), reference: format::run_ref(&run) };
        match target.view(store) {
            Ok(view) => {
                let counts = statuses(&view);
                let shown: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
                let sealed = if view.state.sealed { "sealed" } else { "open" };
                rows.push(vec![run.to_string(), view.state.submitted.queue.clone(), sealed.into(), shown.join(", ")]);
                values.push(json!({
                    "run": run, "queue": view.state.submitted.queue, "sealed": view.state.sealed, "counts": counts,
                }));
            }
            Err(failure) => {
                rows.push(vec![run.to_string(), "?".into(), "unreadable".into(), failure.message.clone()]);
                values.push(
                    json!({ "run": run, "queue": null, "sealed": false, "counts": {}, "error": failure.message }),
                );
            }
        }
    }
    Ok((rows, json!({ "schema": "git-handoff.runs/1", "runs": values })))
}

/// Returns the number of items per status, `pending` and `ready` included.
pub(crate) fn statuses(view: &git_handoff::run::View) -> std::collections::BTreeMap<&'static str, u64> {
    let mut counts = std::collections::BTreeMap::new();
    for at in 0..view.state.items.len() {
        *counts.entry(view.state.status(at)).or_default() += 1;
    }
    counts
}
