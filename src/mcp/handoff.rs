//! Tools for offering and adopting checkpoints.

use git_handoff::git::remote::Remotes;
use git_handoff::model::hints;
use git_handoff::repository::{Repository, Trust};
use git_handoff::thread::adopt::Request;
use git_handoff::thread::answers::AdoptedCheckpoint;
use git_handoff::thread::offer::{Terms, milliseconds};
use git_handoff::thread::target::id;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

use crate::output::Failure;

use super::threads::target;
use super::tools::{Call, Effect, Entry, Json, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "handoff_checkpoint",
            "Offer a checkpoint to another agent. Returns a signed descriptor; pass it on unchanged.",
            Effect::Appends,
            &["descriptor"],
            handoff_checkpoint,
        ),
        tool(
            "adopt_checkpoint",
            "Begin a new thread with an offered checkpoint. Fetches it, and refuses it unless its bytes, its chain and all signatures \
             match the descriptor.",
            Effect::Appends,
            &["adopt"],
            adopt_checkpoint,
        )
        .reaching_out(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Handoff {
    /// The thread
    thread_id: String,
    /// The checkpoint [default: the latest]
    checkpoint_id: Option<String>,
    /// The agent that may adopt it [default: any]
    to_agent: Option<String>,
    /// How long the offer lasts: a number and s, m, h or d [default: 48h]
    expires: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Adopt {
    /// The descriptor, unchanged
    handoff_json: Json,
    /// The new thread
    new_thread_id: String,
    /// The remote to fetch from [default: this repository, then every remote]
    from: Option<String>,
    /// Also restore the saved working tree
    #[serde(default)]
    checkout: bool,
}

fn handoff_checkpoint(call: &Call, parameters: &Handoff) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let lasts = milliseconds(parameters.expires.as_deref().unwrap_or("48h")).map_err(Failure::usage)?;
    let expires = repository.environment.clock.now().plus_millis(lasts);
    let terms = Terms { to_agent: parameters.to_agent.clone(), expires, accept: None };
    let address = target(&parameters.thread_id, parameters.checkpoint_id.as_deref());
    let offered = repository.offer(&address, terms, &mut |text| call.warn(text))?;
    offered.caution().into_iter().for_each(|(caution, _)| call.warn(&caution));
    Ok(offered.descriptor)
}

/// Adopts with the operator's settings: known keys, clean packets, and the repository's remotes
/// only.
fn adopt_checkpoint(call: &Call, parameters: &Adopt) -> Result<AdoptedCheckpoint, Failure> {
    let repository = call.repository()?;
    if let Some(from) = &parameters.from
        && !is_remote(&repository, from)?
    {
        return Err(Failure::refused("unknown-remote", format!("{from:?} is no remote of this repository"))
            .hint(hints::remotes()));
    }
    let options = repository.options(&Trust::default(), &mut |text| call.warn(text))?;
    let request = Request {
        descriptor: parameters.handoff_json.bytes(),
        new: id(&parameters.new_thread_id)?,
        me: call.session.me.clone(),
        from: parameters.from.clone(),
        reach: call.reach(&repository),
        options,
        accept_unknown: false,
        accept_packet: None,
        checkout: parameters.checkout,
    };
    let adopted = repository.adopt(&request)?;
    adopted.submodules.iter().for_each(|submodule| call.warn(&submodule.in_words()));
    Ok(adopted)
}

fn is_remote(repository: &Repository, name: &str) -> Result<bool, Failure> {
    let remotes = Remotes::read(&repository.store)?;
    Ok(remotes.names().contains(&name))
}
