//! `git handoff thread show`

use git_handoff::model::entry::{AdoptedFrom, Origin};
use git_handoff::model::quote::quoted;
use git_handoff::model::thread::Checkpoint;
use git_handoff::thread::answers::CheckpointRecord;
use git_handoff::thread::steps;
use git_handoff::thread::target::ThreadTarget;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// Show everything recorded about a checkpoint
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// THREAD, or THREAD:CHECKPOINT
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
}

/// Prints the record.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&repository.store, &arguments.target)?;
    let sound = target.sound(&repository.store)?;
    let checkpoint = steps::find(&sound, target.checkpoint.as_ref())?;
    if output.json {
        output.value(&CheckpointRecord::new(checkpoint, &sound));
        return Ok(Ending::Done);
    }
    let mut rows = rows(checkpoint);
    rows.extend(sound.lineage.iter().map(|ancestor| vec!["goes back to".into(), ancestor.to_string()]));
    rows.push(vec!["signed by".into(), sound.key.clone()]);
    rows.push(vec!["commit".into(), checkpoint.commit.to_string()]);
    output.line(&format!("{}:{}", target.thread, checkpoint.id));
    table::lines(&rows).iter().for_each(|line| output.line(line));
    output.line("");
    let name = format!("{}:{}", target.thread, checkpoint.id);
    output.line(&format!("git handoff thread cat {}", quoted(&name)));
    Ok(Ending::Done)
}

fn rows(checkpoint: &Checkpoint) -> Vec<Vec<String>> {
    let (entry, content) = (&checkpoint.entry, checkpoint.content());
    let mut rows = vec![
        vec!["kind".into(), entry.event.kind().into()],
        vec!["at".into(), entry.at.to_string()],
        vec!["by".into(), entry.actor.clone()],
    ];
    let mut row = |name: &str, value: Option<String>| rows.extend(value.map(|value| vec![name.to_owned(), value]));
    row("summary", content.summary.clone());
    match entry.event.origin() {
        Some(Origin::Run(tie)) => row("run", Some(format!("{} at {}", tie.id, tie.commit))),
        Some(Origin::Adopted(offer)) => row("adopted from", Some(offered(offer))),
        Some(Origin::From(source)) => row("forked from", Some(source.to_string())),
        Some(Origin::To(earlier)) => row("rolled back to", Some(earlier.to_string())),
        None => {}
    }
    row("state", Some(format!("{}, {}", content.state.sha256, table::size(content.state.size))));
    row("packet", content.packet.map(|packet| format!("{}, {}", packet.sha256, table::size(packet.size))));
    row("base", content.base.map(|base| base.to_string()));
    row(
        "working tree",
        content.worktree.as_ref().map(|worktree| {
            let ignored = worktree.ignored.len();
            let s = if ignored == 1 { "" } else { "s" };
            format!("{}, {ignored} ignored or too large file{s} named", worktree.tree)
        }),
    );
    let resumed: Vec<String> = checkpoint.resumed.iter().map(ToString::to_string).collect();
    row("resumed", (!resumed.is_empty()).then(|| resumed.join(", ")));
    rows
}

fn offered(offer: &AdoptedFrom) -> String {
    let unknown = if offer.accepted_unknown { "; an unknown key was accepted with it" } else { "" };
    let packet =
        offer.accepted_packet.map(|class| format!(", with a packet that is {} and was accepted", class.as_str()));
    format!("{}, offered by {}{unknown}{}", offer.source, offer.signer, packet.unwrap_or_default())
}
