//! Notes on programs to which the worker's sandbox refused something.

use git_handoff::model::confinement::Refusal;
use git_handoff::model::item_index::ItemIndex;
use git_handoff::model::state::Phase;
use git_handoff::repository::Repository;
use git_handoff::run::query::View;
use git_handoff::run::query::piece;

use super::Output;

/// The number of items whose output is searched for such a message.
const SEARCHED: usize = 50;

/// Describes what the sandbox refused, and what to do instead.
pub(super) const fn describe(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Sandbox => {
            "    a sandbox cannot start inside the worker's sandbox, which confines the program already: turn its own off \
             (Chromium: --no-sandbox, Codex: --sandbox danger-full-access, Claude Code: \
             `sandbox.enabled` in .claude/settings.json), or set the executor's `sandbox = none`"
        }
        Refusal::Container => {
            "    a container cannot start inside the worker's sandbox, and no worker reaches a daemon that starts some: \
             start it outside and let the item connect to its port, or set the executor's `sandbox = none`"
        }
        Refusal::User => {
            "    a worker gets no other user's rights, with sudo and su neither: prepare what needs them outside, or set \
             the executor's `sandbox = none`"
        }
        Refusal::Observation => {
            "    the sandbox refuses perf_event_open, userfaultfd and io_uring, which reach deep into the kernel: use \
             the program without them, or set the executor's `sandbox = none`"
        }
        Refusal::FileSystem => {
            "    a worker mounts no file systems: mount it outside and name it in the executor's `readable`, or set \
             `sandbox = none`"
        }
        Refusal::SystemV => {
            "    without bubblewrap a worker gets no memory of System V, which would outlive it: install bubblewrap"
        }
        Refusal::Terminal => {
            "    screen does not start for a worker that is root, because it gives its terminal to a group: use tmux, or \
             drive the run as a user who is not root"
        }
        Refusal::Jobs => {
            "    a worker leaves no jobs in the queues of at and cron, which would run outside of the sandbox: leave out \
             the step, or set the executor's `sandbox = none`"
        }
        Refusal::Push => {
            "    a worker pushes to no repository of this machine: its work is the patch, which `git handoff apply` takes"
        }
        Refusal::Store => {
            "    a worker reads the store of Nix and adds nothing to it: build what the item needs outside, or set the \
             executor's `sandbox = none`"
        }
        Refusal::FileSize => {
            "    no file of an attempt may be larger than `handoff.maxFileSize` or, without it, `handoff.maxDisk`, also \
             one with holes: raise the limit"
        }
        Refusal::Settings => {
            "    a worker writes nothing below /proc: leave out the step, or set the executor's `sandbox = none`"
        }
    }
}

/// Names the done items in whose output a program could not start its own sandbox.
///
/// Agents end with 0 without the commands that they could not run.
pub(super) fn show(view: &View, repository: &Repository, output: &mut Output) {
    for (at, _) in find(view, repository, Phase::Done).filter(|(_, refusal)| *refusal == Refusal::Sandbox) {
        output.note(&format!("! {} ended, but its output says:", view.state.graph.item(at).id));
        output.note(describe(Refusal::Sandbox));
    }
}

/// Describes what was refused to the failed items.
pub(super) fn show_failed(view: &View, repository: &Repository, output: &mut Output) {
    find(view, repository, Phase::Failed).for_each(|(_, refusal)| output.note(describe(refusal)));
}

/// Finds the items of a phase whose output names something refused. Skips unreadable transcripts.
fn find<'v>(
    view: &'v View,
    repository: &'v Repository,
    phase: Phase,
) -> impl Iterator<Item = (ItemIndex, Refusal)> + use<'v> {
    let items = view.state.items.indexed().filter(move |(_, item)| item.phase == phase).take(SEARCHED);
    items.filter_map(|(at, _)| Some((at, piece::tail(&repository.store, view, at).ok()??.refused?)))
}
