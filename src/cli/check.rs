//! `git handoff check`

use std::path::{Path, PathBuf};

use git_handoff::document;
use git_handoff::git::store::Store;
use git_handoff::model::packet::{self as model, Age, MAX_BYTES, Packet, Unusable};
use git_handoff::packet::facts::{self, Absent};
use git_handoff::packet::{self, Classification, Report, Terms};
use git_handoff::thread::{gate, steps};

use super::context::{self, Surroundings};
use super::target::Target;
use super::thread::ThreadTarget;
use super::{Ending, Failure, Output, doc};

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
pub(crate) fn run(arguments: &Arguments, around: &Surroundings, output: &mut Output) -> Result<Ending, Failure> {
    if arguments.packets.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("- stands for standard input, which can be read only once".into()));
    }
    let mut terms = Terms { objective: arguments.objective.clone(), ..Terms::new(around.clock.now()) };
    terms.max_age = arguments.max_age.unwrap_or(terms.max_age);
    let store = around.store();
    let several = arguments.packets.len() > 1;
    let mut worst = Classification::Clean;
    for (at, path) in arguments.packets.iter().enumerate() {
        let found = store.as_ref().zip(path.to_str()).map(|(store, name)| of_name(store, name, &terms));
        let found = found.transpose()?.flatten();
        let report = found.unwrap_or_else(|| report(&read(path), store.as_ref(), &terms));
        worst = worst.max(report.classification);
        let name = path.to_string_lossy();
        if output.json {
            let mut value = report.to_json();
            value["packet"] = name.into();
            output.value(&value);
        } else {
            if several {
                let space = if at > 0 { "\n" } else { "" };
                output.line(&format!("{space}Packet: {}\n", packet::quoted(&name)));
            }
            output.bytes(report.to_text().as_bytes());
        }
    }
    Ok(match worst {
        Classification::Clean => Ending::Done,
        Classification::Operational => Ending::CheckFailed,
        Classification::Critical => Ending::Critical,
    })
}

/// Checks one packet that was read.
pub(super) fn report(read: &Result<Packet, Unusable>, store: Option<&Store>, terms: &Terms) -> Report {
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, store, Absent::Fails),
        Err(_) => packet::no_facts(),
    };
    packet::check(read, facts, terms)
}

/// Checks the packet that a name means; nothing where it is no name of a document or thread.
pub(super) fn of_name(store: &Store, text: &str, terms: &Terms) -> Result<Option<Report>, Failure> {
    match of_document(store, text)? {
        Some(read) => Ok(Some(report(&read, Some(store), terms))),
        None => of_thread(store, text, terms),
    }
}

/// Checks the packet of a thread; nothing where the text names none.
fn of_thread(store: &Store, text: &str, terms: &Terms) -> Result<Option<Report>, Failure> {
    let Some(target) = ThreadTarget::look_for(store, text)? else { return Ok(None) };
    // A thread that nothing can be resumed from is an answer and no failure of the command.
    let sound = match target.sound(store) {
        Ok(sound) => sound,
        Err(failure) => return Ok(Some(report(&Err(absent(&failure)), Some(store), terms))),
    };
    let read = steps::find(&sound, target.checkpoint.as_ref())
        .map_err(Failure::from)
        .and_then(|checkpoint| gate::read(store, checkpoint).map_err(Failure::from));
    let read = match read {
        Ok(Some(read)) => read,
        Ok(None) => Err(Unusable::absent("there is no packet: none is attached to the checkpoint".into())),
        Err(failure) => Err(absent(&failure)),
    };
    Ok(Some(gate::report(&read, store, &sound.trail, terms.clone())?))
}

/// Reads a packet that is a document of a run; nothing where the text names no run.
fn of_document(store: &Store, text: &str) -> Result<Option<Result<Packet, Unusable>>, Failure> {
    let Some((run, name)) = text.split_once(":documents/") else { return Ok(None) };
    let Some(target) = Target::look_up(store, run)? else { return Ok(None) };
    let read = || {
        let view = target.view(store)?;
        let change = document::find(&view, &doc::name(name)?, None)?;
        if change.revision.product.size > MAX_BYTES as u64 {
            return Ok(Err(Unusable::too_large()));
        }
        let mut bytes = Vec::new();
        document::give(store, &change, &mut bytes)?;
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
