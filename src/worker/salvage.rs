//! Keeps the work of an attempt that has no products.

use std::collections::BTreeSet;
use std::fs;

use gix::bstr::BString;

use super::capture::Error;
use super::capture::tree::{Paths, Scratch, ignored, refusal, relative};
use super::capture::walk::{self, Walked};
use super::site::Site;
use super::workspace::Workspace;
use crate::git::incoming;
use crate::git::store::Kept;
use crate::model::digest::Oid;
use crate::model::name::is_dot_git;

/// The work of an attempt as a tree of the repository.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The tree.
    pub tree: Oid,
    /// Keeps what it reaches until a ref does.
    pub kept: Kept,
}

/// Writes the worktree as it stands, `outputs/` included, as a tree into the repository; none where nothing changed.
///
/// For failed and interrupted attempts, after their processes are gone. Takes what can be taken: nested repositories, files
/// that are too large for a product and what cannot be read are left out. A failure leaves at most unreferenced objects.
pub fn salvage(workspace: &Workspace, site: &Site) -> Result<Option<Salvaged>, Error> {
    if !workspace.index().exists() {
        // The checkout was not complete, so nothing ever ran here.
        return Ok(None);
    }
    let base = site.base(workspace.base).map_err(Error::Workspace)?;
    let walked = match walk::walk(workspace, site, &base) {
        // Nothing is left.
        Err(Error::Refused(_)) => return Ok(None),
        other => other?,
    };
    let scratch = Scratch::new(workspace, &base)?;
    let outputs = relative(workspace, workspace.outputs());
    let skip = left_out(&walked, &scratch)?;
    let without = |paths: Paths| skip.iter().fold(paths, |paths, path| paths.without(path));
    let all = Paths::all().without(relative(workspace, workspace.inputs())).without(outputs);
    add(&scratch, &["-A", "--ignore-errors"], &without(all))?;
    if let Some(skip) = outputs_left_out(workspace, site) {
        let paths = skip.iter().fold(Paths::default().with(outputs), |paths, path| paths.without(path));
        add(&scratch, &["-A", "-f", "--ignore-errors"], &paths)?;
    }
    let tree = scratch.write()?;
    if tree == base.tree {
        return Ok(None);
    }
    // What the base reaches stays without us; anything else may be in the repository without anything that reaches it.
    let kept = incoming::take_in(&site.store, scratch.git(), tree, Some(base.tree), false)?;
    Ok(Some(Salvaged { tree, kept }))
}

/// Adds what can be added; only a fault that is not the worktree's, such as a full disk, is an error.
fn add(scratch: &Scratch, options: &[&str], paths: &Paths) -> Result<(), Error> {
    match scratch.add(options, paths).map_err(|error| refusal(error, |said| Error::Refused(said.to_owned()))) {
        // What git could not add it has told of; the rest is added all the same.
        Err(Error::Refused(_)) => Ok(()),
        other => other,
    }
}

/// The paths that git must not enter or need not take.
fn left_out(walked: &Walked, scratch: &Scratch) -> Result<BTreeSet<BString>, Error> {
    let asked = walked.nested.iter().chain(&walked.closed).chain(&walked.large).chain(&walked.odd);
    let asked: BTreeSet<BString> = asked.cloned().collect();
    let ignored = ignored(scratch, &asked.iter().cloned().collect::<Vec<_>>())?;
    Ok(asked.into_iter().filter(|path| !ignored.contains(path)).collect())
}

/// What to leave out of the outputs; none where there is nothing to take.
fn outputs_left_out(workspace: &Workspace, site: &Site) -> Option<Vec<Vec<u8>>> {
    let root = workspace.outputs();
    let mut folders = vec![root.to_owned()];
    let (mut skip, mut any) = (Vec::new(), false);
    if !fs::symlink_metadata(root).is_ok_and(|meta| meta.is_dir()) {
        return None;
    }
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            skip.push(relative(workspace, &folder).to_owned());
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            if is_dot_git(&entry.file_name().to_string_lossy()) {
                let nested = if folder == root { &path } else { &folder };
                skip.push(relative(workspace, nested).to_owned());
            } else if meta.is_dir() {
                folders.push(path);
            } else if meta.len() > site.max_product {
                skip.push(relative(workspace, &path).to_owned());
            } else {
                any = true;
            }
        }
    }
    any.then_some(skip)
}
