//! `git handoff status`

use git_handoff::model::plan::ProductKey;
use git_handoff::run::View;
use serde_json::{Map, Value, json};

use super::target::Target;
use super::{Ending, Failure, Output, table};
use git_handoff::repository::Repository;

/// Show where each item of a run stands
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
}

/// Prints the table of items.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let view = Target::find(&repository.store, &arguments.run)?.view(&repository.store)?;
    if output.json {
        output.value(&value(&view));
    } else {
        print_table(&view, output);
    }
    Ok(Ending::Done)
}

/// Returns a run as `status --json` has it.
pub(crate) fn value(view: &View) -> Value {
    json!({
        "schema": "git-handoff.status/1",
        "run": view.run,
        "queue": view.state.submitted.queue,
        "sealed": view.state.sealed,
        "items": items(view),
    })
}

/// Prints one line an item, then one about the run.
pub(crate) fn print_table(view: &View, output: &mut Output) {
    let mut rows = Vec::new();
    for (at, state) in view.state.items.iter().enumerate() {
        let status = view.state.status(at);
        let mark = match status {
            "done" => "✓",
            "failed" => "✗",
            "running" => "▶",
            "skipped" | "cancelled" => "─",
            _ => "·",
        };
        let counted = |count: u32, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let mut attempts = counted(state.attempts, "attempt", "attempts");
        if state.crashes > 0 {
            attempts = format!("{attempts}, {}", counted(state.crashes, "crash", "crashes"));
        }
        let said = match &state.reason {
            Some(reason) => reason.clone(),
            None => state.products.keys().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        rows.push(vec![format!("{mark} {}", view.state.graph.item(at).id), status.to_owned(), attempts, said]);
    }
    table::lines(&rows).iter().for_each(|line| output.line(line));
    let sealed = if view.state.sealed { ", sealed" } else { "" };
    let done = view.state.counts().get("done").copied().unwrap_or(0);
    output.line(&format!("{}: {done} of {} done{sealed}", view.run, view.state.items.len()));
}

/// Returns the items as `status --json` has them.
pub(crate) fn items(view: &View) -> Vec<Value> {
    (0..view.state.items.len()).map(|at| item(view, at)).collect()
}

/// Returns one item as `status --json` has it.
pub(crate) fn item(view: &View, at: usize) -> Value {
    let state = &view.state.items[at];
    let id = |on: usize| view.state.graph.item(on).id.to_string();
    let (mut outputs, mut documents) = (Map::new(), Map::new());
    let mut value = json!({
        "id": view.state.graph.item(at).id,
        "status": view.state.status(at),
        "attempts": state.attempts,
        "dependsOn": view.state.graph.dependencies(at).iter().map(|on| id(*on)).collect::<Vec<_>>(),
        "blockedBy": if state.phase.is_terminal() { Vec::new() } else { view.state.blocked_by(at).map(id).collect() },
    });
    for (key, product) in &state.products {
        match key {
            ProductKey::Patch => value["resultRef"] = json!(product.sha256),
            ProductKey::Output(path) => drop(outputs.insert(path.to_string(), json!(product.sha256))),
            ProductKey::Document(name) => drop(documents.insert(name.to_string(), json!(product.sha256))),
        }
    }
    value["outputRefs"] = Value::Object(outputs);
    if !documents.is_empty() {
        value["documentRefs"] = Value::Object(documents);
    }
    if state.crashes > 0 {
        value["crashes"] = json!(state.crashes);
    }
    if let Some(reason) = &state.reason {
        value["reason"] = json!(reason);
    }
    value
}
