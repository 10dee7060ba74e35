//! `git handoff validate`

use std::path::PathBuf;

use git_handoff::model::plan::Plan;
use git_handoff::plan::validate::{Code, Problem, Problems, ValidPlan, validate};
use git_handoff::plan::{self, MAX_PLAN_BYTES};
use git_handoff::run::submit as stage;
use serde_json::{Value, json};

use super::context;
use super::submit::Wanted;
use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

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
    let result = check(repository, &bytes, &wanted);
    Ok(report(output, result.as_ref()))
}

/// Reads a plan's bytes; one more than a plan may have, so that a larger one is told.
pub(crate) fn read_plan(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    context::read_file(path, MAX_PLAN_BYTES as u64 + 1)
}

/// Validates a plan against this repository.
///
/// The one way to a valid plan, so that `validate` and `submit` cannot disagree.
pub(crate) fn check(repository: &Repository, bytes: &[u8], wanted: &Wanted) -> Result<ValidPlan, Problems> {
    let parsed = plan::parse(bytes).ok();
    let queue = wanted.queue.as_deref().or(parsed.as_ref().map(|plan| plan.queue.as_str())).unwrap_or("default");
    let catalog =
        |reserved| repository.catalog(queue, reserved).map_err(|failure| Problems::from(unreadable(&failure.into())));
    let revision = revision(wanted.base.as_deref(), parsed.as_ref());
    let folders = [repository.config.inputs.as_str(), repository.config.outputs.as_str()];
    // A base that does not resolve is a failure of its own where it matters; here it only hides nothing else.
    let reserved = stage::resolve_base(&repository.store, &revision)
        .and_then(|commit| stage::reserved_in_base(&repository.store, commit, folders))
        .unwrap_or_default();
    validate(bytes, &catalog(reserved)?)
}

/// Returns the revision that a run of the plan starts from.
pub(crate) fn revision(asked: Option<&str>, plan: Option<&Plan>) -> String {
    asked.map(str::to_owned).or_else(|| plan?.base.clone()).unwrap_or_else(|| "HEAD".into())
}

/// Prints a verdict: the problems are the answer.
pub(crate) fn report(output: &mut Output, result: Result<&ValidPlan, &Problems>) -> Ending {
    let none = Problems::default();
    let (valid, items, problems) = match result {
        Ok(plan) => (true, plan.plan().items.len(), &none),
        Err(problems) => (false, 0, problems),
    };
    if output.json {
        output.value(&verdict(items, problems));
    } else if valid {
        output.line(&format!("valid: {items} item{}", if items == 1 { "" } else { "s" }));
    } else {
        for problem in problems {
            output.line(&problem.to_string());
            if let Some(hint) = &problem.hint {
                output.line(&format!("    {hint}"));
            }
        }
        if let Some(more) = and_more(problems) {
            output.line(&more);
        }
        output.note(&format!("{} problem{}", problems.count(), if problems.count() == 1 { "" } else { "s" }));
    }
    if valid { Ending::Done } else { Ending::Refused }
}

/// Returns a verdict as `validate --json` has it: the problems that are told, with how many more there are, or how many items.
pub(crate) fn verdict(items: usize, problems: &Problems) -> Value {
    let mut verdict = json!({
        "schema": "git-handoff.validate/1", "valid": problems.is_empty(), "items": items, "problems": problems,
    });
    if problems.more() > 0 {
        verdict["more"] = problems.more().into();
    }
    verdict
}

/// Returns what is said in the place of problems that were only counted.
pub(crate) fn and_more(problems: &Problems) -> Option<String> {
    let more = problems.more();
    (more > 0).then(|| format!("… and {more} more problem{}", if more == 1 { "" } else { "s" }))
}

fn unreadable(failure: &Failure) -> Problem {
    let root = git_handoff::model::json::JsonPath::root();
    let message = std::iter::once(&failure.message).chain(&failure.causes).cloned().collect::<Vec<_>>().join(": ");
    let code = if failure.code == "bad-rule" { Code::BadRule } else { Code::UnknownShape };
    Problem::new(code, &root, message)
}
