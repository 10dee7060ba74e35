//! `git handoff adopt`

use std::path::PathBuf;

use git_handoff::model::descriptor::MAX_SIZE;
use git_handoff::model::packet::Unclean;
use git_handoff::repository::{Repository, Trust};
use git_handoff::thread::adopt::Request;
use git_handoff::thread::target::id;

use super::context::{read_file, streamed};
use super::{Ending, Failure, Output};

/// Adopt an offered checkpoint as the beginning of a new thread
///
/// Fetches the checkpoint. Refuses it, and writes nothing, unless its bytes, its chain and every
/// signature match the descriptor. Also refuses a packet that is not clean, with exit code 3 or 4
/// and its report; see `check`. Prints one JSON object.
#[derive(clap::Args)]
#[command(alias = "adopt_checkpoint")]
pub(crate) struct Arguments {
    /// The descriptor, or - for standard input
    descriptor: PathBuf,
    /// The name of the new thread
    #[arg(long = "as", value_name = "NAME")]
    new: String,
    /// Adopt as this agent [default: `$HANDOFF_ME`, else only what is offered to any agent]
    #[arg(long, value_name = "AGENT")]
    me: Option<String>,
    /// Fetch from this remote, URL, path or bundle [default: this repository, then its remotes]
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    from: Option<String>,
    /// Trust the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Adopt even if the signer's key is unknown, and record that in the thread
    #[arg(long)]
    accept_unknown_signer: bool,
    /// Accept a packet of this classification, operational or critical, and record that
    #[arg(long, value_name = "CLASS")]
    accept: Option<Unclean>,
    /// Restore the saved working tree as well; refused if it would change local files
    #[arg(long)]
    checkout: bool,
}

/// Adopts, and prints the new thread.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let trust = Trust { signers: arguments.signers.as_deref().map(streamed), ..Trust::default() };
    let options = repository.options(&trust, &mut |text| output.warn(text))?;
    let request = Request {
        descriptor: read_file(&arguments.descriptor, MAX_SIZE as u64 + 1)?,
        new: id(&arguments.new)?,
        me: repository.environment.adopter(arguments.me.clone()),
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
