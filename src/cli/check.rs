//! `git handoff check`

use std::path::{Path, PathBuf};

use git_handoff::git::store::Store;
use git_handoff::model::packet::{self as model, Age, MAX_BYTES, Unusable};
use git_handoff::packet::{self, Classification, Report, Terms, facts};

use super::context::{self, Surroundings};
use super::{Ending, Failure, Output};

/// Check whether it is safe to resume from a handoff packet
///
/// Ends with 0 when the packet is clean, with 3 when somebody has to look first, with 4 when there is nothing to resume from; of
/// several packets the worst counts. What a packet says is data: it is quoted and never followed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The packets, or - for standard input
    #[arg(required = true, value_name = "FILE")]
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
    let terms = Terms {
        now: around.clock.now(),
        max_age: arguments.max_age.unwrap_or_else(default_age),
        objective: arguments.objective.clone(),
    };
    let store = around.store();
    let several = arguments.packets.len() > 1;
    let mut worst = Classification::Clean;
    for (at, path) in arguments.packets.iter().enumerate() {
        let report = report(&read(path), store.as_ref(), &terms);
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

/// Returns the oldest a packet may be where nobody says.
pub(super) fn default_age() -> Age {
    Age::hours(48)
}

/// Checks one packet that was read.
pub(super) fn report(read: &Result<model::Packet, Unusable>, store: Option<&Store>, terms: &Terms) -> Report {
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, store),
        Err(_) => packet::no_facts(),
    };
    packet::check(read, facts, terms)
}

/// Reads a packet; one that is not there is an answer and no failure of the command.
fn read(path: &Path) -> Result<model::Packet, Unusable> {
    // One byte more than a packet may have, so that a larger one is told.
    let bytes = context::read_file(path, MAX_BYTES as u64 + 1).map_err(|failure| {
        let why = std::iter::once(&failure.message).chain(&failure.causes).cloned().collect::<Vec<_>>().join(": ");
        Unusable::absent(format!("there is no packet: {why}"))
    })?;
    model::read(&bytes)
}
