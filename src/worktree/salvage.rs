//! Saves the work of an attempt without products.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::{BStr, BString, ByteSlice as _};

use crate::git::incoming;
use crate::git::secret_scan::{self, Range};
use crate::git::store::KeepGuard;
use crate::model::causes::in_words;
use crate::model::credential::gate::Secret;
use crate::model::credential::redact;
use crate::model::digest::Oid;
use crate::model::name::{FilePath, ItemId, is_dot_git};
use crate::sandbox::folder::Room;
use crate::worktree::capture::filtered::Failing;
use crate::worktree::capture::large_of;
use crate::worktree::capture::part::Part;
use crate::worktree::capture::tree::{Scratch, ignored, relative};
use crate::worktree::capture::walk::{self, Walked, display_path};
use crate::worktree::capture::{Error, changed, large, repositories, submodules, traps};
use crate::worktree::host::Host;
use crate::worktree::workspace::{Base, Workspace};

/// Why a large file is left out.
const TOO_LARGE: &str = "larger than handoff.maxProductSize";

/// Why a file is left out if all others together reach the limit of an attempt.
const BEYOND: &str = "which does not fit into what is saved of one attempt";

/// The most messages about omitted files.
const MOST_MESSAGES: usize = 10;

/// The changes to submodules by output name.
type Patches = BTreeMap<FilePath, Vec<u8>>;

/// The work of an attempt as a tree of the repository.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The tree.
    pub tree: Oid,
    /// Keeps its objects until a ref reaches them.
    pub guard: KeepGuard,
    /// Descriptions of everything that is not in the tree.
    pub without: Vec<String>,
}

impl Salvaged {
    /// Returns messages for the operator.
    pub fn messages(&self, item: &ItemId, attempt: u32) -> Vec<String> {
        let listed = self.without.iter().take(MOST_MESSAGES);
        let message =
            |left_out: &String| format!("{item}: left out of the saved work of attempt {attempt}: {left_out}");
        let more = self.without.len().saturating_sub(MOST_MESSAGES);
        listed.map(message).chain((more > 0).then(|| message(&format!("{more} more")))).collect()
    }

    /// Returns true if the tree has all of the work, so that the worktree may go.
    pub fn is_whole(&self) -> bool {
        self.without.is_empty()
    }
}

/// Writes the worktree, including `outputs/`, as a tree into the repository. Returns `None` if
/// nothing changed. Saves changes in submodules as patches, as in a capture.
///
/// For failed and interrupted attempts, after their processes ended. Omits nested repositories,
/// files above a product's limit, unreadable files, and the largest files beyond the total limit,
/// and describes each. A failure leaves at most unreferenced objects.
pub fn salvage(workspace: &Workspace, host: &Host) -> Result<Option<Salvaged>, Error> {
    if workspace.may_hold_out() {
        return Err(Error::Refused("a check with held-out files was interrupted".to_owned()));
    }
    if !workspace.was_started() {
        // The worktree is incomplete, so nothing ran here.
        return Ok(None);
    }
    // git sees every file here, so the walk must as well.
    let host = &host.taking().excluding(Vec::new());
    let base = host.base(workspace.base).map_err(Error::Workspace)?;
    let walked = match walk::walk(workspace, host, &base) {
        // Nothing is left.
        Err(Error::Refused(_)) => return Ok(None),
        other => other?,
    };
    for (number, trap) in walked.traps.paths().iter().enumerate() {
        let path = workspace.tree().join(std::ffi::OsStr::from_bytes(trap));
        fs::rename(&path, workspace.dir.join(format!("left-out-{number}"))).map_err(Error::at(&path))?;
    }
    // Each uses the scratch's folder.
    let (patches, mut without) = of_submodules(workspace, host, &base)?;
    without.extend(walked.traps.paths().iter().map(traps::in_words));
    let limit = patches.values().fold(host.settings.max_salvage, |left, patch| left.saturating_sub(patch.len() as u64));
    let part = Part::new(workspace, host, &base);
    let scratch = changed::scratch(&part, &walked)?;
    without.extend(repositories::left_out(&walked, &scratch)?.iter().map(repositories::in_words));
    without.extend(not_taken(&walked, &scratch)?);
    let skip: BTreeSet<BString> = left_out(&walked).cloned().collect();
    let (mut paths, room) = select_smallest(&walked, &scratch, &skip, limit, &mut without)?;
    let outputs = Outputs::find(workspace, host, room);
    match &outputs {
        Ok(outputs) => {
            paths.extend(outputs.found.iter().map(|path| path.as_bstr()));
            without.extend(outputs.left_out.iter().cloned());
        }
        Err(why) => without.push(format!("all below {}: {why}", relative_name(workspace, workspace.outputs()))),
    }
    let converted = changed::add(&part, &scratch, &paths, Failing::LeavesOut)?;
    put(&scratch, relative(workspace, workspace.outputs()), &patches)?;
    let gone: Vec<BString> = walked.gone.iter().filter(|path| !is_left_out(path.as_bstr(), &skip)).cloned().collect();
    let mut tree = write_tree(&part, &scratch, &gone, &BTreeSet::new())?;
    let secrets = find_secrets(host, &scratch, base.tree, tree)?;
    if !secrets.is_empty() {
        tree = write_tree(&part, &scratch, &gone, &secrets.keys().cloned().collect())?;
        without.extend(secrets.into_values().collect::<BTreeSet<_>>());
    }
    let nothing = converted.iter().filter(|(_, made)| made.is_none());
    without.extend(
        nothing
            .map(|(path, _)| format!("{}, whose filter failed, or kept a secret of it elsewhere", display_path(path))),
    );
    if tree == base.tree && without.is_empty() {
        return Ok(None);
    }
    // Objects that the base reaches are safe; others may be unreachable in the repository.
    let guard = incoming::take_in(&host.store, scratch.git(), tree, Some(base.tree), false)?;
    // Without the contents the work is still saved, with pointers that name them.
    if let Err(error) = large::take_over(workspace, &large_of(host)) {
        without.push(format!("what git-lfs keeps of it: {}", in_words(&error)));
    }
    Ok(Some(Salvaged { tree, guard, without }))
}

/// Writes the tree of the index without the files that are gone, and those that have a secret.
fn write_tree(part: &Part<'_>, scratch: &Scratch, gone: &[BString], secret: &BTreeSet<BString>) -> Result<Oid, Error> {
    let mut now = scratch.read_index(part)?;
    now.remove_entries(|_, path, _| secret.contains(path));
    changed::edit(part, gone, &now, scratch)
}

/// Returns true if a path is at or below an excluded one.
fn is_left_out(path: &BStr, left_out: &BTreeSet<BString>) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| left_out.contains(path[..end].as_bstr()))
}

/// Returns the changes to submodules as outputs, as far as they fit into the limit, and why others
/// are missing.
fn of_submodules(workspace: &Workspace, host: &Host, base: &Base) -> Result<(Patches, Vec<String>), Error> {
    let (found, mut without) = submodules::save(workspace, host, base)?;
    let (mut patches, mut room) = (Patches::new(), host.settings.max_salvage);
    for (name, mut file) in found {
        let mut bytes = Vec::new();
        let read = file.rewind().and_then(|()| file.take(room.saturating_add(1)).read_to_end(&mut bytes));
        read.map_err(Error::at(&workspace.dir))?;
        if bytes.len() as u64 > room {
            without.push(format!("{name}, which is larger than what may be saved"));
            continue;
        }
        room -= bytes.len() as u64;
        patches.insert(name, bytes);
    }
    Ok((patches, without))
}

/// Adds the changes to submodules to the outputs, replacing the worker's files.
fn put(scratch: &Scratch, outputs: &[u8], patches: &Patches) -> Result<(), Error> {
    let mut entries = Vec::new();
    for (name, bytes) in patches {
        let call = scratch.git().args(["hash-object", "-w", "--stdin"]).input(bytes.clone());
        let blob = call.line().map_err(Error::git)?;
        entries.extend([b"100644 ", blob.as_bytes(), b"\t", outputs, b"/", name.as_str().as_bytes(), b"\0"].concat());
    }
    if entries.is_empty() {
        return Ok(());
    }
    let call = scratch.git().args(["update-index", "--replace", "-z", "--index-info"]).input(entries);
    call.run().map(drop).map_err(Error::git)
}

/// Returns the changed files with secrets in content or name, each with a message.
fn find_secrets(host: &Host, scratch: &Scratch, base: Oid, tree: Oid) -> Result<BTreeMap<BString, String>, Error> {
    let mut secrets = BTreeMap::new();
    if tree == base {
        return Ok(secrets);
    }
    let range = Range { tips: vec![tree], known: vec![base.to_string()] };
    let found = secret_scan::new_objects(&|| scratch.git(), &range, &host.gate).map_err(Error::git)?;
    let blobs: BTreeMap<&[u8], &Secret> = found.iter().map(|(oid, secret)| (oid.as_bytes(), secret)).collect();
    // The same blob may have many paths: `:old-mode new-mode old new status NUL path NUL`.
    let options = ["-r", "-z", "--no-renames", "--no-abbrev", "--diff-filter=d"];
    let call = scratch.git().arg("diff-tree").args(options).args([base.to_string(), tree.to_string()]);
    let listed = call.run().map_err(Error::git)?;
    let mut fields = listed.split(|byte| *byte == 0);
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let new = about.split(|byte| *byte == b' ').nth(3).unwrap_or_default();
        let by_name = host.gate.scan(&String::from_utf8_lossy(path)).err();
        let by_content = blobs.get(new).map(|secret| {
            let file = redact(&String::from_utf8_lossy(path)).into_owned();
            Secret { file, ..(*secret).clone() }
        });
        if let Some(secret) = by_name.or(by_content) {
            secrets.insert(BString::from(path), secret.to_string());
        }
    }
    Ok(secrets)
}

/// Returns the paths that git must not add.
fn left_out(walked: &Walked) -> impl Iterator<Item = &BString> {
    let nested = walked.nested.iter().chain(walked.untracked_repositories());
    nested.chain(&walked.closed).chain(&walked.large).chain(&walked.odd)
}

/// Describes the files that git would not take, except those that it ignores.
fn not_taken(walked: &Walked, scratch: &Scratch) -> Result<Vec<String>, Error> {
    let all: Vec<BString> = walked.large.iter().chain(&walked.closed).chain(&walked.nested).cloned().collect();
    let ignored = ignored(scratch, &all)?;
    let large = describe_untracked(&ignored, &walked.large, TOO_LARGE);
    let closed = describe_untracked(&ignored, &walked.closed, "which cannot be read");
    let nested = describe_untracked(&ignored, &walked.nested, "which has an entry called .git");
    Ok([large, closed, nested].concat())
}

fn describe_untracked(ignored: &BTreeSet<BString>, paths: &[BString], why: &str) -> Vec<String> {
    paths.iter().filter(|path| !ignored.contains(*path)).map(|path| format!("{}, {why}", display_path(path))).collect()
}

/// Returns the changed files without the largest, so that the others fit into the limit, and how
/// much of it is left. Describes the others.
fn select_smallest<'w>(
    walked: &'w Walked,
    scratch: &Scratch,
    skip: &BTreeSet<BString>,
    limit: u64,
    without: &mut Vec<String>,
) -> Result<(BTreeSet<&'w BStr>, u64), Error> {
    let (mut paths, mut left) = (changed::files_to_take(walked, scratch)?, limit);
    paths.retain(|path| !is_left_out(path, skip));
    let mut sizes: Vec<&(u64, BString)> =
        walked.sizes.iter().filter(|(_, path)| paths.contains(path.as_bstr())).collect();
    sizes.sort();
    for (size, path) in sizes {
        if let Some(rest) = left.checked_sub(*size) {
            left = rest;
        } else {
            paths.remove(path.as_bstr());
            without.push(format!("{}, {BEYOND}", display_path(path)));
        }
    }
    Ok((paths, left))
}

/// The files below `outputs/`.
struct Outputs {
    found: Vec<BString>,
    /// Descriptions of the others.
    left_out: Vec<String>,
}

impl Outputs {
    /// Finds the files that fit, without those in repositories. Fails if there are too many to
    /// list.
    fn find(workspace: &Workspace, host: &Host, mut left: u64) -> Result<Self, Error> {
        let root = workspace.outputs();
        let (mut folders, mut room) = (Vec::new(), Room::new());
        let mut outputs = Self { found: Vec::new(), left_out: Vec::new() };
        if traps::is_folder(&workspace.tree(), relative(workspace, root)) {
            folders.push(root.to_owned());
        }
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                outputs.left_out.push(format!("{}, which cannot be read", relative_name(workspace, &folder)));
                continue;
            };
            let (nested, entries): (Vec<_>, Vec<_>) =
                entries.flatten().partition(|entry| is_dot_git(&entry.file_name().to_string_lossy()));
            if !nested.is_empty() && folder != root {
                outputs.left_out.push(format!("{}, a git repository", relative_name(workspace, &folder)));
                continue;
            }
            for entry in entries {
                let path = entry.path();
                let Ok(meta) = entry.metadata() else { continue };
                room.take(path.as_os_str().len())?;
                if meta.is_dir() {
                    folders.push(path);
                } else if traps::is_strange(meta.file_type()) {
                    // It has no content.
                } else if meta.len() > host.settings.max_product {
                    outputs.left_out.push(format!("{}, {TOO_LARGE}", relative_name(workspace, &path)));
                } else if let Some(rest) = left.checked_sub(meta.len()) {
                    left = rest;
                    outputs.found.push(relative(workspace, &path).into());
                } else {
                    outputs.left_out.push(format!("{}, {BEYOND}", relative_name(workspace, &path)));
                }
            }
        }
        Ok(outputs)
    }
}

/// Returns a path of the attempt, for messages.
fn relative_name(workspace: &Workspace, path: &Path) -> String {
    display_path(relative(workspace, path))
}
