//! `git handoff key`

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Print the line by which others know your signatures
///
/// The line goes into an allowed-signers file, which `git config handoff.signers <file>` makes verify strict about.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name that the key is to be known by [default: user.email]
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
}

/// Prints the allowed-signers line.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let key = repository.key_line(arguments.principal.as_deref())?;
    if output.json {
        output.value(&key);
    } else {
        output.line(&key.allowed_signers);
    }
    Ok(Ending::Done)
}
