//! `git handoff key`

use git_handoff::ledger::sign;
use git_handoff::repository::Repository;
use serde_json::json;

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
    let signer = repository.signer()?;
    let email = repository.config.user.as_ref().map(|(_, email)| email.clone());
    let principal = arguments.principal.clone().or(email).unwrap_or_else(|| "git-handoff".into());
    if principal.is_empty() || principal.contains(|c: char| c.is_whitespace() || c == ',' || c == '"') {
        return Err(Failure::usage(format!("{principal:?} cannot stand in an allowed-signers file")));
    }
    let line = sign::allowed_signers_line(&principal, signer.public())?;
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.key/1",
            "fingerprint": signer.fingerprint(),
            "principal": principal,
            "allowedSigners": line,
        }));
    } else {
        output.line(&line);
    }
    Ok(Ending::Done)
}
