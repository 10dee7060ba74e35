//! Files that a killed process left in the repository: stale locks, unfinished packs and objects,
//! keep marks, refs of an interrupted push.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::{folder, keep_pack, midx, outgoing, private_files};
use crate::model::any_error::AnyError;
use crate::model::format::REFS;
use crate::model::hints;
use crate::model::packet::Age;

use super::{Finding, Patient};

/// The age at which a file that no process holds open counts as left behind. git closes lock files
/// that it still holds.
const OLD: Duration = Duration::from_secs(3600);

/// A younger lock belongs to a running command.
const YOUNG: Duration = Duration::from_secs(2);

/// The effect of a leftover file.
#[derive(Clone, Copy)]
enum Kind {
    /// A lock that is only ever held briefly.
    Lock,
    /// A lock that git may hold, without an open file, as long as an editor is open.
    OfGit,
    Temporary,
}

/// Finds leftover files. With `fix`, removes old ones that no process holds open.
pub(super) fn examine(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let common = patient.store.common_dir();
    let objects = patient.store.objects_dir();
    let mut left = locks(&common).into_iter().map(|path| (Kind::Lock, path)).collect::<Vec<_>>();
    left.extend(locks_of_git(&common).into_iter().map(|path| (Kind::OfGit, path)));
    let temporary = [temporaries(&objects), outgoing::folders(patient.store), private_files::unfinished(patient.store)];
    left.extend(temporary.into_iter().flatten().map(|path| (Kind::Temporary, path)));
    let old = left.into_iter().filter_map(|(kind, path)| Some((kind, age(&path)?, path)));
    let stale: Vec<_> = old.filter(|(_, age, _)| *age >= YOUNG).collect();
    let mut findings = Vec::new();
    if !stale.is_empty() {
        let open = open_files();
        for (kind, age, path) in stale {
            findings.extend(judge(kind, age, &path, open.as_ref(), fix));
        }
    }
    findings.extend(keeps(patient, fix)?);
    findings.extend(stale_index(patient, fix));
    Ok(findings)
}

fn judge(kind: Kind, age: Duration, path: &Path, open: Option<&HashSet<Id>>, fix: bool) -> Option<Finding> {
    let in_use = open.map(|open| identities(path).iter().any(|id| open.contains(id)));
    if in_use == Some(true) {
        return None;
    }
    let display = path.display();
    let old = Age::seconds(age.as_secs());
    let (code, message) = match kind {
        Kind::OfGit => {
            let message =
                format!("{display}, {old} old, locks what it is named after: a git command that was killed left it");
            let is_left = age >= OLD && in_use == Some(false);
            let finding = if is_left { Finding::problem } else { Finding::note };
            return Some(finding("lock-left", message).hint(hints::remove_lock(display)));
        }
        Kind::Lock => (
            "lock-left",
            format!("{display}, {old} old, was left by a process that died, and locks what it is named after"),
        ),
        Kind::Temporary => ("temporary-left", format!("{display} was left by a process that died")),
    };
    if age >= OLD && in_use == Some(false) {
        let removed = fix && (if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }).is_ok();
        return Some(Finding::problem(code, message).hint(hints::mend()).fixed(removed));
    }
    let wait =
        if in_use.is_none() { "whether it is in use cannot be told here" } else { "it is less than an hour old" };
    Some(
        Finding::note(code, format!("{display}, {old} old, may have been left by a process that died; {wait}"))
            .hint(hints::remove_file(path.display())),
    )
}

/// Finds packs with the keep mark of a dead process.
fn keeps(patient: &Patient<'_>, fix: bool) -> Result<Vec<Finding>, AnyError> {
    let forsaken = keep_pack::forsaken(patient.store).map_err(crate::git::store::Error::Pack)?;
    let found = forsaken.into_iter().map(|path| {
        let message = format!("{} keeps a pack from git for a process that died", path.display());
        Finding::problem("keep-left", message).hint(hints::mend()).fixed(fix && keep_pack::release(&path))
    });
    Ok(found.collect())
}

/// Finds a multi-pack-index that refers to removed packs.
fn stale_index(patient: &Patient<'_>, fix: bool) -> Option<Finding> {
    let path = midx::stale(patient.store)?;
    let message = format!("{} names packs that are gone, and `git fsck` finds fault with it", path.display());
    let removed = fix && fs::remove_file(&path).is_ok();
    Some(Finding::problem("multi-pack-index-stale", message).hint(hints::mend()).fixed(removed))
}

/// Returns the lock files of refs and of `packed-refs`, and git's temporary file for the latter.
fn locks(common: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["packed-refs.lock", "packed-refs.new"]
        .iter()
        .map(|name| common.join(name))
        .filter(|path| path.exists())
        .collect();
    let mut folders = vec![common.join("refs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") && !is_held(common, &path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the lock files of the index, `HEAD`, the configuration and other files of git outside
/// `refs`, including those of linked work trees.
fn locks_of_git(common: &Path) -> Vec<PathBuf> {
    let mut folders = vec![common.to_owned(), common.join("objects/info"), common.join("objects/pack")];
    folders.push(common.join("objects/info/commit-graphs"));
    folders.extend(folder::entries(&common.join("worktrees"), |_| true));
    let mut found: Vec<PathBuf> = folders
        .iter()
        .flat_map(|dir| folder::entries(dir, |name| name.strip_suffix(".lock").is_some_and(|of| of != "packed-refs")))
        .collect();
    found.sort();
    found
}

/// Returns true if the check of runs reports this lock, at any age, because it knows that no driver
/// holds the run.
fn is_held(common: &Path, path: &Path) -> bool {
    super::runs::HELD.iter().any(|folder| path.starts_with(common.join(REFS).join(folder)))
}

/// Returns the temporary objects and packs of git, gix and this program.
fn temporaries(objects: &Path) -> Vec<PathBuf> {
    let holds_objects =
        |name: &str| name == "pack" || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let mut found = folder::entries(objects, is_temporary);
    found.extend(folder::entries(objects, holds_objects).iter().flat_map(|inner| folder::entries(inner, is_temporary)));
    found.sort();
    found
}

fn is_temporary(name: &str) -> bool {
    name.starts_with("tmp_") || name.starts_with(".tmp")
}

/// Returns the age of the last change, or `None` if the path is gone.
fn age(path: &Path) -> Option<Duration> {
    let meta = fs::symlink_metadata(path).ok()?;
    // A time in the future counts as old.
    Some(meta.modified().ok()?.elapsed().unwrap_or(OLD))
}

type Id = (u64, u64);

fn id(meta: &Metadata) -> Id {
    (meta.dev(), meta.ino())
}

/// Returns a file, or all files in a folder.
fn identities(path: &Path) -> Vec<Id> {
    let mut found = Vec::new();
    let mut paths = vec![path.to_owned()];
    while let Some(next) = paths.pop() {
        let Ok(meta) = fs::symlink_metadata(&next) else { continue };
        found.push(id(&meta));
        if meta.is_dir() {
            paths.extend(fs::read_dir(next).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    found
}

/// Returns the files that processes hold open, as far as they are visible, or `None` if the system
/// does not list them.
fn open_files() -> Option<HashSet<Id>> {
    let mut open = HashSet::new();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let is_process = process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        if !is_process {
            continue;
        }
        let descriptors = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        open.extend(descriptors.filter_map(|descriptor| Some(id(&fs::metadata(descriptor.path()).ok()?))));
    }
    (!open.is_empty()).then_some(open)
}
