//! `git handoff submit`

use std::path::{Path, PathBuf};

use git_handoff::model::quote::quoted;
use git_handoff::plan::validate::Problems;
use git_handoff::run::submit::{self as stage, Request, Submitted};
use serde_json::{Value, json};

use super::{Ending, Failure, Output, run, validate};
use git_handoff::repository::Repository;

/// Validate a plan and create its run
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The plan, or - for standard input
    plan: PathBuf,
    /// Place the run on this queue instead of the plan's
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Start from this commit instead of the plan's base
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Run it as well
    #[arg(long)]
    run: bool,
}

/// Prints the run's id.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let wanted = Wanted { queue: arguments.queue.clone(), base: arguments.base.clone() };
    let submitted = match submit(&arguments.plan, &wanted, repository)? {
        Ok(submitted) => submitted,
        Err(problems) => return Ok(validate::report(output, Err(&problems))),
    };
    if arguments.run {
        return run::drive(&[submitted.run], false, repository, output);
    }
    if output.json {
        output.value(&value(&submitted));
    } else {
        output.line(submitted.run.as_str());
    }
    if !submitted.created {
        output.note("the same plan was submitted before; nothing changed");
    }
    Ok(Ending::Done)
}

/// Returns what was submitted, as answers have it.
pub(crate) fn value(submitted: &Submitted) -> Value {
    json!({ "schema": "git-handoff.submit/1", "run": submitted.run, "created": submitted.created })
}

/// What the command line says against the plan.
#[derive(Default)]
pub(crate) struct Wanted {
    /// The queue.
    pub(crate) queue: Option<String>,
    /// The base revision.
    pub(crate) base: Option<String>,
}

/// Validates and submits a plan file; problems of the plan are an answer, not a failure.
pub(crate) fn submit(
    path: &Path,
    wanted: &Wanted,
    repository: &Repository,
) -> Result<Result<Submitted, Problems>, Failure> {
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    submit_bytes(&validate::read_plan(path)?, folder, wanted, repository)
}

/// Does so with a plan that was read; the artifacts that it names are relative to `folder`.
pub(crate) fn submit_bytes(
    bytes: &[u8],
    folder: PathBuf,
    wanted: &Wanted,
    repository: &Repository,
) -> Result<Result<Submitted, Problems>, Failure> {
    let valid = match validate::check(repository, bytes, wanted) {
        Ok(valid) => valid,
        Err(problems) => return Ok(Err(problems)),
    };
    let queue = wanted.queue.as_deref().unwrap_or(&valid.plan().queue);
    if queue != "default" && !repository.config.queues.contains_key(queue) {
        return Err(Failure::refused("unknown-queue", format!("no queue {queue:?} is registered here"))
            .hint(format!("git config {} 2", quoted(&format!("handoff.queue.{queue}.concurrency")))));
    }
    let pattern = repository.config.queues.get(queue).and_then(|settings| settings.pattern.clone());
    let request = Request {
        base: stage::resolve_base(&repository.store, &validate::revision(wanted.base.as_deref(), Some(valid.plan())))?,
        queue: wanted.queue.clone(),
        pattern: pattern.unwrap_or_else(|| "dag".into()),
        folder,
    };
    let writer = repository.writer()?;
    let submitted = stage::submit(&writer, &valid, &request)?;
    if !submitted.created {
        // What lies under the id is taken for our own run only if it is: a stranger can plant one that looks finished.
        run::open(&submitted.run, repository)?;
    }
    Ok(Ok(submitted))
}
