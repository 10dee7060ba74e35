//! `git handoff coordinate`

use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::{Cause, Event, RunExtended};
use git_handoff::model::judge::Judgement;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::quote::quoted;
use git_handoff::model::state::RunState;
use git_handoff::repository::Repository;
use git_handoff::run::steer::refuse_unless_open;
use git_handoff::run::{Target, coordinate};
use serde_json::{Value, json};

use super::{Ending, Failure, Output, run};

/// Hold a run's rules against its documents, and add the items that they create
///
/// Items are added to the run and not run; `git handoff run` does both, again and again. It is safe to repeat, and for several
/// to do at once: each item is created exactly once.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Say for every rule why it creates something or not; of a run that is over or was fetched, only that
    #[arg(long)]
    explain: bool,
    /// Say what would be created, and create nothing
    #[arg(long)]
    dry_run: bool,
}

/// Applies the rules.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    let view = target.view(&repository.store)?;
    let over = view.state.sealed || view.state.is_ended();
    let reads = arguments.dry_run || (arguments.explain && (over || !target.is_own()));
    let mut answer = Answer { arguments, run: target.run.clone(), dry: reads, rules: Vec::new(), created: Vec::new() };
    if reads {
        answer.rules = rules(repository, &view.state)?;
        let due = coordinate::due(&repository.store, &view.state)?;
        answer.created = due.into_iter().map(|due| (due.item.id, due.rule)).collect();
        answer.print(&view.state, over, output);
        return Ok(Ending::Done);
    }
    refuse_unless_open(&target, &view)?;
    let mut open = run::open(&target.run, repository)?;
    let before = open.state.clone();
    answer.rules = rules(repository, &before)?;
    let links = coordinate::apply(&mut open, repository.config.max_items)?;
    answer.created = links.iter().filter_map(added).collect();
    answer.print(&before, over, output);
    if !links.is_empty() && !output.json {
        output.hint(&format!("git handoff run {}", quoted(target.run.as_str())));
    }
    Ok(Ending::Done)
}

fn rules(repository: &Repository, state: &RunState) -> Result<Vec<Judgement>, Failure> {
    Ok(coordinate::explain(&repository.store, state)?)
}

/// Returns what a rule added, and the rule.
fn added(link: &Link) -> Option<(ItemId, ItemId)> {
    let Event::RunExtended(RunExtended { cause: Cause::Rule(rule), items }) = &link.entry.event else { return None };
    items.keys().next().map(|item| (item.clone(), rule.clone()))
}

struct Answer<'a> {
    arguments: &'a Arguments,
    run: RunId,
    /// Whether nothing was to be recorded.
    dry: bool,
    rules: Vec<Judgement>,
    /// The items, each with the rule that creates it.
    created: Vec<(ItemId, ItemId)>,
}

impl Answer<'_> {
    fn print(&self, state: &RunState, over: bool, output: &mut Output) {
        if output.json {
            output.value(&self.value(state));
            return;
        }
        if self.arguments.explain {
            self.rules.iter().for_each(|rule| print_rule(rule, state, over, output));
        } else {
            for (item, rule) in &self.created {
                output.line(&format!("{item}  by rule {rule}"));
            }
        }
        if state.rules.is_empty() {
            output.note("the run has no rules");
        } else if over {
            output.note("the run is over: nothing can be added to it");
        } else if self.created.is_empty() {
            output.note("no rule creates anything as the run stands");
        } else if self.dry {
            output.note("nothing was recorded");
        }
    }

    fn value(&self, state: &RunState) -> Value {
        let rules = self.rules.iter().zip(&state.rules).map(|(judged, rule)| {
            let checks = judged.checks.iter().map(|check| json!({ "holds": check.holds, "found": check.found }));
            json!({
                "rule": judged.rule,
                "fires": judged.fires(),
                "item": judged.item.id,
                "created": state.created_by(&judged.rule),
                "atMost": rule.when.at_most,
                "checks": checks.collect::<Vec<_>>(),
            })
        });
        let items = self.created.iter().map(|(item, rule)| json!({ "id": item, "rule": rule }));
        json!({
            "schema": "git-handoff.coordinate/1",
            "run": self.run,
            "recorded": !self.dry,
            "items": items.collect::<Vec<_>>(),
            "rules": rules.collect::<Vec<_>>(),
        })
    }
}

fn print_rule(judged: &Judgement, state: &RunState, over: bool, output: &mut Output) {
    let verdict = match (judged.fires(), over) {
        (true, false) => format!("creates {}", judged.item.id),
        (true, true) => "would create an item if the run were not over".to_owned(),
        (false, _) => "creates nothing".to_owned(),
    };
    output.line(&format!("{}  {verdict}", judged.rule));
    for check in &judged.checks {
        output.line(&format!("    {} {}", if check.holds { "✓" } else { "✗" }, check.found));
    }
    for item in state.created_by(&judged.rule) {
        output.line(&format!("    created {item}"));
    }
}
