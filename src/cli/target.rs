//! What people mean by `<run>` and `<run>/<item>`.

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::place::{Kind, Place};
use git_handoff::model::problem::nearest;
use git_handoff::model::quote::quoted;
use git_handoff::model::state::RunState;
use git_handoff::run::{self, View};

use super::failure::Failure;

/// A run and the ref that holds it: ours, or a fetched one.
pub(crate) struct Target {
    /// The run.
    pub(crate) run: RunId,
    /// The ref.
    pub(crate) reference: String,
}

impl Target {
    /// Returns whether the run is ours, and not one that was fetched.
    pub(crate) fn is_own(&self) -> bool {
        self.reference == format::run_ref(&self.run)
    }

    /// Finds a run by its id, or by `<remote>/<id>` among those fetched.
    pub(crate) fn find(store: &Store, text: &str) -> Result<Self, Failure> {
        match Self::look_up(store, text)? {
            Some(target) => Ok(target),
            None => Err(unknown(store, text)?),
        }
    }

    /// Finds a run that may not be there.
    pub(crate) fn look_up(store: &Store, text: &str) -> Result<Option<Self>, Failure> {
        if let Ok(run) = RunId::parse(text) {
            let own = format::run_ref(&run);
            if refs::read(store, &own)?.is_some() {
                return Ok(Some(Self { run, reference: own }));
            }
            let found = fetched(store, &Place::of_run(&run), text)?;
            return Ok(found.map(|(reference, _)| Self { run, reference }));
        }
        let Some((remote, id)) = text.rsplit_once('/') else { return Ok(None) };
        let Ok(run) = RunId::parse(id) else { return Ok(None) };
        let reference = Place::of_run(&run).below(&format::fetched_refs(remote));
        let exists = refs::list(store, format::FETCHED_REFS)?.into_iter().any(|(name, _)| name == reference);
        Ok(exists.then_some(Self { run, reference }))
    }

    /// Finds a run and what is said of it behind a slash; nothing is behind it where the whole text names a run.
    pub(crate) fn with_rest<'t>(store: &Store, text: &'t str) -> Result<(Self, Option<&'t str>), Failure> {
        if let Some(target) = Self::look_up(store, text)? {
            return Ok((target, None));
        }
        // A run's id holds no slash, so the first one ends it, or the second, after a remote.
        for (at, _) in text.match_indices('/') {
            if let Some(target) = Self::look_up(store, &text[..at])? {
                return Ok((target, Some(&text[at + 1..])));
            }
        }
        Err(unknown(store, text.split('/').next().unwrap_or(text))?)
    }

    /// Reads the run.
    pub(crate) fn view(&self, store: &Store) -> Result<View, Failure> {
        let view = run::view(store, &self.run, &self.reference)?;
        view.ok_or_else(|| run::Error::Unknown(self.run.clone()).into())
    }
}

/// Returns the position of the item that a text names.
pub(crate) fn item(view: &View, text: &str) -> Result<usize, Failure> {
    item_of(&view.run, &view.state, text)
}

/// Returns the position of the item of a run that a text names.
pub(crate) fn item_of(run: &RunId, state: &RunState, text: &str) -> Result<usize, Failure> {
    let found = state.graph.items().iter().position(|item| item.id.as_str() == text);
    found.ok_or_else(|| {
        let known = state.graph.items().iter().map(|item| item.id.as_str());
        let failure = Failure::refused("unknown-item", format!("the run {:?} has no item {text:?}", run.as_str()));
        match nearest(text, known) {
            Some(near) => failure.hint(format!("did you mean {near:?}?")),
            None => failure.hint(format!("git handoff status {}", quoted(run.as_str()))),
        }
    })
}

/// Splits `<item>:<rest>` by the run's real item ids, longest first, since ids may hold colons.
pub(crate) fn item_and_rest<'t>(view: &View, text: &'t str) -> Result<(usize, Option<&'t str>), Failure> {
    let mut best: Option<(usize, usize)> = None;
    for (at, item) in view.state.graph.items().iter().enumerate() {
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

/// Returns the ref at which what lies in a place elsewhere was fetched, with what it points at; more than one remote's is no answer.
pub(crate) fn fetched(store: &Store, place: &Place, name: &str) -> Result<Option<(String, Oid)>, Failure> {
    let mut found = refs::list(store, format::FETCHED_REFS)?;
    found.retain(|(reference, _)| place.is_fetched_at(reference));
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let remotes = found.iter().filter_map(|(reference, _)| Place::fetched(reference));
    let named: Vec<String> = remotes.map(|(remote, _)| quoted(&format!("{remote}/{name}"))).collect();
    let all = named.join(" or ");
    let verb = if place.kind == Kind::Thread { "thread verify" } else { "verify" };
    Err(Failure::refused("ambiguous", format!("{name:?} was fetched from more than one remote: it may be {all}"))
        .hint(format!("git handoff {verb} {}", named[0])))
}

fn unknown(store: &Store, text: &str) -> Result<Failure, Failure> {
    let runs = own_runs(store)?;
    let failure = Failure::refused("unknown-run", format!("there is no run {text:?} here"));
    Ok(match nearest(text, runs.iter().map(RunId::as_str)) {
        Some(near) => failure.hint(format!("did you mean {near:?}?")),
        None => failure.hint("git handoff runs"),
    })
}

/// Returns all runs of this repository, in order of name.
pub(crate) fn own_runs(store: &Store) -> Result<Vec<RunId>, Failure> {
    let names = refs::list(store, format::RUN_REFS)?;
    Ok(names.iter().filter_map(|(name, _)| RunId::decode(name.strip_prefix(format::RUN_REFS)?)).collect())
}
