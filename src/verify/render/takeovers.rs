//! Attempts that were taken from their drivers.

use serde_json::{Value, json};

use crate::model::driver::DriverId;
use crate::verify::{Report, TakenOver};

const MAX_SHOWN: usize = 20;

/// The line above the take-overs.
const HELD: &str = "verify holds holder, key, take-over and taker; that a driver was silent cannot be proven";

impl TakenOver {
    pub(super) fn to_json(&self) -> Value {
        let it = &self.takeover;
        let (entry, item, attempt) = (it.entry, &it.item, it.attempt);
        let mut value =
            json!({ "entry": entry, "item": item, "attempt": attempt, "driver": it.driver, "because": it.because });
        let optional = [("host", it.host.as_deref()), ("key", self.key.as_deref())];
        let taker = it.taker.as_ref().map(DriverId::as_str);
        for (name, text) in optional.into_iter().chain([("taker", taker)]) {
            if let Some(text) = text {
                value[name] = text.into();
            }
        }
        value
    }
}

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
