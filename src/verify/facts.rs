//! What a report repeats of a run, as its entries tell it: verdicts aside.

use std::collections::BTreeMap;

use crate::ledger::merkle::TreeHead;
use crate::model::continued::Continues;
use crate::model::decision::Decision;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::name::ItemId;
use crate::model::place::Place;

use super::pipelines::{self, Told};
use super::reader::Link;
use super::{Case, root, said};

/// What a report repeats of the run, verdicts aside.
pub(crate) struct Facts {
    pub(crate) run: String,
    pub(crate) remote: Option<String>,
    pub(crate) sealed: bool,
    pub(crate) entries: u64,
    pub(crate) root: Option<Digest>,
    pub(crate) so_far: Option<TreeHead>,
    pub(crate) plan: Option<Digest>,
    pub(crate) rules: Option<Digest>,
    pub(crate) pipelines: BTreeMap<String, Digest>,
    pub(crate) blocks: Vec<Told>,
    pub(crate) base: Option<Oid>,
    pub(crate) actor: Option<String>,
    pub(crate) pinned_clock: bool,
    pub(crate) decisions: Vec<Decided>,
    pub(crate) continues: Option<Continues>,
    /// The key and the leaf hash of entry 0.
    pub(crate) begun: (Option<String>, Option<Digest>),
}

/// A decision about an item.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The item.
    pub item: ItemId,
    /// What was decided.
    pub decision: Decision,
    /// The key that the entry names as the one that decided.
    pub by: String,
    /// Which key vouches for that.
    pub word: Word,
    /// Whether the key that the entry names also began the run.
    pub by_author: bool,
}

/// Which key vouches for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The key that decided: it signed the entry, a statement that the entry holds, or the seal over it.
    Own,
    /// The key that signed the entry; the key that decided did not sign it.
    Writer(String),
    /// The key that sealed the run; a proof holds nothing that the key that decided signed.
    Sealer(String),
    /// None: no signature over it holds.
    Nothing,
}

impl Word {
    /// Returns the other key whose word the decision is.
    pub fn of_other(&self) -> Option<&str> {
        match self {
            Self::Writer(key) | Self::Sealer(key) => Some(key),
            Self::Own | Self::Nothing => None,
        }
    }
}

/// Returns the decisions of a run, in the order of its entries.
fn decisions(case: &Case<'_>) -> Vec<Decided> {
    let first = case.chain.links.first();
    let author = first.and_then(|link| link.signer.as_deref().ok());
    let decided = |link: &Link| {
        let Event::ItemDecided(e) = &link.entry.event else { return None };
        let word = match (said::check(case.run, first.map(|first| first.hash), &link.entry.event), &link.signer) {
            (Some(Ok(_)), _) => Word::Own,
            (None, Ok(key)) if *key == e.by => Word::Own,
            (_, Ok(key)) => Word::Writer(key.clone()),
            (_, Err(_)) => Word::Nothing,
        };
        let by_author = author == Some(e.by.as_str());
        Some(Decided { item: e.item.clone(), decision: e.decision, by: e.by.clone(), word, by_author })
    };
    case.chain.links.iter().filter_map(decided).collect()
}

impl Facts {
    /// Reads them off a run in a repository.
    pub(super) fn of(case: &Case<'_>) -> Self {
        let submitted = case.chain.submitted();
        Self {
            run: case.run.to_string(),
            remote: Place::fetched(case.reference).map(|(remote, _)| remote.to_owned()),
            sealed: case.seal().is_some(),
            entries: case.chain.links.len() as u64,
            root: case.seal().filter(|_| !case.chain.cut).map(|seal| root::over(case, seal)),
            so_far: root::so_far(case),
            plan: submitted.map(|e| e.plan),
            rules: submitted.and_then(|e| e.rules),
            pipelines: pipelines::named(&case.chain).into_iter().map(|(name, is)| (name.to_owned(), is)).collect(),
            blocks: Told::all(&case.chain),
            base: submitted.map(|e| e.base),
            actor: submitted.and(case.chain.links.first()).map(|link| link.entry.actor.clone()),
            pinned_clock: case.chain.links.iter().any(|link| link.entry.pinned),
            continues: submitted.and_then(|e| e.continues.clone()),
            decisions: decisions(case),
            begun: case.chain.links.first().map_or((None, None), |link| (link.signer.clone().ok(), Some(link.hash))),
        }
    }
}
