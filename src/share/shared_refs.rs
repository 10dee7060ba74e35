//! Which refs are shared, and their names here and on a remote.

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format::REFS;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};
use crate::verify::{self, Chain};

/// Returns why the chain ending at `tip` must not be stored in a place. Signatures up to `known`
/// are already verified.
///
/// Does not examine other objects.
pub(super) fn refuses(place: &Place, store: &Store, known: Option<Oid>, tip: Oid) -> Result<(), String> {
    let check = |chain: Chain<'_>| verify::check_incoming(store, chain, known, tip);
    let result = match place.kind {
        Kind::Run => RunId::parse(&place.name).ok().map(|run| check(Chain::Run(&run))),
        Kind::Thread => ThreadId::parse(&place.name).ok().map(|thread| check(Chain::Thread(&thread))),
        Kind::Log => LogName::parse(&place.name).map(|log| check(Chain::Log(&log))),
        Kind::Archive => LogName::parse(&place.name).map(|archive| check(Chain::Archive(&archive))),
        Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps => Some(Ok(())),
    };
    result.unwrap_or_else(|| Err("its name is none of a chain's".into()))
}

/// Returns true for a run, a thread or the transcripts of a run with this name.
fn is_called(place: &Place, name: &str) -> bool {
    !place.kind.is_of_key() && place.name == name
}

/// Returns true if a place is shared when these names, or all, are asked for. Logs always are.
pub(super) fn is_asked(place: &Place, names: Option<&[String]>, transcripts: bool) -> bool {
    let is_named = names.is_none_or(|names| names.iter().any(|name| is_called(place, name)));
    match place.kind {
        // An archive also contains runs that were not named.
        Kind::Archive => names.is_none(),
        Kind::Run | Kind::Thread | Kind::Stamps | Kind::ThreadStamps => is_named,
        Kind::Log => true,
        Kind::Transcripts => transcripts && is_named,
    }
}

/// Returns the first name that is not the name of one of these runs and threads.
pub(super) fn unknown<'n>(names: &'n [String], among: &[&Place]) -> Option<&'n String> {
    names.iter().find(|name| !among.iter().any(|place| is_called(place, name) && place.kind.is_chain()))
}

/// Returns true for threads, for their time stamps, and for the logs that name them.
pub(super) fn goes_with_threads(place: &Place) -> bool {
    matches!(place.kind, Kind::Thread | Kind::ThreadStamps | Kind::Log)
}

/// Returns true if git accepts this part of a branch name, as far as dots and dashes go.
fn is_branch_part(part: &str) -> bool {
    !(part.is_empty() || part.starts_with(['.', '-']) || part.ends_with('.'))
}

/// The folder of the remote's refs for shared data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space(String);

impl Space {
    /// Returns `refs/handoff/`, or branches below a prefix for a host that accepts branches only.
    pub fn new(branches: Option<&str>) -> Option<Self> {
        let Some(prefix) = branches else { return Some(Self(REFS.into())) };
        let good = prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.'))
            && prefix.split('/').all(is_branch_part);
        let good = good
            && !prefix.contains("..")
            && !prefix
                .to_ascii_lowercase()
                .split('/')
                .any(|part| part.strip_suffix("lock").is_some_and(|rest| rest.ends_with('.')));
        good.then(|| Self(format!("refs/heads/{prefix}/")))
    }

    /// Returns true for `refs/handoff/`, where runs are driven.
    pub fn is_default(&self) -> bool {
        self.0 == REFS
    }

    /// Returns the folder, with a slash at the end.
    pub fn folder(&self) -> &str {
        &self.0
    }

    /// Returns true if a ref here can hold this kind. A branch points at a commit, so it cannot
    /// hold a tree of time stamps.
    pub(super) fn takes(&self, kind: Kind) -> bool {
        self.is_default() || !kind.is_stamps()
    }

    /// Returns the pattern for `git ls-remote`.
    pub fn pattern(&self) -> String {
        format!("{}*", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_branches_is_the_name_of_a_branch() {
        assert_eq!(Space::new(None).expect("always").folder(), "refs/handoff/");
        assert_eq!(Space::new(Some("team/handoff")).expect("plain").folder(), "refs/heads/team/handoff/");
        for bad in ["", "/", "a/", "/a", "a//b", "../a", ".a", "a.lock", "a b", "a:b", "a*", "-a", "a~1", "a\n"] {
            assert_eq!(Space::new(Some(bad)), None, "{bad:?}");
        }
    }
}
