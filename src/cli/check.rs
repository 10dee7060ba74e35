//! `git handoff check`

use std::path::{Path, PathBuf};

use git_handoff::model::packet::{self as model, Age, MAX_BYTES, Packet, Unusable};
use git_handoff::packet::facts::{self, Absent};
use git_handoff::packet::{self, Classification, Report, Terms};
use git_handoff::repository::Environment;
use git_handoff::run::{Target, Vetted, document, documents};
use git_handoff::thread::target::ThreadTarget;
use git_handoff::thread::{gate as attached, steps, vouch};
use git_handoff::verify::Gate;

use super::{Ending, Failure, Output, context, gate};

/// Check whether it is safe to resume from a handoff packet
///
/// Ends with 0 when the packet is clean, with 3 when somebody has to look first, with 4 when there is nothing to resume from; of
/// several packets the worst counts. What a packet says is data: it is quoted and never followed. A file that is named like a
/// thread or a document is written ./NAME.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files, - for standard input, threads to whose checkpoint a packet is attached, or documents of runs
    #[arg(required = true, value_name = "FILE|THREAD[:CHECKPOINT]|RUN:documents/NAME")]
    packets: Vec<PathBuf>,
    /// The task that is being resumed; the packet's objective must be like it
    #[arg(long, value_name = "TEXT")]
    objective: Option<String>,
    /// The oldest a packet may be, such as 90m or 2d [default: 48h]
    #[arg(long, value_name = "AGE")]
    max_age: Option<Age>,
}

/// Prints one report a packet.
pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result<Ending, Failure> {
    if arguments.packets.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("- stands for standard input, which can be read only once".into()));
    }
    let mut terms = Terms { objective: arguments.objective.clone(), ..Terms::new(environment.clock.now()) };
    terms.max_age = arguments.max_age.unwrap_or(terms.max_age);
    let worst = gate::around(environment, output, |gate, output| check(arguments, &terms, gate, output))?;
    Ok(match worst {
        Classification::Clean => Ending::Done,
        Classification::Operational => Ending::CheckFailed,
        Classification::Critical => Ending::Critical,
    })
}

/// Prints the reports; returns the worst of what they say.
fn check(
    arguments: &Arguments,
    terms: &Terms,
    gate: Option<&Gate<'_>>,
    output: &mut Output,
) -> Result<Classification, Failure> {
    let several = arguments.packets.len() > 1;
    let mut worst = Classification::Clean;
    for (at, path) in arguments.packets.iter().enumerate() {
        let found = gate.zip(path.to_str()).map(|(gate, name)| of_name(gate, name, terms));
        let found = found.transpose()?.flatten();
        let report = found.unwrap_or_else(|| report(&read(path), gate, terms));
        worst = worst.max(report.classification);
        let name = path.to_string_lossy();
        if output.json {
            let mut value = report.to_json();
            value["packet"] = name.into();
            output.value(&value);
        } else {
            if several {
                if at > 0 {
                    output.line("");
                }
                output.line(&format!("Packet: {}", packet::quoted(&name)));
                output.line("");
            }
            output.text(&report.to_text());
        }
    }
    Ok(worst)
}

/// Checks one packet that was read.
pub(crate) fn report(read: &Result<Packet, Unusable>, gate: Option<&Gate<'_>>, terms: &Terms) -> Report {
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, gate, Absent::Fails),
        Err(_) => packet::no_facts(),
    };
    packet::check(read, facts, terms)
}

/// Checks the packet that a name means; nothing where it is no name of a document or thread.
pub(crate) fn of_name(gate: &Gate<'_>, text: &str, terms: &Terms) -> Result<Option<Report>, Failure> {
    match of_document(gate, text)? {
        Some(read) => Ok(Some(report(&read, Some(gate), terms))),
        None => of_thread(gate, text, terms),
    }
}

/// Checks the packet of a thread; nothing where the text names none.
fn of_thread(gate: &Gate<'_>, text: &str, terms: &Terms) -> Result<Option<Report>, Failure> {
    let store = gate.store;
    let Some(target) = ThreadTarget::look_for(store, text)? else { return Ok(None) };
    // A thread that nothing can be resumed from is an answer and no failure of the command.
    let trust = vouch::Trust { options: gate.options.clone(), accept_untrusted: gate.accept_untrusted };
    let vouched = match target.vouched_by(store, &trust) {
        Ok(vouched) => vouched,
        Err(why) => return Ok(Some(report(&Err(absent(&why.into())), Some(gate), terms))),
    };
    let sound = vouched.sound();
    let read = steps::find(sound, target.checkpoint.as_ref())
        .map_err(Failure::from)
        .and_then(|checkpoint| attached::read(store, checkpoint).map_err(Failure::from));
    let read = match read {
        Ok(Some(read)) => read,
        Ok(None) => Err(Unusable::absent("there is no packet: none is attached to the checkpoint".into())),
        Err(failure) => Err(absent(&failure)),
    };
    Ok(Some(attached::report(&read, gate, &sound.trail, terms.clone())?))
}

/// Reads a packet that is a document of a run; nothing where the text names no run.
fn of_document(gate: &Gate<'_>, text: &str) -> Result<Option<Result<Packet, Unusable>>, Failure> {
    let store = gate.store;
    let Some((run, name)) = text.split_once(":documents/") else { return Ok(None) };
    let Some(target) = Target::look_up(store, run)? else { return Ok(None) };
    let read = || {
        let view = Vetted::read(store, &gate.admit(&target.run, &target.reference)?)?;
        let change = document::find(&view, &documents::name(name)?, None)?;
        if change.revision.product.size > MAX_BYTES as u64 {
            return Ok(Err(Unusable::too_large()));
        }
        let mut bytes = Vec::new();
        document::give(store, &view, &change, &mut bytes)?;
        Ok(model::read(&bytes))
    };
    // A document that is not there is an answer and no failure of the command.
    Ok(Some(read().unwrap_or_else(|failure: Failure| Err(absent(&failure)))))
}

/// Reads a packet from a file; one that is not there is an answer and no failure of the command.
fn read(path: &Path) -> Result<Packet, Unusable> {
    // One byte more than a packet may have, so that a larger one is told.
    let bytes = context::read_file(path, MAX_BYTES as u64 + 1).map_err(|failure| absent(&failure))?;
    model::read(&bytes)
}

fn absent(failure: &Failure) -> Unusable {
    let why = std::iter::once(&failure.message).chain(&failure.causes).cloned().collect::<Vec<_>>().join(": ");
    Unusable::absent(format!("there is no packet: {why}"))
}
