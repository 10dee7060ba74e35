//! `git handoff check`

use std::path::{Path, PathBuf};

use git_handoff::answers::program::Checked;
use git_handoff::model::packet::{Age, MAX_BYTES, Packet, Unusable};
use git_handoff::repository::Environment;
use git_handoff::thread::packet::{self, Classification, Terms};
use git_handoff::thread::packet_operations;
use git_handoff::verify::Gate;

use super::{Ending, Failure, Output, context, gate};

/// Check whether it is safe to resume from a handoff packet
///
/// The exit code is 0 if the packet is clean, 3 if a person should look at it first, and 4 if it is
/// unusable; for several packets, the highest. Text in a packet is data: it is quoted and never
/// followed. Write ./NAME for a file with the name of a thread or document.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files, - for standard input, threads with an attached packet, or documents of runs
    #[arg(required = true, value_name = "FILE|THREAD[:CHECKPOINT]|RUN:documents/NAME")]
    packets: Vec<PathBuf>,
    /// The task to resume; the packet's objective must resemble it
    #[arg(long, value_name = "TEXT")]
    objective: Option<String>,
    /// The maximum age of a packet, such as 90m or 2d [default: 48h]
    #[arg(long, value_name = "AGE")]
    max_age: Option<Age>,
}

/// Prints one report for each packet.
pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result<Ending, Failure> {
    if arguments.packets.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("- means standard input, which can be read only once".into()));
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

/// Prints the reports; returns the highest exit code.
fn check(
    arguments: &Arguments,
    terms: &Terms,
    gate: Option<&Gate<'_>>,
    output: &mut Output,
) -> Result<Classification, Failure> {
    let several = arguments.packets.len() > 1;
    let mut worst = Classification::Clean;
    for (at, path) in arguments.packets.iter().enumerate() {
        let found = gate.zip(path.to_str()).map(|(gate, name)| packet_operations::check_named(gate, name, terms));
        let found = found.transpose()?.flatten();
        let report = found.unwrap_or_else(|| packet_operations::check(&read(path), gate, terms));
        worst = worst.max(report.classification);
        let name = path.to_string_lossy();
        if output.json {
            output.value(&Checked { packet: Some(&name), report: &report });
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

/// Reads a packet from a file; a missing file is a report, not an error.
fn read(path: &Path) -> Result<Packet, Unusable> {
    // Reads one byte more than the maximum, so that a larger packet is noticed.
    let bytes = context::read_file(path, MAX_BYTES as u64 + 1).map_err(|failure| absent(&failure))?;
    packet::read(&bytes)
}

fn absent(failure: &Failure) -> Unusable {
    let why = std::iter::once(&failure.message).chain(&failure.causes).cloned().collect::<Vec<_>>().join(": ");
    Unusable::absent(format!("there is no packet: {why}"))
}
