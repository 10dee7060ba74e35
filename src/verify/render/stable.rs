//! A report as text that two runs of one plan have in common.

use super::{PARTIAL, Report, State};
use crate::model::printable::line;

impl Report {
    /// Returns the report without whatever differs between two runs of one plan that come to the same: names of runs, hashes, keys, times,
    /// and how many entries and attempts it took. What is left: the headline, each check with what it came to, how the items came out, and who decided about them.
    pub fn snapshot(&self) -> String {
        let partial = if self.is_partial() { format!(" {PARTIAL}") } else { String::new() };
        let mut lines = vec![format!("{} {}{partial}", self.standing().mark(), line(self.headline))];
        lines.extend(self.rows.iter().map(|row| format!("{} {}", row.state.mark(), row.name)));
        lines.extend(self.unmet.iter().map(|unmet| format!("{} required: {unmet}", State::Failed.mark())));
        lines.extend(self.outcome.iter().map(|outcome| {
            let state = if outcome.is_green() { State::Ok } else { State::Failed };
            format!("{} outcome: {outcome}", state.mark())
        }));
        let decided = |(state, said): (State, String)| line(&format!("{} decided: {said}", state.mark()));
        lines.extend(self.decided_snapshot().into_iter().map(decided));
        lines.join("\n") + "\n"
    }
}
