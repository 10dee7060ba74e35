//! `git handoff key`

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Print the allowed-signers line for your signatures
///
/// Others add the line to an allowed-signers file; with `git config handoff.signers <file>`, verify
/// trusts only the keys in it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name for the key [default: user.email]
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
}

/// Prints the line.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let key = repository.key_line(arguments.principal.as_deref())?;
    if !output.answers(&key) {
        output.line(&key.allowed_signers);
    }
    Ok(Ending::Done)
}
