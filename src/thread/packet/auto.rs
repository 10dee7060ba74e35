//! Writes a packet from the facts of a run or thread.

pub mod thread;

use super::untrusted::is_suspect;
use crate::model::digest::Oid;
use crate::model::item_index::ItemIndex;
use crate::model::item_state::Phase;
use crate::model::packet::{Draft, marker};
use crate::model::quote::quoted as shell;
use crate::model::time::Moment;
use crate::run::query::{VerifiedRun, View};

/// The maximum number of named items in a list; the others are counted.
const NAMED: usize = 100;

/// The maximum length of a quoted reason, in characters.
const LONGEST_REASON: usize = 200;

/// Facts from the repository.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The commit of `HEAD`, if there is one.
    pub head: Option<Oid>,
    /// The branch of `HEAD`, unless it is detached.
    pub branch: Option<String>,
    /// Whether the work's base commit is here.
    pub base_is_here: bool,
    /// The number of commits that `HEAD` is ahead of the base, if it is.
    pub past_base: Option<u64>,
    /// The names of the run's documents.
    pub documents: Vec<String>,
}

/// Returns the packet of a run.
pub fn packet(run: &VerifiedRun, around: &Surroundings, now: Moment) -> Draft {
    let view: &View = run;
    let run_id = view.run.as_str();
    let done = view.state.items.indices().filter(|at| is_green(view, *at)).count();
    let all = view.state.outcomes().total;
    let base = view.state.submitted.base;
    let items: Vec<String> = ids(view, |at| is_green(view, at)).take(NAMED).collect();
    Draft {
        objective: format!("Bring the run \"{run_id}\" to its end with all {all} of its items done"),
        completed: or_none(listed(ids(view, |at| is_green(view, at)), done, |id| format!("item \"{id}\""))),
        unresolved: or_none(unresolved(view)),
        assumptions: vec![format!("the work of every item begins at the commit {base}")],
        next_action: next_action(view),
        risks: or_none(risks(view, around)),
        updated_at: now.to_string(),
        resume_token: marker(run_id, now, Some(&state_mark(view))),
        branch: None,
        commits: commits(Some(base), around),
        run: Some(run_id.to_owned()),
        items,
        documents: around.documents.iter().take(NAMED).cloned().collect(),
    }
}

/// Returns true if an item is done and not red, or is a vote.
fn is_green(view: &View, at: ItemIndex) -> bool {
    view.state.items[at].phase == Phase::Done && !view.state.is_red(at) && !view.state.is_superseded(at)
}

/// Formats the status of an item.
fn standing(view: &View, at: ItemIndex) -> &'static str {
    if view.state.items[at].red { "done and red" } else { view.state.status(at) }
}

/// Returns the commits for a packet: the base, if here, and `HEAD`.
fn commits(base: Option<Oid>, around: &Surroundings) -> Vec<String> {
    let mut commits: Vec<String> =
        base.filter(|_| around.base_is_here).map(|base| base.to_string()).into_iter().collect();
    commits.extend(around.head.map(|head| head.to_string()).filter(|head| !commits.contains(head)));
    commits
}

/// Formats a note if `HEAD` has moved on.
fn past_base(around: &Surroundings, base: &str) -> Option<String> {
    let past = around.past_base.filter(|past| *past > 0)?;
    let s = if past == 1 { "" } else { "s" };
    Some(format!("HEAD is {past} commit{s} past {base}, so patches may conflict with it"))
}

fn ids<'a>(view: &'a View, is_included: impl Fn(ItemIndex) -> bool + 'a) -> impl Iterator<Item = String> + 'a {
    let items = view.state.graph.items().indexed();
    items.filter(move |(at, _)| is_included(*at)).map(|(_, item)| item.id.to_string())
}

fn listed(ids: impl Iterator<Item = String>, all: usize, say: impl Fn(String) -> String) -> Vec<String> {
    let mut entries: Vec<String> = ids.take(NAMED).map(say).collect();
    if all > entries.len() {
        entries.push(format!("{} items that are not named here", all - entries.len()));
    }
    entries
}

fn or_none(entries: Vec<String>) -> Vec<String> {
    if entries.is_empty() { vec!["none".into()] } else { entries }
}

/// Returns true if an item counts and is not good yet.
fn is_open(view: &View, at: ItemIndex) -> bool {
    !is_green(view, at) && !view.state.is_superseded(at)
}

fn unresolved(view: &View) -> Vec<String> {
    let open: Vec<ItemIndex> = view.state.items.indices().filter(|at| is_open(view, *at)).collect();
    let mut entries: Vec<String> = open.iter().take(NAMED).map(|at| entry(view, *at)).collect();
    if open.len() > entries.len() {
        entries.push(format!("{} items more that are open and not named here", open.len() - entries.len()));
    }
    entries
}

fn entry(view: &View, at: ItemIndex) -> String {
    let id = &view.state.graph.item(at).id;
    let status = format!("item \"{id}\" is {}", standing(view, at));
    let blocked: Vec<String> =
        view.state.blocked_by(at).take(3).map(|on| format!("\"{}\"", view.state.graph.item(on).id)).collect();
    let why = match &view.state.items[at].reason {
        Some(reason) => Some(reason.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect::<String>()),
        None if !blocked.is_empty() => Some(format!("it needs {}", blocked.join(", "))),
        None => None,
    };
    let text = why.map_or_else(|| status.clone(), |why| format!("{status}: {why}"));
    // A reason may quote a worker; it is omitted if it reads like an instruction.
    if is_suspect(&text) { format!("item {} of the plan is {}", at.get() + 1, standing(view, at)) } else { text }
}

/// Returns the command that continues the run.
fn next_action(view: &View) -> String {
    let run = shell(view.run.as_str());
    let state = &view.state;
    if state.sealed || state.closed.is_some() || state.cancelled.is_some() {
        return if state.outcomes().is_green() {
            format!("Run `git handoff verify {run}` and, when it is intact, `git handoff apply {run}`")
        } else {
            let what = match (state.is_done(), state.outcomes().red) {
                (false, _) => "the items that are not done",
                (true, 0) => "what is missing",
                (true, _) => "the items that are red",
            };
            format!("Run `git handoff show {run}` and submit a new plan for {what}")
        };
    }
    let failed = state.items.indices().find(|at| state.items[*at].phase == Phase::Failed && !state.is_superseded(*at));
    match failed.filter(|_| state.is_settled()) {
        Some(at) => {
            let item = shell(&format!("{}/{}", view.run, state.graph.item(at).id));
            format!("Run `git handoff retry {item}`, after that `git handoff run {run}`")
        }
        None => format!("Run `git handoff run {run}`"),
    }
}

fn risks(view: &View, around: &Surroundings) -> Vec<String> {
    let mut risks = Vec::new();
    risks.extend(past_base(around, "the run's base"));
    if !around.base_is_here {
        risks.push("the run's base commit is not in this repository, so nothing can be dispatched here".into());
    }
    let outcomes = view.state.outcomes();
    let (failed, red) = (outcomes.failed, outcomes.red);
    if failed > 0 {
        let s = if failed == 1 { "" } else { "s" };
        risks.push(format!("{failed} item{s} failed and may fail again for the same reason"));
    }
    if red > 0 {
        let s = if red == 1 { " is" } else { "s are" };
        risks.push(format!("{red} item{s} red, so the check did not pass, and other items may build on it"));
    }
    risks.extend(outcomes.said.iter().map(|word| format!("the run says {word} of itself")));
    risks.extend(view.state.stopped.keys().map(|rule| format!("the rule {rule} stopped before the run was done")));
    risks
}

/// Returns an identifier of this state of the run.
fn state_mark(view: &View) -> String {
    view.links.last().map(|link| link.hash.short()).unwrap_or_default()
}
