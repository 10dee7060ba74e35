//! `git handoff run`

use std::path::Path;

use git_handoff::engine::drive;
use git_handoff::engine::machine::Machine;
use git_handoff::ledger::log::{self, Record};
use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::model::plan::Item;
use git_handoff::plan::schemas::Schemas;
use git_handoff::repository::Repository;
use git_handoff::run::list::ItemStatus;
use git_handoff::run::submission::Wanted;
use git_handoff::run::target::own_runs;
use git_handoff::run::{OpenRun, Target};
use serde_json::json;
use tokio::sync::watch;

use super::progress::Display;
use super::{Ending, Failure, Output, status, submit, validate};

/// A run of this many entries leaves so many loose objects that they are packed at its end.
const LARGE: u64 = 5_000;

/// Drive runs until they settle, with live progress
///
/// A plan file is submitted first. Without arguments, every run that has not settled is driven. A run that a crash or
/// Ctrl-C left behind continues; what is done is not done again.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs, or plan files
    #[arg(value_name = "RUN|PLAN")]
    runs: Vec<String>,
    /// Seal what has settled even if not every item is done
    #[arg(long)]
    close: bool,
}

/// Drives the runs one after the other.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let mut runs = Vec::new();
    for named in &arguments.runs {
        let path = Path::new(named);
        // A run's id wins over a file of that name; `./name` means the file.
        if Target::find(&repository.store, named).is_ok() || !(path.is_file() || named == "-") {
            runs.push(Target::find(&repository.store, named)?.run);
            continue;
        }
        match submit::submit(path, &Wanted::default(), repository)? {
            Ok(submitted) => runs.push(submitted.run),
            Err(problems) => return Ok(validate::report(output, Err(&problems))),
        }
    }
    if !arguments.runs.is_empty() {
        return drive(&runs, arguments.close, repository, output);
    }
    let (unsettled, unreadable) = unsettled(repository)?;
    if unsettled.is_empty() && unreadable.is_empty() {
        output.note("every run here has settled");
    }
    let ending = drive(&unsettled, arguments.close, repository, output);
    last_of(unreadable.into_iter().map(Err).chain([ending]), output)
}

/// Drives runs and prints the table of items of each.
pub(crate) fn drive(
    runs: &[RunId],
    close: bool,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::io("the runtime could not be started", &e))?;
    let interrupt = runtime.block_on(async { on_interrupt() });
    let mut endings = Vec::new();
    for run in runs {
        let one = runtime.block_on(drive_one(run, close, interrupt.clone(), repository, output));
        let interrupted = matches!(one, Ok(Ending::Interrupted));
        endings.push(one);
        if interrupted {
            break;
        }
    }
    last_of(endings.into_iter(), output)
}

/// Returns how several runs ended together: one that failed does not keep the others from being driven, and is told of.
fn last_of(endings: impl Iterator<Item = Result<Ending, Failure>>, output: &mut Output) -> Result<Ending, Failure> {
    let mut together = Ok(Ending::Done);
    for ending in endings {
        together = match (together, ending) {
            (Err(before), Err(failure)) => {
                // Every failure is told; the last one gives the exit code.
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

async fn drive_one(
    run: &RunId,
    close: bool,
    interrupt: watch::Receiver<bool>,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let writer = repository.writer()?;
    let mut open = OpenRun::open(&writer, run)?;
    let machine = Machine::of(repository, close)?;
    check_schemas(&open, &machine.schemas)?;
    let mut display = Display::new(&open.state, writer.clock);
    let settled = drive::drive(&mut open, machine, interrupt, &mut |progress| display.tell(&progress)).await;
    display.end();
    let settled = settled?;
    let target = Target::own(run.clone());
    let view = target.view(&repository.store)?;
    if output.json {
        let root = settled.sealed.as_ref().map(|sealed| sealed.root);
        output.value(&json!({
            "schema": "git-handoff.run/1",
            "run": run,
            "settled": view.state.is_settled(),
            "sealed": view.state.sealed,
            "interrupted": settled.interrupted,
            "root": root,
            "counts": view.state.counts(),
            "items": ItemStatus::all(&view),
        }));
    } else {
        status::print_table(&view, output);
    }
    if settled.sealed.is_some() && view.head.entries >= LARGE && repository.config.maintenance {
        // What cannot be packed now is packed by git sooner or later; the run is not the worse for it.
        if let Err(error) = repository.store.pack_up() {
            output.warn(&format!("the new objects were not packed: {error}"));
        }
    }
    if settled.interrupted {
        output.note("interrupted; nothing that was done is lost");
        output.hint(&hints::run(run));
        return Ok(Ending::Interrupted);
    }
    if view.state.is_done() {
        if !view.state.sealed {
            output.hint(&hints::extend_or_close(run));
        }
        return Ok(Ending::Done);
    }
    advise(&view, output);
    Ok(Ending::NotAllDone)
}

/// Makes sure that no attempt is spent on a document whose schema is registered and cannot be read.
fn check_schemas(open: &OpenRun, schemas: &Schemas) -> Result<(), Failure> {
    let items = open.state.graph.items().iter().zip(&open.state.items);
    let open_items = items.filter(|(_, state)| !state.phase.is_terminal()).map(|(item, _)| item);
    let needed = open_items.flat_map(Item::documents).filter_map(|declared| declared.schema);
    for schema in needed {
        if let Some(Err(why)) = schemas.known.get(&schema) {
            return Err(Failure::refused("schema-unreadable", format!("the schema {schema} {why}"))
                .hint(hints::set_file(&why.place.key)));
        }
    }
    Ok(())
}

/// Says what can be done about items that did not get done.
fn advise(view: &git_handoff::run::View, output: &mut Output) {
    let failed = view.state.items.iter().position(|item| item.phase == git_handoff::model::state::Phase::Failed);
    if let Some(at) = failed {
        let id = &view.state.graph.item(at).id;
        output.hint(&hints::cat(format_args!("{}/{id}:transcript", view.run)));
        if !view.state.sealed {
            output.hint(&hints::retry_or_close(format_args!("{}/{id}", view.run), &view.run));
        }
    }
}

/// Returns the runs that have something left to do, be it only to record their seal; and why others cannot be read.
fn unsettled(repository: &Repository) -> Result<(Vec<RunId>, Vec<Failure>), Failure> {
    let own = repository.own_fingerprint();
    let (mut open, mut unreadable) = (Vec::new(), Vec::new());
    for run in own_runs(&repository.store)? {
        let target = Target::own(run.clone());
        let state = match target.view(&repository.store) {
            Ok(view) => view.state,
            Err(failure) => {
                unreadable.push(failure.into());
                continue;
            }
        };
        let ended = state.seals_itself() || state.is_ended();
        let logged = |own: &String| {
            log::find(&repository.store, own, run.clone()).map(|found| matches!(found, Some(Record::Sealed { .. })))
        };
        let unlogged = match &own {
            Some(own) if state.sealed && state.submitted.writers.first() == Some(own) => !logged(own)?,
            _ => false,
        };
        if !state.is_settled() || (ended && !state.sealed) || unlogged {
            open.push(run);
        }
    }
    Ok((open, unreadable))
}

/// Returns a watch that turns true at the first Ctrl-C or request to terminate; it never does where signals cannot be had, which
/// then do what they do to any program.
///
/// A thread of its own listens, so that a signal is heard whatever the conductor is doing. A signal that was ignored when the
/// program started, as `nohup` does with one, stays so.
fn on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async move {
                let signals = signals();
                // Whoever waits for it may be gone; the signals are heard all the same.
                let _ = ready.send(());
                heard(signals).await;
                sender.send_replace(true);
            });
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(listen).is_ok() {
        // Only then is no signal missed. An error says that the thread ended.
        let _ = is_ready.recv();
    }
    receiver
}

#[cfg(unix)]
fn signals() -> Vec<tokio::signal::unix::Signal> {
    use tokio::signal::unix::{SignalKind, signal};
    let ignored = ignored();
    let wanted = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].into_iter();
    wanted.filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0).filter_map(|kind| signal(kind).ok()).collect()
}

/// Returns the set of signals that are ignored, a bit each; none where the system does not tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(unix)]
async fn heard(mut signals: Vec<tokio::signal::unix::Signal>) {
    std::future::poll_fn(|repository| {
        let heard = signals.iter_mut().any(|signal| signal.poll_recv(repository).is_ready());
        if heard { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[cfg(not(unix))]
fn signals() {}

#[cfg(not(unix))]
async fn heard((): ()) {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
