//! `git handoff doctor`

use git_handoff::repository::{Environment, Repository};
use git_handoff::upkeep::doctor::{Diagnosis, Finding, Severity};

use super::{Ending, Failure, Output};

/// Find unfinished, missing and dangerous things, and the commands that repair them
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Make the repairs that cannot lose anything
    #[arg(long)]
    fix: bool,
}

/// Prints invalid settings, with which no repository can be opened.
pub(crate) fn settings(environment: &Environment, output: &mut Output) -> Result<Option<Ending>, Failure> {
    Ok(environment.diagnose_settings()?.map(|diagnosis| print_diagnosis(&diagnosis, output)))
}

/// Prints the findings.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    Ok(print_diagnosis(&repository.diagnose(arguments.fix)?, output))
}

fn print_diagnosis(diagnosis: &Diagnosis, output: &mut Output) -> Ending {
    if !output.answers(diagnosis) {
        diagnosis.findings.iter().for_each(|finding| print(finding, output));
        if diagnosis.findings.is_empty() {
            output.note("nothing to complain about");
        }
    }
    if diagnosis.findings.iter().any(Finding::needs_attention) { Ending::CheckFailed } else { Ending::Done }
}

fn print(finding: &Finding, output: &mut Output) {
    let word = match (finding.fixed, finding.severity) {
        (true, _) => "mended",
        (false, Severity::Problem) => "problem",
        (false, Severity::Note) => "note",
    };
    output.line(&format!("{word}: {}", finding.message));
    if let Some(hint) = finding.hint.as_ref().filter(|_| !finding.fixed) {
        output.line(&format!("  {hint}"));
    }
}
