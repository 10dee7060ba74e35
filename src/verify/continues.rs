//! The run that a run continues: the signed entries that entry 0 seals of it.
//!
//! They show who began it and who recorded what, sealed or not. Whether its course was legal, only the run itself shows, where it
//! is here.

use gix::objs::Kind;

use crate::git::codec::{self, Decoded};
use crate::ledger::merkle;
use crate::model::bounds;
use crate::model::continued::{self, Continues};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, ItemFired, ItemReconciled, Outcome};
use crate::model::name::ItemId;
use crate::model::role::Keys;
use crate::model::time::Moment;

use super::objects::Objects;
use super::signature::{self, Signed, Writers};
use super::taken::{Kind as Of, Origin, Shown, Taken, Wrong};
use super::{Case, Options, reader};

/// A run that is continued, of which the evidence holds.
pub(super) struct Continued {
    pub(super) origin: Origin,
    entries: Vec<Entry>,
    keys: Vec<(String, Moment)>,
}

impl Continued {
    /// Returns the last attempt by which an item was done.
    pub(super) fn done(&self, item: &ItemId) -> Option<(&ItemFired, &ItemReconciled)> {
        let end = self.entries.iter().rev().find_map(|entry| match &entry.event {
            Event::ItemReconciled(e) if e.item == *item && e.status == Outcome::Done => Some(e),
            _ => None,
        })?;
        let fired = self.entries.iter().find_map(|entry| match &entry.event {
            Event::ItemFired(e) if e.item == *item && e.attempt == end.attempt => Some(e),
            _ => None,
        })?;
        Some((fired, end))
    }

    /// Returns the run, its root, and how it is taken from.
    pub(super) fn taken(&self) -> Shown {
        Shown { keys: self.keys.clone(), from: self.origin.clone() }
    }
}

/// Reads the run that a run continues; `None` if it continues none.
pub(super) fn examine(case: &Case<'_>) -> Option<Result<Continued, Wrong>> {
    let continues = case.chain.submitted()?.continues.as_ref()?;
    let read = case.chain.continues.read(&Objects::new(case.store), case.lazy, bounds::BLOB);
    Some(match read {
        Some(Ok(bytes)) => check(continues, &bytes).map_err(Wrong::Differs),
        Some(Err(fault)) => Err(Wrong::Fault(fault)),
        None => Err(Wrong::Differs("continues.json is not in the tree".to_owned())),
    })
}

/// Returns what is taken with the run as a whole: the keys that signed it.
pub(super) fn taken(case: &Case<'_>, continued: Option<&Result<Continued, Wrong>>) -> Option<Taken> {
    let continues = case.chain.submitted()?.continues.as_ref()?;
    // What a mark vouches for was looked at when it was made.
    if case.chain.links[0].vouched {
        return None;
    }
    let found = match continued? {
        Ok(continued) => Ok(continued.taken()),
        Err(wrong) => Err(wrong.clone()),
    };
    Some(Taken { whose: format!("entry 0: the run {}, which it continues", continues.run), kind: Of::Run, found })
}

/// Takes the evidence for what it shows; an error says what does not hold.
fn check(continues: &Continues, bytes: &[u8]) -> Result<Continued, String> {
    if Digest::of(bytes) != continues.evidence {
        return Err("continues.json is not the one that the entry names".to_owned());
    }
    let commits = continued::commits(bytes).ok_or("continues.json is no evidence")?;
    let decoded: Vec<Decoded> = commits
        .iter()
        .enumerate()
        .map(|(at, commit)| codec::decode(commit.as_bytes()).map_err(|error| format!("its entry {at}: {error}")))
        .collect::<Result<_, _>>()?;
    let first = decoded.first().ok_or("continues.json holds no entry")?;
    let Event::RunSubmitted(submitted) = &first.entry.event else {
        return Err("its first entry is not run.submitted".to_owned());
    };
    linked(continues, &commits, &decoded)?;
    let signers: Vec<Result<String, String>> = decoded.iter().map(reader::signer).collect();
    let signed = decoded.iter().zip(&signers).map(|(decoded, signer)| Signed {
        seq: decoded.entry.seq,
        at: decoded.entry.at,
        signer: signer.as_deref(),
        event: Some(&decoded.entry.event),
        vouched: false,
    });
    let writers = Writers::of_run(&continues.run, Keys::of(submitted), Some(first.hash));
    let judged = signature::judge(signed, writers, "its ", &Options::default(), None);
    if let Some(bad) = judged.bad.first() {
        return Err(bad.to_owned());
    }
    let open = rooted(continues, &decoded)?;
    let keys = decoded.iter().zip(signers).filter_map(|(decoded, signer)| Some((signer.ok()?, decoded.entry.at)));
    let keys = keys.collect();
    let origin = Origin::Run { run: continues.run.clone(), first: first.hash, root: continues.root, open };
    Ok(Continued { origin, entries: decoded.into_iter().map(|decoded| decoded.entry).collect(), keys })
}

/// Checks that the entries are of the run, each on the one before it.
fn linked(continues: &Continues, commits: &[String], decoded: &[Decoded]) -> Result<(), String> {
    let mut before: Option<(&Decoded, Option<Oid>)> = None;
    for (at, (commit, link)) in commits.iter().zip(decoded).enumerate() {
        let entry = &link.entry;
        if entry.about.run() != Some(&continues.run) || !entry.event.is_of_run() {
            return Err(format!("its entry {at} is of something else"));
        }
        let parents: Vec<Oid> = before.and_then(|(_, parent)| parent).into_iter().collect();
        let follows = entry.seq == at as u64
            && entry.prev == before.map(|(before, _)| before.hash)
            && before.is_none_or(|(before, _)| before.entry.at <= entry.at)
            && (at == 0) == matches!(entry.event, Event::RunSubmitted(_))
            && !before.is_some_and(|(before, _)| matches!(before.entry.event, Event::RunSealed(_)))
            && link.parents == parents;
        if !follows {
            return Err(format!("its entry {at} does not follow the one before it"));
        }
        let id = gix::objs::compute_hash(link.tree.0.kind(), Kind::Commit, commit.as_bytes());
        before = Some((link, id.ok().map(Oid)));
    }
    Ok(())
}

/// Checks the number and the root of the entries; returns the number where no seal says the root.
fn rooted(continues: &Continues, decoded: &[Decoded]) -> Result<Option<u64>, String> {
    let seal = decoded.last().and_then(|last| match &last.entry.event {
        Event::RunSealed(seal) => Some(seal),
        _ => None,
    });
    let under = &decoded[..decoded.len() - usize::from(seal.is_some())];
    let (count, root) = (under.len() as u64, merkle::root(under.iter().map(|link| link.hash)));
    if (count, root) != (continues.entries, continues.root) {
        return Err("its entries are not those that the entry names".to_owned());
    }
    match seal {
        Some(seal) if (seal.entries, seal.root) != (count, root) => Err("its seal says another root".to_owned()),
        Some(_) => Ok(None),
        None => Ok(Some(count)),
    }
}
