//! `git handoff mcp`

use git_handoff::repository::Environment;

use super::{Ending, Failure, Output};

/// Serve the tools of agents to a client of the Model Context Protocol
///
/// Speaks the protocol on standard input and output. Clients start it from their configuration, in
/// the repository's directory; elsewhere, every call says what is missing. Agents can submit and
/// watch runs, put and read documents, save, offer and adopt checkpoints, verify, and check
/// packets. They cannot do what operators do. Runs and documents are resources as well. The server
/// ends with its standard input. It acts under the name of --actor [default: `$HANDOFF_ACTOR`, then
/// agent:mcp].
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Adopt as this agent [default: `$HANDOFF_ME`, else only what is offered to any agent]
    #[arg(long, value_name = "AGENT")]
    me: Option<String>,
}

/// Serves until standard input ends.
pub(crate) fn run(arguments: Arguments, environment: Environment, output: &mut Output) -> Result<Ending, Failure> {
    crate::mcp::run(environment.adopter(arguments.me), environment, output)
}
