//! `git handoff validate`

use std::path::PathBuf;

use git_handoff::plan::MAX_PLAN_BYTES;
use git_handoff::plan::validate::{Problems, ValidPlan};
use git_handoff::repository::Repository;
use git_handoff::run::submission::{Verdict, Wanted};

use super::{Ending, Failure, Output, context};

/// Check a plan and print every problem it has
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The plan, or - for standard input
    plan: PathBuf,
    /// Check for this queue instead of the plan's
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Check against this commit instead of the plan's base
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

/// Prints the verdict.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = read_plan(&arguments.plan)?;
    let wanted = Wanted { queue: arguments.queue.clone(), base: arguments.base.clone() };
    let result = repository.validate(&bytes, &wanted);
    Ok(report(output, result.as_ref()))
}

/// Reads a plan's bytes; one more than a plan may have, so that a larger one is told.
pub(crate) fn read_plan(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    context::read_file(path, MAX_PLAN_BYTES as u64 + 1)
}

/// Prints a verdict: the problems are the answer.
pub(crate) fn report(output: &mut Output, result: Result<&ValidPlan, &Problems>) -> Ending {
    let none = Problems::default();
    let (valid, items, problems) = match result {
        Ok(plan) => (true, plan.plan().items.len(), &none),
        Err(problems) => (false, 0, problems),
    };
    if output.json {
        output.value(&Verdict::of(items, problems));
    } else if valid {
        output.line(&format!("valid: {items} item{}", if items == 1 { "" } else { "s" }));
    } else {
        for problem in problems {
            output.line(&problem.to_string());
            if let Some(hint) = &problem.hint {
                output.line(&format!("    {hint}"));
            }
        }
        if let Some(more) = problems.and_more() {
            output.line(&more);
        }
        output.note(&format!("{} problem{}", problems.count(), if problems.count() == 1 { "" } else { "s" }));
    }
    if valid { Ending::Done } else { Ending::Refused }
}
