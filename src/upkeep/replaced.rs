//! The refs that an archived run no longer needs, and their replacements.

use std::collections::{BTreeMap, BTreeSet};

use gix::objs::{Commit, Kind, WriteTo as _};

use crate::git::store::{Edit, Store};
use crate::git::{refs, retry};
use crate::ledger::chain::{self, Writer};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::format::{self, COMMITTER, EMAIL, KEPT_REF, REFS};
use crate::model::name::RunId;

use super::archive::{Error, is_lost};

/// The message of the commits at [`KEPT_REF`].
const MESSAGE: &str = "What is kept of archived runs\n";

/// A ref of an archived run.
pub(super) struct Replaced {
    pub(super) name: String,
    pub(super) oid: Oid,
    pub(super) run: RunId,
    pub(super) by: By,
}

/// The replacement of a deleted ref.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The archive, for the run and its time stamps.
    Archive,
    /// A parent of a commit at [`KEPT_REF`], for the run's base.
    Parent,
    /// A folder in the tree of [`KEPT_REF`], for transcripts and salvaged work.
    Folder(&'static str),
}

/// Returns the existing refs of some runs.
pub(super) fn replaced(store: &Store, runs: &BTreeSet<RunId>) -> Result<Vec<Replaced>, refs::Error> {
    let there: BTreeMap<String, Oid> = refs::list(store, REFS)?.into_iter().collect();
    Ok(runs
        .iter()
        .flat_map(|run| {
            [
                (format::run_ref(run), By::Archive),
                (format::stamps_ref(run), By::Archive),
                (format::base_ref(run), By::Parent),
                (format::transcripts_ref(run), By::Folder("transcripts")),
                (format::salvage_ref(run), By::Folder("salvage")),
            ]
            .map(|(name, by)| Some(Replaced { oid: *there.get(&name)?, name, run: run.clone(), by }))
        })
        .flatten()
        .collect())
}

/// Returns true if [`keep`] creates a missing ref.
pub(super) fn begins(store: &Store, replaced: &[Replaced]) -> Result<bool, refs::Error> {
    Ok(!is_all_evidence(replaced) && !refs::is_stored(store, KEPT_REF)?)
}

fn is_all_evidence(replaced: &[Replaced]) -> bool {
    replaced.iter().all(|one| one.by == By::Archive)
}

/// Keeps reachable, from a local ref, what is not evidence.
pub(super) fn keep(writer: &Writer, replaced: &[Replaced]) -> Result<(), AnyError> {
    let store = &writer.store;
    if is_all_evidence(replaced) {
        return Ok(());
    }
    let old = refs::read(store, KEPT_REF)?;
    let tree = old.map(|old| store.commit(old)).transpose()?.map(|(tree, _)| tree);
    let bases = replaced.iter().filter(|one| one.by == By::Parent && store.contains(one.oid));
    let bases: BTreeSet<Oid> = bases.map(|one| one.oid).collect();
    let edits: Vec<(String, Edit)> = replaced.iter().filter_map(Replaced::edit).collect();
    let mut batch = store.batch();
    let tree = match tree {
        Some(tree) if edits.is_empty() => tree,
        tree => batch.edit_tree(tree, &edits)?,
    };
    let commit = commit(writer, tree, old.into_iter().chain(bases));
    let new = batch.write(Kind::Commit, &commit)?;
    let _kept = batch.keep()?;
    match old {
        Some(old) => refs::advance(store, KEPT_REF, old, new)?,
        None => refs::begin(store, KEPT_REF, new)?,
    }
    Ok(())
}

/// Removes what is kept at a path, and drops the history that could still reach it.
pub(super) fn forget(writer: &Writer, path: &str) -> Result<(), AnyError> {
    let store = &writer.store;
    retry::run_while(is_lost, || {
        let Some(old) = refs::read(store, KEPT_REF)? else { return Ok(()) };
        let (tree, _) = store.commit(old)?;
        if store.tree_at(tree, path)?.is_none() {
            return Ok(());
        }
        let mut batch = store.batch();
        let tree = batch.edit_tree(Some(tree), &[(path.to_owned(), Edit::Remove)])?;
        let new = batch.write(Kind::Commit, &commit(writer, tree, bases(store, old)?.into_iter()))?;
        let _kept = batch.keep()?;
        Ok(refs::advance(store, KEPT_REF, old, new)?)
    })
}

/// Removes everything kept of an archived run: transcripts, salvaged work, and its base if no other
/// archived run has the same one.
pub(super) fn forget_run(writer: &Writer, run: &RunId, base: Option<Oid>) -> Result<(), AnyError> {
    let store = &writer.store;
    let paths = ["transcripts", "salvage"].map(|folder| format::kept_path(folder, run));
    retry::run_while(is_lost, || {
        let Some(old) = refs::read(store, KEPT_REF)? else { return Ok(()) };
        let (tree, _) = store.commit(old)?;
        let mut edits = Vec::new();
        for path in &paths {
            edits.extend(store.tree_at(tree, path)?.map(|_| (path.clone(), Edit::Remove)));
        }
        let mut bases = bases(store, old)?;
        let forgotten = base.is_some_and(|base| bases.remove(&base));
        if edits.is_empty() && !forgotten {
            return Ok(());
        }
        let mut batch = store.batch();
        let tree = if edits.is_empty() { tree } else { batch.edit_tree(Some(tree), &edits)? };
        let new = batch.write(Kind::Commit, &commit(writer, tree, bases.into_iter()))?;
        let _kept = batch.keep()?;
        Ok(refs::advance(store, KEPT_REF, old, new)?)
    })
}

/// Returns the base commit of a run, if its chain can be read.
pub(super) fn base_of(store: &Store, run: &RunId) -> Option<Oid> {
    let (_, links) = chain::read(store, &format::run_ref(run)).ok()??;
    match &links.first()?.entry.event {
        Event::RunSubmitted(submitted) => Some(submitted.base),
        _ => None,
    }
}

/// Returns the commits that [`KEPT_REF`] keeps besides its own.
fn bases(store: &Store, tip: Oid) -> Result<BTreeSet<Oid>, AnyError> {
    let (mut bases, mut next) = (BTreeSet::new(), Some(tip));
    while let Some(commit) = next.take() {
        let mut parents = store.commit(commit)?.1.into_iter().peekable();
        if let Some(first) = parents.peek()
            && is_kept(&store.read(*first)?.1)
        {
            next = parents.next();
        }
        bases.extend(parents);
    }
    Ok(bases)
}

/// Returns true if [`commit`] wrote this commit.
fn is_kept(bytes: &[u8]) -> bool {
    let author = format!("author {COMMITTER} <{EMAIL}> ");
    let text = String::from_utf8_lossy(bytes);
    let Some((head, message)) = text.split_once("\n\n") else { return false };
    message == MESSAGE && head.lines().any(|line| line.starts_with(&author))
}

/// Restores the refs of a run with their former targets.
pub(super) fn restore(store: &Store, run: &RunId) -> Result<(), AnyError> {
    let names = [format::stamps_ref(run), format::transcripts_ref(run), format::salvage_ref(run), format::run_ref(run)];
    for name in names {
        if let Some(oid) = refs::read(store, &name)? {
            refs::create(store, &name, oid)?;
        }
    }
    let (_, links) = chain::read(store, &format::run_ref(run))?.ok_or_else(|| Error::NotArchived(run.clone()))?;
    if let Some(Event::RunSubmitted(submitted)) = links.first().map(|link| &link.entry.event)
        && store.contains(submitted.base)
    {
        refs::set(store, &format::base_ref(run), submitted.base)?;
    }
    Ok(())
}

impl Replaced {
    fn edit(&self) -> Option<(String, Edit)> {
        let By::Folder(folder) = self.by else { return None };
        Some((format::kept_path(folder, &self.run), Edit::Tree(self.oid)))
    }
}

/// Returns the bytes of an unsigned commit.
fn commit(writer: &Writer, tree: Oid, parents: impl Iterator<Item = Oid>) -> Vec<u8> {
    let time = gix::date::Time { seconds: writer.clock.now().seconds(), offset: 0 };
    let by = gix::actor::Signature { name: COMMITTER.into(), email: EMAIL.into(), time };
    let commit = Commit {
        tree: tree.0,
        parents: parents.map(|parent| parent.0).collect(),
        author: by.clone(),
        committer: by,
        encoding: None,
        message: MESSAGE.into(),
        extra_headers: Vec::new(),
    };
    let mut bytes = Vec::new();
    commit.write_to(&mut bytes).expect("writing to memory does not fail");
    bytes
}
