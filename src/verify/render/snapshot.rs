//! A report as text for comparing two runs of one plan.

use super::{PARTIAL, Report, State};
use crate::model::printable::line;

impl Report {
    /// Returns the report without names of runs, hashes, keys, times and counts of entries or
    /// attempts.
    ///
    /// It keeps the headline, the state of each row, the outcome, and who decided about items.
    pub fn snapshot(&self) -> String {
        let partial = if self.is_partial() { format!(" {PARTIAL}") } else { String::new() };
        let mut lines = vec![format!("{} {}{partial}", self.standing().mark(), line(self.headline))];
        lines.extend(self.rows.iter().map(|row| format!("{} {}", row.state.mark(), row.name)));
        lines.extend(self.unmet.iter().map(|unmet| format!("{} required: {unmet}", State::Failed.mark())));
        lines.extend(self.outcome.iter().map(|outcome| {
            let state = if outcome.is_green() { State::Ok } else { State::Failed };
            format!("{} outcome: {outcome}", state.mark())
        }));
        lines.extend(self.remarks().iter().map(|remark| line(remark)));
        lines.extend(self.protected.iter().filter(|item| !item.judged).map(|item| {
            let state = if item.is_red() { State::Failed } else { State::NotApplicable };
            line(&format!(
                "{} protected: {}",
                state.mark(),
                item.in_words(|key| self.name_of(key).unwrap_or_else(|| "a key not known to you".to_owned()))
            ))
        }));
        lines.extend(
            self.decided_snapshot()
                .into_iter()
                .map(|(state, detail)| line(&format!("{} decided: {detail}", state.mark()))),
        );
        lines.join("\n") + "\n"
    }
}
