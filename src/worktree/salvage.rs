//! Saves the work of an attempt without products.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;

use gix::bstr::{BString, ByteSlice as _};

use crate::git::incoming;
use crate::git::program;
use crate::git::secret_scan::{self, Range};
use crate::git::store::KeepGuard;
use crate::model::causes::in_words;
use crate::model::credential::gate::Secret;
use crate::model::credential::redact;
use crate::model::digest::Oid;
use crate::model::name::{FilePath, ItemId, is_dot_git};
use crate::sandbox::folder::Room;
use crate::worktree::capture::filtered::{self, Converted, Failing};
use crate::worktree::capture::large_of;
use crate::worktree::capture::part::Part;
use crate::worktree::capture::tree::{Paths, Scratch, ignored, refusal, relative};
use crate::worktree::capture::walk::{self, Walked, shown};
use crate::worktree::capture::{Error, large, repositories, submodules, traps};
use crate::worktree::host::Host;
use crate::worktree::workspace::{Base, Workspace};

/// The most files to exclude one by one.
const MOST_LEFT_OUT: usize = 1000;

/// The changes to submodules by output name.
type Patches = BTreeMap<FilePath, Vec<u8>>;

/// The work of an attempt as a tree of the repository.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The tree.
    pub tree: Oid,
    /// Keeps its objects until a ref reaches them.
    pub kept: KeepGuard,
    /// Descriptions of omitted files with secrets and of submodules whose changes could not be
    /// saved.
    pub without: Vec<String>,
}

impl Salvaged {
    /// Returns messages for the operator.
    pub fn messages(&self, item: &ItemId, attempt: u32) -> Vec<String> {
        let told = |what| format!("{item}: left out of the saved work of attempt {attempt}: {what}");
        self.without.iter().map(told).collect()
    }
}

/// Writes the worktree, including `outputs/`, as a tree into the repository. Returns `None` if
/// nothing changed. Saves changes in submodules as patches, as in a capture.
///
/// For failed and interrupted attempts, after their processes ended. Omits nested repositories,
/// files above a product's limit, unreadable files, and the largest files beyond the total limit. A
/// failure leaves at most unreferenced objects.
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
    for trap in walked.traps.paths() {
        let path = workspace.tree().join(std::ffi::OsStr::from_bytes(trap));
        fs::remove_file(&path).map_err(Error::at(&path))?;
    }
    remove_extras(workspace, &base)?;
    // Each uses the scratch's folder.
    let (patches, mut without) = of_submodules(workspace, host, &base)?;
    without.extend(walked.traps.paths().iter().map(traps::in_words));
    let limit = patches.values().fold(host.settings.max_salvage, |left, patch| left.saturating_sub(patch.len() as u64));
    let scratch = Scratch::new(workspace, host, &base)?;
    let outputs = relative(workspace, workspace.outputs());
    let mut skip = left_out(&walked, &scratch)?;
    without.extend(repositories::left_out(&walked, &scratch)?.iter().map(repositories::in_words));
    let (beyond, taken) = select_largest(&walked, &scratch, &skip, limit)?;
    skip.extend(beyond);
    let room = limit.saturating_sub(taken);
    let except = |paths: Paths| skip.iter().fold(paths, |paths, path| paths.without(path));
    let all = Paths::all().without(relative(workspace, workspace.inputs())).without(outputs);
    let part = Part::of(workspace, host, &base);
    let (before, converted) = (scratch.read_index(&part)?, converted(&part, &scratch, &walked, &skip)?);
    add(&scratch, &["-A", "--sparse", "--ignore-errors"], &except(all))?;
    filtered::put(&part, &scratch, &converted, &before)?;
    match outputs_left_out(workspace, host, room) {
        Ok(Some(skip)) => {
            let paths = skip.iter().fold(Paths::default().with(outputs), |paths, path| paths.without(path));
            add(&scratch, &["-A", "-f", "--sparse", "--ignore-errors"], &paths)?;
        }
        Ok(None) => {}
        Err(why) => without.push(format!("all below {}: {why}", shown(outputs))),
    }
    put(&scratch, outputs, &patches)?;
    let mut tree = scratch.write()?;
    without.extend(take_out(host, &scratch, base.tree, &mut tree)?);
    let nothing = converted.iter().filter(|(_, made)| made.is_none());
    without.extend(
        nothing.map(|(path, _)| format!("{}, whose filter failed, or kept a secret of it elsewhere", shown(path))),
    );
    if tree == base.tree && without.is_empty() {
        return Ok(None);
    }
    // Objects that the base reaches are safe; others may be unreachable in the repository.
    let kept = incoming::take_in(&host.store, scratch.git(), tree, Some(base.tree), false)?;
    // Without the contents the work is still saved, with pointers that name them.
    if let Err(error) = large::take_over(workspace, &large_of(host)) {
        without.push(format!("what git-lfs keeps of it: {}", in_words(&error)));
    }
    Ok(Some(Salvaged { tree, kept, without }))
}

/// Applies confined filters to the changed files that have one. Unconfined filters run when git
/// adds the files.
fn converted(
    part: &Part<'_>,
    scratch: &Scratch,
    walked: &Walked,
    skip: &BTreeSet<BString>,
) -> Result<Converted, Error> {
    let small = walked.sizes.iter().map(|(_, path)| path).filter(|path| !is_left_out(path, skip));
    let found = filtered::which(part, scratch, &small.map(|path| path.as_bstr()).collect())?;
    if found.is_empty() {
        return Ok(Converted::new());
    }
    let ignored = ignored(scratch, &found.iter().collect::<Vec<_>>())?;
    let taken: BTreeSet<BString> = found.into_iter().filter(|path| !ignored.contains(path)).collect();
    match filtered::convert(part, scratch, &taken, Failing::LeavesOut) {
        // Save everything else.
        Err(Error::Refused(_)) => Ok(taken.into_iter().map(|path| (path, None)).collect()),
        other => other,
    }
}

/// Returns true if a path is at or below an excluded one.
fn is_left_out(path: &BString, left_out: &BTreeSet<BString>) -> bool {
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

/// Removes files with secrets in content or name from the tree before it enters the repository.
/// Keeps the base's versions. Returns messages.
fn take_out(host: &Host, scratch: &Scratch, base: Oid, tree: &mut Oid) -> Result<Vec<String>, Error> {
    if *tree == base {
        return Ok(Vec::new());
    }
    let range = Range { tips: vec![*tree], known: vec![base.to_string()] };
    let found = secret_scan::new_objects(&|| scratch.git(), &range, &host.gate).map_err(Error::git)?;
    let blobs: BTreeMap<&[u8], &Secret> = found.iter().map(|(oid, secret)| (oid.as_bytes(), secret)).collect();
    let mut told = BTreeSet::new();
    // The same blob may have many paths: `:old-mode new-mode old new status NUL path NUL`.
    let options = ["-r", "-z", "--no-renames", "--no-abbrev"];
    let call = scratch.git().arg("diff-tree").args(options).args([base.to_string(), tree.to_string()]);
    let listed = call.run().map_err(Error::git)?;
    let mut fields = listed.split(|byte| *byte == 0);
    let mut edits = Vec::new();
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let about: Vec<&[u8]> = about.split(|byte| *byte == b' ').collect();
        let [old_mode, _, old, new, status] = about[..] else { continue };
        let named = host.gate.scan(&String::from_utf8_lossy(path)).err().filter(|_| status != b"D");
        let held = blobs.get(new).map(|secret| {
            let file = redact(&String::from_utf8_lossy(path)).into_owned();
            Secret { file, ..(*secret).clone() }
        });
        let Some(secret) = named.or(held) else { continue };
        told.insert(secret.to_string());
        // Mode 0 takes a path out.
        let line = [old_mode.trim_ascii_start().strip_prefix(b":").unwrap_or(old_mode), b" ", old, b"\t", path, b"\0"];
        edits.extend_from_slice(&line.concat());
    }
    if !edits.is_empty() {
        scratch.git().args(["update-index", "-z", "--index-info"]).input(edits).run().map_err(Error::git)?;
        *tree = scratch.write()?;
    }
    Ok(told.into_iter().collect())
}

/// Removes copied and linked files, which are not work, whatever ignore rules the worker wrote.
fn remove_extras(workspace: &Workspace, base: &Base) -> Result<(), Error> {
    let tree = workspace.folder().folder("tree").map_err(Error::at(&workspace.tree()))?;
    for path in base.extras.paths().filter_map(|path| path.to_str().ok()) {
        let (folder, name) = match path.rsplit_once('/') {
            // The worker may have replaced it with its own file.
            Some((folder, name)) => (tree.folder(folder), name),
            None => (tree.again(), path),
        };
        if let Ok(folder) = folder {
            folder.remove(name).map_err(Error::at(&workspace.tree()))?;
        }
    }
    Ok(())
}

/// Adds as many paths as possible. Only a fault that is not the worktree's, such as a full disk, is
/// an error.
fn add(scratch: &Scratch, options: &[&str], paths: &Paths) -> Result<(), Error> {
    match scratch.add(options, paths) {
        // git reported the paths that it could not add, and added the rest.
        Err(error @ program::Error::Failed { .. }) => match refusal(error, |said| Error::Refused(said.to_owned())) {
            Error::Refused(_) => Ok(()),
            other => Err(other),
        },
        other => other.map_err(Error::git),
    }
}

/// Returns the paths that git must not or need not add.
fn left_out(walked: &Walked, scratch: &Scratch) -> Result<BTreeSet<BString>, Error> {
    let nested = walked.nested.iter().chain(walked.untracked_repositories());
    let asked = nested.chain(&walked.closed).chain(&walked.large).chain(&walked.odd);
    let asked: BTreeSet<BString> = asked.cloned().collect();
    let ignored = ignored(scratch, &asked.iter().collect::<Vec<_>>())?;
    Ok(asked.into_iter().filter(|path| !ignored.contains(path)).collect())
}

/// Returns the largest files, without which the others fit into the limit, and the total size of
/// those others. Ignored files are included only if everything fits.
fn select_largest(
    walked: &Walked,
    scratch: &Scratch,
    skipped: &BTreeSet<BString>,
    limit: u64,
) -> Result<(BTreeSet<BString>, u64), Error> {
    let mut sizes: Vec<&(u64, BString)> = walked.sizes.iter().filter(|(_, path)| !skipped.contains(path)).collect();
    let all = |sizes: &[&(u64, BString)]| sizes.iter().map(|(size, _)| *size).sum::<u64>();
    if all(&sizes) <= limit {
        return Ok((BTreeSet::new(), all(&sizes)));
    }
    let paths: Vec<&BString> = sizes.iter().map(|(_, path)| path).collect();
    let ignored = ignored(scratch, &paths)?;
    sizes.retain(|(_, path)| !ignored.contains(path));
    sizes.sort_by(|a, b| b.cmp(a));
    let mut left = all(&sizes);
    let mut out = BTreeSet::new();
    for (size, path) in sizes {
        if left <= limit {
            break;
        }
        // git compares every added path with every exclusion.
        if out.len() == MOST_LEFT_OUT {
            return Err(Error::Refused(format!("more than {limit} bytes in more than {MOST_LEFT_OUT} files")));
        }
        left -= size;
        out.insert(path.clone());
    }
    Ok((out, left))
}

/// Returns the outputs to exclude, or `None` if there are no outputs. Fails if there are too many
/// to list.
fn outputs_left_out(workspace: &Workspace, host: &Host, mut room: u64) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let root = workspace.outputs();
    let mut folders = vec![root.to_owned()];
    let (mut skip, mut any, mut paths) = (Vec::new(), false, Room::new());
    if !traps::is_folder(&workspace.tree(), relative(workspace, root)) {
        return Ok(None);
    }
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            skip.push(relative(workspace, &folder).to_owned());
            continue;
        };
        for entry in entries.flatten() {
            if skip.len() > MOST_LEFT_OUT {
                return Err(Error::Refused(format!("more than {MOST_LEFT_OUT} of it would be left out")));
            }
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            if is_dot_git(&entry.file_name().to_string_lossy()) {
                let nested = if folder == root { &path } else { &folder };
                skip.push(relative(workspace, nested).to_owned());
            } else if meta.is_dir() {
                paths.take(path.as_os_str().len())?;
                folders.push(path);
            } else if meta.len() > host.settings.max_product.min(room) {
                skip.push(relative(workspace, &path).to_owned());
            } else {
                room -= meta.len();
                any = true;
            }
        }
    }
    Ok(any.then_some(skip))
}
