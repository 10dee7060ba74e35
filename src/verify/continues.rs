//! The run that a run continues, as the signed entries that entry 0 seals.
//!
//! They show who began that run and who recorded which entry, sealed or not. Only the run itself
//! can show that its transitions were legal.

use gix::objs::Kind;

use crate::git::codec::{self, Decoded};
use crate::ledger::merkle;
use crate::model::bounds;
use crate::model::continued::Continues;
use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event, ItemFired, ItemReconciled, Outcome};
use crate::model::evidence::Evidence;
use crate::model::name::ItemId;
use crate::model::role::Keys;
use crate::model::time::Moment;

use super::imports::{ImportKind, Imported, Invalid, Origin, Source, read_evidence};
use super::objects::Objects;
use super::signature::{self, Signed, Writers};
use super::{Case, Options, external_statements, reader};

/// A continued run whose evidence holds.
pub(super) struct Continued {
    pub(super) origin: Origin,
    /// The base of its entry 0.
    pub(super) base: Oid,
    entries: Vec<Entry>,
    keys: Vec<(String, Moment)>,
}

impl Continued {
    /// Returns the last attempt that completed an item, as a proof would show it.
    pub(super) fn done(&self, item: &ItemId) -> Option<(&ItemFired, &ItemReconciled)> {
        let mut ends = self.entries.iter().rev().filter_map(|entry| entry.event.end_of(item));
        let end = ends.find(|e| e.status == Outcome::Done)?;
        let fired = self.entries.iter().find_map(|entry| match &entry.event {
            Event::ItemFired(e) if e.item == *item && e.attempt == end.attempt => Some(e),
            _ => None,
        })?;
        Some((fired, end))
    }

    pub(super) fn source(&self) -> Source {
        Source { keys: self.keys.clone(), from: self.origin.clone() }
    }
}

/// Reads the continued run; returns `None` if there is none.
pub(super) fn examine(case: &Case<'_>) -> Option<Result<Continued, Invalid>> {
    let continues = case.chain.submitted()?.continues.as_ref()?;
    let bytes = read_evidence(case, &Objects::new(case.store), &continues.evidence, bounds::BLOB, "continues.json");
    Some(bytes.and_then(|bytes| check(continues, &bytes).map_err(Invalid::Differs)))
}

/// Returns the continued run as an import, with the keys that signed it.
pub(super) fn import(case: &Case<'_>, continued: Option<&Result<Continued, Invalid>>) -> Option<Imported> {
    let continues = case.chain.submitted()?.continues.as_ref()?;
    // The mark's entries were examined when the mark was made.
    if case.chain.links[0].verified_before {
        return None;
    }
    let found = match continued? {
        Ok(continued) => Ok(continued.source()),
        Err(wrong) => Err(wrong.clone()),
    };
    Some(Imported {
        seq: 0,
        label: format!("entry 0: the run {}, which it continues", continues.run),
        kind: ImportKind::Run,
        found,
    })
}

fn check(continues: &Continues, bytes: &[u8]) -> Result<Continued, String> {
    let commits = Evidence::parse(bytes).and_then(Evidence::commits).ok_or("continues.json is not valid evidence")?;
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
        verified_before: false,
    });
    let writers = Writers::of_run(&continues.run, Keys::from_submitted(submitted), Some(first.hash));
    let judged = signature::judge(signed, writers, "its ", &Options::default(), None);
    if let Some(bad) = judged.bad.first() {
        return Err(bad.to_owned());
    }
    let open = rooted(continues, &decoded)?;
    let entries = decoded.iter().zip(signers).filter_map(|(decoded, signer)| Some((signer.ok()?, decoded.entry.at)));
    let statements = decoded.iter().filter_map(|decoded| {
        let statement = external_statements::check(&continues.run, Some(first.hash), &decoded.entry.event)?.ok()?;
        Some((statement.key, statement.at))
    });
    let keys = entries.chain(statements).collect();
    let origin = Origin::Run { run: continues.run.clone(), first: first.hash, root: continues.root, open };
    let base = submitted.base;
    Ok(Continued { origin, base, entries: decoded.into_iter().map(|decoded| decoded.entry).collect(), keys })
}

/// Checks that each entry is of the run and follows the one before it.
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

/// Checks the number and the root of the entries. Returns the number if the run is not sealed.
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
        Some(seal) if seal.root != root => Err("its seal says another root".to_owned()),
        Some(_) => Ok(None),
        None => Ok(Some(count)),
    }
}
