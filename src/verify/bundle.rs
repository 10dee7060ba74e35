//! Verifies the runs and threads in a bundle file, in a temporary repository.

mod carried;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use crate::git::fsck;
use crate::git::porcelain::{BundleHead, bundle_head};
use crate::git::program;
use crate::git::refs;
use crate::git::scratch_repo::{self, ScratchRepo};
use crate::git::store::{self, Store};
use crate::git::unpacked_size;
use crate::model::bounds;
use crate::model::format::{self, REFS, run_ref, thread_ref};
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, MOST_REFS, Place};
use crate::model::printable;

use carried::Unpacking;

use super::{AskAnchors, AtHand, Error, Logs, Options, Report, Row, ThreadReport, ThreadsAtHand, thread, verify_with};

const LONGEST_HEAD: u64 = 16 << 20;

/// A bundle in a temporary repository, which is deleted on drop.
pub struct Bundle {
    scratch: ScratchRepo,
    runs: Vec<RunId>,
    threads: Vec<ThreadId>,
    skipped: Vec<String>,
    /// The bases of the runs, as far as they are here.
    bases: ScratchRepo,
}

/// The report on one chain in a bundle.
#[derive(Clone, Debug)]
pub enum ChainReport {
    /// A run.
    Run(Box<Report>),
    /// A thread.
    Thread(Box<ThreadReport>),
}

impl ChainReport {
    /// Returns the name of the run or thread.
    pub fn name(&self) -> &str {
        match self {
            Self::Run(report) => &report.run,
            Self::Thread(report) => report.thread.as_str(),
        }
    }

    /// Returns the rows in the order of the report. They may hold text that others wrote.
    pub fn rows(&self) -> Vec<&Row> {
        match self {
            Self::Run(report) => report.rows.iter().collect(),
            Self::Thread(report) => report.rows.iter().collect(),
        }
    }

    /// Returns true if nothing failed and nothing was missing.
    pub fn is_intact(&self) -> bool {
        match self {
            Self::Run(report) => report.intact,
            Self::Thread(report) => report.intact,
        }
    }
}

/// Returns true for the capability of a bundle that lacks blobs on purpose.
fn omits_blobs(capability: &str) -> bool {
    let limit = capability.strip_prefix("filter=blob:limit=");
    capability == "filter=blob:none"
        || limit.is_some_and(|digits| (1..=18).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl Bundle {
    /// Opens a bundle of at most `largest` bytes. Git checks every object; no other repository is
    /// touched.
    pub fn open(path: &Path, largest: u64) -> Result<Self, BundleError> {
        let mut file = File::open(path).map_err(unreadable(path))?;
        let size = file.metadata().map_err(unreadable(path))?.len();
        if size > largest {
            return Err(BundleError::TooLarge(path.to_owned(), largest));
        }
        let mut start = Vec::new();
        (&mut file).take(LONGEST_HEAD).read_to_end(&mut start).map_err(unreadable(path))?;
        let head = bundle_head(&start).ok_or_else(|| BundleError::NotABundle(path.to_owned()))?;
        drop(start);
        if head.refs.len() > MOST_REFS {
            return Err(BundleError::TooMany(path.to_owned(), head.refs.len()));
        }
        // Blobs that a filter left out are missing as in a partial clone.
        let (filters, others): (Vec<&String>, Vec<&String>) =
            head.asks.iter().partition(|capability| head.is_newer && omits_blobs(capability));
        let is_filtered = !filters.is_empty();
        if let Some(capability) = others.first().or_else(|| filters.get(1)) {
            return Err(BundleError::Capability(path.to_owned(), printable::line(capability)));
        }
        if !head.prerequisites.is_empty() {
            return Err(BundleError::Incomplete(path.to_owned(), head.prerequisites.len()));
        }
        let pack = head.length as u64;
        file.seek(io::SeekFrom::Start(pack)).map_err(unreadable(path))?;
        let scratch = ScratchRepo::new(&head.object_format)?.partial_if(is_filtered)?;
        let hash_length = scratch.store().hash_kind().len_in_bytes();
        let most = bounds::unpacked(size.saturating_sub(pack));
        if !unpacked_size::fits(BufReader::new(&file), hash_length, most).map_err(unreadable(path))? {
            return Err(BundleError::Unpacked(path.to_owned(), most));
        }
        file.seek(io::SeekFrom::Start(pack)).map_err(unreadable(path))?;
        let call = scratch.store().git().frugal().config("transfer.fsckObjects=true").stdin(file);
        let call = call.largest_file(largest);
        let check = format!(
            "--fsck-objects{}",
            fsck::exceptions(&|| scratch.store().git()).map_err(scratch_repo::Error::from)?
        );
        call.args(["index-pack", "--stdin", &check]).run().map_err(|error| match error {
            error if error.wants_memory() => BundleError::TooMuch(path.to_owned()),
            error => BundleError::Pack(path.to_owned(), error),
        })?;
        let mut bases = ScratchRepo::new(&head.object_format)?;
        bases.borrow_objects(scratch.store())?;
        let mut bundle = Self { scratch, runs: Vec::new(), threads: Vec::new(), skipped: Vec::new(), bases };
        bundle.name(&head, path)?;
        Ok(bundle)
    }

    /// Takes the bases of runs, or files of them that the bundle lacks, from another repository,
    /// where it has them. Nothing else is taken from it.
    pub fn with_bases(mut self, store: &Store) -> Result<Self, BundleError> {
        if store.hash_kind() == self.scratch.store().hash_kind() {
            self.bases.borrow_objects_of(&[self.scratch.store(), store])?;
        }
        Ok(self)
    }

    /// Verifies the runs in the bundle, then the threads: all, or those in `names`. Each is
    /// verified when the iterator reaches it.
    ///
    /// Each stands alone, as described at [`Options::alone`]: only the bundle's logs and
    /// `witnesses`, logs of another repository, count. Returns an error if the bundle has nothing
    /// to verify, or does not contain one of `names`.
    pub fn verify<'a>(
        &'a self,
        names: &[String],
        witnesses: Logs,
        ask: AskAnchors<'a>,
        options: &Options,
    ) -> Result<impl Iterator<Item = Result<ChainReport, Error>> + use<'a>, BundleError> {
        let runs = self.runs.iter().map(One::Run);
        let all: Vec<One<'_>> = runs.chain(self.threads.iter().map(One::Thread)).collect();
        if let Some(missing) = names.iter().find(|name| !all.iter().any(|one| one.name() == *name)) {
            return Err(BundleError::Missing(missing.clone()));
        }
        if all.is_empty() {
            return Err(BundleError::Empty);
        }
        let selected: Vec<One<'_>> =
            all.into_iter().filter(|one| names.is_empty() || names.iter().any(|name| name == one.name())).collect();
        let store = self.scratch.store();
        let logs = Logs::read(store)?.with_witnesses(witnesses);
        let options = Options { alone: true, ..options.clone() };
        Ok(selected.into_iter().map(move |one| match one {
            One::Run(run) => {
                let at_hand = AtHand { logs: &logs, ask: ask.run, bases: Some(self.bases.store()) };
                verify_with(store, &at_hand, run, &run_ref(run), &options)
                    .map(|report| ChainReport::Run(Box::new(report)))
            }
            One::Thread(id) => {
                thread(store, ThreadsAtHand { logs: &logs, ask: ask.thread }, id, &thread_ref(id), &options)
                    .map(|report| ChainReport::Thread(Box::new(report)))
            }
        }))
    }

    /// Returns the refs in the bundle that belong to another tool. Their objects are not examined.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Creates the bundle's refs of runs, threads, logs and archives.
    ///
    /// Refuses a ref name that resembles ours, occurs twice, or names a missing object: a reader
    /// could mistake it for another.
    fn name(&mut self, head: &BundleHead, path: &Path) -> Result<(), BundleError> {
        let store = self.scratch.store().clone();
        let mut names = BTreeSet::new();
        let (mut archives, mut carried) = (Vec::new(), Unpacking::new(&store));
        for (oid, name) in &head.refs {
            let bad = |what| BundleError::Name(path.to_owned(), printable::line(name), what);
            if !names.insert(name) {
                return Err(bad("occurs twice"));
            }
            let below = name.strip_prefix(REFS);
            if below.is_some_and(|_| is_protected_ref(name)) {
                carried.unpack(*oid, self.bases.store())?;
                continue;
            }
            let Some(place) = below.and_then(Place::parse) else {
                if below.is_some_and(Place::is_like_one) {
                    return Err(bad("is not the name of a run, thread or log"));
                }
                self.skipped.push(name.clone());
                continue;
            };
            if !store.contains(*oid) {
                return Err(bad("names a missing object"));
            }
            // A broken archive must not affect a run with a ref of its own, so archives come last.
            if place.kind == Kind::Archive {
                archives.push((name, *oid));
                continue;
            }
            refs::create(&store, name, *oid)?;
            match place.kind {
                Kind::Run => self.runs.extend(RunId::parse(&place.name).ok()),
                Kind::Thread => self.threads.extend(ThreadId::parse(&place.name).ok()),
                Kind::Log | Kind::Archive | Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps => {}
            }
        }
        for (name, oid) in archives {
            refs::create(&store, name, oid)?;
        }
        Ok(())
    }
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> BundleError {
    move |error| BundleError::Read(path.to_owned(), error)
}

/// Returns true for the ref of the protected files of a run's base.
fn is_protected_ref(name: &str) -> bool {
    name.strip_prefix(&format::protected_refs()).is_some_and(|segment| RunId::decode(segment).is_some())
}

enum One<'a> {
    Run(&'a RunId),
    Thread(&'a ThreadId),
}

impl One<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Run(run) => run.as_str(),
            Self::Thread(thread) => thread.as_str(),
        }
    }
}

errors! {
    /// A reason why a bundle cannot be opened or verified.
    #[derive(Debug, thiserror::Error)] pub enum BundleError = "bundle";
    Read(PathBuf, #[source] io::Error): "cannot read {}" [.0.display()];
    NotABundle(PathBuf): "{} is not a git bundle of version 2 or 3" [.0.display()];
    Capability(PathBuf, String): "{} requires the capability {:?}, which verify does not support" [.0.display(), .1];
    Name(PathBuf, String, &'static str): "{} is ambiguous: the ref {:?} {}" [.0.display(), .1, .2];
    Incomplete(PathBuf, usize):
        "{} is not complete: it needs {count} commits that are not in it" [.0.display(), count = .1];
    TooLarge(PathBuf, u64): "{} is larger than {largest} bytes" [.0.display(), largest = .1];
    TooMuch(PathBuf): "{} holds objects that need more memory than is available" [.0.display()];
    Unpacked(PathBuf, u64):
        "the objects in {} have more than {} bytes, the limit for a file of its size" [.0.display(), .1];
    TooMany(PathBuf, usize): "{} names {count} refs; the limit is {MOST_REFS}" [.0.display(), count = .1];
    Pack(PathBuf, #[source] program::Error): "cannot read the objects in {}" [.0.display()];
    Missing(String) "unknown-run": "there is no run or thread {0:?} in the bundle";
    Empty "no-runs": "there are no runs or threads in the bundle";
    #[from] ScratchRepo(scratch_repo::Error), Ref(refs::Error), Store(store::Error), Logs(Error);
}
