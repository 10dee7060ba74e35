//! `git handoff anchor push`

use git_handoff::anchor::{Error, Means, Published, Sealing};
use git_handoff::ledger::log::{self, Record};
use git_handoff::model::format;
use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::repository::Repository;
use git_handoff::run::target::own_runs;
use git_handoff::verify::{Options, Seal, State, verify};
use serde_json::json;

use super::super::{Ending, Failure, Output, table};

/// Hand the roots of sealed runs over to anchors
///
/// A time-stamping authority's token is kept here, beside the run. What an anchor has already is left as it is; where it holds something else, nothing is written and the exit code is 3.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The anchors and the runs [default: all anchors, all runs that your key sealed]
    #[arg(value_name = "ANCHOR|RUN")]
    names: Vec<String>,
}

/// Publishes and prints what became of it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let is_anchor = |name: &String| repository.config.anchors.contains_key(name);
    let (anchors, runs): (Vec<String>, Vec<String>) = arguments.names.iter().cloned().partition(is_anchor);
    let anchors = repository.anchors(&anchors)?;
    if anchors.is_empty() {
        return Err(Failure::refused("no-anchors", "no anchor is configured".into()).hint(hints::add_anchor()));
    }
    let sealings = sealings(&runs, repository)?;
    let means = Means::of(repository);
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let mut failed = None;
    for anchor in &anchors {
        match anchor.publish(&means, &sealings, &|run| unsure(run, repository)) {
            Ok(published) => {
                for Published { kind, name, status } in published {
                    values.push(json!({"anchor": anchor.name, "kind": kind, "name": name, "status": status}));
                    rows.push(vec![anchor.name.clone(), status.to_owned(), kind.to_owned(), name]);
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                failed = Some(Failure { message: format!("{}: {}", anchor.name, failure.message), ..failure });
                break;
            }
        }
    }
    if output.json && failed.is_none() {
        output.value(&json!({ "schema": "git-handoff.anchor-push/1", "published": values }));
    } else if !output.json {
        table::lines(&rows).iter().for_each(|line| output.line(line));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if rows.is_empty() {
        output.note("there is nothing to publish yet: your key sealed no run here");
    }
    Ok(Ending::Done)
}

/// Returns the runs that our key sealed, all or those that were named.
fn sealings(names: &[String], repository: &Repository) -> Result<Vec<Sealing>, Failure> {
    let runs = own_runs(&repository.store)?;
    if let Some(unknown) = names.iter().find(|name| !runs.iter().any(|run| run.as_str() == *name)) {
        let message = format!("{unknown:?} is neither an anchor in your configuration nor a run here");
        return Err(Failure::refused("unknown-name", message).hint(hints::anchors_and_runs()));
    }
    let Some(fingerprint) = repository.own_fingerprint() else { return Ok(Vec::new()) };
    let mut sealings = Vec::new();
    for run in runs {
        let named = names.iter().any(|name| name == run.as_str());
        if !named && !names.is_empty() {
            continue;
        }
        match log::find(&repository.store, &fingerprint, run.clone())? {
            Some(Record::Sealed { run, root, entries, seal, commit }) => {
                let seal = Seal { root, entries, seal, commit };
                sealings.push(Sealing { run, seal, fingerprint: fingerprint.clone() });
            }
            _ if named => {
                let message = format!("your log holds no seal of the run {:?}", run.as_str());
                let hint = hints::verify(&run);
                return Err(Failure::refused("not-sealed", message).hint(hint));
            }
            _ => {}
        }
    }
    Ok(sealings)
}

/// Refuses a run that does not hold by itself and against the logs here.
fn unsure(run: &RunId, repository: &Repository) -> Result<(), Error> {
    let options = Options { own_key: repository.own_fingerprint(), ..Options::default() };
    let report = verify(&repository.store, run, &format::run_ref(run), &options)?;
    // Evidence that a partial clone lacks is no reason, as long as what is published was recomputed.
    match report.rows.iter().find(|row| row.state == State::Failed) {
        Some(row) => Err(Error::Unsound(run.clone(), format!("{}: {}", row.name, row.detail))),
        None => Ok(()),
    }
}
