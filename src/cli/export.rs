//! `git handoff export`

use clap::ValueEnum;
use git_handoff::report::export::operations::{self as export, ExportRequest, Exported};
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, gate};

/// Print a sealed run in the formats of other verifiers and tools
///
/// Verifies the run first. in-toto and bundle-json are signed with your own key; the other formats
/// are not signed, and say where the run is that proves them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, or for in-toto, agent-trace and git-ai one item: RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// Export the lines of this commit that are proven to be the run's; for agent-trace and git-ai
    #[arg(long, value_name = "REV")]
    commit: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// One DSSE envelope a line for each product: an in-toto Statement v1 with SLSA provenance v1
    InToto,
    /// The audit bundle of another orchestrator, as one JSON object
    BundleJson,
    /// Agent Trace 0.1.0: one JSON record a line for each item with a patch
    AgentTrace,
    /// The authorship log 3.0.0 of Git AI, for a note in refs/notes/ai
    GitAi,
    /// OTLP traces as JSON: a span for each attempt
    Otel,
    /// JUnit XML: a test case for each item
    Junit,
    /// A CycloneDX 1.6 ML-BOM as JSON
    Cyclonedx,
}

impl From<Format> for export::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::InToto => Self::InToto,
            Format::BundleJson => Self::BundleJson,
            Format::AgentTrace => Self::AgentTrace,
            Format::GitAi => Self::GitAi,
            Format::Otel => Self::Otel,
            Format::Junit => Self::Junit,
            Format::Cyclonedx => Self::CycloneDx,
        }
    }
}

/// Prints the evidence.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let request = ExportRequest {
        target: &arguments.target,
        format: arguments.format.into(),
        commit: arguments.commit.as_deref(),
        terms: arguments.terms.into(),
    };
    let exported = repository.export(request, &mut |text| output.warn(text))?;
    if exported.is_empty() {
        output.note(match arguments.format {
            Format::AgentTrace => "there are no patches to trace",
            _ => "there are no products to attest",
        });
    }
    for one in &exported {
        match one {
            Exported::Json(value) => output.value(value),
            Exported::Text(text) => output.bytes(text.as_bytes()),
        }
    }
    Ok(Ending::Done)
}
