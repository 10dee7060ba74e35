//! The decisions of people, with whose word each of them is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::verify::{Decided, Report, SignerSeen, State, Word};

/// How many decisions are shown to people.
const DECISIONS: usize = 20;

impl Decided {
    /// Returns it as part of an answer.
    pub(super) fn to_json(&self) -> Value {
        let signed = self.word == Word::Own;
        let mut value = json!({ "item": self.item, "decision": self.decision, "by": self.by, "signed": signed });
        if let Some(key) = self.word.of_other() {
            value["onWordOf"] = key.into();
        }
        value
    }
}

impl Report {
    /// Returns the lines for people, each with its sign.
    pub(super) fn decided_lines(&self) -> Vec<(State, String)> {
        let shown = self.decisions.iter().take(DECISIONS);
        let mut lines: Vec<_> = shown.map(|it| (self.vouched(it), Self::decided(it, |key| self.whose(key)))).collect();
        let more = self.decisions.get(DECISIONS..).unwrap_or_default();
        if !more.is_empty() {
            let all = more.iter().all(|it| self.vouched(it) == State::Ok);
            let state = if all { State::Ok } else { State::NotApplicable };
            lines.push((state, format!("and {} more, which --json lists", more.len())));
        }
        lines
    }

    /// Returns the last decision about each item, as two runs of one plan have it in common: without any key.
    pub(super) fn decided_snapshot(&self) -> Vec<(State, String)> {
        let last: BTreeMap<_, &Decided> = self.decisions.iter().map(|it| (&it.item, it)).collect();
        let whose = |key: &str| self.name_of(key).unwrap_or_else(|| "a key not known to you".to_owned());
        let one = |it: &Decided| {
            let author = if it.by_author { ", who began the run" } else { "" };
            (self.vouched(it), format!("{}{author}", Self::decided(it, whose)))
        };
        last.into_values().map(one).collect()
    }

    /// Returns whether a decision holds as one of the key that it names.
    fn vouched(&self, decided: &Decided) -> State {
        let fails = [&self.rows.chain, &self.rows.signature].into_iter().any(|row| row.state == State::Failed);
        if decided.word == Word::Own && !fails { State::Ok } else { State::NotApplicable }
    }

    /// Says who decided what, and on whose word.
    fn decided(decided: &Decided, whose: impl Fn(&str) -> String) -> String {
        let Decided { item, decision, by, word, .. } = decided;
        let (decision, by) = (decision.word(), whose(by));
        match word {
            Word::Own => format!("{item} {decision} by {by}"),
            Word::Sealer(key) => {
                format!("{item} {decision} by the word of who sealed, {}: nothing here is signed by {by}", whose(key))
            }
            Word::Writer(key) => {
                format!("{item} {decision} by the word of who wrote the entry, {}: {by} did not sign it", whose(key))
            }
            Word::Nothing => format!("{item} {decision}, and no signature vouches for it: {by} is only named"),
        }
    }

    /// Returns the name of a key's owner, or the key.
    fn whose(&self, key: &str) -> String {
        self.name_of(key).unwrap_or_else(|| key.to_owned())
    }

    /// Returns the name of the owner of a key that signed, as far as the verifier knows it.
    fn name_of(&self, key: &str) -> Option<String> {
        match self.signers.iter().find(|signer| signer.fingerprint == key)? {
            SignerSeen { principal: Some(principal), .. } => Some(principal.clone()),
            SignerSeen { trusted: true, .. } => Some("this repository's key".to_owned()),
            SignerSeen { .. } => None,
        }
    }
}
