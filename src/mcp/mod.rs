//! `git handoff mcp`: the tools of agents over the Model Context Protocol, and runs and documents
//! as resources.
//!
//! Standard output is only for the protocol. Each call opens the repository for itself and runs
//! outside the request loop. Its answer is the JSON of the corresponding command, but hints name
//! tools. A waiting call has no thread. The number of working calls is limited, so that a thread is
//! free for the next request.

mod address;
mod arguments;
mod documents;
mod ending;
mod failures;
mod handoff;
mod hints;
mod packets;
mod pieces;
mod progress;
mod registered;
mod resources;
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
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio;
use server::{AT_WORK, Server};
use tools::Session;
use watch::Watches;

use crate::output::{Ending, Failure, Output};

/// The default actor.
const ACTOR: &str = "agent:mcp";

/// The number of threads besides those of working calls: for standard input and output, and for
/// watching.
const OTHER_THREADS: usize = 16;

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(1);

/// Serves until standard input ends. Adopts as the agent `me` if given.
pub(crate) fn run(me: Option<String>, environment: Environment, output: &mut Output) -> Result<Ending, Failure> {
    let environment = environment.with_actor(ACTOR);
    match Repository::open(environment.clone()) {
        Ok(repository) => {
            repository.actor()?;
            repository.config.warnings.iter().for_each(|warning| output.warn(warning));
        }
        // A client shows the errors of calls, but not why a server did not start. Each call opens
        // the repository again, so that it works as soon as the reason is gone.
        Err(error) => output.warn(&failures::at_start(&error.into())),
    }
    let ending = ending::Ending::new();
    let watches = Arc::new(Watches::new(environment.clone()));
    let server = Server::new(Session { environment, me, watches, ending: ending.clone() });
    let mut signals = Ending::requested();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(AT_WORK + OTHER_THREADS)
        // Polling would keep each idle thread alive with a longer time.
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
        let transport = AsyncRwTransport::new_server(ending.input(requests), answers);
        let running = match server.serve(transport).await {
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
