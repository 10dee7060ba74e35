//! Decisions about items, with the keys that vouch for them.

use std::collections::BTreeMap;

use crate::verify::{Decided, Report, SignerSeen, State, Voucher};

const MAX_SHOWN: usize = 20;

/// The name of this repository's key if the signers give it none.
pub(in crate::verify) const OWN_KEY: &str = "this repository's key";

impl Report {
    pub(super) fn decided_lines(&self) -> Vec<(State, String)> {
        let first_decisions = self.decisions.iter().take(MAX_SHOWN);
        let mut lines: Vec<_> =
            first_decisions.map(|it| (self.state_of(it), Self::decided(it, |key| self.whose(key)))).collect();
        let more = self.decisions.get(MAX_SHOWN..).unwrap_or_default();
        if !more.is_empty() {
            let all = more.iter().all(|it| self.state_of(it) == State::Ok);
            let state = if all { State::Ok } else { State::NotApplicable };
            lines.push((state, format!("and {} more, which --json lists", more.len())));
        }
        lines
    }

    /// Returns the last decision about each item, without keys, for comparing runs.
    pub(super) fn decided_snapshot(&self) -> Vec<(State, String)> {
        let last: BTreeMap<_, &Decided> = self.decisions.iter().map(|it| (&it.item, it)).collect();
        last.into_values()
            .map(|it| {
                let author = if it.by_author { ", who began the run" } else { "" };
                (
                    self.state_of(it),
                    format!(
                        "{}{author}",
                        Self::decided(it, |key| self
                            .name_of(key)
                            .unwrap_or_else(|| "a key not known to you".to_owned()))
                    ),
                )
            })
            .collect()
    }

    /// Returns `Ok` if the decision holds as one of the named key.
    fn state_of(&self, decided: &Decided) -> State {
        let fails = [&self.rows.chain, &self.rows.signature].into_iter().any(|row| row.state == State::Failed);
        let holds = decided.voucher == Voucher::Decider && decided.role_shown;
        if holds && !fails { State::Ok } else { State::NotApplicable }
    }

    /// Describes a decision and the key that vouches for it.
    fn decided(decided: &Decided, whose: impl Fn(&str) -> String) -> String {
        let Decided { item, decision, by, voucher, .. } = decided;
        let (decision, by) = (decision.word(), whose(by));
        match voucher {
            Voucher::Decider if decided.role_shown => format!("{item} {decision} by {by}"),
            Voucher::Decider => format!("{item} {decision} by {by}; that this key may decide is not shown"),
            Voucher::Sealer(key) => {
                format!(
                    "{item} {decision} according to the key that sealed, {}: nothing here is signed by {by}",
                    whose(key)
                )
            }
            Voucher::Writer(key) => {
                format!(
                    "{item} {decision} according to the key that wrote the entry, {}: {by} did not sign it",
                    whose(key)
                )
            }
            Voucher::None => format!("{item} {decision}, and no signature vouches for it: {by} is only named"),
        }
    }

    /// Returns the name of a key's owner, or the key.
    pub(super) fn whose(&self, key: &str) -> String {
        self.name_of(key).unwrap_or_else(|| key.to_owned())
    }

    /// Returns the name of the owner of a key that signed, if the verifier knows it.
    pub(super) fn name_of(&self, key: &str) -> Option<String> {
        match self.signers.iter().find(|signer| signer.fingerprint == key)? {
            SignerSeen { principal: Some(principal), .. } => Some(principal.clone()),
            SignerSeen { trusted: true, .. } => Some(OWN_KEY.to_owned()),
            SignerSeen { .. } => None,
        }
    }
}
