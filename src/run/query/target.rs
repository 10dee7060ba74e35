//! Resolves `<run>` and `<run>/<item>` as people write them.
use std::cmp::Reverse;

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};
use crate::model::problem::nearest;
use crate::model::quote::quoted;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::view::{View, view};

/// The name of the newest run of this repository, which no run can have as its id.
pub const NEWEST: &str = "@";

/// A run, and the ref that holds it here.
#[expect(missing_docs, reason = "the types say it")]
pub struct Target {
    pub run: RunId,
    pub reference: String,
}

impl Target {
    /// Returns the target for a run of this repository.
    pub fn own(run: RunId) -> Self {
        Self { reference: format::run_ref(&run), run }
    }

    /// Returns all fetched runs, including archived ones, in the order of their refs.
    pub fn all_fetched(store: &Store) -> Result<Vec<Self>, refs::Error> {
        Ok(Self::fetched_among(names(refs::list_with_archived(store, format::FETCHED_REFS)?)))
    }

    /// Returns the fetched runs that have a ref of their own, in the order of their refs.
    pub fn unarchived_fetched(store: &Store) -> Result<Vec<Self>, refs::Error> {
        Ok(Self::fetched_among(names(refs::list(store, format::FETCHED_REFS)?)))
    }

    /// Returns the runs, ours and fetched ones, whose ref is unreadable: a symbolic ref, or an
    /// invalid file. Listings of refs skip them.
    pub fn unreadable(store: &Store) -> Result<Vec<Self>, refs::Error> {
        let below = |prefix: &str| refs::unreadable(store, prefix, &refs::list(store, prefix)?);
        let own = runs_of(below(format::RUN_REFS)?.into_iter()).into_iter().map(Self::own);
        Ok(own.chain(Self::fetched_among(below(format::FETCHED_REFS)?.into_iter())).collect())
    }

    fn fetched_among(references: impl Iterator<Item = String>) -> Vec<Self> {
        references
            .filter_map(|reference| {
                let place = Place::fetched_of(&reference, Kind::Run)?;
                Some(Self { run: RunId::parse(&place.name).ok()?, reference })
            })
            .collect()
    }

    /// Returns the name of the run here: its id, after the remote if it was fetched.
    pub fn name(&self) -> String {
        self.remote().map_or_else(|| self.run.to_string(), |remote| format!("{remote}/{}", self.run))
    }

    /// Returns the remote that the run was fetched from, or `None` for our own.
    pub fn remote(&self) -> Option<String> {
        Place::fetched(&self.reference).map(|(remote, _)| remote.to_owned())
    }

    /// Returns true if the run belongs to this repository.
    pub fn is_own(&self) -> bool {
        self.reference == format::run_ref(&self.run)
    }

    /// Returns the run of this repository that was submitted last, or `None` if no run has a ref of
    /// its own. Of several at the same moment it is the first by name, as in listings.
    pub fn newest(store: &Store) -> Result<Option<Self>, Error> {
        let mut heads = Vec::new();
        for (name, tip) in refs::list(store, format::RUN_REFS)? {
            let run = name.strip_prefix(format::RUN_REFS).and_then(RunId::decode);
            heads.extend(run.and_then(|run| Some((chain::decode(store, tip).ok()?.entry.at, run))));
        }
        heads.sort_by_key(|(at, _)| Reverse(*at));
        let mut newest: Option<(Reverse<Moment>, RunId)> = None;
        for (at, run) in heads {
            // No entry is older than the first one of its run.
            if newest.as_ref().is_some_and(|(best, _)| best.0 > at) {
                break;
            }
            let Some((_, links)) = chain::read(store, &format::run_ref(&run)).ok().flatten() else { continue };
            let Some(first) = links.first() else { continue };
            let found = (Reverse(first.entry.at), run);
            newest = Some(newest.map_or(found.clone(), |best| best.min(found)));
        }
        Ok(newest.map(|(_, run)| Self::own(run)))
    }

    /// Replaces [`NEWEST`] at the start of a name, before `/` or `:`, by the id of that run.
    pub fn expanded(store: &Store, text: &str) -> Result<String, Error> {
        let Some(rest) = text.strip_prefix(NEWEST).filter(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
        else {
            return Ok(text.to_owned());
        };
        let newest = Self::newest(store)?.ok_or_else(|| Error::Unknown { name: NEWEST.to_owned(), near: None })?;
        Ok(format!("{}{rest}", newest.run))
    }

    /// Finds a run by its id, a fetched one by `<remote>/<id>`, or the newest one by `@`.
    pub fn find(store: &Store, text: &str) -> Result<Self, Error> {
        match Self::look_up(store, text)? {
            Some(target) => Ok(target),
            None => Err(unknown(store, text)?),
        }
    }

    /// Finds a run, or returns `None`. A full ref is accepted too, for ids that look like something
    /// else.
    pub fn look_up(store: &Store, text: &str) -> Result<Option<Self>, Error> {
        if text == NEWEST {
            return Self::newest(store);
        }
        if let Some(run) = text.strip_prefix(format::RUN_REFS).and_then(RunId::decode) {
            let target = Self::own(run);
            return Ok(refs::read(store, &target.reference)?.map(|_| target));
        }
        if let Ok(run) = RunId::parse(text) {
            let found = located(store, &Place::of_run(&run), None)?;
            return Ok(found.map(|(reference, _)| Self { run, reference }));
        }
        let Some((remote, id)) = text.rsplit_once('/') else { return Ok(None) };
        let Ok(run) = RunId::parse(id) else { return Ok(None) };
        let found = located(store, &Place::of_run(&run), Some(remote))?;
        Ok(found.map(|(reference, _)| Self { run, reference }))
    }

    /// Returns all copies of a run that are here, ours and fetched ones.
    pub fn copies(store: &Store, run: &RunId) -> Result<Vec<Self>, Error> {
        let (place, own) = (Place::of_run(run), format::run_ref(run));
        let own = Some(own).filter(|own| refs::read(store, own).is_ok_and(|tip| tip.is_some()));
        let fetched = refs::fetched_at(store, &place)?.into_iter();
        let references = own.into_iter().chain(fetched.map(|(name, _)| name));
        Ok(references.map(|reference| Self { run: run.clone(), reference }).collect())
    }

    /// Splits a text into a run and the rest after a slash. The rest is `None` if the whole text
    /// names a run.
    pub fn with_rest<'t>(store: &Store, text: &'t str) -> Result<(Self, Option<&'t str>), Error> {
        if let Some(target) = Self::look_up(store, text)? {
            return Ok((target, None));
        }
        // An id contains no slash, so it ends at the first one, or at the second after a remote.
        for (at, _) in text.match_indices('/') {
            if let Some(target) = Self::look_up(store, &text[..at])? {
                return Ok((target, Some(&text[at + 1..])));
            }
        }
        Err(unknown(store, text.split('/').next().unwrap_or(text))?)
    }

    /// Reads the run.
    pub fn view(&self, store: &Store) -> Result<View, Error> {
        let view = view(store, &self.run, &self.reference)?;
        view.ok_or_else(|| super::Error::Unknown(self.run.clone()).into())
    }
}

/// Returns the position of an item by its id.
pub fn item(view: &View, text: &str) -> Result<ItemIndex, Error> {
    item_of(&view.run, &view.state, text)
}

/// Returns the position of an item by its id.
pub fn item_of(run: &RunId, state: &RunState, text: &str) -> Result<ItemIndex, Error> {
    let found = state.graph.items().indexed().find(|(_, item)| item.id.as_str() == text);
    found.map(|(at, _)| at).ok_or_else(|| {
        let known = state.graph.items().iter().map(|item| item.id.as_str());
        let near = nearest(text, known).map(str::to_owned);
        Error::UnknownItem { run: run.clone(), name: text.to_owned(), near }
    })
}

/// Splits `<item>:<rest>` by the item ids of the run, longest first, because ids can contain
/// colons.
pub fn item_and_rest<'t>(view: &View, text: &'t str) -> Result<(ItemIndex, Option<&'t str>), Error> {
    let mut best: Option<(ItemIndex, usize)> = None;
    for (at, item) in view.state.graph.items().indexed() {
        let id = item.id.as_str();
        let fits = text.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
        if fits && best.is_none_or(|(_, length)| id.len() > length) {
            best = Some((at, id.len()));
        }
    }
    match best {
        Some((at, length)) => Ok((at, text[length..].strip_prefix(':'))),
        None => item(view, text.split(':').next().unwrap_or(text)).map(|at| (at, None)),
    }
}

/// Returns the ref of a run, thread or log, and its target. Without a remote this prefers our own,
/// then a fetched one. It is an error if more than one remote has it.
pub fn located(store: &Store, place: &Place, remote: Option<&str>) -> Result<Option<(String, Oid)>, Error> {
    if let Some(remote) = remote {
        let reference = place.below(&format::fetched_refs(remote));
        return Ok(refs::list_with_archived(store, format::FETCHED_REFS)?
            .into_iter()
            .find(|(name, _)| *name == reference));
    }
    let own = place.below(format::REFS);
    if let Some(tip) = refs::read(store, &own)? {
        return Ok(Some((own, tip)));
    }
    let name = &place.name;
    let mut found = refs::fetched_at(store, place)?;
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let remotes = found.iter().filter_map(|(reference, _)| Place::fetched(reference));
    let places = remotes.map(|(name_of_remote, _)| format!("{name_of_remote}/{name}")).collect();
    Err(Error::Ambiguous { name: name.to_owned(), places, kind: place.kind })
}

fn unknown(store: &Store, text: &str) -> Result<Error, Error> {
    let runs = own_runs(store)?;
    let near = nearest(text, runs.iter().map(RunId::as_str)).map(str::to_owned);
    Ok(Error::Unknown { name: text.to_owned(), near })
}

/// Returns all runs of this repository, including archived ones, in order of name.
pub fn own_runs(store: &Store) -> Result<Vec<RunId>, Error> {
    Ok(runs_of(names(refs::list_with_archived(store, format::RUN_REFS)?)))
}

/// Returns the runs of this repository that have a ref of their own, in order of name.
pub fn unarchived_runs(store: &Store) -> Result<Vec<RunId>, Error> {
    Ok(runs_of(names(refs::list(store, format::RUN_REFS)?)))
}

fn runs_of(references: impl Iterator<Item = String>) -> Vec<RunId> {
    references.filter_map(|name| RunId::decode(name.strip_prefix(format::RUN_REFS)?)).collect()
}

fn names(listed: Vec<(String, Oid)>) -> impl Iterator<Item = String> {
    listed.into_iter().map(|(name, _)| name)
}

errors! {
    /// Failures to find a run or an item.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unknown { name: String, near: Option<String> } "unknown-run": "there is no run {name:?} here";
    UnknownItem { run: RunId, name: String, near: Option<String> } "unknown-item":
        "the run {:?} has no item {name:?}" [run.as_str()];
    Ambiguous { name: String, places: Vec<String>, kind: Kind } "ambiguous":
        "{name:?} was fetched from more than one remote: it may be {}" [either(places)];
    #[from] Run(super::Error), Ref(refs::Error);
}

fn either(places: &[String]) -> String {
    places.iter().map(|place| quoted(place)).collect::<Vec<_>>().join(" or ")
}
