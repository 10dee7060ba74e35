//! `git handoff run`

use std::path::Path;

use git_handoff::engine::tick;
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::quote::quoted;
use git_handoff::run::OpenRun;
use git_handoff::verify::{self, Refusal};
use serde_json::json;
use tokio::sync::watch;

use super::context::Context;
use super::progress::Display;
use super::target::{Target, own_runs};
use super::{Ending, Failure, Output, status, submit, validate};

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
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let mut runs = Vec::new();
    for named in &arguments.runs {
        let path = Path::new(named);
        // A run's id wins over a file of that name; `./name` means the file.
        if Target::find(&context.store, named).is_ok() || !(path.is_file() || named == "-") {
            runs.push(Target::find(&context.store, named)?.run);
            continue;
        }
        match submit::submit(path, &submit::Wanted::default(), context)? {
            Ok(submitted) => runs.push(submitted.run),
            Err(problems) => return Ok(validate::report(output, Err(&problems))),
        }
    }
    if arguments.runs.is_empty() {
        runs = unsettled(context)?;
        if runs.is_empty() {
            output.note("every run here has settled");
        }
    }
    drive(&runs, arguments.close, context, output)
}

/// Drives runs and prints the table of items of each.
pub(crate) fn drive(runs: &[RunId], close: bool, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::io("the runtime could not be started", &e))?;
    let mut ending = Ending::Done;
    for run in runs {
        let one = runtime.block_on(drive_one(run, close, context, output))?;
        if one == Ending::Interrupted {
            return Ok(one);
        }
        if one != Ending::Done {
            ending = one;
        }
    }
    Ok(ending)
}

async fn drive_one(run: &RunId, close: bool, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let writer = context.writer()?;
    let mut open = open(run, context)?;
    let interrupt = on_interrupt();
    let setting = context.setting(close)?;
    let mut display = Display::new(&open.state, writer.clock);
    let settled = tick::drive(&mut open, setting, interrupt, &mut |progress| display.tell(&progress)).await;
    display.end();
    let settled = settled?;
    let target = Target { run: run.clone(), reference: format::run_ref(run) };
    let view = target.view(&context.store)?;
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
            "items": status::items(&view),
        }));
    } else {
        status::print_table(&view, output);
    }
    if settled.interrupted {
        output.note("interrupted; nothing that was done is lost");
        output.hint(&format!("git handoff run {}", quoted(run.as_str())));
        return Ok(Ending::Interrupted);
    }
    if view.state.is_done() {
        return Ok(Ending::Done);
    }
    advise(&view, output);
    Ok(Ending::NotAllDone)
}

/// Opens a run for recording, after checking that its chain is sound so far and that our key may continue it.
pub(crate) fn open(run: &RunId, context: &Context) -> Result<OpenRun, Failure> {
    let writer = context.writer()?;
    let reference = format::run_ref(run);
    let open = OpenRun::open(writer.clone(), run)?;
    match verify::continuable(&context.store, run, &reference, &writer.signer.fingerprint()) {
        Ok(_) => Ok(open),
        // Driving a sealed run only puts right what a crash after the seal left out.
        Err(Refusal::Sealed(_)) if open.state.submitted.writers.contains(&writer.signer.fingerprint()) => Ok(open),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Says what can be done about items that did not get done.
fn advise(view: &git_handoff::run::View, output: &mut Output) {
    let failed = view.state.items.iter().position(|item| item.phase == git_handoff::model::state::Phase::Failed);
    if let Some(at) = failed {
        let id = &view.state.graph.item(at).id;
        output.hint(&format!("git handoff cat {}", quoted(&format!("{}/{id}:transcript", view.run))));
        if !view.state.sealed {
            output.hint(&format!(
                "git handoff retry {}   # or seal it as it is: git handoff close {}",
                quoted(&format!("{}/{id}", view.run)),
                quoted(view.run.as_str())
            ));
        }
    }
}

fn unsettled(context: &Context) -> Result<Vec<RunId>, Failure> {
    let mut open = Vec::new();
    for run in own_runs(&context.store)? {
        let target = Target { run: run.clone(), reference: format::run_ref(&run) };
        let state = target.view(&context.store)?.state;
        if !state.is_settled() || (state.is_done() && !state.sealed) {
            open.push(run);
        }
    }
    Ok(open)
}

/// Returns a watch that turns true at the first Ctrl-C or request to terminate.
fn on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            let Ok(mut hang_up) = signal(SignalKind::hangup()) else { return };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
        sender.send_replace(true);
        // Kept alive so that the receiver never sees a closed channel.
        std::future::pending::<()>().await;
    });
    receiver
}
