//! The refs that travel, by what they hold and whose they are.

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId, encode_segment};
use crate::verify::{self, Chain};

/// What a ref holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The chain of a run.
    Run,
    /// The chain of a thread.
    Thread,
    /// The repository log of a key.
    Log,
    /// The transcripts of a run: a tree, no chain, and no evidence.
    Transcripts,
    /// The time stamps of a run: a tree that only gets more; each proves itself.
    Stamps,
}

/// One ref that travels, without the folder of refs that it lies in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What it holds.
    pub kind: Kind,
    /// The name as people write it.
    pub name: String,
    segment: String,
}

impl Kind {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Thread => "thread",
            Self::Log => "log",
            Self::Transcripts => "transcripts",
            Self::Stamps => "time stamps",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::Thread => "threads",
            Self::Log => "logs",
            Self::Transcripts => "transcripts",
            Self::Stamps => "stamps",
        }
    }

    /// Returns whether it is a chain, which only grows.
    pub fn is_chain(self) -> bool {
        !matches!(self, Self::Transcripts | Self::Stamps)
    }
}

impl Place {
    /// Reads `runs/<run>` and the like; none where the name is not exactly what one of ours encodes to.
    pub fn parse(below: &str) -> Option<Self> {
        let (folder, segment) = below.split_once('/')?;
        let kind = [Kind::Run, Kind::Thread, Kind::Log, Kind::Transcripts, Kind::Stamps]
            .into_iter()
            .find(|k| k.folder() == folder)?;
        let name = match kind {
            Kind::Log => LogName::decode(segment)?.to_string(),
            _ => RunId::decode(segment)?.as_str().to_owned(),
        };
        Some(Self { kind, name, segment: segment.to_owned() })
    }

    /// Returns whether a name lies where ours lie.
    pub(super) fn is_like_one(below: &str) -> bool {
        let folders = [Kind::Run, Kind::Thread, Kind::Log, Kind::Transcripts, Kind::Stamps].map(Kind::folder);
        below.split_once('/').is_some_and(|(folder, _)| folders.contains(&folder))
    }

    /// Returns the place of a run.
    pub fn of_run(run: &RunId) -> Self {
        Self { kind: Kind::Run, name: run.as_str().to_owned(), segment: run.encoded() }
    }

    /// Returns the place of the time stamps of what lies here, if that is a run.
    pub fn stamps(&self) -> Option<Self> {
        (self.kind == Kind::Run).then(|| Self { kind: Kind::Stamps, ..self.clone() })
    }

    /// Returns the place of a thread.
    pub fn of_thread(thread: &ThreadId) -> Self {
        Self { kind: Kind::Thread, name: thread.as_str().to_owned(), segment: thread.encoded() }
    }

    /// Returns the place of a log.
    pub fn of_log(log: &LogName) -> Self {
        let name = log.to_string();
        Self { kind: Kind::Log, segment: encode_segment(&name), name }
    }

    /// Says why the chain that ends at `tip` must not come to stand here; signatures up to `known` were checked before.
    ///
    /// What is no chain is not looked at.
    pub(super) fn refuses(&self, store: &Store, known: Option<Oid>, tip: Oid) -> Result<(), String> {
        let check = |chain: Chain<'_>| verify::received(store, chain, known, tip);
        let named = match self.kind {
            Kind::Run => RunId::parse(&self.name).ok().map(|run| check(Chain::Run(&run))),
            Kind::Thread => ThreadId::parse(&self.name).ok().map(|thread| check(Chain::Thread(&thread))),
            Kind::Log => LogName::parse(&self.name).map(|log| check(Chain::Log(&log))),
            Kind::Transcripts | Kind::Stamps => Some(Ok(())),
        };
        named.unwrap_or_else(|| Err("its name is none of a chain's".into()))
    }

    /// Returns whether it is a run or thread, or the transcripts of a run, with this name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.kind != Kind::Log && self.name == name
    }

    /// Returns whether it is to travel where only some names were asked for, if any were: logs always do.
    pub(super) fn is_asked(&self, names: &[String], transcripts: bool) -> bool {
        let named = names.is_empty() || names.iter().any(|name| self.is_called(name));
        match self.kind {
            Kind::Run | Kind::Thread | Kind::Stamps => named,
            Kind::Log => true,
            Kind::Transcripts => transcripts && named,
        }
    }

    /// Returns the first of the names that no run or thread among these has.
    pub(super) fn unknown<'n>(names: &'n [String], among: &[(Self, Oid)]) -> Option<&'n String> {
        let is_chain = |place: &Self, name: &str| place.is_called(name) && place.kind.is_chain();
        names.iter().find(|name| !among.iter().any(|(place, _)| is_chain(place, name)))
    }

    /// Returns the ref below a folder of refs that ends with a slash.
    pub fn below(&self, folder: &str) -> String {
        format!("{folder}{}/{}", self.kind.folder(), self.segment)
    }
}

/// The folder of refs in which a remote keeps what is handed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space(String);

impl Space {
    /// Returns `refs/handoff/`, or the branches below a prefix, for a host that takes nothing but branches.
    pub fn new(branches: Option<&str>) -> Option<Self> {
        let Some(prefix) = branches else { return Some(Self("refs/handoff/".into())) };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
        let part = |part: &str| !(part.is_empty() || part.starts_with(['.', '-']) || part.ends_with('.'));
        let is_lock = |part: &str| part.strip_suffix("lock").is_some_and(|rest| rest.ends_with('.'));
        let good = prefix.chars().all(plain) && prefix.split('/').all(part);
        let good = good && !prefix.contains("..") && !prefix.to_ascii_lowercase().split('/').any(is_lock);
        good.then(|| Self(format!("refs/heads/{prefix}/")))
    }

    /// Returns the folder, which ends with a slash.
    pub fn folder(&self) -> &str {
        &self.0
    }

    /// Returns the pattern of its refs for `git ls-remote`.
    pub fn pattern(&self) -> String {
        format!("{}*", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_would_write_ourselves_is_a_place() {
        let fingerprint = "logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg";
        for good in ["runs/a", "runs/nightly%402026", "threads/x", "transcripts/a", fingerprint] {
            let place = Place::parse(good).expect(good);
            assert_eq!(place.below("refs/handoff/"), format!("refs/handoff/{good}"));
        }
        for bad in [
            "runs",
            "runs/",
            "runs/a/b",
            "runs/%61",
            "runs/%2e%2e",
            "runs/%40x",
            "runs/a.lock",
            "logs/x",
            "logs/SHA256%3Ax",
            "bases/a",
            "salvage/a",
            "remotes/origin/runs/a",
            "heads/main",
            "runs/%0A",
            "runs/a%20",
            "",
        ] {
            assert_eq!(Place::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_prefix_of_branches_is_the_name_of_a_branch() {
        assert_eq!(Space::new(None).expect("always").folder(), "refs/handoff/");
        assert_eq!(Space::new(Some("team/handoff")).expect("plain").folder(), "refs/heads/team/handoff/");
        for bad in ["", "/", "a/", "/a", "a//b", "../a", ".a", "a.lock", "a b", "a:b", "a*", "-a", "a~1", "a\n"] {
            assert_eq!(Space::new(Some(bad)), None, "{bad:?}");
        }
    }
}
