//! `git handoff apply`

use git_handoff::apply::answer::Answer;
use git_handoff::apply::message::Message;
use git_handoff::apply::{self as stage, Applied, Onto, Planned, Request};
use git_handoff::model::hints;
use git_handoff::model::name::ItemId;
use git_handoff::repository::Repository;
use git_handoff::run::{Target, View, target};

use super::{Ending, Failure, Output, gate};

/// Put what a run's items changed into the index and the work tree, or onto a branch
///
/// Items are applied in the order of their dependencies and merged, so that an item which built on another's patch fits.
/// If any of it conflicts, nothing is changed. Local changes are never touched. The hooks of a commit run where one
/// is made onto HEAD. The run is verified first, as far as its integrity
/// and its keys go, and every patch is hashed again.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("commits").multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// The run, or one item of it
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// Commit onto this branch instead, one commit for each item; it is made at the run's base if it is not there
    #[arg(long, value_name = "BRANCH", group = "commits")]
    branch: Option<String>,
    /// Commit onto HEAD as well, one commit for each item
    #[arg(long, group = "commits")]
    commit: bool,
    /// What the commit says, instead of which items it is of; the lines that name them stand below it in any case. More than one is a
    /// paragraph each. Only where one commit is made
    #[arg(short, long, value_name = "MESSAGE", requires = "commits")]
    message: Vec<String>,
    /// Commit without running the hooks pre-commit, prepare-commit-msg, commit-msg and post-commit
    #[arg(long)]
    no_verify: bool,
    /// Change nothing, and say which commits would be made, which files would change, and whether it would be refused
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Apply items that are red as well: done, and their check did not pass
    #[arg(long)]
    allow_red: bool,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Applies.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let message = match &*arguments.message {
        [] => None,
        paragraphs => Some(Message::new(paragraphs).map_err(stage::Error::from)?),
    };
    let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
    let view = gate::vetted(&target, arguments.terms, repository, output)?;
    let item = rest.map(|rest| target::item(&view, rest)).transpose()?;
    let onto = match &arguments.branch {
        Some(branch) => Onto::Branch(branch.clone()),
        None => Onto::WorkTree { commit: arguments.commit },
    };
    let request = Request {
        item,
        onto,
        allow_red: arguments.allow_red,
        message,
        hooks: !arguments.no_verify,
        dry_run: arguments.dry_run,
    };
    let applied = stage::apply(&repository.store, &view, &request)?;
    applied
        .said
        .iter()
        .filter(|said| !said.is_empty())
        .for_each(|said| said.lines().for_each(|line| output.note(line)));
    if output.json {
        output.value(&Answer::of(&view.run, &applied));
    } else {
        print(&view, &applied, output);
    }
    if !applied.conflicts.is_empty() {
        return Ok(Ending::Refused);
    }
    if let Some(by) = item.and_then(|at| view.state.replaced_by(at)) {
        output.warn(&format!("{} has the place of this item in the run; what it changed is not in this", by.as_str()));
    }
    let outcomes = view.state.outcomes();
    if !outcomes.said.is_empty() {
        output.warn(&format!("the run says of itself: {}", outcomes.said.join(", ")));
    }
    if item.is_none() {
        let undone = outcomes.total - outcomes.done - outcomes.red;
        if undone > 0 {
            output.warn(&format!("{undone} of {} items are not done; nothing of them was applied", outcomes.total));
        }
    }
    Ok(Ending::Done)
}

fn print(view: &View, applied: &Applied, output: &mut Output) {
    if !applied.conflicts.is_empty() {
        for conflict in &applied.conflicts {
            let with: Vec<_> = conflict.with.iter().map(ItemId::as_str).collect();
            let with = if with.is_empty() { "what is there".into() } else { with.join(", ") };
            for path in &conflict.paths {
                output.line(&format!("conflict: {}: {path}: changed differently by {with}", conflict.item));
            }
        }
        output.note(if applied.planned.is_some() { "nothing would be changed" } else { "nothing was changed" });
        let item = &applied.conflicts[0].item;
        output.hint(&hints::cat(format_args!("{}/{item}:patch", view.run)));
        return;
    }
    for step in &applied.steps {
        let what = match (step.changed, step.commit) {
            (false, _) if applied.planned.is_some() => "is there already".to_owned(),
            (false, _) => "was there already".to_owned(),
            (true, Some(commit)) => format!("committed as {commit}"),
            (true, None) if applied.planned.is_some() => "would be applied".to_owned(),
            (true, None) => "applied".to_owned(),
        };
        let red = if step.red { ", red" } else { "" };
        output.line(&format!("{}: {what}{red}", step.item));
    }
    for planned in applied.planned.iter().flatten() {
        print_planned(planned, applied.moved.as_deref(), output);
    }
    if applied.steps.is_empty() {
        output.note("no item that is done has a patch; there is nothing to apply");
    }
}

fn print_planned(planned: &Planned, onto: Option<&str>, output: &mut Output) {
    let items: Vec<_> = planned.items.iter().map(ItemId::as_str).collect();
    match (&planned.message, onto) {
        (Some(message), Some(onto)) => {
            let subject = message.lines().next().unwrap_or_default();
            output.line(&format!("would commit onto {onto}: {subject}"));
        }
        _ => output.line(&format!("would change, by {}:", items.join(", "))),
    }
    for file in &planned.files {
        output.line(&format!("  {} {}", file.change, file.path));
    }
}
