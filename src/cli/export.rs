//! `git handoff export`

use clap::ValueEnum;
use git_handoff::interop::operations as interop;
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, gate};

/// Print a sealed run as evidence for other verifiers
///
/// Verifies the run first, and signs the output with your own key.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or for in-toto one item: RUN/ITEM
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
    /// One DSSE envelope a line for each product: an in-toto Statement v1 with SLSA provenance v1
    InToto,
    /// The audit bundle of another orchestrator, as one JSON object
    BundleJson,
}

impl From<Format> for interop::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::InToto => Self::InToto,
            Format::BundleJson => Self::BundleJson,
        }
    }
}

/// Prints the evidence.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (format, terms) = (arguments.format.into(), arguments.terms.into());
    let exported = repository.export(&arguments.target, format, terms, &mut |text| output.warn(text))?;
    if exported.is_empty() {
        output.note("there are no products to attest");
    }
    exported.iter().for_each(|evidence| output.value(evidence));
    Ok(Ending::Done)
}
