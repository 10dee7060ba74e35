//! `git handoff pipeline validate`

use std::path::PathBuf;

use git_handoff::model::json;
use git_handoff::model::pipeline::Spec;
use git_handoff::model::problems::Problems;
use git_handoff::repository::pipelines::PipelineVerdict;

use super::super::table;
use super::super::validate::print_problems;
use super::{Ending, Failure, Output};

/// Check a pipeline and print every problem it has
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file, or - for standard input
    file: PathBuf,
}

/// Prints the verdict.
pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = super::read(&arguments.file)?;
    let spec = match Spec::parse(json::unmarked(&bytes)) {
        Ok(spec) => spec,
        Err(problems) => return Ok(refuse(&problems, output)),
    };
    if output.json {
        output.value(&PipelineVerdict::valid(&spec, &Problems::default()));
        return Ok(Ending::Done);
    }
    let count = spec.blocks.len();
    output.line(&format!("valid: {}, {}", spec.id, table::many(count, "block")));
    output.line(&spec.pinned());
    Ok(Ending::Done)
}

/// Prints the problems of a pipeline.
pub(super) fn refuse(problems: &Problems, output: &mut Output) -> Ending {
    if output.json {
        output.value(&PipelineVerdict::refused(problems));
    } else {
        print_problems(problems, output);
    }
    Ending::Refused
}
