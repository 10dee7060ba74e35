//! `git handoff apply`

use std::io::{self, BufRead as _, IsTerminal as _};

use git_handoff::apply::answer::Answer;
use git_handoff::apply::message::Message;
use git_handoff::apply::{self as stage, Applied, Onto, Planned, Request, threeway};
use git_handoff::model::hints;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::printable::written_out;
use git_handoff::model::protected::{allowed_in_words, in_words, judged_in_words};
use git_handoff::model::state::checks::unprotected_in_words;
use git_handoff::repository::Repository;
use git_handoff::run::query::{Target, View, target};

use super::{Ending, Failure, Output, gate};

/// Apply a run's changes to the index and the work tree, or to a branch
///
/// Merges the items in the order of their dependencies, so that an item that built on another's
/// patch fits. If anything conflicts, nothing is changed; with --3way the conflict is left for you
/// to resolve. Local changes are never overwritten. Commits onto HEAD run git's hooks. The run's
/// integrity and keys are verified first, and every patch is hashed again.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("commits").multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// The run, or one item: RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]", required_unless_present_any = ["go_on", "abort"])]
    target: Option<String>,
    /// Commit onto this branch, one commit for each item; a new branch starts at the run's base
    #[arg(long, value_name = "BRANCH", group = "commits")]
    branch: Option<String>,
    /// Commit onto HEAD, one commit for each item
    #[arg(long, group = "commits")]
    commit: bool,
    /// Use this commit message; repeat for further paragraphs. The lines that name the items are
    /// added below it. Only for a single commit
    #[arg(short, long, value_name = "MESSAGE", requires = "commits")]
    message: Vec<String>,
    /// Stop at a conflict with HEAD for you to resolve; `git cherry-pick` makes the commits,
    /// without the hooks pre-commit and commit-msg
    #[arg(long = "3way", requires = "commit", conflicts_with_all = ["branch", "dry_run"])]
    three_way: bool,
    /// Commit the resolved index, and continue with the remaining items
    #[arg(long = "continue", conflicts_with_all = ["target", "commits", "message", "three_way", "dry_run", "allow_red", "without_protected", "with_hooks", "abort"])]
    go_on: bool,
    /// Undo everything that --3way did
    #[arg(long, conflicts_with_all = ["target", "commits", "message", "three_way", "dry_run", "allow_red", "without_protected", "with_hooks", "no_verify"])]
    abort: bool,
    /// Skip the hooks pre-commit, prepare-commit-msg, commit-msg and post-commit
    #[arg(long)]
    no_verify: bool,
    /// Only show the commits and files that would change, and whether it would be refused
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Apply red items as well: done, but their check failed
    #[arg(long)]
    allow_red: bool,
    /// Leave out changes to protected files
    #[arg(long)]
    without_protected: bool,
    /// Apply files that programs run by themselves without asking: hooks, settings of agents and
    /// editors, scripts of package managers
    #[arg(long)]
    with_hooks: bool,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Applies a run.
#[expect(clippy::too_many_lines, reason = "one step after the other")]
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let message = match &*arguments.message {
        [] => None,
        paragraphs => Some(Message::new(paragraphs).map_err(stage::Error::from)?),
    };
    if arguments.abort {
        return abort(repository, output);
    }
    if arguments.go_on {
        return go_on(!arguments.no_verify, repository, output);
    }
    let text = arguments.target.as_deref().unwrap_or_default();
    let (target, rest) = Target::with_rest(&repository.store, text)?;
    let view = gate::vetted(&target, arguments.terms, repository, output)?;
    let item = rest.map(|rest| target::item(&view, rest)).transpose()?;
    let onto = match &arguments.branch {
        Some(branch) => Onto::Branch(branch.clone()),
        None => Onto::WorkTree { commit: arguments.commit },
    };
    let (allow_red, dry_run, three_way) = (arguments.allow_red, arguments.dry_run, arguments.three_way);
    let without_protected = arguments.without_protected;
    let (with_hooks, hooks) = (arguments.with_hooks, !arguments.no_verify);
    let request = Request { item, onto, allow_red, without_protected, with_hooks, message, hooks, three_way, dry_run };
    let applied = match stage::apply(&repository.store, &view, &request) {
        Err(stage::Error::RunByItself(files)) if !dry_run && can_ask(output) => {
            if !is_confirmed(&files, output)? {
                output.note("nothing was changed");
                return Ok(Ending::Refused);
            }
            stage::apply(&repository.store, &view, &Request { with_hooks: true, ..request })
        }
        applied => applied,
    };
    let applied = applied.map_err(|error| refused(error, &target.name()))?;
    for line in applied.messages.iter().flat_map(|output_of_hook| output_of_hook.lines()) {
        output.note(line);
    }
    if output.json {
        output.value(&Answer::new(&view.run, &applied));
    } else {
        print(&view.run, &applied, output);
        if !arguments.three_way && arguments.branch.is_none() && !applied.conflicts.is_empty() {
            output.hint(&hints::three_way(text));
        }
        if applied.steps.is_empty() && applied.conflicts.is_empty() {
            output.note("no item that is done has a patch; there is nothing to apply");
        }
        print_submodules(&view, &applied, output);
        print_checks(&view, &applied, output);
    }
    if !applied.conflicts.is_empty() && !applied.stopped {
        return Ok(Ending::Refused);
    }
    if let Some(by) = item.and_then(|at| view.state.replaced_by(at)) {
        output.warn(&format!("{} has the place of this item in the run; what it changed is not in this", by.as_str()));
    }
    let outcomes = view.state.outcomes();
    if !outcomes.said.is_empty() {
        output.warn(&format!("the run says of itself: {}", outcomes.said.join(", ")));
    }
    for (rule, why) in &view.state.stopped {
        output.warn(&format!("the run is PARTIAL: the rule {rule} stopped: {why}"));
    }
    if item.is_none() {
        let undone = outcomes.total - outcomes.done - outcomes.red;
        if undone > 0 {
            output.warn(&format!("{undone} of {} items are not done; nothing of them was applied", outcomes.total));
        }
    }
    Ok(if applied.stopped { Ending::Refused } else { Ending::Done })
}

fn can_ask(output: &Output) -> bool {
    !output.json && io::stdin().is_terminal() && Output::can_ask()
}

/// Names the files that programs run by themselves, and asks; any answer but yes means no.
fn is_confirmed(files: &[String], output: &mut Output) -> Result<bool, Failure> {
    output.note("programs run these files by themselves:");
    files.iter().for_each(|file| output.note(&format!("  {}", written_out(file))));
    output.note("type yes to apply them:");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::io("the answer could not be read", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Turns an error into a failure with hints that name the run.
fn refused(error: stage::Error, run: &str) -> Failure {
    let hint = match &error {
        stage::Error::Red(items) => items.first().map(|item| hints::allow_red(format_args!("{run}/{item}"))),
        stage::Error::ProtectedChanged(items, _) => {
            items.first().map(|item| hints::without_protected(format_args!("{run}/{item}")))
        }
        stage::Error::RunByItself(_) => Some(hints::with_hooks(format_args!("{run}/ITEM:patch"))),
        stage::Error::Commits(_) => Some(hints::one_item(run)),
        _ => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Goes on after a conflict was resolved.
fn go_on(hooks: bool, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (run, applied) = threeway::resume(&repository.store, hooks)?;
    if output.json {
        output.value(&Answer::new(&run, &applied));
    } else {
        print(&run, &applied, output);
    }
    Ok(if applied.stopped { Ending::Refused } else { Ending::Done })
}

/// Gives up what stopped for a conflict.
fn abort(repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (run, is_back) = threeway::abort(&repository.store)?;
    if output.json {
        output.value(&Answer::aborted(&run, &Applied::default(), is_back));
    } else if is_back {
        output.note(&format!("given up: everything is as it was before {run} was applied"));
    }
    if !is_back {
        output.warn("HEAD was moved since it stopped; it stays there, and index and files stay as they are");
    }
    Ok(Ending::Done)
}

fn print(run: &RunId, applied: &Applied, output: &mut Output) {
    if !applied.stopped && !applied.conflicts.is_empty() {
        print_conflicts(applied, output);
        output.note(if applied.planned.is_some() { "nothing would be changed" } else { "nothing was changed" });
        let item = &applied.conflicts[0].item;
        output.hint(&hints::cat(format_args!("{run}/{item}:patch")));
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
        let resolved = match (step.without_protected, step.resolved) {
            (true, _) => ", without its changes to protected files",
            (false, true) => ", with conflicts resolved by hand",
            (false, false) => "",
        };
        output.line(&format!("{}: {what}{red}{resolved}", step.item));
    }
    if applied.stopped {
        print_conflicts(applied, output);
        output.note("the conflicts are in the work tree");
        output.hint(&hints::resolve());
        return;
    }
    for planned in applied.planned.iter().flatten() {
        print_planned(planned, applied.moved.as_deref(), output);
    }
}

/// Names the applied changes to protected files that checks judged, and the items whose checks
/// rested on nothing protected.
fn print_checks(view: &View, applied: &Applied, output: &mut Output) {
    for step in applied.steps.iter().filter(|step| !step.judged.is_empty()) {
        let words = judged_in_words(step.judged.len());
        output.line(&format!("! {words}: {}: {}", step.item, in_words(&step.judged)));
    }
    let steps = applied.steps.iter().filter_map(|step| Some((step, view.state.graph.position(&step.item)?)));
    let steps: Vec<_> = steps.collect();
    for (step, at) in steps.iter().filter(|(step, _)| step.red && !step.without_protected) {
        let changes = &view.state.items[*at].protected;
        if !changes.is_empty() {
            output.line(&format!("! protected files changed: {}: {}", step.item, in_words(changes)));
        }
    }
    for (step, at) in steps.iter().filter(|(step, _)| !step.without_protected) {
        let state = &view.state.items[*at];
        if let Some(key) = &state.allowed_by {
            let (changes, allowed) = (in_words(&state.protected), allowed_in_words(key));
            output.line(&format!("! protected files changed: {}: {changes}, {allowed}", step.item));
        }
    }
    let bare = steps.iter().filter(|(_, at)| view.state.items[*at].unprotected);
    let bare: Vec<ItemId> = bare.map(|(step, _)| step.item.clone()).collect();
    unprotected_in_words(&bare, steps.len() as u64).iter().for_each(|words| output.line(words));
}

/// Lists submodule changes that were not applied, with the commands that apply them.
fn print_submodules(view: &View, applied: &Applied, output: &mut Output) {
    for left in &applied.submodules {
        let submodule = git_handoff::thread::packet::quoted(&left.submodule);
        output.note(&format!("{}: its change to the submodule {submodule} is not applied", left.item));
        let product = format_args!("{}/{}:{}", view.run, left.item, left.product);
        output.hint(&hints::apply_submodule(product, &left.submodule));
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

fn print_conflicts(applied: &Applied, output: &mut Output) {
    for conflict in &applied.conflicts {
        let with: Vec<_> = conflict.with.iter().map(ItemId::as_str).collect();
        let with = if with.is_empty() { "what is there".into() } else { with.join(", ") };
        for path in &conflict.paths {
            output.line(&format!("conflict: {}: {path}: changed differently by {with}", conflict.item));
        }
    }
}
