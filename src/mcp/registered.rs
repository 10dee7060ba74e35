//! Tools that list what the operator has registered.

use git_handoff::answers::program::{Known, Runnable};
use git_handoff::model::plan::BuiltIn;

use crate::output::Failure;

use super::tools::{Call, Effect, Entry, Nothing, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "subagents_list",
            "List the executors that a plan may name, and the subagents of the executor `dispatch`.",
            Effect::Reads,
            &["subagents"],
            subagents,
        ),
        tool(
            "schemas_list",
            "List the schemas, shapes and pipelines that plans and documents can name.",
            Effect::Reads,
            &["schemas"],
            schemas,
        ),
    ]
}

fn subagents(call: &Call, _: &Nothing) -> Result<Runnable, Failure> {
    let repository = call.repository()?;
    let config = &repository.config;
    let built_in = BuiltIn::in_plans().map(|executor| executor.name().to_owned());
    let executors = built_in.chain(config.registered_executors().cloned());
    Ok(Runnable {
        subagents: config.registered_subagents().cloned().collect(),
        executors: executors.filter(|name| config.mcp_allows(name)).collect(),
    })
}

fn schemas(call: &Call, _: &Nothing) -> Result<Known, Failure> {
    let repository = call.repository()?;
    Ok(Known {
        schemas: repository.schemas().names().map(ToString::to_string).collect(),
        shapes: repository.shapes().names().cloned().collect(),
        pipelines: repository.pipelines().known.names().cloned().collect(),
    })
}
