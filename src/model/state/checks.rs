//! Sentences about the files that checks rest on.

use super::RunState;

use crate::model::name::ItemId;
use crate::model::printable;
use crate::model::protected::judged_in_words;

/// The most items that a sentence names.
const NAMED: usize = 3;

/// Says that a check ran where the worker worked, among what it left there.
pub const IN_WORKTREE: &str = "check in the worker's worktree";

impl RunState {
    /// Returns the items whose checks decided while no file was protected.
    pub fn unprotected(&self) -> Vec<ItemId> {
        let bare = self.items.indexed().filter(|(_, item)| item.unprotected);
        bare.map(|(at, _)| self.graph.item(at).id.clone()).collect()
    }

    /// Returns the sentences about changed protected files that checks judged.
    pub fn judged_remarks(&self) -> Vec<String> {
        let several = self.items.indexed().nth(1).is_some();
        let judged = self.items.indexed().filter(|(_, item)| item.judged);
        judged
            .map(|(at, item)| {
                let name = if several { format!(" by {}", self.graph.item(at).id) } else { String::new() };
                format!("! {}{name}", judged_in_words(item.protected.len()))
            })
            .collect()
    }
}

/// Says which of a run's checks rest on files that their workers could edit, or returns `None`.
pub fn unprotected_in_words(items: &[ItemId], total: u64) -> Option<String> {
    remark("check: nothing protected", items, total)
}

/// Says which of a run's checks passed in the worktrees of their workers, or returns `None`.
pub fn in_worktree_in_words(items: &[ItemId], total: u64) -> Option<String> {
    remark(IN_WORKTREE, items, total)
}

/// Returns words about items, which are named if the run has several.
fn remark(words: &str, items: &[ItemId], total: u64) -> Option<String> {
    let names: Vec<&str> = items.iter().map(ItemId::as_str).collect();
    let list = if total > 1 { format!(" ({})", printable::first_of(&names, NAMED)) } else { String::new() };
    (!items.is_empty()).then(|| format!("{words}{list}"))
}
