//! Contents that filters keep beside the repository, for the patches that an item consumes.
//!
//! A worker that applies such a patch itself runs the filters in its own git directory. That of
//! git-lfs finds its objects there, if they are put there before. Others find nothing.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;

use crate::model::name::FilePath;
use crate::worktree::capture::large::is_object_name;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

/// The line of a patch that adds the name of an object of git-lfs.
const OBJECT: &[u8] = b"+oid sha256:";

/// The name of the filter of git-lfs.
const LFS: &str = "lfs";

/// Copies objects of git-lfs into the worker's git directory: those that consumed patches name.
/// Returns a remark for each object that is missing in the repository.
pub fn put_objects<'k>(
    host: &Host,
    workspace: &Workspace,
    patches: impl Iterator<Item = &'k FilePath>,
) -> Result<Vec<String>, Error> {
    let capture = host.base(workspace.base)?.capture.clone();
    if !capture.has_filter(LFS.as_bytes()) {
        return Ok(Vec::new());
    }
    let own = workspace.tree().join(".git/lfs");
    let mut remarks = Vec::new();
    for key in patches {
        let path = workspace.inputs().join(key.as_str());
        for name in objects(&path).map_err(Error::at(&path))? {
            let place = Path::new("objects").join(&name[..2]).join(&name[2..4]).join(&name);
            let (from, to) = (capture.lfs().join(&place), own.join(&place));
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder).map_err(Error::at(folder))?;
            }
            // A link would let the worker change the repository's object.
            match fs::copy(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    remarks.push(format!("the object {name} of git-lfs, which inputs/{key} names, is not here"));
                }
                copied => drop(copied.map_err(Error::at(&from))?),
            }
        }
    }
    Ok(remarks)
}

/// Returns the names of the objects that a patch adds.
fn objects(patch: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut reader = BufReader::new(File::open(patch)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let name = line.strip_prefix(OBJECT).map(ByteSlice::trim_end).filter(|name| is_object_name(name));
        names.extend(name.map(|name| String::from_utf8_lossy(name).into_owned()));
        line.clear();
    }
    Ok(names)
}

errors! {
    /// Why the contents of consumed patches are not in a worktree.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Io(PathBuf, #[source] io::Error): "cannot read or write {}" [.0.display()];
    #[from] Workspace(workspace::Error);
}

impl Error {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
