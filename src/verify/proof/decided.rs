//! The decision that a proof shows, and which key vouches for it.
//!
//! An entry that is shown bears no signature of its own. A decision is that of the key that it names only if the entry
//! holds that key's statement, or if this key also signed the seal. Otherwise it is the word of the key that sealed.

use crate::model::entry::Event;
use crate::model::time::Moment;
use crate::verify::facts::{Decided, Word};
use crate::verify::said::{self, Said};
use crate::verify::signature::Judged;
use crate::verify::{Options, State};

use super::{Revealed, Shown};

impl Revealed<'_> {
    /// Checks the statement that an entry holds; returns `None` if it holds none.
    pub(super) fn statement(&self, event: &Event) -> Option<Result<Said, String>> {
        said::check(&self.proof.run, self.first.decoded().map(|first| first.hash), event)
    }

    /// Returns the decisions that are shown, each with the key that vouches for it.
    pub(super) fn decisions(&self) -> Vec<Decided> {
        let author = self.first.signer();
        let sealed = self.last.sealed().is_some() && self.root(None).state == State::Ok;
        let sealer = self.last.signer().filter(|_| sealed);
        let decided = |shown: &Shown<'_>| {
            let Event::ItemDecided(e) = &shown.entry.event else { return None };
            let word = match (self.statement(&shown.entry.event), sealer) {
                (Some(Ok(_)), _) => Word::Own,
                (None, Some(sealer)) if sealer == e.by => Word::Own,
                (_, Some(sealer)) => Word::Sealer(sealer.to_owned()),
                (_, None) => Word::Nothing,
            };
            let by_author = author == Some(e.by.as_str());
            Some(Decided { item: e.item.clone(), decision: e.decision, by: e.by.clone(), word, by_author })
        };
        self.shown.iter().flatten().filter_map(decided).collect()
    }

    /// Judges the keys of the decisions: as a signer's where a statement is signed, else as one that is merely named.
    pub(super) fn judge_decisions(&self, judged: &mut Judged, options: &Options, held_since: Option<Moment>) {
        for Shown { entry, .. } in self.shown.iter().flatten() {
            let Event::ItemDecided(e) = &entry.event else { continue };
            let what = format!("entry {}: what was decided", entry.seq);
            match self.statement(&entry.event) {
                Some(Ok(said)) => judged.decided(&what, (&said.key, said.at), options, held_since),
                _ => judged.named(&what, (&e.by, entry.at), options, held_since),
            }
        }
    }

    /// Returns the addition to the signature row for each decision that only the key that sealed vouches for.
    pub(super) fn unsigned(&self) -> String {
        let decisions = self.decisions().into_iter().filter(|decided| matches!(decided.word, Word::Sealer(_)));
        let one = |it: Decided| {
            let (item, decision, by) = (it.item, it.decision.word(), it.by);
            format!("; that {item} was {decision} is the word of who sealed: nothing here is signed by {by}")
        };
        decisions.map(one).collect()
    }
}
