//! `git handoff mcp`: the tools of agents over the Model Context Protocol.
//!
//! Standard output carries the protocol and nothing else. Each call opens the repository anew and runs off the loop that reads
//! requests; its answer is the JSON that the command of the same deed prints, or the error that it prints.

mod documents;
mod handoff;
mod lines;
mod packets;
mod runs;
mod server;
mod threads;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;

use super::context::{Context, Surroundings};
use super::{Ending, Failure, Output};
use lines::Lines;
use server::Server;
use tools::Session;

/// In whose name a server acts where nobody says.
const ACTOR: &str = "agent:mcp";

/// How long a call that is under way when standard input ends may take to come to its own end.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// Serve the tools of agents to a client of the Model Context Protocol
///
/// On standard input and output, for the configuration of the client, with the repository as working directory. Agents can submit and watch runs, put and read documents, save,
/// hand over and adopt checkpoints, verify, and check packets; what operators do is not among the tools. Ends when standard input
/// does. In whose name it acts is said here and not by who calls: --actor, else `$HANDOFF_ACTOR`, else agent:mcp.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Adopt in this agent's name
    #[arg(long, value_name = "AGENT")]
    me: Option<String>,
}

/// Serves until standard input ends.
pub(crate) fn run(arguments: Arguments, around: Surroundings, output: &mut Output) -> Result<Ending, Failure> {
    let around = around.with_actor(ACTOR);
    // What is wrong with the place is said at once, and not to the first who calls.
    let context = Context::new(around.clone(), false, output)?;
    context.actor()?;
    context.config.warnings.iter().for_each(|warning| output.warn(warning));
    let ended = Arc::new(AtomicBool::new(false));
    let server = Server::new(Session { around, me: arguments.me, ended: ended.clone() });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::io("no server could be started", &e))?;
    let served = runtime.block_on(async {
        let (input, answers) = stdio();
        match server.serve((Lines::new(input), answers)).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
            // Somebody looked whether we are there, and went away.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    ended.store(true, Ordering::Relaxed);
    runtime.shutdown_timeout(LAST_CALLS);
    served.map_err(|why| Failure::refused("mcp", format!("the client does not speak the protocol: {why}")))?;
    Ok(Ending::Done)
}
