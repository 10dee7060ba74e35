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
mod manual;
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

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};

use crate::output::{self, Ending, Failure, Output, interrupt, pager, table};

use git_handoff::git::store::Store;
use git_handoff::git::temporary;
use git_handoff::model::printable;
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

/// A property of some commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Property {
    /// It handles signals itself, as drivers do.
    Signals,
    /// Its output may be longer than a screen, is available at once, and is not raw bytes. No
    /// question may hide behind a pager.
    Pages,
    /// It is not to read the remote of a run.
    Offline,
    /// It depends on registered executors and subagents.
    Executors,
    /// It works outside a repository.
    Anywhere,
}

/// Defines the commands: each with its arguments, the function that runs it in a repository, and
/// its properties, of which some depend on the arguments.
macro_rules! commands {
    (@is) => { |_| true };
    (@is $is:expr) => { $is };
    (@run ($($value:ident),*)) => { Err(Failure::bug()) };
    (@run ($($value:ident),*) $run:path) => { $run($($value),*) };
    ($($(#[$meta:meta])* $name:ident($arguments:ty) $(=> $run:path)? $(, [$($property:ident $(: $is:expr)?),*])?;)*) => {
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $($(#[$meta])* $name($arguments),)*
        }

        impl Command {
            pub(crate) fn has(&self, property: Property) -> bool {
                match self {
                    $(Self::$name(arguments) => {
                        let _ = arguments;
                        $($(if property == Property::$property {
                            let is: fn(&$arguments) -> bool = commands!(@is $($is)?);
                            return is(arguments);
                        })*)?
                        false
                    })*
                }
            }

            /// Runs a command that needs a repository.
            pub(crate) fn run(&self, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
                match self {
                    $(Self::$name(arguments) => {
                        let _ = arguments;
                        commands!(@run (arguments, repository, output) $($run)?)
                    })*
                }
            }
        }
    };
}
pub(crate) use commands;

// Commands without a function run before a repository is opened.
commands! {
    Plan(plan::Arguments);
    Validate(validate::Arguments) => validate::run, [Executors];
    Submit(submit::Arguments) => submit::run, [Signals, Executors];
    Run(run::Arguments) => run::run, [Signals, Offline: |it| it.offline.offline, Executors];
    Record(record::Arguments) => record::run, [Signals];
    Runs(runs::Arguments) => runs::run, [Pages];
    Status(status::Arguments) => status::run, [Pages, Offline: |it| it.offline.offline];
    Graph(graph::Arguments) => graph::run, [Pages, Offline: |it| it.offline.offline];
    Watch(watch::Arguments) => watch::run, [Offline: |it| it.offline.offline];
    Log(log::Arguments) => log::run, [Pages: |it| it.is_read_in_pages()];
    Show(show::Arguments) => show::run, [Pages];
    Cat(cat::Arguments) => cat::run;
    Verify(Box<verify::Arguments>) => verify::run, [
        Signals: |it| it.runs_commands(), Pages: |it| !it.runs_commands(), Anywhere: |it| it.works_anywhere()
    ];
    Whence(whence::Arguments) => whence::run, [Pages];
    Lineage(lineage::Arguments) => lineage::run, [Pages];
    Cancel(steer::Cancel) => steer::cancel, [Offline: |it| it.offline.offline];
    Retry(steer::Retry) => steer::retry, [Offline: |it| it.offline.offline];
    Close(steer::Close) => steer::close, [Offline: |it| it.offline.offline];
    Abandon(steer::Abandon) => steer::abandon, [Offline: |it| it.offline.offline];
    Lost(lost::Arguments) => lost::run;
    Approve(people::Approve) => people::approve, [Offline: |it| it.shared.offline.offline];
    Reject(people::Reject) => people::reject, [Offline: |it| it.shared.offline.offline];
    Waiting(people::Waiting) => people::waiting, [Pages];
    Admit(people::Admit) => people::admit, [Offline: |it| it.offline.offline];
    Dismiss(people::Dismiss) => people::dismiss, [Offline: |it| it.offline.offline];
    AdoptRun(adopt_run::Arguments) => adopt_run::run;
    Extend(extend::Arguments) => extend::run, [Offline: |it| it.offline.offline, Executors];
    Coordinate(coordinate::Arguments) => coordinate::run;
    Apply(apply::Arguments) => apply::run;
    Doc(doc::Arguments) => doc::run, [
        Pages: |it| it.command.has(Property::Pages), Offline: |it| it.command.has(Property::Offline)
    ];
    Checkpoint(checkpoint::Arguments) => checkpoint::run;
    Resume(resume::Arguments) => resume::run;
    Offer(offer::Arguments) => offer::run;
    Adopt(adopt::Arguments) => adopt::run;
    Fork(fork::Arguments) => fork::run;
    Rollback(rollback::Arguments) => rollback::run;
    Thread(thread::Arguments) => thread::run, [Pages: |it| it.command.has(Property::Pages)];
    Push(push::Arguments) => push::run;
    Fetch(fetch::Arguments) => fetch::run;
    Anchor(anchor::Arguments) => anchor::run;
    Bundle(bundle::Arguments) => bundle::run;
    Check(check::Arguments);
    Packet(packet::Arguments);
    Pipeline(pipeline::Arguments) => pipeline::run, [
        Pages: |it| it.is_read_in_pages(), Anywhere: |it| it.works_anywhere()
    ];
    Mcp(mcp::Arguments);
    Prove(prove::Arguments) => prove::run;
    Init(init::Arguments) => init::run;
    Key(key::Arguments) => key::run;
    Export(export::Arguments) => export::run;
    Report(report::Arguments) => report::run, [Anywhere: |it| it.works_anywhere()];
    Doctor(doctor::Arguments) => doctor::run;
    Clean(clean::Arguments) => clean::run;
    Delete(delete::Arguments) => delete::run;
    Archive(archive::Archive) => archive::archive;
    Unarchive(archive::Unarchive) => archive::unarchive;
    Completions(completions::Arguments);
    #[command(hide = true, subcommand)]
    Attempt(attempt::Arguments);
    /// Print the completions of the last word
    #[command(hide = true)]
    Complete(completions::Words);
    #[command(hide = true)]
    Manual(manual::Arguments);
}

/// Runs the program; the only place where it exits.
pub(crate) fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(ended) = context::serve() {
        return ended;
    }
    context::restart_in_little_space();
    context::trace();
    let arguments = match groups::parse() {
        Ok(arguments) => arguments,
        Err(mut error) => {
            let asked_for = !error.use_stderr();
            if asked_for {
                return if error.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
            }
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidValue) {
                // A pasted word makes no lines of its own.
                let word = printable::line(word);
                drop(error.insert(ContextKind::InvalidValue, ContextValue::String(word)));
            }
            // git shows a manual page for --help, which may not be installed.
            let message = error.render().to_string().replace("try '--help'", "try '-h'");
            return Output::new(context::asks_for_json()).misused(message.trim());
        }
    };
    let mut output = Output::new(arguments.json);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        execute(arguments.command, arguments.actor, &mut output)
    }));
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
        Some(Command::Manual(arguments)) => manual::run(&arguments),
        Some(Command::Packet(arguments)) => packet::run(arguments, environment, output),
        Some(Command::Attempt(arguments)) => attempt::run(&arguments, environment, output),
        Some(Command::Mcp(arguments)) => mcp::run(arguments, environment, output),
        Some(command) => {
            if !command.has(Property::Signals) {
                temporary::before_the_first(interrupt::tidy);
            }
            let opened = context::open(environment.clone(), command.has(Property::Anywhere));
            if opened.is_err()
                && matches!(command, Command::Doctor(_))
                && let Some(ending) = doctor::settings(&environment, output)?
            {
                return Ok(ending);
            }
            let mut repository = opened?;
            repository.offline = command.has(Property::Offline);
            output.color_as(repository.config.colors, context::colors_reach_a_pager);
            if !output.json
                && command.has(Property::Pages)
                && let Some(pager) = context::pager(&repository, output)?
            {
                output.page(pager, repository.config.colors);
            }
            repository.config.warnings.iter().for_each(|warning| output.warn(warning));
            if command.has(Property::Executors) {
                repository.config.unregistered().iter().for_each(|settings| output.warn(&settings.to_string()));
            }
            let result = command.run(&repository, output);
            repository.take_notes().iter().for_each(|note| output.note(note));
            result
        }
    }
}
