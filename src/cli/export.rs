//! `git handoff export`

use clap::ValueEnum;
use git_handoff::anchor::gate::let_in;
use git_handoff::interop::{bundle_json, in_toto};
use git_handoff::repository::Repository;
use git_handoff::run::{Target, target};

use super::{Ending, Failure, Output, gate};

/// Print a sealed run as evidence for other people's verifiers
///
/// The run is verified first, and what is printed is signed by your own key.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or for in-toto one item of it
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    terms: gate::Terms,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// One DSSE envelope a line and product: an in-toto Statement v1 with SLSA provenance v1
    InToto,
    /// The audit bundle of another orchestrator, as one JSON object
    BundleJson,
}

/// Prints the evidence.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
    let view = gate::with(arguments.terms, repository, output, |gate, output| {
        Ok(let_in(gate, &gate.admit_intact(&target.run, &target.reference)?, &mut |text| output.warn(text))?)
    })?;
    let item = rest.map(|rest| target::item(&view, rest)).transpose()?;
    let item = item.map(|at| &view.state.graph.item(at).id);
    let signer = repository.signer()?;
    match (arguments.format, item) {
        (Format::InToto, item) => {
            let envelopes = in_toto::export(&repository.store, &view, item, &signer)?;
            if envelopes.is_empty() {
                output.note("there are no products to attest");
            }
            envelopes.iter().for_each(|envelope| output.value(envelope));
        }
        (Format::BundleJson, None) => output.value(&bundle_json::export(&repository.store, &view, &signer)?),
        (Format::BundleJson, Some(_)) => {
            return Err(Failure::usage("a bundle is of a whole run: leave the item out".into()));
        }
    }
    Ok(Ending::Done)
}
