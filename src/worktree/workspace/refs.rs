//! Copies the repository's refs into every worktree.
//!
//! A worktree gets branches, tags and remote-tracking refs in its own `packed-refs` file, because
//! git replaces that file when it deletes a ref.

mod listed;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};
use gix::objs::Kind;
use gix::refs::Target;

use super::Error;
use crate::git::packed;
use crate::git::store::Store;
use crate::git::work_tree::BRANCHES;
use crate::model::digest::{Digest, Oid};

/// The prefixes of refs in a worktree; not runs, stashes or notes.
const GIVEN: [&str; 3] = [BRANCHES, "refs/remotes/", TAGS];

const TAGS: &str = "refs/tags/";

/// The first line of the file, as in git. Only tags have a line with their target.
const HEADER: &[u8] = b"# pack-refs with: peeled sorted \n";

/// The most annotated tags that may point at one another.
const MOST_TAGS: usize = 32;

/// The refs of a repository at one time. Cheap to clone.
#[derive(Clone)]
pub struct Refs(Arc<Content>);

struct Content {
    /// The content of `packed-refs`.
    packed: Vec<u8>,
    /// The symbolic refs, such as `refs/remotes/origin/HEAD`: the path and the content of each.
    symbolic: Vec<(String, Vec<u8>)>,
    /// The branch of `HEAD`, which may have no commit yet.
    head: Option<BString>,
    /// The branch of `HEAD` with its commit.
    branch: Option<(BString, Oid)>,
    /// The digests that manifests record.
    tags: Digest,
    branches: Digest,
}

impl Refs {
    /// Returns an empty set of refs.
    pub(crate) fn none() -> Self {
        Self::new(&BTreeMap::new(), None)
    }

    /// Reads the refs of a repository. Skips refs to missing objects, at which git would stop.
    pub(crate) fn read(store: &Store) -> Result<Self, Error> {
        packed::check(store).map_err(|e| Error::Refs(Box::new(e)))?;
        let repo = store.local();
        let mut found: BTreeMap<BString, (Target, Option<Oid>)> = BTreeMap::new();
        let platform = repo.references().map_err(|e| Error::Refs(Box::new(e)))?;
        for prefix in GIVEN {
            // git also skips unreadable refs.
            for given in platform.prefixed(prefix).map_err(|e| Error::Refs(Box::new(e)))?.filter_map(Result::ok) {
                let target = given.inner.target;
                let peeled = match &target {
                    Target::Object(id) if !repo.has_object(*id) => continue,
                    Target::Object(id) if prefix == TAGS => {
                        given.inner.peeled.map(Oid).or_else(|| peeled(&repo, Oid(*id)))
                    }
                    _ => None,
                };
                found.insert(given.inner.name.as_bstr().to_owned(), (target, peeled));
            }
        }
        let head = repo.head_name().map_err(|e| Error::Refs(Box::new(e)))?.map(|name| name.as_bstr().to_owned());
        Ok(Self::new(&found, head))
    }

    fn new(found: &BTreeMap<BString, (Target, Option<Oid>)>, head: Option<BString>) -> Self {
        let (mut packed, mut symbolic) = (HEADER.to_vec(), Vec::new());
        let (mut tags, mut branches) = (Vec::new(), Vec::new());
        if let Some(name) = &head {
            branches.extend_from_slice(&[b"ref:", name.as_slice(), b" HEAD\n"].concat());
        }
        for (name, (target, peeled)) in found {
            let listed = if name.starts_with(TAGS.as_bytes()) { &mut tags } else { &mut branches };
            match target {
                Target::Object(id) => {
                    let line = [id.to_string().as_bytes(), b" ", name.as_slice(), b"\n"].concat();
                    listed.extend_from_slice(&line);
                    packed.extend_from_slice(&line);
                    if let Some(peeled) = peeled.filter(|peeled| peeled.0 != *id) {
                        packed.extend_from_slice(format!("^{peeled}\n").as_bytes());
                    }
                }
                Target::Symbolic(to) => {
                    // Skip a symbolic ref to a ref that is not copied, and one whose name is no
                    // path.
                    let Some(name) = name.to_str().ok().filter(|_| found.contains_key(to.as_bstr())) else { continue };
                    listed
                        .extend_from_slice(&[b"ref:", to.as_bstr().as_bytes(), b" ", name.as_bytes(), b"\n"].concat());
                    symbolic.push((name.to_owned(), [b"ref: ", to.as_bstr().as_bytes(), b"\n"].concat()));
                }
            }
        }
        let branch = head.as_ref().and_then(|name| match found.get(name) {
            Some((Target::Object(id), _)) => Some((name.clone(), Oid(*id))),
            _ => None,
        });
        let (tags, branches) = (Digest::compute(&tags), Digest::compute(&branches));
        Self(Arc::new(Content { packed, symbolic, head, branch, tags, branches }))
    }

    /// Returns the digest of the tags, as `docs/reference/writing.md` says.
    pub fn tags(&self) -> Digest {
        self.0.tags
    }

    /// Returns the digest of `HEAD`, the branches and the remote-tracking refs, as
    /// `docs/reference/writing.md` says.
    pub fn branches(&self) -> Digest {
        self.0.branches
    }

    /// Returns the content of `packed-refs`.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.0.packed
    }

    /// Writes them into a git directory without refs. `HEAD` is the repository's branch if that is
    /// at the commit, otherwise the commit.
    pub(super) fn write(&self, dir: &Path, head: Oid) -> io::Result<()> {
        let content = match &self.0.branch {
            Some((name, at)) if *at == head => [b"ref: ", name.as_slice(), b"\n"].concat(),
            _ => format!("{head}\n").into_bytes(),
        };
        fs::write(dir.join("HEAD"), content)?;
        fs::write(dir.join("packed-refs"), &self.0.packed)?;
        for (name, bytes) in &self.0.symbolic {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Refs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refs").field("tags", &self.0.tags).field("branches", &self.0.branches).finish_non_exhaustive()
    }
}

/// Returns the target of an annotated tag, or `None` for another object.
fn peeled(repo: &gix::Repository, mut oid: Oid) -> Option<Oid> {
    for depth in 0..MOST_TAGS {
        if repo.find_header(oid.0).ok()?.kind() != Kind::Tag {
            return (depth > 0).then_some(oid);
        }
        oid = Oid(repo.find_tag(oid.0).ok()?.target_id().ok()?.detach());
    }
    None
}
