//! The upstream runs and threads of a run, as text and as JSON.

use crate::model::continued::Continues;
use crate::model::printable::cut;
use crate::verify::findings::counted;
use crate::verify::{CopyState, State, Upstream};

const MAX_SHOWN: usize = 20;

impl Upstream {
    pub(super) fn word(&self) -> &'static str {
        if self.run { "run" } else { "thread" }
    }

    fn state(&self) -> State {
        match self.here {
            CopyState::Intact => State::Ok,
            CopyState::Unproven(_) | CopyState::Absent => State::NotApplicable,
            CopyState::Contradicts(_) => State::Failed,
        }
    }
}

pub(super) fn continues(continues: &Continues) -> String {
    let Continues { run, entries, root, .. } = continues;
    cut(format!("continues {run} ({entries} entries, root sha256:{}…)", root.short()))
}

/// Returns a line for each source, and a summary.
pub(super) fn lines(upstreams: &[Upstream]) -> Vec<(State, String)> {
    let mut lines: Vec<(State, String)> = upstreams
        .iter()
        .take(MAX_SHOWN)
        .map(|it| {
            let is = if it.run {
                format!("root {}…", it.is.chars().take("sha256:".len() + 8).collect::<String>())
            } else {
                it.is.clone()
            };
            (it.state(), cut(format!("{} {} ({is}): {}", it.word(), it.name, it.here.in_words(it.run, it.open))))
        })
        .collect();
    if let more @ 1.. = upstreams.len().saturating_sub(MAX_SHOWN) {
        lines.push((State::NotApplicable, format!("and {more} more, which --json lists")));
    }
    let Some(furthest) = upstreams.iter().map(|it| it.depth).max() else { return lines };
    let absent = upstreams.iter().filter(|it| it.here == CopyState::Absent).count();
    let unsure = upstreams.iter().filter(|it| !matches!(it.here, CopyState::Absent | CopyState::Intact)).count();
    let steps = if furthest == 1 { "1 step".to_owned() } else { format!("{furthest} steps") };
    let sources = counted(upstreams.len(), "source", "sources");
    let all = format!("{sources} in all, at most {steps} back");
    lines.push(match (absent, unsure) {
        (0, 0) => (State::Ok, format!("{all}, all of them here")),
        (_, 0) => (State::NotApplicable, format!("{all}; {absent} not here: their sources are unknown")),
        (0, _) => (State::NotApplicable, format!("{all}; {unsure} here and not proven")),
        _ => {
            let rest = format!("{unsure} here and not proven, {absent} not here: their sources are unknown");
            (State::NotApplicable, format!("{all}; {rest}"))
        }
    });
    lines
}
