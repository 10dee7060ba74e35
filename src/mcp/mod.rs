//! `git handoff mcp`: the tools of agents over the Model Context Protocol.
//!
//! Standard output carries the protocol and nothing else. Each call opens the repository for itself and runs off the loop that reads
//! requests. Its answer is the JSON that the corresponding command prints, but its hints name tools. A call that only waits has
//! no thread. Few calls work at the same time, so that there is always a thread for the next request.

mod arguments;
mod documents;
mod ending;
mod handoff;
mod hints;
mod packets;
mod pieces;
mod progress;
mod registered;
mod runs;
mod schemas;
mod server;
mod sharing;
mod threads;
mod tools;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use git_handoff::repository::{Environment, Repository};
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;
use server::{AT_WORK, Server};
use tokio::sync::Semaphore;
use tools::Session;
use watch::LOOKS;

use crate::cli::{Ending, Failure, Output};

/// The actor of a server that was started without one.
const ACTOR: &str = "agent:mcp";

/// How many threads there are besides those of calls that work: for standard input and output, and for looking at what is watched.
const OTHER_THREADS: usize = 16;

/// How long a thread that has nothing to do is kept.
const IDLE: Duration = Duration::from_secs(1);

/// Serve the tools of agents to a client of the Model Context Protocol
///
/// Speaks the protocol on standard input and output. Clients start it from their configuration, with the repository as working
/// directory. Agents can submit and watch runs, put and read documents, save, hand over and adopt checkpoints, verify, and check
/// packets. They cannot do what operators do. The server ends with its standard input. It records its work under the name
/// of --actor [default: `$HANDOFF_ACTOR`, then agent:mcp].
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Adopt in this agent's name
    #[arg(long, value_name = "AGENT")]
    me: Option<String>,
}

/// Serves until standard input ends.
pub(crate) fn run(arguments: Arguments, environment: Environment, output: &mut Output) -> Result<Ending, Failure> {
    let environment = environment.with_actor(ACTOR);
    // What is wrong with the place is said at once, and not to the first who calls.
    let repository = Repository::open(environment.clone())?;
    repository.actor()?;
    repository.config.warnings.iter().for_each(|warning| output.warn(warning));
    let ending = ending::Ending::new();
    let looks = Arc::new(Semaphore::new(LOOKS));
    let server = Server::new(Session { environment, me: arguments.me, looks, ending: ending.clone() });
    let mut signals = Ending::requested();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(AT_WORK + OTHER_THREADS)
        // Whoever looks at the refs now and then gives each idle thread its turn, so that with more patience none would ever end.
        .thread_keep_alive(IDLE)
        .build()
        .map_err(|e| Failure::io("no server could be started", &e))?;
    let served = runtime.block_on(async {
        let (mut heard, interrupted) = (signals.clone(), ending.clone());
        tokio::spawn(async move {
            if heard.wait_for(|heard| *heard).await.is_ok() {
                interrupted.interrupt();
            }
        });
        let (requests, answers) = stdio();
        let running = match server.serve((ending.input(requests), answers)).await {
            Ok(running) => running,
            // The client only tried whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        tokio::select! {
            served = running.waiting() => {
                served.map(drop).map_err(|e| e.to_string())
            }
            // The client does not read the answers.
            () = ending.over() => Ok(()),
        }
    });
    runtime.shutdown_background();
    served.map_err(|why| Failure::refused("mcp", format!("the client does not speak the protocol: {why}")))?;
    Ok(if *signals.borrow_and_update() { Ending::Interrupted } else { Ending::Done })
}
