//! `git handoff adopt`

use std::path::PathBuf;

use git_handoff::model::descriptor::MAX_SIZE;
use git_handoff::model::packet::Unclean;
use git_handoff::repository::{Repository, Trust};
use git_handoff::thread::adopt::Request;
use git_handoff::thread::target::id;

use super::context::{read_file, streamed};
use super::{Ending, Failure, Output};

/// Adopt a checkpoint that was offered, as the beginning of a new thread
///
/// Fetches the checkpoint itself, and refuses, with nothing written, unless the bytes, the chain that holds them and every
/// signature are what the descriptor says. A packet that is not clean, as `check` finds it, is refused as well, with 3 or 4 and
/// its report. Prints one JSON object.
#[derive(clap::Args)]
#[command(alias = "adopt_checkpoint")]
pub(crate) struct Arguments {
    /// The descriptor, or - for standard input
    descriptor: PathBuf,
    /// The new thread
    #[arg(long = "as", value_name = "NAME")]
    new: String,
    /// Adopt in this agent's name
    #[arg(long, value_name = "AGENT")]
    me: Option<String>,
    /// Fetch from this remote, URL, path or bundle [default: what is here, then the remotes]
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    from: Option<String>,
    /// Trust the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Adopt although nobody here knows the key; that it was so is recorded
    #[arg(long)]
    accept_unknown_signer: bool,
    /// Adopt although the attached packet is as bad as this, operational or critical, which is recorded
    #[arg(long, value_name = "CLASS")]
    accept: Option<Unclean>,
    /// Put the saved working tree back as well; refused if it would touch local changes
    #[arg(long)]
    checkout: bool,
}

/// Adopts, and prints where the state is now.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let wanted = Trust { signers: arguments.signers.as_deref().map(streamed), ..Trust::default() };
    let options = repository.options(&wanted, &mut |text| output.warn(text))?;
    let request = Request {
        descriptor: read_file(&arguments.descriptor, MAX_SIZE as u64 + 1)?,
        new: id(&arguments.new)?,
        me: arguments.me.clone(),
        from: arguments.from.clone(),
        reach: repository.reach(),
        options,
        accept_unknown: arguments.accept_unknown_signer,
        accept_packet: arguments.accept,
        checkout: arguments.checkout,
    };
    let adopted = repository.adopt(&request)?;
    adopted.submodules.iter().for_each(|submodule| output.warn(&submodule.in_words()));
    output.value(&adopted);
    Ok(Ending::Done)
}
