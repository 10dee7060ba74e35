//! `git handoff coordinate`

use git_handoff::model::hints;
use git_handoff::model::name::ItemId;
use git_handoff::repository::Repository;
use git_handoff::run::operate::extend::{Coordinated, RuleJudged};

use super::{Ending, Failure, Output};

/// Apply a run's rules to its documents, and add the items that they create
///
/// Adds items without running them; `git handoff run` repeats both. Each item is created exactly
/// once, even if the command is repeated or runs several times at once.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Explain for every rule what it creates, or why nothing; the only choice for a fetched or
    /// finished run
    #[arg(long)]
    explain: bool,
    /// Only show what would be created
    #[arg(long)]
    dry_run: bool,
}

/// Applies the rules.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = if arguments.dry_run {
        repository.explain_rules(&arguments.run)?
    } else {
        repository.coordinate(&arguments.run, arguments.explain)?
    };
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    print(&answer, arguments.explain, output);
    if answer.recorded && !answer.items.is_empty() {
        output.hint(&hints::run(&answer.run));
    }
    Ok(Ending::Done)
}

fn print(answer: &Coordinated, explain: bool, output: &mut Output) {
    if explain {
        answer.rules.iter().for_each(|rule| print_rule(rule, answer.over, output));
    } else {
        for created in &answer.items {
            output.line(&format!("{}  by rule {}", created.id, created.rule));
        }
    }
    if answer.rules.is_empty() {
        output.note("the run has no rules");
    } else if answer.over {
        output.note("the run is over: nothing can be added to it");
    } else if answer.items.is_empty() {
        output.note("no rule creates anything as the run stands");
    } else if !answer.recorded {
        output.note("nothing was recorded");
    }
}

fn print_rule(judged: &RuleJudged, over: bool, output: &mut Output) {
    let verdict = match (judged.fires, over) {
        (true, false) => match (&judged.outcome, &judged.items[..]) {
            (Some(outcome), _) => format!("has the run say {outcome}"),
            (None, [first, more @ ..]) if !more.is_empty() => format!("creates {first} and {} more", more.len()),
            (None, items) => format!("creates {}", items.first().map_or("nothing", ItemId::as_str)),
        },
        (true, true) => "would do something if the run were not over".to_owned(),
        (false, _) => "creates nothing".to_owned(),
    };
    output.line(&format!("{}  {verdict}", judged.rule));
    for check in &judged.checks {
        output.line(&format!("    {} {}", if check.holds { "✓" } else { "✗" }, check.found));
    }
    for item in &judged.created {
        output.line(&format!("    created {item}"));
    }
}
