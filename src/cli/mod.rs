//! The command line: parses arguments, calls the library, prints, exits.

mod context;
mod examples;
mod fields;
mod first_screen;
mod gate;
mod groups;
mod progress;
mod shade;
mod silence;

mod adopt;
mod adopt_run;
mod anchor;
mod apply;
mod archive;
mod attempt;
mod bundle;
mod cat;
mod check;
mod checkpoint;
mod clean;
mod completions;
mod coordinate;
mod delete;
mod doc;
mod doctor;
mod export;
mod extend;
mod fetch;
mod fork;
mod graph;
mod init;
mod key;
mod lineage;
mod log;
mod lost;
mod mcp;
mod offer;
mod overview;
mod packet;
mod people;
mod pipeline;
mod plan;
mod prove;
mod push;
mod record;
mod refused;
mod remote_read;
mod report;
mod resume;
mod rollback;
mod run;
mod runs;
mod saved;
mod share;
mod show;
mod status;
mod steer;
mod submit;
mod temporary_folder;
mod thread;
mod usage;
mod validate;
mod verify;
mod watch;
mod whence;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::{self, Ending, Failure, Output, interrupt, pager, table};

use git_handoff::git::store::Store;
use git_handoff::git::temporary;
use git_handoff::repository::Repository;

/// Hand work from one agent, person or machine to the next, with proof
///
/// Each item of a plan runs in its own git worktree. Its products are recorded by hash in signed
/// commits under `refs/handoff/`, and `git handoff verify` proves who made what from what.
#[derive(Parser)]
#[command(name = "git-handoff", bin_name = "git handoff", version, max_term_width = 100)]
struct Arguments {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Act under this name [default: `$HANDOFF_ACTOR`, else `human:<user.name or login>`]
    #[arg(long, global = true, value_name = "NAME")]
    actor: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::Arguments),
    Validate(validate::Arguments),
    Submit(submit::Arguments),
    Run(run::Arguments),
    Record(record::Arguments),
    Runs(runs::Arguments),
    Status(status::Arguments),
    Graph(graph::Arguments),
    Watch(watch::Arguments),
    Log(log::Arguments),
    Show(show::Arguments),
    Cat(cat::Arguments),
    Verify(Box<verify::Arguments>),
    Whence(whence::Arguments),
    Lineage(lineage::Arguments),
    Cancel(steer::Cancel),
    Retry(steer::Retry),
    Close(steer::Close),
    Abandon(steer::Abandon),
    Lost(lost::Arguments),
    Approve(people::Approve),
    Reject(people::Reject),
    Waiting(people::Waiting),
    Admit(people::Admit),
    Dismiss(people::Dismiss),
    AdoptRun(adopt_run::Arguments),
    Extend(extend::Arguments),
    Coordinate(coordinate::Arguments),
    Apply(apply::Arguments),
    Doc(doc::Arguments),
    Checkpoint(checkpoint::Arguments),
    Resume(resume::Arguments),
    Offer(offer::Arguments),
    Adopt(adopt::Arguments),
    Fork(fork::Arguments),
    Rollback(rollback::Arguments),
    Thread(thread::Arguments),
    Push(push::Arguments),
    Fetch(fetch::Arguments),
    Anchor(anchor::Arguments),
    Bundle(bundle::Arguments),
    Check(check::Arguments),
    Packet(packet::Arguments),
    Pipeline(pipeline::Arguments),
    Mcp(mcp::Arguments),
    Prove(prove::Arguments),
    Init(init::Arguments),
    Key(key::Arguments),
    Export(export::Arguments),
    Report(report::Arguments),
    Doctor(doctor::Arguments),
    Clean(clean::Arguments),
    Delete(delete::Arguments),
    Archive(archive::Archive),
    Unarchive(archive::Unarchive),
    Completions(completions::Arguments),
    #[command(hide = true, subcommand)]
    Attempt(attempt::Arguments),
    /// Print the completions of the last word
    #[command(hide = true)]
    Complete(completions::Words),
}

impl Command {
    /// Returns true if the command handles signals itself, as drivers do.
    fn hears_signals(&self) -> bool {
        match self {
            Self::Run(_) | Self::Record(_) | Self::Submit(_) => true,
            Self::Verify(arguments) => arguments.runs_commands(),
            _ => false,
        }
    }

    /// Returns true if the output may be longer than a screen, is available at once, and is not raw
    /// bytes.
    fn is_read_in_pages(&self) -> bool {
        match self {
            Self::Runs(_)
            | Self::Status(_)
            | Self::Graph(_)
            | Self::Show(_)
            | Self::Whence(_)
            | Self::Lineage(_)
            | Self::Waiting(_) => true,
            // A question must not hide behind a pager.
            Self::Verify(arguments) => !arguments.runs_commands(),
            Self::Log(arguments) => arguments.is_read_in_pages(),
            Self::Doc(arguments) => arguments.is_read_in_pages(),
            Self::Thread(arguments) => arguments.is_read_in_pages(),
            Self::Pipeline(arguments) => arguments.is_read_in_pages(),
            _ => false,
        }
    }

    /// Returns true if the command is not to read the remote of a run.
    fn is_offline(&self) -> bool {
        match self {
            Self::Run(arguments) => arguments.offline.offline,
            Self::Status(arguments) => arguments.offline.offline,
            Self::Graph(arguments) => arguments.offline.offline,
            Self::Watch(arguments) => arguments.offline.offline,
            Self::Cancel(arguments) => arguments.offline.offline,
            Self::Retry(arguments) => arguments.offline.offline,
            Self::Close(arguments) => arguments.offline.offline,
            Self::Abandon(arguments) => arguments.offline.offline,
            Self::Approve(arguments) => arguments.is_offline(),
            Self::Reject(arguments) => arguments.is_offline(),
            Self::Admit(arguments) => arguments.offline.offline,
            Self::Dismiss(arguments) => arguments.offline.offline,
            Self::Extend(arguments) => arguments.offline.offline,
            Self::Doc(arguments) => arguments.is_offline(),
            _ => false,
        }
    }

    /// Returns true if the command depends on registered executors and subagents.
    fn goes_by_executors(&self) -> bool {
        matches!(self, Self::Validate(_) | Self::Submit(_) | Self::Extend(_) | Self::Run(_))
    }

    /// Returns true if the command works outside a repository.
    fn works_anywhere(&self) -> bool {
        match self {
            Self::Verify(arguments) => arguments.works_anywhere(),
            Self::Report(arguments) => arguments.works_anywhere(),
            Self::Pipeline(arguments) => arguments.works_anywhere(),
            _ => false,
        }
    }
}

/// Runs the program; the only place where it exits.
pub(crate) fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(ended) = context::serve() {
        return ended;
    }
    context::restart_in_little_space();
    let arguments = match groups::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let asked_for = !error.use_stderr();
            if asked_for {
                return if error.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
            }
            // git shows a manual page for --help, which may not be installed.
            let message = error.render().to_string().replace("try '--help'", "try '-h'");
            return Output::new(context::asks_for_json()).misused(message.trim());
        }
    };
    let mut output = Output::new(arguments.json);
    let run = || execute(arguments.command, arguments.actor, &mut output);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let code = match result {
        Ok(Ok(ending)) => ExitCode::from(ending.code()),
        Ok(Err(failure)) => output.fail(&failure.naming_lock().fitting(store_here)),
        Err(_) => output.fail(&Failure::bug()),
    };
    output.end();
    code
}

/// Opens the repository that contains the current directory, or returns `None`.
fn store_here() -> Option<Store> {
    context::environment(None).ok()?.store().ok()?
}

/// Runs a command.
fn execute(command: Option<Command>, actor: Option<String>, output: &mut Output) -> Result<Ending, Failure> {
    let environment = context::environment(actor)?;
    if let Some(warning) = temporary_folder::choose(&environment) {
        output.warn(&warning);
    }
    match command {
        None => {
            let repository = context::open(environment, false)?;
            output.color_as(repository.config.colors, context::colors_reach_a_pager);
            overview::run(&repository, output)
        }
        Some(Command::Check(arguments)) => check::run(&arguments, &environment, output),
        Some(Command::Plan(arguments)) => plan::run(&arguments, &environment, output),
        Some(Command::Completions(arguments)) => Ok(completions::run(&arguments, output)),
        Some(Command::Complete(words)) => {
            let repository = context::open(environment, false).ok();
            Ok(completions::complete(&words, repository.as_ref(), output))
        }
        Some(Command::Packet(arguments)) => packet::run(arguments, environment, output),
        Some(Command::Attempt(arguments)) => attempt::run(&arguments, environment, output),
        Some(Command::Mcp(arguments)) => mcp::run(arguments, environment, output),
        Some(command) => {
            if !command.hears_signals() {
                temporary::before_the_first(interrupt::tidy);
            }
            let opened = context::open(environment.clone(), command.works_anywhere());
            if opened.is_err()
                && matches!(command, Command::Doctor(_))
                && let Some(ending) = doctor::settings(&environment, output)?
            {
                return Ok(ending);
            }
            let mut repository = opened?;
            repository.offline = command.is_offline();
            output.color_as(repository.config.colors, context::colors_reach_a_pager);
            if !output.json
                && command.is_read_in_pages()
                && let Some(pager) = context::pager(&repository, output)?
            {
                output.page(pager, repository.config.colors);
            }
            repository.config.warnings.iter().for_each(|warning| output.warn(warning));
            if command.goes_by_executors() {
                repository.config.unregistered().iter().for_each(|settings| output.warn(&settings.to_string()));
            }
            let result = dispatch(command, &repository, output);
            repository.take_notes().iter().for_each(|note| output.note(note));
            result
        }
    }
}

fn dispatch(command: Command, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match command {
        Command::Validate(arguments) => validate::run(&arguments, repository, output),
        Command::Submit(arguments) => submit::run(&arguments, repository, output),
        Command::Run(arguments) => run::run(&arguments, repository, output),
        Command::Record(arguments) => record::run(&arguments, repository, output),
        Command::Runs(arguments) => runs::run(&arguments, repository, output),
        Command::Status(arguments) => status::run(&arguments, repository, output),
        Command::Graph(arguments) => graph::run(&arguments, repository, output),
        Command::Watch(arguments) => watch::run(&arguments, repository, output),
        Command::Log(arguments) => log::run(&arguments, repository, output),
        Command::Show(arguments) => show::run(&arguments, repository, output),
        Command::Cat(arguments) => cat::run(&arguments, repository, output),
        Command::Verify(arguments) => verify::run(&arguments, repository, output),
        Command::Whence(arguments) => whence::run(&arguments, repository, output),
        Command::Lineage(arguments) => lineage::run(&arguments, repository, output),
        Command::Cancel(arguments) => steer::cancel(&arguments, repository, output),
        Command::Retry(arguments) => steer::retry(&arguments, repository, output),
        Command::Close(arguments) => steer::close(&arguments, repository, output),
        Command::Abandon(arguments) => steer::abandon(&arguments, repository, output),
        Command::Lost(arguments) => lost::run(&arguments, repository, output),
        Command::Approve(arguments) => people::approve(&arguments, repository, output),
        Command::Reject(arguments) => people::reject(&arguments, repository, output),
        Command::Waiting(arguments) => people::waiting(&arguments, repository, output),
        Command::Admit(arguments) => people::admit(&arguments, repository, output),
        Command::Dismiss(arguments) => people::dismiss(&arguments, repository, output),
        Command::Extend(arguments) => extend::run(&arguments, repository, output),
        Command::Coordinate(arguments) => coordinate::run(&arguments, repository, output),
        Command::Apply(arguments) => apply::run(&arguments, repository, output),
        Command::Doc(arguments) => doc::run(&arguments, repository, output),
        Command::Checkpoint(arguments) => checkpoint::run(&arguments, repository, output),
        Command::Resume(arguments) => resume::run(&arguments, repository, output),
        Command::Offer(arguments) => offer::run(&arguments, repository, output),
        Command::Adopt(arguments) => adopt::run(&arguments, repository, output),
        Command::AdoptRun(arguments) => adopt_run::run(&arguments, repository, output),
        Command::Fork(arguments) => fork::run(&arguments, repository, output),
        Command::Rollback(arguments) => rollback::run(&arguments, repository, output),
        Command::Thread(arguments) => thread::run(&arguments, repository, output),
        Command::Push(arguments) => push::run(&arguments, repository, output),
        Command::Fetch(arguments) => fetch::run(&arguments, repository, output),
        Command::Anchor(arguments) => anchor::run(&arguments, repository, output),
        Command::Bundle(arguments) => bundle::run(&arguments, repository, output),
        Command::Pipeline(arguments) => pipeline::run(&arguments, repository, output),
        // These run before a repository is opened.
        Command::Plan(_)
        | Command::Check(_)
        | Command::Attempt(_)
        | Command::Packet(_)
        | Command::Mcp(_)
        | Command::Completions(_)
        | Command::Complete(_) => Err(Failure::bug()),
        Command::Prove(arguments) => prove::run(&arguments, repository, output),
        Command::Init(arguments) => init::run(&arguments, repository, output),
        Command::Key(arguments) => key::run(&arguments, repository, output),
        Command::Export(arguments) => export::run(&arguments, repository, output),
        Command::Report(arguments) => report::run(&arguments, repository, output),
        Command::Doctor(arguments) => doctor::run(&arguments, repository, output),
        Command::Clean(arguments) => clean::run(&arguments, repository, output),
        Command::Delete(arguments) => delete::run(&arguments, repository, output),
        Command::Archive(arguments) => archive::archive(&arguments, repository, output),
        Command::Unarchive(arguments) => archive::unarchive(&arguments, repository, output),
    }
}

#[cfg(test)]
mod manual;
