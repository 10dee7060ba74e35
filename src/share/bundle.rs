//! Runs and threads in one file, for where there is no remote: written with the logs that anchor them, opened in a throw-away repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use super::{Kind, Place};
use crate::git::porcelain::{BundleHead, bundle_head};
use crate::git::program;
use crate::git::refs;
use crate::git::scratch::{self, Scratch};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::{RunId, ThreadId};
use crate::model::printable;

/// A bundle whose head is longer than this is none of ours.
const LONGEST_HEAD: u64 = 16 << 20;

/// More refs than this are not taken from one bundle, as from one remote.
const MOST_REFS: usize = 50_000;

/// The runs' folder in a bundle and in the repository that it is opened in.
const FOLDER: &str = "refs/handoff/";

/// Writes a bundle of runs and threads, each by the ref that holds it, and of the logs that lie beside those refs.
///
/// Fetched ones stand in it under the names that they have where they come from. What a run starts from is not part of it.
pub fn write(store: &Store, chains: &[(Place, String)], out: &mut dyn Write) -> Result<(), Error> {
    let mut scratch = Scratch::new(store.object_format())?;
    scratch.borrow_objects(store)?;
    let mut put: BTreeMap<Place, Oid> = BTreeMap::new();
    for (place, reference) in chains {
        let head = refs::read(store, reference)?.ok_or_else(|| Error::Gone(reference.clone()))?;
        if put.insert(place.clone(), head).is_some_and(|other| other != head) {
            return Err(Error::Twice(place.kind.word(), place.name.clone()));
        }
        let folder = reference.strip_suffix(&place.below("")).unwrap_or(FOLDER);
        if let Some(stamps) = place.stamps()
            && let Some(tree) = refs::read(store, &stamps.below(folder))?
        {
            put.insert(stamps, tree);
        }
        for (name, oid) in refs::list(store, folder)? {
            let log = name.strip_prefix(folder).and_then(Place::parse).filter(|place| place.kind == Kind::Log);
            if let Some(log) = log
                && put.insert(log.clone(), oid).is_some_and(|other| other != oid)
            {
                return Err(Error::TwoLogs(log.name));
            }
        }
    }
    for (place, oid) in &put {
        refs::create(scratch.store(), &place.below(FOLDER), *oid)?;
    }
    let names: String = put.keys().map(|place| place.below(FOLDER) + "\n").collect();
    let call = scratch.store().git().env("GIT_NO_LAZY_FETCH", "1");
    call.args(["bundle", "create", "--quiet", "-", "--stdin"])
        .input(names)
        .stream(&mut |chunk| out.write_all(chunk))?;
    Ok(())
}

/// A bundle that was opened.
pub struct Opened {
    /// The repository that it was opened in.
    pub scratch: Scratch,
    /// The runs in it.
    pub runs: Vec<RunId>,
    /// The threads in it.
    pub threads: Vec<ThreadId>,
    /// Names in it that are none of ours.
    pub skipped: Vec<String>,
}

/// Opens a bundle in a throw-away repository; every object is checked by git, no repository of the user's is touched.
pub fn open(path: &Path, largest: u64) -> Result<Opened, Error> {
    let unreadable = |error| Error::Read(path.to_owned(), error);
    let mut file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > largest {
        return Err(Error::TooLarge(path.to_owned(), largest));
    }
    let mut start = Vec::new();
    (&mut file).take(LONGEST_HEAD).read_to_end(&mut start).map_err(unreadable)?;
    let head = bundle_head(&start).ok_or_else(|| Error::NotABundle(path.to_owned()))?;
    drop(start);
    if head.refs.len() > MOST_REFS {
        return Err(Error::TooMany(path.to_owned(), head.refs.len()));
    }
    if let Some(asked) = head.asks.first() {
        return Err(Error::Capability(path.to_owned(), printable::line(asked)));
    }
    if !head.prerequisites.is_empty() {
        return Err(Error::Incomplete(path.to_owned(), head.prerequisites.len()));
    }
    file.seek(io::SeekFrom::Start(head.length as u64)).map_err(unreadable)?;
    let scratch = Scratch::new(&head.object_format)?;
    let call = scratch.store().git().frugal().config("transfer.fsckObjects=true").stdin(file);
    let call = call.largest_file(largest);
    call.args(["index-pack", "--stdin", "--fsck-objects"]).run().map_err(|error| match error {
        error if error.wants_memory() => Error::TooMuch(path.to_owned()),
        error => Error::Pack(path.to_owned(), error),
    })?;
    let mut opened = Opened { scratch, runs: Vec::new(), threads: Vec::new(), skipped: Vec::new() };
    name(&mut opened, &head, path)?;
    Ok(opened)
}

/// Gives what came in the names that the bundle has for it, as far as they are ours.
///
/// One that is nearly ours is refused, as is one that is there twice or holds nothing: whoever reads the list might take it for another.
fn name(opened: &mut Opened, head: &BundleHead, path: &Path) -> Result<(), Error> {
    let store = opened.scratch.store().clone();
    let mut seen = BTreeSet::new();
    for (oid, name) in &head.refs {
        let bad = |what| Error::Name(path.to_owned(), printable::line(name), what);
        if !seen.insert(name) {
            return Err(bad("is in it twice"));
        }
        let below = name.strip_prefix(FOLDER);
        let Some(place) = below.and_then(Place::parse) else {
            if below.is_some_and(Place::is_like_one) {
                return Err(bad("is no name that a run, thread or log has"));
            }
            opened.skipped.push(name.clone());
            continue;
        };
        if !store.contains(*oid) {
            return Err(bad("points at an object that is not in it"));
        }
        refs::create(&store, name, *oid)?;
        match place.kind {
            Kind::Run => opened.runs.extend(RunId::parse(&place.name).ok()),
            Kind::Thread => opened.threads.extend(ThreadId::parse(&place.name).ok()),
            Kind::Log | Kind::Transcripts | Kind::Stamps => {}
        }
    }
    Ok(())
}

/// Why a bundle could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("{} could not be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// It is something else.
    #[error("{} is not a git bundle of version 2 or 3", .0.display())]
    NotABundle(PathBuf),
    /// It asks for what nobody can check here: above all, to do without objects.
    #[error("{} asks its reader for {:?}, and what verify reads must be complete in itself", .0.display(), .1)]
    Capability(PathBuf, String),
    /// A name in it does not say what it holds.
    #[error("{} cannot be relied on: {:?} {}", .0.display(), .1, .2)]
    Name(PathBuf, String, &'static str),
    /// It holds only what is new to somebody who has the rest.
    #[error("{} is not complete: it needs {count} commits that are not in it", .0.display(), count = .1)]
    Incomplete(PathBuf, usize),
    /// It is larger than what may come in.
    #[error("{} is larger than {largest} bytes", .0.display(), largest = .1)]
    TooLarge(PathBuf, u64),
    /// git has no room for what is in it.
    #[error("{} holds objects that take more memory to put together than there is for them", .0.display())]
    TooMuch(PathBuf),
    /// It names more than anybody has.
    #[error("{} names {count} refs; not more than {MOST_REFS} are taken", .0.display(), count = .1)]
    TooMany(PathBuf, usize),
    /// What is in it is damaged.
    #[error("the objects in {} are not sound", .0.display())]
    Pack(PathBuf, #[source] program::Error),
    /// A ref went away in the meantime.
    #[error("there is no ref {0}")]
    Gone(String),
    /// One id, two chains.
    #[error("two different {0}s with the id {1:?} were named")]
    Twice(&'static str, String),
    /// One key, two logs.
    #[error("they come with two different logs of the key {0}")]
    TwoLogs(String),
    /// git could not write it.
    #[error("the bundle could not be written")]
    Write(#[from] program::Error),
    /// There was no place to work in.
    #[error(transparent)]
    Scratch(#[from] scratch::Error),
    /// A ref could not be read or made.
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
