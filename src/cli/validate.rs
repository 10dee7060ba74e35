//! `git handoff validate`

use std::path::{Path, PathBuf};

use git_handoff::model::credential;
use git_handoff::plan::MAX_PLAN_BYTES;
use git_handoff::plan::validate::{Problems, ValidPlan};
use git_handoff::repository::Repository;
use git_handoff::run::operate::submission::{Verdict, Wanted};

use super::{Ending, Failure, Output, context};

/// Check a plan and print every problem it has
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The plan, or - for standard input
    plan: PathBuf,
    /// Validate for this queue instead of the plan's
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Validate against this commit instead of the plan's base
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

/// Prints the verdict.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = read_plan(&arguments.plan)?;
    let options = Wanted { queue: arguments.queue.clone(), base: arguments.base.clone(), ..Wanted::default() };
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    let result = repository.validate(&bytes, Some(folder), &options);
    Ok(report(output, result.as_ref()))
}

/// Reads a plan; one byte more than the maximum, so that a larger file is noticed.
pub(crate) fn read_plan(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    context::read_file(path, MAX_PLAN_BYTES as u64 + 1)
}

/// Prints a verdict with its problems.
pub(crate) fn report(output: &mut Output, result: Result<&ValidPlan, &Problems>) -> Ending {
    let none = Problems::default();
    match result {
        Ok(plan) if output.json => output.value(&redacted(Verdict::valid(plan, &none))),
        Ok(plan) => print_valid(plan, output),
        Err(problems) if output.json => output.value(&redacted(Verdict::refused(problems))),
        Err(problems) => print_problems(problems, output),
    }
    if result.is_ok() { Ending::Done } else { Ending::Refused }
}

/// Returns the answer without credentials.
fn redacted(verdict: Verdict<'_>) -> serde_json::Value {
    credential::redact_json(serde_json::to_value(verdict).expect("every answer can be written as JSON"))
}

/// Prints the problems of a file with suggestions, without credentials from the file.
pub(crate) fn print_problems(problems: &Problems, output: &mut Output) {
    for problem in problems {
        output.line(&*credential::redact(&problem.to_string()));
        if let Some(hint) = &problem.hint {
            output.line(&format!("    {}", credential::redact(hint.as_str())));
        }
    }
    if let Some(more) = problems.and_more() {
        output.line(&more);
    }
    output.note(&format!("{} problem{}", problems.count(), if problems.count() == 1 { "" } else { "s" }));
}

/// Prints a valid plan's items, and the rules of its pattern.
fn print_valid(plan: &ValidPlan, output: &mut Output) {
    let items = plan.plan().items.len();
    output.line(&format!("valid: {items} item{}", if items == 1 { "" } else { "s" }));
    for item in &plan.plan().items {
        if let Some(spec) = item.pipeline().and_then(|name| plan.pipelines().get(name)) {
            let blocks: Vec<String> = spec.blocks.iter().map(ToString::to_string).collect();
            output.line(&format!("    {}: pipeline {} [{}]", item.id, spec.pinned(), blocks.join(", ")));
        }
    }
    let rules = plan.compiled_in_words();
    if !rules.is_empty() {
        output.line(&format!("the pattern {} adds these rules:", plan.pattern()));
        rules.iter().for_each(|rule| output.line(&format!("    {}", credential::redact(rule))));
    }
    plan.warnings().iter().for_each(|warning| output.warn(&credential::redact(warning)));
}
