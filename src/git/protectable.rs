//! The committed files of a repository that decide whether work is good.

use super::store::Store;
use crate::model::protectable::{FOREIGN_FOLDERS, FURTHER, RUNNERS, display};

/// The most paths that are listed instead of their pathspec.
const MOST_PATHS: usize = 5;

/// The known pathspecs that fit a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFiles {
    /// The pathspecs to protect: those of the recognised runners, whose files may be missing, and
    /// further ones that select committed files.
    pub protect: Vec<String>,
    /// The committed manifests of these runners, each as a path or, where several folders have one
    /// of the same name, as a pathspec.
    pub manifests: Vec<String>,
}

impl KnownFiles {
    /// Names the manifests that stay unprotected, if there are any.
    pub fn left_out(&self) -> Option<String> {
        let names: Vec<&str> = self.manifests.iter().map(|manifest| display(manifest)).collect();
        let them = if names.len() == 1 { "it" } else { "them" };
        (!names.is_empty()).then(|| format!("not protected, since honest work changes {them}: {}", names.join(", ")))
    }
}

/// Returns the known files of a repository, or none without a commit.
pub fn known_files(store: &Store) -> KnownFiles {
    let mut known = KnownFiles::default();
    let further = FURTHER.iter().filter(|pathspec| !committed(store, pathspec).is_empty());
    known.protect.extend(further.map(|&pathspec| pathspec.to_owned()));
    for runner in RUNNERS.iter().filter(|runner| !own(store, &runner.signs).is_empty()) {
        let built = runner.built.iter().flat_map(|pathspec| paths_or_pathspec(pathspec, &own(store, &[pathspec])));
        known.protect.extend(built);
        known.protect.extend(runner.files.iter().map(|&pathspec| pathspec.to_owned()));
        for manifest in &runner.manifests {
            match own(store, &[manifest]).as_slice() {
                [] => known.protect.push((*manifest).to_owned()),
                [one] => known.manifests.extend(paths_or_pathspec(manifest, std::slice::from_ref(one))),
                _ => known.manifests.push((*manifest).to_owned()),
            }
        }
    }
    known
}

/// Returns the paths that a pathspec selects, or the pathspec if they are many or not text.
fn paths_or_pathspec(pathspec: &str, paths: &[Vec<u8>]) -> Vec<String> {
    let texts: Result<Vec<String>, _> = paths.iter().cloned().map(String::from_utf8).collect();
    match texts {
        Ok(texts) if texts.len() <= MOST_PATHS => texts,
        _ => vec![pathspec.to_owned()],
    }
}

/// Returns the committed files that pathspecs select, without those in folders of others' code and
/// of samples, unless the pathspecs name the folder.
fn own(store: &Store, pathspecs: &[&str]) -> Vec<Vec<u8>> {
    let foreign: Vec<&str> = FOREIGN_FOLDERS
        .iter()
        .filter(|name| !pathspecs.iter().any(|pathspec| pathspec.contains(**name)))
        .copied()
        .collect();
    let mut paths = select(store, pathspecs);
    paths.retain(|path| {
        !path.split(|byte| *byte == b'/').any(|part| foreign.iter().any(|name| name.as_bytes() == part))
    });
    paths
}

/// Returns the files of `HEAD` and the index that a pathspec selects, or none without a commit.
pub fn committed(store: &Store, pathspec: &str) -> Vec<Vec<u8>> {
    select(store, &[pathspec])
}

fn select(store: &Store, pathspecs: &[&str]) -> Vec<Vec<u8>> {
    let mut git = store.git();
    if let Some(work_dir) = store.work_dir() {
        git = git.work_tree(&work_dir);
    }
    let git = git.args(["ls-files", "-z", "--with-tree=HEAD", "--"]).args(pathspecs);
    let listed = git.run().unwrap_or_default();
    listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}
