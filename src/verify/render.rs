//! A report as text for people and as JSON for programs. Pure.

mod decided;
mod same_id;
mod stable;
mod taken;
mod thread;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::model::pipeline::BlockStatus;
use crate::model::printable::{Color, Painted, cut, line};

use super::pipelines::Told;
use super::{
    Admission, Anchored, Claim, Decided, Failure, Guarantee, LOCAL, Report, Row, SameId, SignerSeen, Since, State,
    TakenFrom, Timed, Uncovered,
};

/// Where the headline begins.
const HEADLINE_AT: usize = 64;

/// What a headline says after the claim of something that is not all done and green.
const PARTIAL: &str = "PARTIAL";

/// The blocks of more items than this are counted, not shown to people.
const BLOCKS: usize = 20;

/// More of what nothing vouches for is counted, not shown to people.
const UNCOVERED: usize = 20;

impl Report {
    /// Returns the report as `git-handoff.verify/1`.
    pub fn to_json(&self) -> Value {
        let mut report = json!({
            "schema": "git-handoff.verify/1",
            "run": self.run,
            "sealed": self.sealed,
            "intact": self.intact,
            "trusted": self.is_trusted(),
            "claim": self.claim.as_str(),
            "guarantee": self.guarantee.as_str(),
            "failure": self.failure.map(Failure::as_str),
            "outcome": self.outcome,
            "entries": self.entries,
            "root": self.root,
            "plan": self.plan,
            "base": self.base,
            "checks": checks(self.rows.iter()),
            "signers": self.signers.iter().map(signer).collect::<Vec<_>>(),
            "sandbox": self.sandbox,
        });
        if let Some(remote) = &self.remote {
            report["remote"] = json!(remote);
        }
        if let Some(unmet) = &self.unmet {
            report["unmet"] = json!(unmet);
        }
        if let Some(rules) = self.rules {
            report["rules"] = json!(rules);
        }
        if !self.decisions.is_empty() {
            report["decisions"] = self.decisions.iter().map(Decided::to_json).collect();
        }
        if let Some(continues) = &self.continues {
            report["continues"] = taken::continued(continues);
        }
        if !self.taken_from.is_empty() {
            report["takenFrom"] = self.taken_from.iter().map(TakenFrom::to_json).collect();
        }
        if !self.pipelines.is_empty() {
            report["pipelines"] = json!(self.pipelines);
            report["blocks"] = self.blocks.iter().map(Told::to_json).collect();
        }
        if self.anchors.iter().any(|anchored| anchored.kind != LOCAL) {
            report["anchors"] = self.anchors.iter().map(Anchored::to_json).collect();
        }
        if !self.times.is_empty() {
            report["times"] = self.times.iter().map(Timed::to_json).collect();
        }
        if let Some(head) = self.so_far {
            report["soFar"] = json!({ "entries": head.size, "root": head.root });
        }
        if let Some(Since { head, known }) = self.since {
            report["since"] = json!({ "entries": head.size, "root": head.root, "known": known });
        }
        if self.pinned_clock {
            report["clock"] = "pinned".into();
        }
        if let Some(same) = &self.same_id {
            report["sameId"] = same.to_json();
        }
        if !self.uncovered.is_empty() {
            let one = |it: &Uncovered| json!({ "path": it.path, "detail": it.detail });
            report["uncovered"] = self.uncovered.iter().map(one).collect();
        }
        report
    }

    /// Returns the report as lines for people. What others wrote stands in it as it may be printed.
    pub fn to_text(&self, color: bool) -> String {
        self.painted(color).into()
    }

    /// Returns the report as lines for people, in colour where that is wanted.
    pub fn painted(&self, color: bool) -> Painted {
        let paint = |state| color.then(|| shade(state));
        let place = self.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
        let title = line(&format!("git handoff verify · {place}{}", self.run));
        let text = headed(&title, self.standing(), self.headline, color);
        let text =
            if self.is_partial() { text.words(" ").painted(PARTIAL, color.then_some(Color::Yellow)) } else { text };
        let mut text = self.rows.iter().fold(text.end(), |text, row| row_line(text, row, color));
        if let Some(unmet) = &self.unmet {
            let state = State::Failed;
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {unmet}", "required")).end();
        }
        if let Some(outcome) = &self.outcome {
            let state = if outcome.is_green() { State::Ok } else { State::Failed };
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {outcome}", "outcome")).end();
        }
        for (state, said) in self.decided_lines() {
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {said}", "decided")).end();
        }
        if let Some(continues) = &self.continues {
            let state = self.rows.handoff.state;
            let said = format!(" {:<10} {}", "origin", taken::continues(continues));
            text = text.painted(state.mark(), paint(state)).words(&said).end();
        }
        for (state, said) in taken::lines(&self.taken_from) {
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {said}", "taken from")).end();
        }
        for told in self.blocks.iter().take(BLOCKS) {
            let state = if told.blocks.iter().all(|block| block.status == BlockStatus::Done) {
                State::Ok
            } else {
                State::NotApplicable
            };
            text =
                text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {}", "blocks", told.in_words())).end();
        }
        if let more @ 1.. = self.blocks.len().saturating_sub(BLOCKS) {
            let state = State::NotApplicable;
            let said = format!(" {:<10} of {more} more items, which --json lists", "blocks");
            text = text.painted(state.mark(), paint(state)).words(&said).end();
        }
        for said in self.same_id.iter().flat_map(SameId::lines) {
            let state = State::NotApplicable;
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {said}", "same id")).end();
        }
        for timed in &self.times {
            let (state, said) = match &timed.at {
                Ok(at) => (State::Ok, format!("sealed by {at}, says {}", timed.authority)),
                Err(why) => (State::NotApplicable, format!("{}: {why}", timed.authority)),
            };
            text = text.painted(state.mark(), paint(state)).words(&format!(" {:<10} {said}", "time")).end();
        }
        let dash = || (State::NotApplicable.mark(), paint(State::NotApplicable));
        for it in self.uncovered.iter().take(UNCOVERED) {
            let said = format!(" {:<10} {}: {}", "uncovered", it.path, it.detail);
            text = text.painted(dash().0, dash().1).words(&said).end();
        }
        if let more @ 1.. = self.uncovered.len().saturating_sub(UNCOVERED) {
            let said = format!(" {:<10} and {more} more, which --json lists", "uncovered");
            text = text.painted(dash().0, dash().1).words(&said).end();
        }
        let footer = self.footer();
        if footer.is_empty() { text } else { text.words(&footer).end() }
    }

    /// Returns how good it is as a whole: only what is intact by known keys, and all done and green, is good.
    fn standing(&self) -> State {
        match self.intact {
            false => State::Failed,
            true if self.is_partial() || !self.is_trusted() => State::NotApplicable,
            true => State::Ok,
        }
    }

    fn footer(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.plan.map(|plan| format!("plan sha256:{}…", &plan.short()[..4])));
        parts.extend(self.rules.map(|rules| format!("rules sha256:{}…", &rules.short()[..4])));
        parts.extend(self.pipelines.iter().map(|(name, is)| {
            let id = name.split('@').next().unwrap_or(name);
            format!("pipeline {} sha256:{}…", cut(id.to_owned()), &is.short()[..4])
        }));
        parts.extend(self.base.map(|base| format!("base {}", base.0.to_hex_with_len(7))));
        parts.extend(self.actor.as_ref().map(|actor| format!("by {}", cut(actor.clone()))));
        if !self.sandbox.is_empty() {
            let kinds: Vec<_> = self.sandbox.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
            parts.push(format!("sandbox {}", kinds.join(", ")));
        }
        if self.pinned_clock {
            parts.push("clock pinned".to_owned());
        }
        parts.join("  ")
    }

    /// Returns the row of a name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns what the first row that fails says, or the first that lacks evidence.
    pub(super) fn first_finding(&self) -> &str {
        let of = |state| self.rows.iter().find(move |row| row.state == state);
        of(State::Failed).or_else(|| of(State::NotApplicable)).map_or("", |row| row.detail.as_str())
    }
}

impl Anchored {
    /// Returns what the anchor says as part of an answer.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "type": self.kind,
            "guarantee": self.guarantee.as_str(),
            "standing": self.standing.as_str(),
            "detail": self.detail,
        });
        if let Some(since) = self.since {
            value["since"] = since.to_string().into();
        }
        value
    }
}

impl Timed {
    /// Returns what the authority says as part of an answer.
    pub fn to_json(&self) -> Value {
        match &self.at {
            Ok(at) => {
                let mut value = json!({ "authority": self.authority, "at": at });
                if let Some(contradiction) = &self.contradiction {
                    value["detail"] = contradiction.as_str().into();
                }
                value
            }
            Err(why) => json!({ "authority": self.authority, "at": null, "detail": why }),
        }
    }
}

impl Serialize for Anchored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl Serialize for Timed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl Claim {
    /// Returns the word that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TamperDetecting => "tamper-detecting",
            Self::TamperEvident => "tamper-evident",
        }
    }
}

impl Guarantee {
    /// Returns the word that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Detect => "detect",
            Self::External => "external",
            Self::ExternalImmutable => "external-immutable",
        }
    }
}

impl std::str::FromStr for Guarantee {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Detect, Self::External, Self::ExternalImmutable].into_iter().find(|one| one.as_str() == word).ok_or(())
    }
}

impl Failure {
    /// Returns the word that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::AnchorMissing => "anchor-missing",
            Self::Root => "root",
            Self::Signature => "signature",
            Self::Manifest => "manifest",
            Self::Plan => "plan",
            Self::Handoff => "handoff",
            Self::Content => "content",
            Self::Mismatch => "mismatch",
            Self::Conflict => "conflict",
            Self::Required => "required",
            Self::NotSealed => "not-sealed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// Returns the rows as part of an answer, by their names.
fn checks<'r>(rows: impl Iterator<Item = &'r Row>) -> Map<String, Value> {
    let check = |row: &Row| {
        let ok: Value = match row.state {
            State::Ok => true.into(),
            State::Failed => false.into(),
            State::NotApplicable => "n/a".into(),
        };
        let mut check = json!({ "ok": ok, "detail": row.detail });
        if !row.codes.is_empty() {
            check["codes"] = row.codes.iter().map(|code| code.word()).collect();
        }
        check
    };
    rows.map(|row| (row.name.to_owned(), check(row))).collect()
}

/// Begins the first line of a report, with its verdict.
fn headed(title: &str, state: State, headline: &str, color: bool) -> Painted {
    let pad = HEADLINE_AT.saturating_sub(title.chars().count()).max(2);
    let headline = format!("{} {headline}", state.mark());
    Painted::from(title).words(&" ".repeat(pad)).painted(&headline, color.then(|| shade(state)))
}

/// Adds the line of a row.
fn row_line(text: Painted, row: &Row, color: bool) -> Painted {
    let said = format!(" {:<10} {}", row.name, row.detail);
    text.painted(row.state.mark(), color.then(|| shade(row.state))).words(&said).end()
}

fn signer(signer: &SignerSeen) -> Value {
    let mut value = json!({ "fingerprint": signer.fingerprint, "trusted": signer.trusted });
    if let Some(principal) = &signer.principal {
        value["principal"] = principal.as_str().into();
    }
    if let Some(Admission { by, entry, roles }) = &signer.admitted {
        value["admitted"] = json!({ "by": by, "entry": entry, "roles": roles });
    }
    value
}

impl State {
    /// Returns the sign for it at the beginning of a line.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ok => "✓",
            Self::Failed => "✗",
            Self::NotApplicable => "─",
        }
    }
}

fn shade(state: State) -> Color {
    match state {
        State::Ok => Color::Green,
        State::Failed => Color::Red,
        State::NotApplicable => Color::Dim,
    }
}
