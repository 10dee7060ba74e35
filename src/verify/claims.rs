//! The claims of a run's entries that a report repeats, without a verdict.

use std::collections::BTreeMap;

use crate::model::decision::Decision;
use crate::model::entry::Event;
use crate::model::name::ItemId;
use crate::model::place::Place;
use crate::model::takeover::Takeover;

use super::pipelines::{self, ItemBlocks};
use super::reader::Link;
use super::{Case, Report, external_statements, root};

/// A decision about an item.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The item.
    pub item: ItemId,
    /// The decision.
    pub decision: Decision,
    /// The key that decided, according to the entry.
    pub by: String,
    /// The key whose signature supports that.
    pub voucher: Voucher,
    /// True if the deciding key also began the run.
    pub by_author: bool,
    /// True if the evidence shows that the key may decide. The row `signature` of a run checks it.
    pub role_shown: bool,
}

/// The key whose signature supports a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voucher {
    /// The deciding key: it signed the entry, a statement in the entry, or the seal over the entry.
    Decider,
    /// The key that signed the entry. The deciding key did not sign it.
    Writer(String),
    /// The key that sealed the run. The proof holds no signature of the deciding key.
    Sealer(String),
    /// No key: no valid signature covers the decision.
    None,
}

impl Voucher {
    /// Returns the supporting key if it is not the deciding key.
    pub fn other_key(&self) -> Option<&str> {
        match self {
            Self::Writer(key) | Self::Sealer(key) => Some(key),
            Self::Decider | Self::None => None,
        }
    }
}

/// A take-over, with the key that signed its entry.
#[derive(Clone, Debug)]
pub struct TakenOver {
    /// The take-over.
    pub takeover: Takeover,
    /// The key, if the signature is valid.
    pub key: Option<String>,
}

fn takeovers(case: &Case<'_>) -> Vec<TakenOver> {
    let links = &case.chain.links;
    let keys: BTreeMap<u64, &Link> = links.iter().map(|link| (link.entry.seq, link)).collect();
    Takeover::all(links.iter().map(|link| &link.entry))
        .into_iter()
        .map(|takeover| {
            let key = keys[&takeover.entry].signer.as_deref().ok().map(str::to_owned);
            TakenOver { takeover, key }
        })
        .collect()
}

fn decisions(case: &Case<'_>) -> Vec<Decided> {
    let first = case.chain.links.first();
    let author = first.and_then(|link| link.signer.as_deref().ok());
    case.chain
        .links
        .iter()
        .filter_map(|link| {
            let Event::ItemDecided(e) = &link.entry.event else { return None };
            let statement = external_statements::check(case.run, first.map(|first| first.hash), &link.entry.event);
            let voucher = match (statement, &link.signer) {
                (Some(Ok(_)), _) => Voucher::Decider,
                (None, Ok(key)) if *key == e.by => Voucher::Decider,
                (_, Ok(key)) => Voucher::Writer(key.clone()),
                (_, Err(_)) => Voucher::None,
            };
            let by_author = author == Some(e.by.as_str());
            Some(Decided {
                item: e.item.clone(),
                decision: e.decision,
                by: e.by.clone(),
                voucher,
                by_author,
                role_shown: true,
            })
        })
        .collect()
}

impl Report {
    /// Returns a report with the claims of a run's entries, and no verdict yet.
    pub(super) fn of_entries(case: &Case<'_>) -> Self {
        let submitted = case.chain.submitted();
        Self {
            run: case.run.to_string(),
            remote: Place::fetched(case.reference).map(|(remote, _)| remote.to_owned()),
            sealed: case.seal().is_some(),
            entries: case.chain.links.len() as u64,
            root: case.seal().filter(|_| !case.chain.cut).map(|seal| root::over(case, seal)),
            so_far: root::so_far(case),
            plan: submitted.map(|e| e.plan.sha256),
            rules: submitted.and_then(|e| Some(e.rules?.sha256)),
            pipelines: pipelines::by_name(&case.chain)
                .into_iter()
                .map(|(name, (_, is))| (name.to_owned(), is.sha256))
                .collect(),
            blocks: ItemBlocks::all(&case.chain),
            base: submitted.map(|e| e.base),
            actor: submitted.and(case.chain.links.first()).map(|link| link.entry.actor.clone()),
            pinned_clock: case.chain.links.iter().any(|link| link.entry.pinned),
            continues: submitted.and_then(|e| e.continues.clone()),
            decisions: decisions(case),
            takeovers: takeovers(case),
            ..Self::default()
        }
    }
}
