//! Tools about runs.

use git_handoff::model::credential;
use git_handoff::model::hints as commands;
use git_handoff::plan::validate::{Problems, ValidPlan};
use git_handoff::repository::Repository;
use git_handoff::run::operate::submission::{Verdict, Wanted};
use git_handoff::run::query::list::Besides;
use git_handoff::share::anchor::verification::VerifyRequest;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

use crate::output::Failure;

use super::hints;
use super::tools::{Call, Effect, Entry, Json, answer, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "submit",
            "Check a plan and create its run. Nothing is executed: the operator starts the work.",
            Effect::Appends,
            &["submit"],
            submit_plan,
        ),
        tool(
            "plan_validate",
            "Check whether a plan can be submitted here, and return every problem in it. Changes nothing.",
            Effect::Reads,
            &["validate"],
            validate_plan,
        ),
        tool(
            "status",
            "Return the status of each item of a run. Without a run, list all runs.",
            Effect::Reads,
            &["status", "runs"],
            show_status,
        ),
        tool(
            "verify",
            "Verify a run or a thread: recompute every hash, signature and transition from the recorded objects.",
            Effect::Reads,
            &["verify", "thread-verify"],
            verify,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Submit {
    /// {"id": "…", "items": [{"id": "…", "executor": "…", "inputs": {}, "needs": {}}]}
    plan: Json,
    /// The queue [default: the plan's]
    queue: Option<String>,
    /// The commit or branch that items start from [default: the plan's, then HEAD]
    base: Option<String>,
}

impl Submit {
    fn submit_options(&self) -> Wanted {
        Wanted { queue: self.queue.clone(), base: self.base.clone(), ..Wanted::default() }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Status {
    /// The run
    run: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Verify {
    /// The run to verify
    run: Option<String>,
    /// The thread to verify; give a run or a thread
    thread_id: Option<String>,
}

/// Refuses a plan with an executor that agents may not use.
fn expect_allowed(repository: &Repository, plan: &ValidPlan) -> Result<(), Failure> {
    match plan.executors().iter().find(|executor| !repository.config.mcp_allows(executor)) {
        Some(executor) => {
            let message = format!("the executor {executor:?} is not allowed in plans of agents");
            Err(Failure::refused("executor-not-allowed", message).hint(commands::allow_executor(executor)))
        }
        None => Ok(()),
    }
}

/// Refuses a plan that seals files of this machine: a caller must not choose them.
fn expect_no_files(plan: &ValidPlan) -> Result<(), Failure> {
    if plan.plan().artifacts.is_empty() {
        return Ok(());
    }
    let message = "a plan with `artifacts` cannot be submitted by an agent";
    Err(Failure::refused("artifacts", message.into()).hint(commands::submit()))
}

fn validate_plan(call: &Call, parameters: &Submit) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let (options, none) = (parameters.submit_options(), Problems::default());
    match repository.validate(&parameters.plan.bytes(), None, &options) {
        Ok(plan) => {
            expect_allowed(&repository, &plan)?;
            Ok(credential::redact_json(answer(&Verdict::valid(&plan, &none))?))
        }
        Err(problems) => Ok(credential::redact_json(refused(&problems)?)),
    }
}

/// Answers the problems of a plan, with hints for agents.
fn refused(problems: &Problems) -> Result<Value, Failure> {
    let mut value = answer(&Verdict::refused(problems))?;
    let listed = value["problems"].as_array_mut().into_iter().flatten();
    for (row, problem) in listed.zip(problems.iter()) {
        if let Some(hint) = &problem.hint {
            row["hint"] = hints::for_agents(hint).into();
        }
    }
    Ok(value)
}

fn submit_plan(call: &Call, parameters: &Submit) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let folder = repository.store.git_dir();
    match repository.submit_if(&parameters.plan.bytes(), folder, &parameters.submit_options(), |plan: &ValidPlan| {
        expect_no_files(plan).and_then(|()| expect_allowed(&repository, plan))
    })? {
        Ok(submission) => answer(&submission),
        Err(problems) => {
            let problems = problems.located(&parameters.plan.bytes());
            let causes = problems.iter().map(ToString::to_string).chain(problems.and_more()).collect();
            let failure = Failure::refused("invalid-plan", "the plan is not valid".into());
            Err(Failure { causes, details: Some(Box::new(refused(&problems)?)), ..failure })
        }
    }
}

fn show_status(call: &Call, parameters: &Status) -> Result<Value, Failure> {
    let repository = call.repository()?;
    match &parameters.run {
        Some(run) => answer(&repository.status(run)?),
        None => answer(&repository.runs(Besides::default())?),
    }
}

fn verify(call: &Call, parameters: &Verify) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let warn = &mut |text: &str| call.warn(text);
    match (&parameters.run, &parameters.thread_id) {
        (Some(run), None) => Ok(repository.verification(VerifyRequest::default(), warn)?.run(run)?.to_json()),
        (None, Some(thread)) => Ok(repository.verify_thread(thread, warn)?.to_json()),
        _ => Err(Failure::usage("give either `run` or `thread_id`".into())),
    }
}
