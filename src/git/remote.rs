//! Lists remotes, their refs, and fetches from them. The only caller of `git ls-remote` and
//! `fetch`, and, with `pushing`, of `push`.
//!
//! The user's settings for a remote apply, as in `git fetch` and `git push`. A remote's data
//! decides nothing: objects are requested by id, and no local ref moves here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::cancellation::Cancellation;
use super::incoming::Incoming;
use super::isolated_config::IsolatedConfig;
use super::porcelain;
use super::program::{self, Git};
use super::store::{KeepGuard, Store};
use super::web;
use crate::model::digest::{Digest, Oid};
use crate::model::name::encode_segment;
use crate::model::place::Place;
use crate::model::printable;

pub use super::pushing::{Spec, delete, push};

/// The permitted transports. None runs a command from a URL.
pub const PROTOCOLS: [&str; 5] = ["file", "git", "http", "https", "ssh"];

/// The most bytes of a remote's list of refs.
const MOST_LISTED: usize = 64 << 20;

/// The reason for refusing a fetch that ran out of memory.
const TOO_MUCH: &str = "its objects need more memory than permitted";

/// How remotes may be reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The transports, as `GIT_ALLOW_PROTOCOL` lists them.
    pub protocols: String,
    /// True if a user can be asked for a password.
    pub prompt: bool,
    /// The most bytes of one fetch.
    pub largest: u64,
    /// The time limit for one call of git, or `None`.
    pub within: Option<Duration>,
    /// The time limit of a call without any progress, or `None`.
    pub idle: Option<Duration>,
    /// Cancels a call before its time limit.
    pub unless: Option<Cancellation>,
    /// Isolated settings for reaching remotes, or `None` for the repository's configuration.
    pub isolated_config: Option<Arc<IsolatedConfig>>,
}

/// One remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The argument for git: the name of a configured remote, a URL, or an absolute path.
    pub given: String,
    /// The folder of its refs below `refs/handoff/remotes/`.
    pub name: String,
    /// True if `given` is the name of a configured remote.
    pub configured: bool,
}

impl Remote {
    /// Returns the name in commands of something fetched from it: `<remote>/<name>`.
    pub fn name_of(&self, place: &Place) -> String {
        format!("{}/{}", self.name, place.name)
    }
}

/// The configured remotes.
#[derive(Debug, Default)]
pub struct Remotes {
    settings: BTreeMap<String, String>,
    branch: Option<String>,
}

impl Remotes {
    /// Reads the configuration.
    pub fn read(store: &Store) -> Result<Self, Error> {
        Self::read_by(store, &|| store.git())
    }

    /// Reads only the remotes in these isolated settings.
    pub fn read_isolated(store: &Store, config: &IsolatedConfig) -> Result<Self, Error> {
        Self::read_by(store, &|| config.git(store))
    }

    fn read_by(store: &Store, git: &dyn Fn() -> Git) -> Result<Self, Error> {
        let keys = r"^(remote\..*\.(url|pushurl|promisor)|remote\.pushdefault|branch\..*\.(remote|pushremote))$";
        let listed = match git().args(["config", "-z", "--get-regexp", keys]).run() {
            Err(program::Error::Failed { code: Some(1), .. }) => Vec::new(),
            other => other?,
        };
        let text = String::from_utf8_lossy(&listed).into_owned();
        let settings = text
            .split('\0')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (key, value) = line.split_once('\n').unwrap_or((line, "true"));
                (key.to_owned(), value.to_owned())
            })
            .collect();
        let branch = match store.git().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).line() {
            Err(program::Error::Failed { code: Some(1), .. }) => None,
            other => Some(other?),
        };
        Ok(Self { settings, branch })
    }

    /// Returns the names of the configured remotes.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.settings.keys().filter_map(|key| name_range(key).map(|(start, end)| &key[start..end])).collect();
        names.dedup();
        names
    }

    /// Returns the remote that git uses by default: the branch's, the only one, or `origin`.
    pub fn default(&self, push: bool) -> String {
        let set = |key: &str| self.settings.get(key).cloned();
        let of_branch = |what: &str| set(&format!("branch.{}.{what}", self.branch.as_deref()?));
        of_branch("pushremote")
            .or_else(|| set("remote.pushdefault"))
            .filter(|_| push)
            .or_else(|| of_branch("remote"))
            .or_else(|| match self.names()[..] {
                [only] => Some(only.to_owned()),
                _ => None,
            })
            .unwrap_or_else(|| "origin".into())
    }

    /// Returns the remote for a word: a configured name, a URL, or the path of a repository.
    pub fn find(&self, word: &str) -> Result<Remote, Error> {
        if self.names().contains(&word) {
            return Ok(Remote { given: word.to_owned(), name: word.to_owned(), configured: true });
        }
        let given = match absolute(word) {
            Some(path) => path,
            None if looks_like_url(word) => word.to_owned(),
            None => return Err(Error::Unknown(word.to_owned())),
        };
        let last = given.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let digest = Digest::compute(given.as_bytes());
        let name = format!("{}-{}", encode_segment(last.trim_end_matches(".git")), &digest.hex()[..8]);
        Ok(Remote { given, name: name.trim_start_matches('-').to_owned(), configured: false })
    }
}

fn name_range(key: &str) -> Option<(usize, usize)> {
    let end = key.strip_suffix(".url").or_else(|| key.strip_suffix(".pushurl"))?.len();
    key.starts_with("remote.").then_some(("remote.".len(), end))
}

/// Returns the absolute path of a word if that exists: git runs in another directory.
pub(super) fn absolute(word: &str) -> Option<String> {
    let path = Path::new(word).canonicalize().ok()?;
    (!word.starts_with('-') && !word.contains("://")).then(|| path.to_string_lossy().into_owned())
}

fn looks_like_url(word: &str) -> bool {
    !word.starts_with('-')
        && !word.chars().any(char::is_control)
        && (word.contains("://")
            || word.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/')))
}

/// Returns the refs of a remote that match a pattern, with their values.
pub fn list(store: &Store, reach: &Reach, from: &str, pattern: &str) -> Result<Vec<(Oid, String)>, Error> {
    list_any(store, reach, from, &[pattern])
}

/// Returns the refs of a remote that match any pattern, with their values.
pub fn list_any(store: &Store, reach: &Reach, from: &str, patterns: &[&str]) -> Result<Vec<(Oid, String)>, Error> {
    let mut out = Vec::new();
    let trace = web::Trace::new().map_err(failed(from, reach))?;
    let call =
        trace.trace_call(transport(store, reach)).args(["ls-remote", "--quiet", "--refs", "--", from]).args(patterns);
    let listed = call.stream(&mut |chunk| {
        out.extend_from_slice(chunk);
        if out.len() > MOST_LISTED { Err(io::Error::other("it shows too many refs")) } else { Ok(()) }
    });
    let refs = porcelain::listed(&String::from_utf8_lossy(&out));
    let is_doubtful = listed.as_ref().map_or_else(web::is_page, |()| refs.is_empty());
    if is_doubtful && let Some(page) = trace.page(&|| transport(store, reach), from).map_err(failed(from, reach))? {
        return Err(Error::NotGit(without_password(from), page));
    }
    listed.map_err(failed(from, reach))?;
    Ok(refs)
}

fn failed(from: &str, reach: &Reach) -> impl Fn(program::Error) -> Error {
    move |error| Error::from_failure(from, error, reach)
}

/// Returns the URL that a remote is fetched from.
pub fn fetch_url(store: &Store, remote: &Remote) -> Result<String, Error> {
    if !remote.configured {
        return Ok(remote.given.clone());
    }
    Ok(store.git().args(["remote", "get-url", "--", &remote.given]).line()?)
}

/// Returns the push URL of a remote, which may differ from its fetch URL.
pub fn push_url(store: &Store, remote: &Remote) -> Result<String, Error> {
    if !remote.configured {
        return Ok(remote.given.clone());
    }
    let (fetches, pushes) = (ask_url(&[], store, remote), ask_url(&["--push"], store, remote)?);
    Ok(if fetches.is_ok_and(|fetches| fetches == pushes) { remote.given.clone() } else { pushes })
}

fn ask_url(push: &[&str], store: &Store, remote: &Remote) -> Result<String, program::Error> {
    store.git().args(["remote", "get-url"]).args(push).args(["--", &remote.given]).line()
}

/// Returns the push URL of a remote by these isolated settings.
pub fn push_destination(store: &Store, config: &IsolatedConfig, remote: &Remote) -> Result<String, Error> {
    if !remote.configured {
        return Ok(remote.given.clone());
    }
    let url = config.git(store).args(["remote", "get-url", "--push", "--", &remote.given]).line()?;
    let path = if url.contains("://") { None } else { root(store).join(&url).canonicalize().ok() };
    Ok(path.map_or(url, |path| path.to_string_lossy().into_owned()))
}

/// The objects to fetch in addition to the wanted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Everything missing here; in a partial clone, everything that its filter permits.
    History,
    /// Only the wanted objects.
    Only,
    /// All commits and trees, even those that seem to be present: for a clone whose filter omits
    /// trees.
    Trees,
}

/// Fetches objects by id, checked by git, all or none, and keeps them until a ref reaches them.
/// Moves no ref.
pub fn fetch(store: &Store, reach: &Reach, from: &str, oids: &[Oid], depth: Depth) -> Result<KeepGuard, Error> {
    let quarantine = Incoming::new(store).map_err(Error::Quarantine)?;
    let mut call = quarantine.around(receiving(store, reach));
    if depth == Depth::Only {
        // Objects here must not be offered to the remote, or it would omit those that they reach.
        call = call.config("fetch.negotiationAlgorithm=noop");
    }
    let mut lines = String::new();
    oids.iter().for_each(|oid| writeln!(lines, "{oid}").expect("writing to a string does not fail"));
    if depth == Depth::Trees {
        // A filter on the command line would be recorded for the remote and make this a partial
        // clone.
        call = call.config(format!("remote.{from}.partialCloneFilter=blob:none"));
    }
    let refetch = if depth == Depth::Trees { ["--refetch"].as_slice() } else { &[] };
    let call = call.arg("fetch").args(FETCH).args(refetch).args(["--stdin", "--", from]).input(lines);
    call.run().map_err(|error| Error::from_failure(from, error, reach))?;
    quarantine.release().map_err(Error::Quarantine)
}

/// Fetches all objects of one ref into a separate object directory, checked and limited like
/// [`fetch`]. Moves no ref.
pub(super) fn fetch_apart(
    store: &Store,
    reach: &Reach,
    objects: &Path,
    from: &str,
    reference: &str,
) -> Result<(), Error> {
    let call = receiving(store, reach).env("GIT_OBJECT_DIRECTORY", objects);
    let call = call.arg("fetch").args(FETCH).args(["--no-filter", "--refmap=", "--", from, reference]);
    call.run().map(drop).map_err(|error| Error::from_failure(from, error, reach))
}

/// Options that prevent every effect except new objects.
pub(super) const FETCH: [&str; 8] = [
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--no-prune",
    "--no-auto-maintenance",
    "--no-write-commit-graph",
    "--no-show-forced-updates",
];

/// Returns a git command that checks every received object and limits their total size.
pub(super) fn receiving(store: &Store, reach: &Reach) -> Git {
    transport(store, reach)
        .frugal()
        .largest_file(reach.largest)
        .config("transfer.fsckObjects=true")
        .config("fetch.fsckObjects=true")
        // One pack for all objects, so that the limit applies to the total.
        .config("fetch.unpackLimit=1")
}

/// The directory to which relative URLs in the configuration refer.
fn root(store: &Store) -> PathBuf {
    store.work_dir().unwrap_or_else(|| store.common_dir())
}

pub(super) fn transport(store: &Store, reach: &Reach) -> Git {
    let call = reach.isolated_config.as_ref().map_or_else(|| store.git(), |config| config.git(store));
    let call = match &reach.unless {
        Some(stop) => call.unless(stop.clone()),
        None => call,
    };
    call.in_dir(&root(store))
        .within(reach.within)
        .idle(reach.idle)
        .env("GIT_ALLOW_PROTOCOL", &reach.protocols)
        .env("GIT_TERMINAL_PROMPT", if reach.prompt { "1" } else { "0" })
}

errors! {
    /// Why a remote could not be used.
    #[derive(Debug, thiserror::Error)] pub enum Error = "remote";
    Unknown(String) "unknown-remote":
        "{0:?} is neither a remote of this repository nor a URL nor the path of a repository";
    TooLarge(String, u64) "too-large": "{0} sends more than {1} bytes";
    Unsound(String, String): "{0} sends invalid objects: {1}";
    NotGit(String, String) "not-git": "{0} does not answer like a git repository, but with {1}";
    Failed(String, #[source] program::Error): "{0} could not be read or written";
    Forbidden(String, #[source] program::Error) "forbidden": "{0} forbids the push (HTTP 403)";
    Quarantine(#[source] io::Error): "cannot store the fetched objects";
    Outgoing(#[source] io::Error): "cannot prepare the refs to push";
    Git(#[from] program::Error): "cannot read the remotes";
}

impl Error {
    /// Returns true if the remote answered, and its objects were refused here.
    pub fn refuses_objects(&self) -> bool {
        matches!(self, Self::Unsound(..) | Self::TooLarge(..))
    }

    pub(super) fn from_failure(remote: &str, error: program::Error, reach: &Reach) -> Self {
        let remote = without_password(remote);
        match error {
            program::Error::Failed { stderr, .. } if stderr.contains("File too large") => {
                Self::TooLarge(remote, reach.largest)
            }
            error if error.wants_memory() => Self::Unsound(remote, TOO_MUCH.into()),
            program::Error::Failed { call, code, stderr } => {
                // The rest of the command line may be thousands of refs.
                let call = call.split(' ').take(2).collect::<Vec<_>>().join(" ");
                let stderr = printable::lines(&stderr);
                if porcelain::is_unsound(&stderr) {
                    let why = stderr.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or(&stderr);
                    return Self::Unsound(remote, why.trim().to_owned());
                }
                Self::Failed(remote, program::Error::Failed { call, code, stderr })
            }
            other => Self::Failed(remote, other),
        }
    }

    /// Like [`Error::from_failure`], for a push, which may be forbidden where reading is allowed.
    pub(super) fn of_push(remote: &str, error: program::Error, reach: &Reach) -> Self {
        match Self::from_failure(remote, error, reach) {
            Self::Failed(remote, why) if porcelain::http_status(&why.to_string()) == Some(403) => {
                Self::Forbidden(remote, why)
            }
            other => other,
        }
    }
}

/// Returns a URL without its password.
pub fn without_password(url: &str) -> String {
    hide_password(url).unwrap_or_else(|| url.to_owned())
}

fn hide_password(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    let (user, _) = host.rsplit_once('@')?;
    let (name, _) = user.split_once(':')?;
    Some(format!("{scheme}://{name}:…{}", &rest[user.len()..]))
}

#[cfg(test)]
mod tests;
