//! `git handoff anchor push`

use git_handoff::anchor::Published;
use git_handoff::model::name::RunId;
use git_handoff::model::quote::quoted;
use serde_json::json;

use super::super::context::Context;
use super::super::target::own_runs;
use super::super::{Ending, Failure, Output, table};

/// Hand the roots of sealed runs over to anchors
///
/// What an anchor has already is left as it is; where it holds something else, nothing is written and the exit code is 3.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The anchors and the runs [default: all anchors, all sealed runs]
    #[arg(value_name = "ANCHOR|RUN")]
    names: Vec<String>,
}

/// Publishes and prints what became of it.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let is_anchor = |name: &&String| context.config.anchors.contains_key(*name);
    let (anchors, runs): (Vec<String>, Vec<String>) =
        arguments.names.iter().cloned().partition(|name| is_anchor(&name));
    let anchors = super::chosen(&anchors, context)?;
    if anchors.is_empty() {
        return Err(Failure::refused("no-anchors", "no anchor is configured".into())
            .hint("git handoff anchor add NAME git URL"));
    }
    sealed(&runs, context)?;
    let means = context.means(output);
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for anchor in &anchors {
        for Published { kind, name, status } in anchor.publish(&means)? {
            values.push(json!({"anchor": anchor.name, "kind": kind, "name": name, "status": status}));
            rows.push(vec![anchor.name.clone(), status.to_owned(), kind.to_owned(), name]);
        }
    }
    if output.json {
        output.value(&json!({ "schema": "git-handoff.anchor-push/1", "published": values }));
    } else {
        table::lines(&rows).iter().for_each(|line| output.line(line));
    }
    if rows.is_empty() {
        output.note("there is nothing to publish yet: no run was submitted here");
    }
    Ok(Ending::Done)
}

/// Returns the runs that were named, each of which must be sealed and logged.
fn sealed(names: &[String], context: &Context) -> Result<Vec<RunId>, Failure> {
    let runs = own_runs(&context.store)?;
    let mut found = Vec::new();
    for name in names {
        let Some(run) = runs.iter().find(|run| run.as_str() == name) else {
            let message = format!("{name:?} is neither an anchor in your configuration nor a run here");
            return Err(Failure::refused("unknown-name", message).hint("git handoff anchor list && git handoff runs"));
        };
        let key = context.signer()?.fingerprint();
        if git_handoff::log::find(&context.store, &key, run)?.is_none_or(|record| record.root.is_none()) {
            let failure = Failure::refused("not-sealed", format!("your log holds no seal of the run {name:?}"));
            return Err(failure.hint(format!("git handoff verify {}", quoted(name))));
        }
        found.push(run.clone());
    }
    Ok(found)
}
