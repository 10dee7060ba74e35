//! Parses questions: a commit, a range of commits, or lines of a file.

use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};

use crate::git::program;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::repository::Repository;

use super::Error;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// One commit.
    Commit(Oid),
    /// Commits, oldest first.
    Range(Vec<Oid>),
    /// Lines of a file in the work tree or in a commit.
    Lines { commit: Option<Oid>, path: BString, lines: Option<RangeInclusive<u64>> },
}

/// Parses a question. A name that is both a commit and a path means the commit; `./` selects the
/// path.
pub(super) fn parse(repository: &Repository, text: &str) -> Result<Question, AnyError> {
    let store = &repository.store;
    if text.contains("..") && !text.starts_with("./") && !text.starts_with("../") {
        match range(store, text) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::NoCommit(_) | Error::NoRange(_))) => {}
            other => return other.map(Question::Range),
        }
    }
    if let Some(commit) = commit(store, text)? {
        return Ok(Question::Commit(commit));
    }
    let below = below(repository);
    let head = commit(store, "HEAD")?;
    let place = Place { store, commit: head, folder: below.as_deref() };
    if let Some(Question::Lines { commit, path, lines }) = place.lines(text)? {
        // Line numbers refer to the file in the work tree, if there is one.
        let commit = commit.filter(|_| {
            store.work_dir().is_none_or(|top| top.join(path.to_os_str_lossy()).symlink_metadata().is_err())
        });
        return Ok(Question::Lines { commit, path, lines });
    }
    if let Some((revision, path)) = text.split_once(':')
        && let Some(commit) = commit(store, revision)?
        && let Some(found) = (Place { store, commit: Some(commit), folder: None }).lines(path)?
    {
        return Ok(found);
    }
    Err(Error::Nothing(text.to_owned()).into())
}

/// Returns the commits of `A..B`, oldest first. A missing side means `HEAD`.
pub(super) fn range(store: &Store, text: &str) -> Result<Vec<Oid>, AnyError> {
    let (from, to) = text.split_once("..").ok_or_else(|| Error::NoRange(text.to_owned()))?;
    if to.starts_with('.') {
        return Err(Error::NoRange(text.to_owned()).into());
    }
    let (from, to) = (resolve_end(from, store)?, resolve_end(to, store)?);
    let listed =
        pure(store).args(["rev-list", "--topo-order", "--reverse", &format!("^{from}"), &to.to_string()]).run()?;
    Ok(String::from_utf8_lossy(&listed).lines().filter_map(|line| line.parse().ok()).collect())
}

fn resolve_end(revision: &str, store: &Store) -> Result<Oid, AnyError> {
    let revision = if revision.is_empty() { "HEAD" } else { revision };
    Ok(commit(store, revision)?.ok_or_else(|| Error::NoCommit(revision.to_owned()))?)
}

/// Resolves a revision to a commit, or returns `None`.
pub(super) fn commit(store: &Store, revision: &str) -> Result<Option<Oid>, AnyError> {
    if revision.is_empty() {
        return Ok(None);
    }
    let call =
        pure(store).args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")]);
    match call.line() {
        // git before 2.30 repeats the end-of-options marker.
        Ok(line) => Ok(line.lines().last().and_then(|line| line.parse().ok())),
        Err(program::Error::Failed { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Returns a git command that ignores replacement refs.
fn pure(store: &Store) -> program::Git {
    store.git().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null")
}

/// Returns the current folder below the top of the work tree, or `None` outside it.
fn below(repository: &Repository) -> Option<PathBuf> {
    let top = repository.store.work_dir()?;
    let here = repository.environment.directory.canonicalize().ok()?;
    here.strip_prefix(top).ok().map(Path::to_owned)
}

/// The commit and folder to look for files in.
struct Place<'a> {
    store: &'a Store,
    commit: Option<Oid>,
    folder: Option<&'a Path>,
}

impl Place<'_> {
    /// Parses `path` or `path:line`. If a file has the whole text as its name, that file is meant.
    fn lines(&self, text: &str) -> Result<Option<Question>, AnyError> {
        if let Some(path) = self.file(text)? {
            return Ok(Some(Question::Lines { commit: self.commit, path, lines: None }));
        }
        let Some((path, line)) = text.rsplit_once(':') else { return Ok(None) };
        let Some(line) = line.parse::<u64>().ok().filter(|line| *line > 0) else { return Ok(None) };
        let path = self.file(path)?;
        Ok(path.map(|path| Question::Lines { commit: self.commit, path, lines: Some(line..=line) }))
    }

    /// Returns the path of a file from the top of the commit.
    fn file(&self, text: &str) -> Result<Option<BString>, AnyError> {
        let (Some(commit), Some(path)) = (self.commit, self.path_at_top(text)) else { return Ok(None) };
        let tree = super::commit::Commit::read(self.store, commit)?.tree;
        let found = if path.is_empty() { None } else { self.store.blob_at(tree, &path)? };
        Ok(found.map(|_| path.into()))
    }

    /// Returns a path from the top of the work tree, or `None` if it leads outside.
    fn path_at_top(&self, text: &str) -> Option<String> {
        let top = self.store.work_dir();
        let text = Path::new(text);
        let joined = match (text.is_absolute(), top) {
            (true, Some(top)) => text.strip_prefix(top).ok()?.to_owned(),
            (true, None) => return None,
            (false, _) => self.folder.unwrap_or(Path::new("")).join(text),
        };
        let mut path: Vec<&str> = Vec::new();
        for component in joined.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(path.pop()?),
                Component::Normal(name) => path.push(name.to_str()?),
                Component::Prefix(_) | Component::RootDir => return None,
            }
        }
        Some(path.join("/"))
    }
}
