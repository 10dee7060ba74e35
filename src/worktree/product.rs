//! Gives a worktree the recorded products of an item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::git::protected::Consumed;
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::FilePath;
use crate::worktree::host::Host;
use crate::worktree::protect::tree::Tree;
use crate::worktree::protect::{self, Guard};
use crate::worktree::workspace::Workspace;

/// The folder of an attempt for outputs, before they are moved into its worktree.
const FOLDER: &str = "outputs";

/// The products of an item: blobs, each with the digest of its bytes.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The patch against the base, if there is one.
    pub patch: Option<(Oid, Digest)>,
    /// The files below the folder for outputs.
    pub outputs: BTreeMap<FilePath, (Oid, Digest)>,
}

/// Gives each file of the base and of the product its state in the product, and replaces the
/// outputs.
///
/// A setup may have run before, but no process may run meanwhile. Other files that it left stay,
/// and so does the index. A failure leaves a worktree that must be removed.
pub fn write(host: &Host, workspace: &Workspace, recorded: &Recorded) -> Result<(), Error> {
    let patch = recorded.patch.map(|(oid, digest)| verified_stream::read(&host.store, oid, &[digest])).transpose()?;
    let consumed: Vec<Consumed> =
        patch.into_iter().map(|patch| Consumed { patch, start: None, includes: BTreeSet::new() }).collect();
    let guard = Guard::of_product(&host.store, workspace.base, &consumed)?;
    let changed = recorded.outputs.keys().filter_map(format::submodule_of).find(|path| guard.is_submodule(path));
    if let Some(path) = changed.map(str::to_owned).or_else(|| guard.changed_submodule()) {
        return Err(Error::Submodule(path));
    }
    guard.enforce(host, workspace)?.keep()?;
    replace_outputs(host, workspace, recorded)
}

/// Writes the outputs beside the worktree and moves them into it, so that no link of the worktree
/// is followed.
fn replace_outputs(host: &Host, workspace: &Workspace, recorded: &Recorded) -> Result<(), Error> {
    let folder = workspace.dir.join(FOLDER);
    fs::create_dir(&folder).map_err(Error::io(&folder))?;
    for (path, (oid, digest)) in &recorded.outputs {
        let place = folder.join(path.as_str());
        let parent = place.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let mut file = fs::File::create_new(&place).map_err(Error::io(&place))?;
        verified_stream::copy(&host.store, *oid, &[*digest], &mut file)?;
    }
    let (tree, outputs) = (workspace.tree(), workspace.outputs());
    for parent in outputs.ancestors().skip(1).take_while(|parent| *parent != tree) {
        if !fs::symlink_metadata(parent).is_ok_and(|meta| meta.is_dir()) {
            return Err(Error::Parent(parent.to_owned()));
        }
    }
    let below = outputs.strip_prefix(&tree).unwrap_or(outputs);
    let root = Tree::open(workspace.folder().as_fd(), "tree").map_err(Error::io(&tree))?;
    root.remove(below.as_os_str().as_bytes().into()).map_err(Error::io(outputs))?;
    fs::rename(&folder, outputs).map_err(Error::io(outputs))
}

errors! {
    /// Why a worktree has not got the products.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Submodule(String): "the product changes the submodule {0:?}, which a fresh worktree does not have";
    Parent(PathBuf): "{} is not a folder" [.0.display()];
    Io(PathBuf, #[source] io::Error): "cannot write {}" [.0.display()];
    Read(#[from] verified_stream::Error): "cannot read a product";
    #[from] Files(protect::Error);
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
