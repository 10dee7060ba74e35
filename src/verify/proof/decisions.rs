//! The decision that a proof shows, and the key that vouches for it.
//!
//! An entry in a proof has no signature of its own. A decision counts as the named key's only if
//! the entry holds that key's statement, or if the key signed the seal. Otherwise only the key of
//! the seal vouches for it.

use crate::model::entry::{Event, Role};
use crate::model::role::Keys;
use crate::model::time::Moment;
use crate::verify::claims::{Decided, Voucher};
use crate::verify::external_statements::{self, Statement};
use crate::verify::signature::{Judged, options_for_others};
use crate::verify::{Options, State};

use super::{JsonEntry, Revealed};

impl Revealed<'_> {
    /// Checks the statement in an entry; returns `None` if it holds none.
    pub(super) fn statement(&self, event: &Event) -> Option<Result<Statement, String>> {
        external_statements::check(&self.proof.run, self.first.decoded().map(|first| first.hash), event)
    }

    /// Returns the decisions, each with the key that vouches for it.
    pub(super) fn decisions(&self) -> Vec<Decided> {
        let author = self.first.signer();
        let sealed = self.last.sealed().is_some() && self.root(None).state == State::Ok;
        let sealer = self.last.signer().filter(|_| sealed);
        self.json_entries
            .iter()
            .flatten()
            .filter_map(|revealed| {
                let Event::ItemDecided(e) = &revealed.entry.event else { return None };
                let voucher = match (self.statement(&revealed.entry.event), sealer) {
                    (Some(Ok(_)), _) => Voucher::Decider,
                    (None, Some(sealer)) if sealer == e.by => Voucher::Decider,
                    (_, Some(sealer)) => Voucher::Sealer(sealer.to_owned()),
                    (_, None) => Voucher::None,
                };
                let by_author = author == Some(e.by.as_str());
                let role_shown =
                    self.first.submitted().is_some_and(|first| Keys::from_submitted(first).has(&e.by, Role::Approve));
                let (item, by) = (e.item.clone(), e.by.clone());
                Some(Decided { item, decision: e.decision, by, voucher, by_author, role_shown })
            })
            .collect()
    }

    /// Judges the keys of the decisions, as signers if a statement is signed, else as names only.
    pub(super) fn judge_decisions(&self, judged: &mut Judged, options: &Options, held_since: Option<Moment>) {
        let others = options_for_others(options);
        for JsonEntry { entry, .. } in self.json_entries.iter().flatten() {
            let Event::ItemDecided(e) = &entry.event else { continue };
            let what = format!("entry {}: the decision", entry.seq);
            match self.statement(&entry.event) {
                Some(Ok(statement)) => {
                    judged.record_key((entry.seq, &what), &statement.key, statement.at, &others, held_since);
                }
                _ => judged.judge_named_key((entry.seq, &what), &e.by, entry.at, options, held_since),
            }
        }
    }

    /// Returns a note for the row `signature` about each decision that only the key of the seal
    /// vouches for.
    pub(super) fn unsigned(&self) -> String {
        let decisions = self.decisions().into_iter().filter(|decided| matches!(decided.voucher, Voucher::Sealer(_)));
        decisions.map(|decided| unsigned_note(&decided)).collect()
    }
}

fn unsigned_note(decided: &Decided) -> String {
    let (item, decision, by) = (&decided.item, decided.decision.word(), &decided.by);
    format!("; that {item} was {decision} is a claim of the key that sealed: nothing here is signed by {by}")
}
