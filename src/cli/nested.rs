//! Notes on programs whose own sandbox does not start inside the worker's.

use git_handoff::model::state::Phase;
use git_handoff::repository::Repository;
use git_handoff::run::query::View;
use git_handoff::run::query::piece;

use super::Output;

/// The number of done items whose output is searched for such a failure.
const SEARCHED: usize = 50;

/// The note on an item in which a program could not start its own sandbox.
pub(super) const NOTE: &str = "    a sandbox cannot start inside the worker's sandbox, which confines the program already: turn its own off \
                      (Chromium: --no-sandbox, Codex: --sandbox danger-full-access, Claude Code: \
                      `sandbox.enabled` in .claude/settings.json), or set the executor's `sandbox = none`";

/// Notes the done items in whose output a program could not start its own sandbox.
///
/// Agents end with 0 without the commands that they could not run. Skips unreadable transcripts.
pub(super) fn show(view: &View, repository: &Repository, output: &mut Output) {
    let items = view.state.items.indexed().filter(|(_, item)| item.phase == Phase::Done);
    for (at, _) in items.take(SEARCHED) {
        if let Ok(Some(tail)) = piece::tail(&repository.store, view, at)
            && tail.is_nested
        {
            output.note(&format!("! {} ended, but its output says:", view.state.graph.item(at).id));
            output.note(NOTE);
        }
    }
}
