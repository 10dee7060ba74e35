//! Checks of the repository, the machine and the configuration.

use std::collections::HashSet;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::clock::Clock;
use crate::git::history;
use crate::git::no_locks::NoLocks;
use crate::git::program;
use crate::git::refs;
use crate::git::store::Store;
use crate::git::writable::find_unwritable;
use crate::ledger::sign;
use crate::model::any_error::AnyError;
use crate::model::format::{FETCHED_REFS, TRANSCRIPT_REFS};
use crate::model::hints;
use crate::repository::Repository;

use super::{Finding, Patient, owners, remotes};

/// The first version of git that merges trees without a work tree.
const OLDEST_GIT: (u32, u32) = (2, 38);
/// Free space below which to warn, in bytes.
const LITTLE_SPACE: u64 = 256 << 20;
/// The size of transcripts above which to mention them, in bytes.
const MANY_TRANSCRIPTS: u64 = 256 << 20;
/// The minimum age before a prune may delete objects, in seconds: new objects are unreferenced for
/// a moment.
const PRUNE_AFTER: i64 = 3600;

pub(super) fn examine(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let store = patient.store;
    let mut findings = Vec::new();
    findings.extend(git_version(store)?);
    findings.extend(key_mode(patient.repository, fix));
    findings.extend(locks(store));
    findings.extend(unwritable(store));
    findings.extend(owners::examine(store));
    findings.extend(prune(store)?);
    findings.extend(space(&[&store.common_dir(), &patient.host.settings.root]));
    findings.extend(replacements(store)?);
    findings.extend(compatible_format(store)?);
    findings.extend(missing(store)?);
    findings.extend(worktrees_in_tree(patient)?);
    findings.extend(shallow(store)?);
    findings.extend(unchecked_fetches(store)?);
    findings.extend(transcripts(store)?);
    findings.extend(remotes::examine(store)?);
    Ok(findings)
}

/// Names a folder of the repository that cannot be written.
fn unwritable(store: &Store) -> Option<Finding> {
    let (folder, error) = find_unwritable(store)?;
    let finding = Finding::problem("not-writable", format!("{} cannot be written: {error}", folder.display()));
    let is_mode = error.kind() == ErrorKind::PermissionDenied;
    Some(if is_mode { finding.hint(hints::make_folder_writable(folder.display())) } else { finding })
}

fn git_version(store: &Store) -> Result<Option<Finding>, AnyError> {
    let version = store.git().arg("version").line()?;
    let numbers = version.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = numbers.split('.').map_while(|part| part.parse::<u32>().ok());
    let installed = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let (major, minor) = OLDEST_GIT;
    Ok((installed < OLDEST_GIT).then(|| {
        Finding::problem("git-too-old", format!("`{version}` is older than {major}.{minor}, which running items needs"))
    }))
}

fn key_mode(repository: &Repository, fix: bool) -> Option<Finding> {
    let file = match &repository.config.signing_key {
        Some(key) if sign::literal(key).is_some() || is_public(key) => return None,
        Some(key) => repository.below_top(Path::new(key)),
        None => repository.store.common_dir().join("handoff/signing_key"),
    };
    let mode = fs::metadata(&file).ok()?.permissions().mode() & 0o777;
    if mode.trailing_zeros() >= 6 {
        return None;
    }
    let message = format!("the signing key {} can be read by others (mode {mode:04o})", file.display());
    let fixed = fix && fs::set_permissions(&file, Permissions::from_mode(0o600)).is_ok();
    Some(Finding::problem("key-readable", message).hint(hints::restrict(file.display())).fixed(fixed))
}

/// Finds a file system without locks, on which runs can only be read.
fn locks(store: &Store) -> Option<Finding> {
    let file = store.common_dir().join("config");
    let Err(TryLockError::Error(error)) = File::open(&file).ok()?.try_lock_shared() else { return None };
    let error = NoLocks::explain(&file, error);
    let no_locks = NoLocks::within(&error)?;
    let message = format!("{no_locks}: runs and threads can be read here, but not written");
    Some(Finding::problem("no-locks", message).hint(hints::no_locks()))
}

/// Returns true if the file is a public key, which anyone may read.
fn is_public(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|extension| extension == "pub")
}

fn prune(store: &Store) -> Result<Option<Finding>, AnyError> {
    let call = store.git().args(["config", "--type=expiry-date", "--get", "gc.pruneExpire"]);
    let expires = match call.line() {
        Ok(expires) => expires,
        Err(program::Error::Failed { .. }) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    let oldest = Clock::System.now().seconds() - PRUNE_AFTER;
    // git stores `now` as the maximum time.
    let soon = expires.parse::<u64>().is_ok_and(|at| i64::try_from(at).unwrap_or(i64::MAX) > oldest);
    Ok(soon.then(|| {
        let message = "`gc.pruneExpire` lets `git gc` delete objects at once, also those that a commit is about to use";
        Finding::problem("prune-now", message).hint(hints::prune_expire())
    }))
}

fn space(places: &[&Path]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The cache and the repository are usually on the same disk.
    let mut filesystems = HashSet::new();
    for place in places {
        let Some(place) = place.ancestors().find(|path| path.exists()) else { continue };
        let Ok(found) = rustix::fs::statvfs(place) else { continue };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if filesystems.insert(found.f_fsid) && free < LITTLE_SPACE {
            let message = format!("only {} MiB are free for {}", free >> 20, place.display());
            let finding = Finding::problem("disk-full", message);
            findings.push(finding.hint(hints::clean_all()));
        }
    }
    findings
}

/// Finds `git replace` refs, which make git show other objects than the signed ones.
fn replacements(store: &Store) -> Result<Vec<Finding>, AnyError> {
    let prefix = "refs/replace/";
    let replaced = refs::list(store, prefix)?;
    if replaced.is_empty() {
        return Ok(Vec::new());
    }
    let call = store.git().env("GIT_NO_REPLACE_OBJECTS", "1").args(["rev-list", "--objects", "--no-object-names"]);
    // Not worth fetching promised objects of a partial clone.
    let call = call.args(["--missing=allow-any", "--exclude=refs/handoff/bases/*", "--glob=refs/handoff/*"]);
    let listed = call.run()?;
    let ours: HashSet<&[u8]> = listed.split(|byte| *byte == b'\n').collect();
    let names = replaced.iter().filter_map(|(name, _)| name.strip_prefix(prefix));
    let (evidence, others): (Vec<&str>, Vec<&str>) = names.partition(|id| ours.contains(id.as_bytes()));
    let findings = evidence.into_iter().map(|id| {
        let message = format!(
            "a replace ref stands in for {id}, which is evidence: stock git shows something else than is signed"
        );
        Finding::problem("replaced", message).hint(hints::remove_replacement(id))
    });
    let note = others.first().map(|first| {
        let count = others.len();
        let message = format!(
            "{count} object(s) are replaced by refs in refs/replace/, such as {first}: git shows the replacements, and items \
             start from the objects themselves"
        );
        Finding::note("replace-refs", message).hint(hints::list_replacements())
    });
    Ok(findings.chain(note).collect())
}

/// Finds `extensions.compatObjectFormat`: a second hash for object names.
fn compatible_format(store: &Store) -> Result<Option<Finding>, AnyError> {
    let call = store.git().args(["config", "--get", "extensions.compatObjectFormat"]);
    let other = match call.line() {
        Ok(other) => other,
        Err(program::Error::Failed { code: Some(1), .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let own = store.object_format();
    let message = format!(
        "`extensions.compatObjectFormat` is {other}: runs and threads have {own} names only, and git knows no {other} names \
         for what git-handoff wrote"
    );
    Ok(Some(Finding::note("compat-object-format", message).hint(hints::unset_compatible_format())))
}

/// Finds objects that are missing below our refs. In a partial clone they are elsewhere.
fn missing(store: &Store) -> Result<Option<Finding>, AnyError> {
    if history::is_partial(store) {
        return Ok(None);
    }
    let call = store.git().env("GIT_NO_REPLACE_OBJECTS", "1").args(["rev-list", "--objects", "--no-object-names"]);
    let call = call.args(["--missing=print", "--exclude=refs/handoff/bases/*", "--glob=refs/handoff/*"]);
    let listed = match call.run() {
        Ok(listed) => String::from_utf8_lossy(&listed).into_owned(),
        // git stops at a missing commit; the check of that run or log reports it.
        Err(program::Error::Failed { .. }) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    let mut gone = listed.lines().filter_map(|line| line.strip_prefix('?'));
    let Some(first) = gone.next() else { return Ok(None) };
    let count = gone.count() + 1;
    let message = format!("{count} object(s) that runs, threads or logs refer to are gone, such as {first}");
    Ok(Some(Finding::problem("objects-missing", message).hint(hints::verify_all())))
}

fn worktrees_in_tree(patient: &Patient<'_>) -> Result<Option<Finding>, AnyError> {
    let (root, Some(work_dir)) = (&patient.host.settings.root, patient.store.work_dir()) else { return Ok(None) };
    if !root.starts_with(&work_dir) || root.starts_with(patient.store.common_dir()) {
        return Ok(None);
    }
    let call = patient.store.git().work_tree(&work_dir).args(["check-ignore", "--quiet", "--"]).arg(root);
    if call.succeeds()? {
        return Ok(None);
    }
    let message = format!("worktrees are made in {}, inside the work tree and not ignored", root.display());
    Ok(Some(Finding::problem("worktrees-in-tree", message).hint(hints::unset_workspace_root())))
}

fn shallow(store: &Store) -> Result<Option<Finding>, AnyError> {
    let shallow = store.git().args(["rev-parse", "--is-shallow-repository"]).line()? == "true";
    Ok(shallow.then(|| {
        let message =
            "this is a shallow clone: runs can be driven here, but the history behind their bases is elsewhere";
        Finding::note("shallow", message).hint(hints::unshallow())
    }))
}

fn unchecked_fetches(store: &Store) -> Result<Option<Finding>, AnyError> {
    if refs::list(store, FETCHED_REFS)?.is_empty() {
        return Ok(None);
    }
    for key in ["fetch.fsckObjects", "transfer.fsckObjects"] {
        let set = store.git().args(["config", "--type=bool", "--get", key]).line();
        if set.is_ok_and(|value| value == "true") {
            return Ok(None);
        }
    }
    let message = "git does not check the objects that it fetches; `verify` does, for runs alone";
    Ok(Some(Finding::note("fsck-objects", message).hint(hints::fsck_objects())))
}

fn transcripts(store: &Store) -> Result<Option<Finding>, AnyError> {
    let mut total = 0;
    for (_, tree) in refs::list(store, TRANSCRIPT_REFS)? {
        total += store.tree_size(tree)?;
    }
    Ok((total > MANY_TRANSCRIPTS).then(|| {
        let message = format!("transcripts take {} MiB; runs verify without them", total >> 20);
        Finding::note("transcripts", message).hint(hints::clean_transcripts())
    }))
}
