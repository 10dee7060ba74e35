//! Runs with the same id, as text and as JSON.

use crate::verify::{OtherRun, SameId};

const MAX_SHOWN: usize = 5;

impl SameId {
    /// Returns a line for each other run that is not a conflict. The row `anchor` names the
    /// conflicts.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |other: &OtherRun| {
            if other.first.is_some() && other.first == self.first {
                let (key, log) = (other.whose(), other.log());
                return format!(
                    "the key {key}, which may not seal this run, says that it was sealed otherwise; in {log}"
                );
            }
            let first = other.first.map_or_else(String::new, |first| format!(", which began with {first}"));
            format!("another run has this id: that of the key {}{first}; named by {}", other.whose(), other.log())
        };
        let agreeing: Vec<&OtherRun> = self.others.iter().filter(|other| !other.conflicts).collect();
        let mut lines: Vec<String> = agreeing.iter().take(MAX_SHOWN).map(|other| line(other)).collect();
        if let more @ 1.. = agreeing.len().saturating_sub(MAX_SHOWN) {
            lines.push(format!("and {more} more, which --json lists"));
        }
        lines
    }
}
