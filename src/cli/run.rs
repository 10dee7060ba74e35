//! `git handoff run`

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use futures_util::future::join_all;
use git_handoff::engine::operations::{Drivable, DriveOptions, Driven};
use git_handoff::git::remote::without_password;
use git_handoff::model::credential;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::name::RunId;
use git_handoff::model::printable;
use git_handoff::model::state::Phase;
use git_handoff::repository::Repository;
use git_handoff::run::operate::steer;
use git_handoff::run::operate::submission::Wanted;
use git_handoff::run::query::sharing::Sharing;
use git_handoff::run::query::work::{Explained, Work};
use git_handoff::run::query::{Target, View, piece};
use git_handoff::share::anchor::verification::VerifyRequest;
use git_handoff::verify::Report;

use super::progress::Display;
use super::remote_read::Offline;
use super::silence::{Watched, tell_of_silence};
use super::{Ending, Failure, Output, first_screen, interrupt, refused, saved, status, submit, table, validate};

/// The most entries of a run that is verified at once when it ends; a larger one takes seconds.
const VERIFIED: usize = 1000;

/// The anchor that is asked then: the logs that are here.
const LOCAL: &str = "local";

/// The number of failed items whose last output is shown.
const TAILS: usize = 5;

/// Run plans until they settle, with live progress
///
/// Submits plan files first. Without arguments, drives every unsettled run except those that agents
/// submitted. Continues a run after a crash or Ctrl-C; done items do not run again.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs or plan files
    #[arg(value_name = "RUN|PLAN")]
    runs: Vec<String>,
    /// Seal a settled run even if not every item is done
    #[arg(long)]
    close: bool,
    /// Reuse products of identical items from sealed local runs signed by known keys
    #[arg(long)]
    reuse: bool,
    /// Run at most N items at once [default: the queue's concurrency]; with --via, 0 runs none here
    #[arg(short, long, value_name = "N")]
    jobs: Option<u16>,
    /// Drive together with other drivers, each in a clone of its own, through this remote
    #[arg(long, value_name = "REMOTE")]
    via: Option<String>,
    /// Push transcripts to that remote as well: they are large, and may contain private data
    #[arg(long, requires = "via")]
    transcripts: bool,
    /// Wait for decisions of people instead of ending [default: on a terminal]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait: Option<bool>,
    /// Give the run this id instead of the plan's; the plan itself is not changed
    #[arg(long, value_name = "RUN")]
    id: Option<String>,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Drives several runs at once.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let mut runs: Vec<RunId> = Vec::new();
    if arguments.id.is_some() && arguments.runs.len() != 1 {
        return Err(Failure::usage("--id is for one plan file".to_owned()));
    }
    for text in &arguments.runs {
        if let Some(run) = run_elsewhere(text, arguments.via.is_some(), repository)? {
            runs.push(run);
            continue;
        }
        if let Some(target) = find_run(text, repository)? {
            if arguments.id.is_some() {
                return Err(Failure::usage("--id is for a plan file: a run has its id".to_owned()));
            }
            if !target.is_own() {
                return Err(steer::Error::Foreign(target.run).into());
            }
            runs.push(target.run);
            continue;
        }
        match submit::submit(Path::new(text), arguments.id.as_deref(), &Wanted::default(), repository)? {
            Ok(submitted) => {
                submitted.warnings.iter().for_each(|warning| output.warn(&credential::redact(warning)));
                runs.push(submitted.run);
            }
            Err(problems) => return Ok(validate::report(output, Err(&problems))),
        }
    }
    let options = DriveOptions {
        close: arguments.close,
        reuse: arguments.reuse,
        jobs: arguments.jobs.map(usize::from),
        via: arguments.via.clone(),
        transcripts: arguments.transcripts,
        wait: arguments.wait.unwrap_or_else(Output::has_watcher),
        ..DriveOptions::default()
    };
    if arguments.jobs == Some(0) && arguments.via.is_none() {
        return Err(Failure::usage("--jobs 0 runs nothing here, so it needs --via".to_owned()));
    }
    if arguments.via.is_some() && arguments.runs.is_empty() {
        return Err(Failure::usage("--via is for runs that are named".to_owned()));
    }
    if !arguments.runs.is_empty() {
        return drive(&runs, &options, repository, output);
    }
    let unsettled = repository.unsettled()?;
    if let Some(first) = unsettled.of_agents.first() {
        let names: Vec<&str> = unsettled.of_agents.iter().map(RunId::as_str).collect();
        output.note(&format!("submitted by agents, and driven by name alone: {}", names.join(", ")));
        output.hint(&hints::run(first));
    } else if unsettled.runs.is_empty() && unsettled.unreadable.is_empty() {
        output.note("every run here has settled");
    }
    let ending = drive(&unsettled.runs, &options, repository, output);
    let unreadable = unsettled.unreadable.into_iter().map(|error| Err(error.into()));
    last_of(unreadable.chain([ending]), output)
}

/// Returns the id of a run that is not here, if a remote may have it.
fn run_elsewhere(text: &str, has_remote: bool, repository: &Repository) -> Result<Option<RunId>, Failure> {
    if !has_remote || Path::new(text).is_file() {
        return Ok(None);
    }
    let Ok(run) = RunId::parse(text) else { return Ok(None) };
    let is_own = Target::look_up(&repository.store, text)?.is_some_and(|target| target.is_own());
    Ok((!is_own).then_some(run))
}

/// Returns the run with this name, or `None` for a plan file.
///
/// A name that is both is an error, because others may have chosen the run's id.
fn find_run(text: &str, repository: &Repository) -> Result<Option<Target>, Failure> {
    if !(Path::new(text).is_file() || text == "-") {
        return Ok(Some(Target::find(&repository.store, text)?));
    }
    match Target::look_up(&repository.store, text) {
        Ok(Some(target)) => {
            let message = format!("{text:?} is the name of a run here, and of a file");
            Err(Failure::refused("ambiguous", message)
                .hint(hints::run_or_file(format_args!("./{text}"), target.reference)))
        }
        _ => Ok(None),
    }
}

/// Drives runs, and prints the table of items of each.
pub(crate) fn drive(
    runs: &[RunId],
    options: &DriveOptions,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    // The driver waits for the disk on this thread; attempts continue on the other.
    let (runtime, interrupt) = interrupt::runtime()?;
    let mut distinct = BTreeSet::new();
    let runs: Vec<&RunId> = runs.iter().filter(|run| distinct.insert(*run)).collect();
    let Opened { drivable, mut endings, watched, is_timed } = open_runs(&runs, options, repository, output);
    let driven = drivable.into_iter().map(|(run, one, mut display)| {
        let interrupt = interrupt.clone();
        async move {
            let driven = Box::pin(one.drive(interrupt, &mut |progress| display.tell(&progress))).await;
            display.end();
            (run, driven)
        }
    });
    let started = Instant::now();
    let all = runtime.block_on(async {
        let driving = join_all(driven);
        tokio::select! {
            all = driving => all,
            never = tell_of_silence(watched, is_timed) => match never {},
        }
    });
    let took = started.elapsed();
    for (run, result) in all {
        endings.push(result.map(|result| end(run, &result, repository, output)).map_err(Failure::from));
    }
    if is_timed && !output.json {
        output.note(&format!("took {}", table::duration(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))));
    }
    last_of(endings.into_iter(), output)
}

/// Runs that are about to be driven.
struct Opened<'r> {
    drivable: Vec<(&'r RunId, Drivable<'r>, Display)>,
    /// The failures of the others.
    endings: Vec<Result<Ending, Failure>>,
    /// The attempts whose silence must be reported.
    watched: Vec<Watched>,
    /// Whether their clock is the machine's.
    is_timed: bool,
}

/// Opens runs, and prints warnings about their workers.
fn open_runs<'r>(
    runs: &[&'r RunId],
    options: &DriveOptions,
    repository: &'r Repository,
    output: &mut Output,
) -> Opened<'r> {
    let mut opened = Opened { drivable: Vec::new(), endings: Vec::new(), watched: Vec::new(), is_timed: false };
    let (mut unenforced, mut remarks) = (None, BTreeSet::new());
    for run in runs {
        match repository.drivable(run, options) {
            Ok(one) => {
                unenforced = unenforced.or_else(|| one.unenforced());
                remarks.extend(one.remarks());
                let label = (runs.len() > 1).then_some(*run);
                let display = Display::new(one.state(), one.clock(), label, Some(one.lives()), output.stderr_color);
                opened.watched.extend(display.unseen());
                opened.is_timed = !one.clock().is_pinned();
                opened.drivable.push((*run, one, display));
            }
            Err(error) => opened.endings.push(Err(error.into())),
        }
    }
    repository.take_notes().iter().for_each(|note| output.note(note));
    if let Some(missing) = unenforced {
        output.warn(&format!("workers are confined by less than there could be: {missing}"));
    }
    for remark in remarks {
        output.note(&remark);
    }
    opened
}

/// Combines the results of several runs; one failure does not stop the others.
fn last_of(endings: impl Iterator<Item = Result<Ending, Failure>>, output: &mut Output) -> Result<Ending, Failure> {
    let mut together = Ok(Ending::Done);
    for ending in endings {
        together = match (together, ending) {
            (Err(before), Err(failure)) => {
                // Reports every failure; the last one determines the exit code.
                let _ = output.fail(&before);
                Err(failure)
            }
            (Err(before), Ok(Ending::Interrupted)) => {
                let _ = output.fail(&before);
                Ok(Ending::Interrupted)
            }
            (Err(before), Ok(_)) => Err(before),
            (Ok(before), Ok(Ending::Done)) => Ok(before),
            (Ok(_), ending) => ending,
        };
    }
    together
}

/// Prints the result of a run and the next command.
fn end(run: &RunId, driven: &Driven, repository: &Repository, output: &mut Output) -> Ending {
    let state = &driven.view.state;
    if output.json {
        output.value(&driven.answer());
    } else {
        status::print_table(&driven.view, &repository.store, output);
        if let Some(shares) = driven.shares_in_words() {
            output.note(&shares);
        }
    }
    if let Some(remote) = &driven.unpushed {
        output.note(&format!("{} does not have what was done here", without_password(remote)));
        output.hint(&hints::push_named(without_password(remote), run));
    }
    if driven.interrupted {
        output.note("interrupted; nothing that was done is lost");
        saved::show_left(&driven.view, true, repository, output);
        output.hint(&hints::run(run));
        return Ending::Interrupted;
    }
    let work = (!output.json).then(|| Work::read(&repository.store, &driven.view));
    if let Some(work) = &work {
        first_screen::print_work(&driven.view, work, true, output);
        let report = verified(&driven.view, repository, output);
        first_screen::print_proof(&driven.view, report.as_ref(), repository, output);
    }
    for (rule, why) in &state.stopped {
        output.note(&format!("the rule {rule} stopped short: {why}"));
    }
    if !state.stopped.is_empty() && state.outcomes().are_items_green() {
        output.hint(&if state.sealed { hints::explain(run) } else { hints::explain_or_close(run) });
        return Ending::NotAllDone;
    }
    refused::show(&driven.view, repository, output);
    if state.is_done() && !state.sealed {
        output.hint(&hints::extend_or_close(run));
    }
    if state.outcomes().is_green() {
        let has_patch = work.as_ref().is_some_and(|work| !work.files.is_empty() || !work.is_counted);
        if state.sealed && has_patch {
            output.hint(&hints::apply_recorded(run));
        }
        return Ending::Done;
    }
    if state.is_left_to_people() && !state.sealed {
        let again = again(&driven.view, repository);
        output.note(&format!("no driver waits for the decision; who decides takes the run up again: {again}"));
        output.hint(&hints::waiting());
    }
    if let Some(work) = &work {
        show_tails(&driven.view, work, repository, output);
    }
    advise(&driven.view, repository, output);
    Ending::NotAllDone
}

/// Returns the command that drives a run again.
pub(crate) fn again(view: &View, repository: &Repository) -> Hint {
    let shared = Sharing::read(&repository.store, &view.run).filter(|_| view.state.shared.is_some());
    shared.map_or_else(|| hints::run(&view.run), |shared| hints::run_via(&view.run, &shared.remote))
}

/// Verifies a sealed run with the logs that are here, or returns `None` for a large one.
fn verified(view: &View, repository: &Repository, output: &mut Output) -> Option<Report> {
    if !view.state.sealed || view.links.len() > VERIFIED {
        return None;
    }
    let anchors = [LOCAL.to_owned()];
    let request = VerifyRequest { anchors: &anchors, ..VerifyRequest::default() };
    let with = repository.verification(request, &mut |text| output.warn(text)).ok()?;
    let runs = with.by_name(&[view.run.to_string()]).ok()?;
    runs.reports().next()?.ok()
}

/// Shows the failing assertion of failed items, or else the end of their output.
fn show_tails(view: &View, work: &Work, repository: &Repository, output: &mut Output) {
    let items = view.state.items.indexed();
    let failed = items.filter(|(at, item)| item.phase == Phase::Failed && !view.state.is_superseded(*at));
    let mut count = 0;
    for (at, item) in failed {
        // Skips unreadable transcripts; the hint names the command.
        let Ok(Some(tail)) = piece::tail(&repository.store, view, at) else { continue };
        if count == TAILS {
            output.note("…");
            return;
        }
        count += 1;
        let (id, reason) = (&view.state.graph.item(at).id, item.reason.as_deref());
        output.note(&format!("✗ {id}  attempt {}: {}", tail.attempt, reason.unwrap_or("no reason")));
        let step_work = work.items.iter().find(|candidate| candidate.id == *id);
        let tests = step_work.and_then(|step_work| match &step_work.explained {
            Some(Explained::Tests(failure)) if !failure.assertion.is_empty() => Some(failure),
            _ => None,
        });
        if let Some(failure) = tests {
            output.note(&format!("    failed: {failure}"));
        } else if tail.is_cut {
            output.note("    …");
        }
        let lines = tests.map_or(&tail.lines, |failure| &failure.assertion);
        lines.iter().for_each(|line| output.note(&format!("    {}", printable::line(line))));
        if let Some(refusal) = tail.refused {
            output.note(refused::describe(refusal));
        }
    }
}

/// Prints hints about items that are not done or red.
fn advise(view: &View, repository: &Repository, output: &mut Output) {
    let state = &view.state;
    let red = state.items.indices().find(|at| state.is_red(*at));
    if let Some(at) = red.filter(|at| piece::has_transcript(view, &state.graph.item(*at).id)) {
        output.hint(&hints::cat(format_args!("{}/{}:transcript", view.run, view.state.graph.item(at).id)));
    }
    // Replaced items are not retried.
    let mut failed = state.items.indices().filter(|at| state.items[*at].phase == Phase::Failed);
    if let Some(at) = failed.find(|at| !state.is_superseded(*at)) {
        let item = view.state.graph.item(at);
        let id = &item.id;
        if let Some((on, _)) = view.state.lacks(at) {
            return output.hint(&hints::without_product(&view.run, on));
        }
        if piece::has_transcript(view, &view.state.graph.item(at).id) {
            output.hint(&hints::cat(format_args!("{}/{id}:transcript", view.run)));
        }
        if let Some((key, place)) = repository.login_out_of_reach(item) {
            output.hint(&hints::login(key, format_args!("~/{place}")));
        }
        if !view.state.sealed {
            output.hint(&hints::retry_or_close(format_args!("{}/{id}", view.run), &view.run));
        }
    }
}
