//! `git handoff extend`

use std::collections::BTreeSet;
use std::path::PathBuf;

use git_handoff::model::entry::Cause;
use git_handoff::model::extension::definition;
use git_handoff::model::name::ItemId;
use git_handoff::model::plan::{Item, Plan};
use git_handoff::model::quote::quoted;
use git_handoff::plan;
use git_handoff::plan::validate::{Problems, validate_extension};
use git_handoff::repository::Repository;
use git_handoff::run::steer::refuse_unless_open;
use git_handoff::run::{NewEntry, OpenRun, Target};
use serde_json::json;

use super::{Ending, Failure, Output, run, validate};

/// Add items to a run whose plan is open-ended
///
/// All of them are added or none. Items that the run has already, with the same content, are left as they are.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// A plan of the same id with the items to add, or - for standard input
    plan: PathBuf,
}

/// Adds items.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    let view = target.view(&repository.store)?;
    refuse_unless_open(&target, &view)?;
    if !view.state.submitted.open_ended {
        let message =
            format!("the plan of the run {:?} is not open-ended, so nobody can add to it", target.run.as_str());
        return Err(Failure::refused("not-open-ended", message)
            .hint("submit another plan, or one with \"openEnded\": true from the beginning"));
    }
    let bytes = validate::read_plan(&arguments.plan)?;
    let mut open = run::open(&target.run, repository)?;
    let added = loop {
        if open.state.is_ended() {
            let message = format!("the run {:?} was closed or cancelled; nothing can be added", target.run.as_str());
            return Err(Failure::refused("ended", message));
        }
        let added = match added(&open, &view.plan, &bytes, repository)? {
            Ok(added) => added,
            Err(problems) => return Ok(validate::report(output, Err(&problems))),
        };
        // Somebody who appends first may have added the same: then the items are held against the run anew.
        if added.is_empty() || open.propose(&[NewEntry::Extended(Cause::Actor, added.clone())])?.is_some() {
            break added;
        }
    };
    let ids: Vec<&ItemId> = added.iter().map(|item| &item.id).collect();
    if output.json {
        output.value(&json!({ "schema": "git-handoff.extend/1", "run": target.run, "items": ids }));
    } else {
        ids.iter().for_each(|id| output.line(id.as_str()));
    }
    if ids.is_empty() {
        output.note("the run has all of these items already; nothing changed");
    } else if !output.json {
        output.hint(&format!("git handoff run {}", quoted(target.run.as_str())));
    }
    Ok(Ending::Done)
}

/// Returns the items of a plan that the run does not have, in the order of their ids; problems are an answer, not a failure.
fn added(
    open: &OpenRun,
    submitted: &Plan,
    bytes: &[u8],
    repository: &Repository,
) -> Result<Result<Vec<Item>, Problems>, Failure> {
    let asked = match plan::parse(bytes) {
        Ok(asked) => asked,
        Err(problems) => return Ok(Err(problems)),
    };
    if asked.id != *open.id() {
        let message = format!("the plan has the id {:?}, and the run is {:?}", asked.id.as_str(), open.id().as_str());
        return Err(Failure::refused("other-run", message).hint("give the plan the id of the run"));
    }
    let existing = open.state.graph.items();
    let is_there = |item: &&Item| {
        let known = open.state.graph.position(&item.id).map(|at| &existing[at]);
        known.is_some_and(|known| definition(known) == definition(item))
    };
    let there: BTreeSet<&ItemId> = asked.items.iter().filter(is_there).map(|item| &item.id).collect();
    // What is there with the same content may be said again, and is validated with what is new.
    let others: Vec<Item> = existing.iter().filter(|item| !there.contains(&item.id)).cloned().collect();
    let catalog = repository.catalog(&open.state.submitted.queue, Vec::new())?;
    Ok(validate_extension(submitted, &others, bytes, &catalog).map(|mut items| {
        items.retain(|item| !there.contains(&item.id));
        items.sort_by(|one, other| one.id.cmp(&other.id));
        items
    }))
}
