//! `git handoff verify --bundle`

use std::path::Path;

use git_handoff::model::name::{RunId, ThreadId};
use git_handoff::share::bundle;
use git_handoff::verify::{Ask, AtHand, Logs, Options};

use super::super::{Ending, Failure, Output, share, thread};
use super::{Arguments, Context, own, report};

/// Prints a report for each run and thread in a bundle, or for those that are named.
pub(super) fn run(
    path: &Path,
    arguments: &Arguments,
    context: &Context,
    (options, ask): (&Options, Ask<'_>),
    output: &mut Output,
) -> Result<Ending, Failure> {
    let opened = bundle::open(path, context.config.max_fetch_size)?;
    for name in &opened.skipped {
        output.warn(&format!("{} is no name of a run, thread or log; it was left aside", share::shown(name)));
    }
    check_names(&opened, &arguments.runs)?;
    let is_wanted = |name: &str| arguments.runs.is_empty() || arguments.runs.iter().any(|wanted| wanted == name);
    let runs = opened.runs.into_iter().filter(|run| is_wanted(run.as_str())).map(own).collect::<Vec<_>>();
    let threads = opened.threads.into_iter().filter(|thread| is_wanted(thread.as_str()));
    let threads = threads.map(thread::own).collect::<Vec<_>>();
    let store = output.keep(opened.scratch);
    let logs = Logs::read(&store)?.with_witnesses(Logs::read(&context.store)?);
    let of_runs = report(&runs, (&store, &AtHand { logs: &logs, ask }), arguments, options, output)?;
    if !(runs.is_empty() || threads.is_empty() || output.json) {
        output.line("");
    }
    let of_threads = thread::report(&threads, (&store, &logs), options, output)?;
    Ok(if of_runs == Ending::Done { of_threads } else { of_runs })
}

/// Refuses a bundle that holds nothing to verify, or lacks something that was named.
fn check_names(opened: &bundle::Opened, named: &[String]) -> Result<(), Failure> {
    let held: Vec<&str> =
        opened.runs.iter().map(RunId::as_str).chain(opened.threads.iter().map(ThreadId::as_str)).collect();
    if let Some(missing) = named.iter().find(|name| !held.contains(&name.as_str())) {
        return Err(Failure::refused("unknown-run", format!("there is no run or thread {missing:?} in the bundle")));
    }
    if held.is_empty() {
        return Err(Failure::refused("no-runs", "there are no runs or threads in the bundle".into()));
    }
    Ok(())
}
