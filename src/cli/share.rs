//! Code shared by `push`, `fetch` and others.

use std::collections::BTreeMap;

use git_handoff::git::remote::{Remote, Remotes};
use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::query::target::own_runs;
use git_handoff::share::{Space, Unwritten};
use git_handoff::thread::own_threads;

use super::{Failure, Output, table};

/// Returns the remote given on the command line.
pub(crate) fn remote(word: Option<&str>, push: bool, repository: &Repository) -> Result<Remote, Failure> {
    let remotes = Remotes::read(&repository.store)?;
    let chosen = word.map_or_else(|| remotes.default(push), str::to_owned);
    remotes.find(&chosen).map_err(|error| {
        let failure = Failure::from(error);
        let is_thread = || {
            own_threads(&repository.store).is_ok_and(|threads| threads.iter().any(|thread| thread.as_str() == chosen))
        };
        match word {
            // The user named a run or thread in place of the remote.
            Some(name)
                if own_runs(&repository.store).is_ok_and(|runs| runs.iter().any(|run| run.as_str() == chosen))
                    || is_thread() =>
            {
                let hint = if push { hints::push_named } else { hints::fetch_named };
                failure.hint(hint(remotes.default(push), name))
            }
            Some(_) => failure.hint(hints::remotes()),
            None => failure.hint(hints::add_remote()),
        }
    })
}

/// Returns the folder of the remote's refs.
pub(crate) fn space(branches: Option<&str>) -> Result<Space, Failure> {
    Space::new(branches)
        .ok_or_else(|| Failure::usage(format!("{:?} cannot begin the name of a branch", branches.unwrap_or_default())))
}

/// Formats the number of runs and threads.
pub(crate) fn counted(runs: usize, threads: usize) -> String {
    let counts = [(runs, "run"), (threads, "thread")].into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, word)| table::many(count, word)).collect::<Vec<_>>().join(" and ")
}

/// Names runs and threads whose log only another key can write, with the command that does.
pub(super) fn warn_unwritten(
    unwritten: &[Unwritten],
    remote: Option<&str>,
    repository: &Repository,
    output: &mut Output,
) {
    let mut by_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in unwritten {
        by_key.entry(&one.key).or_default().push(one.place.name.clone());
    }
    for (key, names) in by_key {
        output.warn(&format!("no log names {}: only the key {key} can write one", names.join(", ")));
        output.hint(&hints::push_with(repository.find_key(key).as_deref(), remote, &names));
    }
}
