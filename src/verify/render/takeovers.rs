//! Attempts that were taken from their drivers.

use crate::verify::Report;

const MAX_SHOWN: usize = 20;

/// The line above the take-overs.
const HELD: &str = "verify holds holder, key, take-over and taker; that a driver was silent cannot be proven";

impl Report {
    /// Returns a line for each take-over, with the owner of the key that signed it.
    pub(super) fn takeover_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.takeovers.iter().take(1).map(|_| HELD.to_owned()).collect();
        lines.extend(self.takeovers.iter().take(MAX_SHOWN).map(|it| {
            let by = it.key.as_deref().map_or_else(|| "no valid key".to_owned(), |key| self.whose(key));
            format!("{}, signed by {by}", it.takeover)
        }));
        if let more @ 1.. = self.takeovers.len().saturating_sub(MAX_SHOWN) {
            lines.push(format!("and {more} more, which --json lists"));
        }
        lines
    }
}
