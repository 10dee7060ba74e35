//! Writes a packet from the facts of a thread and its tied run.

use super::{Surroundings, commits, or_none, past_base, unresolved};
use crate::model::name::RunId;
use crate::model::packet::{Draft, marker};
use crate::model::quote::quoted as shell;
use crate::model::thread::{Checkpoint, Content, Trail};
use crate::model::time::Moment;
use crate::run::query::{VerifiedRun, View};
use crate::thread::packet::untrusted::is_suspect;

/// The maximum number of named checkpoints, latest first; the others are counted.
const NAMED: usize = 20;

/// A thread to resume.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name here.
    pub name: &'a str,
    /// Its checkpoints.
    pub trail: &'a Trail,
    /// The state to resume.
    pub state: State<'a>,
    /// Whether it is ours and can be resumed; otherwise it can be forked.
    pub ours: bool,
    /// The tied run, if here.
    pub run: Option<&'a VerifiedRun>,
}

/// The state that a packet describes.
#[derive(Clone, Copy, Debug)]
pub enum State<'a> {
    /// The state of the latest checkpoint.
    Saved(&'a Checkpoint),
    /// The state of the checkpoint that gets the packet. The name of that checkpoint depends on the
    /// packet, so the packet cannot state it.
    New(&'a Content),
}

impl<'a> State<'a> {
    fn content(self) -> &'a Content {
        match self {
            Self::Saved(latest) => latest.content(),
            Self::New(content) => content,
        }
    }
}

/// Returns the run tied to a thread's latest tied checkpoint.
pub fn tie(trail: &Trail) -> Option<&RunId> {
    trail.checkpoints.iter().rev().find_map(|checkpoint| Some(&checkpoint.entry.event.tied_run()?.id))
}

/// Returns the packet of a thread; `around` describes the base commit of its latest checkpoint.
pub fn packet(source: &Source<'_>, around: &Surroundings, now: Moment) -> Draft {
    let Source { name, trail, state, .. } = *source;
    let content = state.content();
    let run: Option<&View> = source.run.map(|run| &**run);
    let items = run.map(|view| super::ids(view, |at| super::is_green(view, at)).take(super::NAMED).collect());
    let mut open = vec![since(state)];
    open.extend(run.into_iter().flat_map(unresolved));
    let mut assumptions = vec![format!("the state is {}, of size {}", content.state.sha256, content.state.size)];
    assumptions.extend(
        content.base.map(|base| format!("the files are those of the commit {base} and what was changed since")),
    );
    Draft {
        objective: format!("Go on with the thread \"{name}\""),
        completed: or_none(saved(trail)),
        unresolved: open,
        assumptions,
        next_action: next_action(source),
        risks: or_none(risks(content, around)),
        updated_at: now.to_string(),
        resume_token: marker(name, now, Some(&state_mark(source))),
        // A name that reads like an order would make the packet unclean.
        branch: around.branch.clone().filter(|branch| !is_suspect(branch)),
        commits: commits(content.base, around),
        run: run.map(|view| view.run.to_string()),
        items: items.unwrap_or_default(),
        documents: around.documents.clone(),
    }
}

fn saved(trail: &Trail) -> Vec<String> {
    let mut entries: Vec<String> = trail
        .checkpoints
        .iter()
        .rev()
        .take(NAMED)
        .map(|checkpoint| {
            let plain = format!("checkpoint {} saved at {}", checkpoint.id, checkpoint.entry.at);
            let text = checkpoint.content().summary.as_ref().map(|summary| format!("{plain}: {summary}"));
            text.filter(|text| !is_suspect(text)).unwrap_or(plain)
        })
        .collect();
    entries.reverse();
    if trail.checkpoints.len() > NAMED {
        entries.insert(0, format!("{} checkpoints that are not named here", trail.checkpoints.len() - NAMED));
    }
    entries
}

fn since(state: State<'_>) -> String {
    let State::Saved(latest) = state else { return "the state of this checkpoint waits to be resumed".to_owned() };
    match latest.resumed.last() {
        Some(at) => format!("the state of {} was handed out at {at}, with nothing kept since", latest.id),
        None => format!("the state of {} waits to be resumed", latest.id),
    }
}

fn next_action(source: &Source<'_>) -> String {
    let name = shell(source.name);
    if !source.ours {
        return format!("Run `git handoff fork {name} --as NAME` and `git handoff resume NAME`");
    }
    let checkout = if source.state.content().worktree.is_some() { " --checkout" } else { "" };
    format!("Run `git handoff resume {name}{checkout}`")
}

/// Returns an identifier of the state, for the resume token.
fn state_mark(source: &Source<'_>) -> String {
    match (source.state, source.trail.latest()) {
        (State::Saved(latest), _) | (State::New(_), Some(latest)) => latest.hash.short(),
        (State::New(content), None) => content.state.sha256.short(),
    }
}

fn risks(content: &Content, around: &Surroundings) -> Vec<String> {
    let mut risks: Vec<String> = past_base(around, "the commit that the state was saved on").into_iter().collect();
    if content.base.is_some() && !around.base_is_here {
        risks.push("the commit that the state was saved on is not in this repository".into());
    }
    let ignored = content.worktree.as_ref().map_or(0, |worktree| worktree.ignored.len());
    if ignored > 0 {
        let s = if ignored == 1 { " is" } else { "s are" };
        risks.push(format!("{ignored} ignored or too large file{s} no part of the saved working tree"));
    }
    risks
}
