//! Captures the change to a worktree as one patch.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::BString;

use super::part::Part;
use super::tree::{Scratch, ignored};
use super::walk::{Walked, display_path};
use super::{Error, changed, repositories};
use crate::git::bare_shape;
use crate::git::program::{self, Git};
use crate::model::credential::patch::PatchScan;
use crate::model::digest::Oid;
use crate::worktree::host::Host;

/// The change to the files of a worktree or of a submodule.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The patch in a private file, or `None` if nothing changed.
    pub(super) patch: Option<File>,
    /// The paths of repositories that it omits.
    pub(super) left_out: Vec<BString>,
}

/// Returns the difference between the base's tree and the worktree. Refuses secrets.
pub(super) fn capture(part: &Part<'_>, walked: &Walked) -> Result<Change, Error> {
    walked.traps.refuse()?;
    let scratch = changed::scratch(part, walked)?;
    check(part.host, walked, &scratch)?;
    let left_out = repositories::left_out(walked, &scratch)?;
    let tree = changed::write(part, walked, &scratch)?;
    let path = scratch.file("patch");
    let difference = Difference { git: &|| scratch.git(), options: &[], from: part.tree, to: tree };
    let write = || {
        // Comparing the trees costs a process of git.
        if walked.sizes.iter().any(|(_, changed)| bare_shape::may_complete(Path::new(OsStr::from_bytes(changed)))) {
            difference.refuse_bare_repository()?;
        }
        let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(Error::at(&path))?;
        difference.write(part.host, file, &path)
    };
    let patch = if tree == part.tree { None } else { Some(write()?) };
    Ok(Change { patch, left_out })
}

/// Returns the difference between two commits of the repository, without submodules, in a private
/// file. Refuses secrets.
pub(super) fn between(host: &Host, dir: &Path, from: Oid, to: Oid) -> Result<File, Error> {
    let file = tempfile::tempfile_in(dir).map_err(Error::at(dir))?;
    let options = &["-r", "--ignore-submodules=all"];
    let difference = Difference { git: &|| host.store.git(), options, from, to };
    difference.refuse_bare_repository()?;
    difference.write(host, file, dir)
}

/// Two trees to compare.
struct Difference<'a> {
    git: &'a dyn Fn() -> Git,
    /// Options besides the usual ones.
    options: &'a [&'a str],
    from: Oid,
    to: Oid,
}

/// Refuses files that git would silently drop, fail on, or descend into.
fn check(host: &Host, walked: &Walked, scratch: &Scratch) -> Result<(), Error> {
    if let Some(path) = walked.odd.first() {
        return Err(Error::refused(format!("{} is tracked and is no file any more", display_path(path))));
    }
    if let Some(path) = walked.attributes.first().filter(|_| !program::takes_attributes_from_trees()) {
        let sentence =
            format!("{} was changed or removed, which can only be captured with git 2.41 or newer", display_path(path));
        return Err(Error::refused(sentence));
    }
    let paths: Vec<&BString> = walked.nested.iter().chain(&walked.closed).chain(&walked.large).collect();
    let ignored = ignored(scratch, &paths)?;
    if let Some(path) = walked.nested.iter().find(|path| !ignored.contains(*path)) {
        let sentence =
            format!("{} is, or is named like, a nested git repository, which no patch can carry", display_path(path));
        return Err(Error::refused(sentence));
    }
    let holds_tracked = |path: &&BString| {
        walked.gone.iter().any(|gone| gone.strip_prefix(path.as_slice()).is_some_and(|rest| rest.starts_with(b"/")))
    };
    if let Some(path) = walked.closed.iter().find(|path| (!ignored.contains(*path)) || holds_tracked(path)) {
        return Err(Error::refused(format!("the folder {} cannot be read", display_path(path))));
    }
    if let Some(path) = walked.large.iter().find(|path| !ignored.contains(*path)) {
        let limit = host.settings.max_product;
        return Err(Error::refused(format!(
            "{} is larger than {limit} bytes, the most that is taken",
            display_path(path)
        )));
    }
    Ok(())
}

impl Difference<'_> {
    /// Returns a call that prints the difference.
    fn call(&self, form: &[&str]) -> Git {
        let plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
        let call = (self.git)().arg("diff-tree").args(["-p"]).args(form).args(plain).args(self.options);
        call.args([self.from.to_string(), self.to.to_string()])
    }

    /// Writes the patch into a file at `path`.
    fn write(&self, host: &Host, file: File, path: &Path) -> Result<File, Error> {
        let mut out = io::BufWriter::new(file);
        let (mut bytes, limit) = (0, host.settings.max_product);
        let (mut scan, mut secret) = (PatchScan::new(&host.gate), Ok(()));
        let streamed = self.call(&["--binary", "--full-index"]).stream(&mut |chunk| {
            bytes += chunk.len() as u64;
            if bytes > limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            if secret.is_ok() {
                secret = scan.push(chunk);
            }
            out.write_all(chunk)
        });
        if bytes > limit {
            return Err(Error::refused(format!("the patch is larger than {limit} bytes, the most that is taken")));
        }
        streamed.map_err(Error::git)?;
        secret?;
        let packed = scan.packed;
        scan.finish()?;
        if packed {
            self.look_into(host)?;
        }
        out.into_inner().map_err(|e| Error::Io(path.to_owned(), e.into_error()))
    }

    /// Refuses a new folder that git would take for a bare repository.
    fn refuse_bare_repository(&self) -> Result<(), Error> {
        let Some(folder) = bare_shape::find_new(self.git, self.from, self.to).map_err(Error::git)? else {
            return Ok(());
        };
        let folder = display_path(&BString::from(folder.into_os_string().into_encoded_bytes()));
        Err(Error::refused(format!(
            "{folder} has the shape of a bare git repository, whose settings name programs that git would run there"
        )))
    }

    /// Scans the bytes of compressed binary hunks.
    fn look_into(&self, host: &Host) -> Result<(), Error> {
        let (mut scan, mut secret) = (PatchScan::new(&host.gate), Ok(()));
        let streamed = self.call(&["--text", "-U0"]).stream(&mut |chunk| {
            if secret.is_ok() {
                secret = scan.push(chunk);
            }
            Ok(())
        });
        secret?;
        streamed.map_err(Error::git)?;
        Ok(scan.finish()?)
    }
}
