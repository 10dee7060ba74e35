//! `git handoff checkpoint`

use std::path::{Path, PathBuf};

use git_handoff::repository::Repository;
use git_handoff::thread::answers::MadeCheckpoint;
use git_handoff::thread::checkpoint::Besides;
use git_handoff::thread::target::id;
use git_handoff::verify::Gate;

use super::{Ending, Failure, Output, context, gate};

/// Save a state as the next checkpoint of a thread
///
/// The state can be any bytes. Creates the thread if it does not exist. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// The file with the state, or - for standard input
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Attach this packet; auto writes one from the recorded facts of the thread and its run
    #[arg(long, value_name = "FILE|auto")]
    packet: Option<PathBuf>,
    /// Tie this run to the checkpoint, so that both are shared together
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Save the working tree, staged or not; of ignored files only names and hashes
    #[arg(long)]
    worktree: bool,
    /// A summary of one line
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Append nothing if the last checkpoint holds the same, whatever its summary is
    #[arg(long)]
    if_changed: bool,
    #[command(flatten)]
    terms: gate::Terms,
}

/// The value of `--packet` that is not a file; `./auto` names a file.
const AUTO: &str = "auto";

/// Saves and prints a checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let is_auto = arguments.packet.as_deref() == Some(Path::new(AUTO));
    let both = arguments.state == Path::new("-") && arguments.packet.as_deref() == Some(Path::new("-"));
    if both {
        return Err(Failure::usage("state and packet cannot both be standard input".into()));
    }
    if arguments.terms.accept_untrusted && !is_auto {
        return Err(Failure::usage("--accept-untrusted is about the run of --packet auto".into()));
    }
    let made = if is_auto {
        gate::at_hand(arguments.terms, repository, output, |gate: &Gate<'_>, output: &mut Output| {
            arguments.save(repository, Some(gate), output)
        })?
    } else {
        arguments.save(repository, None, output)?
    };
    for path in &made.left_out {
        let why = if made.too_large.contains(path) {
            format!("larger than {} bytes, the most that is taken", repository.config.max_product_size)
        } else {
            "another worktree of this repository".to_owned()
        };
        output.note(&format!("left out: {path}, {why}"));
    }
    if made.unchanged {
        output.note(&format!("nothing was saved: checkpoint {} holds the same", made.new.state.checkpoint_id));
    }
    output.value(&made);
    Ok(Ending::Done)
}

impl Arguments {
    fn save(
        &self,
        repository: &Repository,
        auto_packet: Option<&Gate<'_>>,
        output: &mut Output,
    ) -> Result<MadeCheckpoint, Failure> {
        let thread = id(&self.thread)?;
        let (summary, run) = (self.summary.as_deref(), self.run.as_deref());
        let besides = Besides { summary, run, worktree: self.worktree, if_changed: self.if_changed, auto_packet };
        let packet = self.packet.as_deref().filter(|_| auto_packet.is_none());
        repository.checkpoint(&thread, &besides, &mut |text| output.warn(text), || -> Result<_, Failure> {
            let packet = packet.map(|path| context::save(repository, path)).transpose()?;
            Ok((context::save(repository, &self.state)?, packet))
        })
    }
}
