//! `git handoff record`

use git_handoff::answers::program::Recorded;
use git_handoff::engine::event::Progress;
use git_handoff::engine::operations::{DriveOptions, Driven, Manner};
use git_handoff::engine::record::{Begun, Here, ITEM, Lacks, Recording};
use git_handoff::model::credential;
use git_handoff::model::entry::{Event, ItemReconciled};
use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::model::protectable;
use git_handoff::model::state::Phase;
use git_handoff::repository::Repository;
use git_handoff::run::query::View;
use git_handoff::run::query::list::ItemStatus;
use git_handoff::run::query::piece;
use git_handoff::run::query::work::Work;
use git_handoff::share::anchor::verification::VerifyRequest;
use git_handoff::verify::Report;

use super::progress::Display;
use super::silence::tell_of_silence;
use super::{Ending, Failure, Output, first_screen, interrupt, refused, validate};

/// Run a command in a worktree of its own, and seal what it changed as a run
///
/// The run has one item, `record`: the command starts from HEAD, in the same folder as you, and its
/// changes and its files under `outputs/` become the products. Its output appears as it comes, on
/// standard error; the result and the proof follow on standard output. Your work tree stays as it
/// is: `apply` takes the changes. The command's standard input is empty.
///
/// `--agent` runs a known agent (claude, codex, gemini, aider, opencode, qwen, copilot, mini) or a
/// registered subagent with its own command line, which gives it permissions and makes it report
/// tokens. A known agent gets its login and its key.
#[derive(clap::Args)]
#[command(
    override_usage = "git handoff record [OPTIONS] --agent <AGENT> <TASK>\n       git handoff record [OPTIONS] -- <COMMAND>...\n       git handoff record [OPTIONS] --adopt <RANGE>"
)]
pub(crate) struct Arguments {
    /// The id of the run [default: record-DATE-LETTERS]
    #[arg(long = "as", value_name = "RUN", value_parser = RunId::parse)]
    run: Option<RunId>,
    /// Run this shell command afterwards; if it fails, the result is red
    #[arg(long, value_name = "COMMAND", conflicts_with = "adopt")]
    check: Option<String>,
    /// Let the command change the files that --check uses. By default, well-known test and build
    /// files are as in the base while the check runs; settings that protect files replace this
    #[arg(long, requires = "check")]
    no_protect: bool,
    /// Record the goal of the work [default: the task of --agent]
    #[arg(short = 'm', long = "message", value_name = "GOAL", conflicts_with = "agent")]
    goal: Option<String>,
    /// Run this known agent or subagent with its own command line
    #[arg(long, value_name = "AGENT", requires = "task", conflicts_with_all = ["adopt", "command", "executor"])]
    agent: Option<String>,
    /// Use the settings of this known agent, subagent or executor [default: those of the program]
    #[arg(long, value_name = "NAME", conflicts_with = "adopt")]
    executor: Option<String>,
    /// Run in the present work tree, confined by nothing, and take what changes there
    #[arg(long, conflicts_with = "adopt")]
    here: bool,
    /// With --here, start although the work tree has uncommitted changes: they become part of the
    /// base
    #[arg(long, requires = "here")]
    dirty: bool,
    /// Record existing commits instead of running a command, one item for each along first parents;
    /// they are marked as claimed, since nothing proves who made them
    #[arg(long, value_name = "RANGE", conflicts_with = "command")]
    adopt: Option<String>,
    /// The task of the agent; it becomes the goal
    #[arg(value_name = "TASK", requires = "agent")]
    task: Option<String>,
    /// The command and its arguments, after `--`; without one, `--as RUN` continues that recording
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["adopt", "agent", "run"])]
    command: Vec<String>,
}

/// Records a command, or commits.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (given, goal) = (arguments.run.as_ref(), arguments.goal.as_deref());
    let is_new = !arguments.command.is_empty() || arguments.agent.is_some() || arguments.adopt.is_some();
    if let Some(run) = given.filter(|_| !is_new) {
        return go_on(run, arguments, repository, output);
    }
    let begun = match &arguments.adopt {
        Some(range) => repository.record_commits(given, range, goal)?,
        None => repository.record(given, &arguments.recording())?,
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(problems) => return Ok(validate::report(output, Err(&problems))),
    };
    begun.submission.warnings.iter().for_each(|warning| output.warn(&credential::redact(warning)));
    if !begun.known.protect.is_empty() {
        let files = protectable::in_words(&begun.known.protect);
        output.note(&format!("protected while the check runs: {files} (--no-protect switches this off)"));
        begun.known.left_out().iter().for_each(|left_out| output.note(left_out));
    }
    if let Some(agent) = &begun.agent {
        agent.remarks.iter().for_each(|remark| output.note(remark));
        let logins = agent.given();
        if !logins.is_empty() {
            output.note(&format!("the agent gets its login: {logins}"));
        }
    }
    if let Some(lacks) = &begun.lacks {
        output.warn(&format!("{}: {}", lacks.agent, lacks.remarks.join("; ")));
    }
    let Begun { submission, manner, lacks, .. } = &begun;
    let driven = drive(&submission.run, *manner, repository, output)?;
    finish(&driven, *manner, lacks.as_ref(), repository, output)
}

/// Continues a recording with the settings that it sealed.
fn go_on(run: &RunId, arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let Arguments { check, goal, executor, here, .. } = arguments;
    if check.is_some() || goal.is_some() || executor.is_some() || *here {
        let message = format!("name the command of a new recording after `--`; {run} continues with what it sealed");
        return Err(Failure::usage(message));
    }
    repository.continue_recording(run)?;
    let driven = drive(run, Manner::Worktrees, repository, output)?;
    finish(&driven, Manner::Worktrees, None, repository, output)
}

impl Arguments {
    fn recording(&self) -> Recording {
        let here = if self.dirty { Here::Dirty } else { Here::Clean };
        Recording {
            command: self.command.clone(),
            check: self.check.clone(),
            protect: !self.no_protect,
            agent: self.agent.clone(),
            goal: self.goal.clone().or_else(|| self.task.clone()),
            executor: self.executor.clone(),
            here: self.here.then_some(here),
            ..Recording::default()
        }
    }
}

/// Drives the run, and shows the output of the command as it comes.
fn drive(run: &RunId, manner: Manner, repository: &Repository, output: &mut Output) -> Result<Driven, Failure> {
    let (runtime, interrupt) = interrupt::runtime()?;
    let options = DriveOptions { close: true, manner, take_left: true, ..DriveOptions::default() };
    let drivable = repository.drivable(run, &options)?;
    if manner == Manner::Worktrees {
        let missing = drivable.unenforced();
        let warning = missing.map(|missing| format!("the command is confined by less than there could be: {missing}"));
        warning.iter().for_each(|warning| output.warn(warning));
        drivable.remarks().iter().for_each(|remark| output.note(remark));
    }
    let mut display = Display::echoing(drivable.state(), drivable.clock(), drivable.lives(), output.stderr_color);
    drivable.lives().echo_to(display.echo());
    let (watched, is_timed) = (display.unseen().into_iter().collect(), !drivable.clock().is_pinned());
    let driven = runtime.block_on(async {
        let mut tell = |progress: Progress<'_>| display.tell(&progress);
        let driving = drivable.drive(interrupt, &mut tell);
        tokio::select! {
            driven = driving => driven,
            never = tell_of_silence(watched, is_timed) => match never {},
        }
    });
    display.end();
    Ok(driven?)
}

/// Prints the result, the proof and the next command.
fn finish(
    driven: &Driven,
    manner: Manner,
    lacks: Option<&Lacks>,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let view = &driven.view;
    let run = &view.run;
    // An open run is not anchored yet.
    let report = if view.state.sealed { Some(verified(run, repository, output)?) } else { None };
    if output.json {
        let ended = ended(view);
        output.value(&Recorded {
            run,
            interrupted: driven.interrupted,
            exit: ended.and_then(|ended| ended.exit),
            check: ended.and_then(|ended| ended.check.as_ref()?.exit),
            items: ItemStatus::all(view),
            verify: report.as_ref(),
        });
    } else if !driven.interrupted {
        let work = Work::read(&repository.store, view);
        first_screen::print_work(view, &work, false, output);
        first_screen::print_proof(view, report.as_ref(), repository, output);
        if let Some(report) = report.as_ref().filter(|report| !report.intact) {
            output.painted(&report.painted(output.color));
        }
    }
    if driven.interrupted {
        return interrupted(view, manner, repository, output);
    }
    let Some(report) = report else {
        super::saved::show_left(view, false, repository, output);
        output.hint(&hints::record_left(run));
        return Ok(Ending::NotAllDone);
    };
    if !report.intact {
        return Ok(Ending::CheckFailed);
    }
    let is_green = view.state.outcomes().is_green();
    refused::show_failed(view, repository, output);
    if has_failed(view) && super::saved::show_left(view, true, repository, output) {
        return Ok(Ending::NotAllDone);
    }
    refused::show(view, repository, output);
    advise(view, manner, lacks, is_green, output);
    Ok(if is_green { Ending::Done } else { Ending::NotAllDone })
}

/// Verifies the recorded run.
fn verified(run: &RunId, repository: &Repository, output: &mut Output) -> Result<Report, Failure> {
    let with = repository.verification(VerifyRequest::default(), &mut |text| output.warn(text))?;
    let runs = with.by_name(&[run.to_string()])?;
    let first = runs.reports().next().transpose()?;
    first.ok_or_else(Failure::bug)
}

/// Says how to go on. Work in the user's own work tree cannot be continued, so its run is sealed.
fn interrupted(view: &View, manner: Manner, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let run = &view.run;
    if manner == Manner::Here {
        repository.abandon(run.as_str(), "interrupted")?;
        output.note("interrupted; what the command changed is in your work tree");
    } else {
        output.note("interrupted; the run stays open");
        super::saved::show_left(view, true, repository, output);
        output.hint(&hints::record_again(run));
    }
    Ok(Ending::Interrupted)
}

/// Returns true if an item ended without products because it failed.
fn has_failed(view: &View) -> bool {
    view.state.items.iter().any(|item| item.phase == Phase::Failed)
}

/// Returns the last end of the only item, if it ended.
fn ended(view: &View) -> Option<&ItemReconciled> {
    (view.state.items.indices().count() == 1).then_some(())?;
    view.links.iter().rev().find_map(|link| match &link.entry.event {
        Event::ItemReconciled(ended) => Some(ended),
        _ => None,
    })
}

/// Prints the next command.
fn advise(view: &View, manner: Manner, lacks: Option<&Lacks>, is_green: bool, output: &mut Output) {
    let run = &view.run;
    let has_products = view.state.items.iter().any(|item| !item.products.is_empty());
    let has_transcript = view.state.graph.items().iter().any(|item| piece::has_transcript(view, &item.id));
    let hint = match (manner, is_green, has_products, lacks) {
        (Manner::Commits | Manner::Here, true, ..) => hints::show(run),
        (_, true, true, _) => hints::apply_recorded(run),
        (_, false, true, _) => hints::apply_red(run),
        (Manner::Worktrees, _, false, Some(Lacks { agent, .. })) => hints::record_by_agent(agent),
        (_, _, false, _) if !has_transcript => hints::show(format_args!("{run}/{ITEM}")),
        (_, _, false, _) => hints::cat(format_args!("{run}/{ITEM}:transcript")),
    };
    output.hint(&hint);
}
