//! `git handoff prove`

use git_handoff::ledger::prove as stage;
use git_handoff::model::plan::ProductKey;
use git_handoff::repository::Repository;
use git_handoff::run::{Target, target};

use super::{Ending, Failure, Output};

/// Prove a product, or how a run went on, to somebody who has nothing else
///
/// Prints one JSON object, which `git handoff verify --proof` checks without any repository. The run must be sealed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// RUN/ITEM, RUN/ITEM:patch, RUN/ITEM:outputs/PATH, or RUN with --since
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    /// Prove that the entries up to this one still begin the run
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

/// Prints the proof.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let store = &repository.store;
    let (target, rest) = Target::with_rest(store, &arguments.what)?;
    let proof = match (arguments.since, rest) {
        (Some(since), None) => stage::growth(store, &target.reference, since)?,
        (Some(_), Some(_)) => return Err(Failure::usage("--since is about a whole run: name no item".into())),
        (None, None) => return Err(Failure::usage("say what to prove: RUN/ITEM:patch, or RUN --since SEQ".into())),
        (None, Some(rest)) => {
            let view = target.view(store)?;
            let (at, selected) = target::item_and_rest(&view, rest)?;
            let key = selected.map(|text| product(text).ok_or_else(|| unknown(text))).transpose()?;
            stage::item(store, &target.reference, &view.state.graph.item(at).id, key.as_ref())?
        }
    };
    output.value(&serde_json::to_value(&proof).map_err(|_| Failure::bug())?);
    Ok(Ending::Done)
}

/// Reads `patch`, `outputs/<path>`, or the path of an output.
fn product(text: &str) -> Option<ProductKey> {
    text.parse().or_else(|_| format!("outputs/{text}").parse()).ok()
}

fn unknown(text: &str) -> Failure {
    Failure::usage(format!("{text:?} is no product: say :patch or :outputs/PATH"))
}
