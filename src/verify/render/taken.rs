//! What a run took from other runs and from threads, and how far that goes back.

use serde_json::{Value, json};

use crate::model::continued::Continues;
use crate::model::printable::cut;
use crate::verify::findings::counted;
use crate::verify::{Here, State, TakenFrom};

/// More runs and threads than this are counted, not shown to people.
const SHOWN: usize = 20;

impl TakenFrom {
    /// Returns it as part of an answer.
    pub fn to_json(&self) -> Value {
        let here = !matches!(self.here, Here::Not);
        let mut value = json!({ "kind": self.word(), "name": self.name, "depth": self.depth, "here": here });
        value[if self.run { "root" } else { "checkpoint" }] = self.is.as_str().into();
        if here {
            value["intact"] = (self.here == Here::Intact).into();
        }
        if let Here::Unsure(why) | Here::Contradicts(why) = &self.here {
            value["detail"] = cut(why.clone()).into();
        }
        value
    }

    fn word(&self) -> &'static str {
        if self.run { "run" } else { "thread" }
    }

    fn state(&self) -> State {
        match self.here {
            Here::Intact => State::Ok,
            Here::Unsure(_) | Here::Not => State::NotApplicable,
            Here::Contradicts(_) => State::Failed,
        }
    }
}

/// Returns the run that is continued as part of an answer.
pub(super) fn continued(continues: &Continues) -> Value {
    json!({ "run": continues.run, "entries": continues.entries, "root": continues.root })
}

/// Names the run that is continued, for people.
pub(super) fn continues(continues: &Continues) -> String {
    let Continues { run, entries, root, .. } = continues;
    cut(format!("continues {run} ({entries} entries, root sha256:{}…)", root.short()))
}

/// Returns the lines for people, each with its sign: the runs and threads, and how far the chain of them goes.
pub(super) fn lines(taken: &[TakenFrom]) -> Vec<(State, String)> {
    let one = |it: &TakenFrom| {
        let is = if it.run {
            format!("root {}…", it.is.chars().take("sha256:".len() + 8).collect::<String>())
        } else {
            it.is.clone()
        };
        (it.state(), cut(format!("{} {} ({is}): {}", it.word(), it.name, it.here.in_words(it.run, it.open))))
    };
    let mut lines: Vec<(State, String)> = taken.iter().take(SHOWN).map(one).collect();
    if let more @ 1.. = taken.len().saturating_sub(SHOWN) {
        lines.push((State::NotApplicable, format!("and {more} more, which --json lists")));
    }
    let Some(furthest) = taken.iter().map(|it| it.depth).max() else { return lines };
    let absent = taken.iter().filter(|it| it.here == Here::Not).count();
    let unsure = taken.iter().filter(|it| !matches!(it.here, Here::Not | Here::Intact)).count();
    let steps = if furthest == 1 { "1 step".to_owned() } else { format!("{furthest} steps") };
    let sources = counted(taken.len(), "source", "sources");
    let all = format!("{sources} in all, at most {steps} back");
    lines.push(match (absent, unsure) {
        (0, 0) => (State::Ok, format!("{all}, all of them here")),
        (_, 0) => (State::NotApplicable, format!("{all}; {absent} not here: what made those is not known")),
        (0, _) => (State::NotApplicable, format!("{all}; {unsure} here and not proven")),
        _ => {
            let rest = format!("{unsure} here and not proven, {absent} not here: what made those is not known");
            (State::NotApplicable, format!("{all}; {rest}"))
        }
    });
    lines
}
