//! Selects runs and threads for a bundle and writes the file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::git::retry;
use crate::git::store::Store;
use crate::git::temporary::NewFile;
use crate::git::writable::find_unwritable;
use crate::ledger::log::Extension;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::entry::Subject;
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};
use crate::repository::Repository;
use crate::run::query::Target;
use crate::run::query::target::own_runs;
use crate::thread::own_threads;
use crate::thread::target::ThreadTarget;

use super::bundle::Gathered;
use super::protected_files::ProtectedFiles;
use super::push_logs::{self, Outbound};
use super::{bundle, push_refs};

/// The content of a written bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundled {
    /// The number of runs.
    pub runs: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of files of the runs' bases.
    pub files: usize,
}

/// The selection of what to bundle.
#[derive(Clone, Copy, Debug)]
pub struct BundleRequest<'n> {
    /// The names of runs and threads; `None` for all of this repository.
    pub names: Option<&'n [String]>,
    /// True to include the protected files of the runs' bases.
    pub protected: bool,
}

/// The logs of a bundle, with their heads.
#[derive(Default)]
struct BundledLogs {
    heads: Vec<(LogName, Oid)>,
    /// Keeps the entries of a log without a ref until the bundle has them.
    _kept: Option<Extension>,
}

impl Repository {
    /// Writes the named runs and threads, or all of this repository, into a bundle, with their
    /// logs.
    pub fn bundle(&self, request: BundleRequest<'_>, out: &mut dyn Write) -> Result<Bundled, AnyError> {
        let chains = chains(&self.store, request.names)?;
        let logs = self.logs_of(&chains, request.names.is_none())?;
        let protected = if request.protected { self.protected_files(&chains)? } else { Vec::new() };
        bundle::write(&self.store, &chains, &logs.heads, &protected, out)?;
        let files = protected.iter().map(ProtectedFiles::count).sum();
        Ok(Bundled { runs: count_kind(Kind::Run, &chains), threads: count_kind(Kind::Thread, &chains), files })
    }

    /// Returns the protected files of each run that has any, once for each run.
    fn protected_files(&self, chains: &[(Place, String)]) -> Result<Vec<ProtectedFiles>, AnyError> {
        let runs: BTreeMap<RunId, &String> = chains
            .iter()
            .filter(|(place, _)| place.kind == Kind::Run)
            .filter_map(|(place, reference)| Some((RunId::parse(&place.name).ok()?, reference)))
            .collect();
        let mut all = Vec::new();
        for (run, reference) in runs {
            let view = Target { run, reference: reference.clone() }.view(&self.store)?;
            all.extend(ProtectedFiles::find(&self.store, &view).map_err(bundle::Error::from)?);
        }
        Ok(all)
    }

    /// Returns the refs of the bundle of these runs and threads.
    pub fn gather(&self, names: &[String]) -> Result<Gathered, AnyError> {
        let chains = chains(&self.store, Some(names))?;
        let logs = self.logs_of(&chains, false)?;
        Ok(Gathered::new(&self.store, &chains, &logs.heads)?)
    }

    /// Returns the logs that name runs and threads among these and, unless they are `all`, no
    /// others. A new log gets no ref here, so that bundles leave none.
    fn logs_of(&self, chains: &[(Place, String)], all: bool) -> Result<BundledLogs, AnyError> {
        let own = chains.iter().filter(|(place, reference)| *reference == place.below(format::REFS));
        let handed: BTreeSet<Subject> = own.filter_map(|(place, _)| push_logs::subject_of(place)).collect();
        if handed.is_empty() {
            return Ok(BundledLogs::default());
        }
        let (writer, here) = (self.log_writer()?, push_refs::list_local(&self.store)?);
        // Where nothing can be written, the logs go along as they are.
        let writer = writer.filter(|_| find_unwritable(&self.store).is_none());
        let handed = (!all).then_some(handed);
        let (there, theirs) = (BTreeMap::new(), BTreeMap::new());
        let (store, writer) = (&self.store, writer.as_ref());
        let firsts = std::cell::RefCell::default();
        let outbound =
            Outbound { firsts, store, writer, handed, ours: &here, there: &there, theirs: &theirs, folds: false };
        Ok(retry::run(|| {
            let mut logs = outbound.logs()?;
            let heads = std::mem::take(&mut logs.heads);
            logs.publish_known(store).map(|extension| BundledLogs { heads, _kept: extension })
        })?)
    }

    /// Writes a bundle file. An existing file is replaced atomically.
    pub fn bundle_into(&self, request: BundleRequest<'_>, path: &Path) -> Result<Bundled, AnyError> {
        let mut file = NewFile::next_to(path).map_err(file_error(path))?;
        let bundled = self.bundle(request, file.as_write())?;
        file.place().map_err(file_error(path))?;
        Ok(bundled)
    }
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source: io::Error| Error::File { path: path.to_owned(), source }
}

fn count_kind(kind: Kind, chains: &[(Place, String)]) -> usize {
    chains.iter().filter(|(place, _)| place.kind == kind).count()
}

/// Returns what to write, each with its ref. A name that a run and a thread share means both.
fn chains(store: &Store, names: Option<&[String]>) -> Result<Vec<(Place, String)>, AnyError> {
    let mut chains: Vec<(Place, String)> = Vec::new();
    if names.is_none() {
        chains.extend(own_runs(store)?.iter().map(|run| (Place::of_run(run), format::run_ref(run))));
        let threads = own_threads(store)?;
        chains.extend(threads.iter().map(|thread| (Place::of_thread(thread), format::thread_ref(thread))));
    }
    for word in names.unwrap_or_default() {
        let thread = ThreadTarget::look_for(store, word)?.filter(|target| target.checkpoint.is_none());
        let run = match thread {
            Some(_) => Target::look_up(store, word)?,
            None => Some(Target::find(store, word)?),
        };
        chains.extend(run.map(|run| (Place::of_run(&run.run), run.reference)));
        chains.extend(thread.map(|thread| (Place::of_thread(&thread.thread), thread.reference)));
    }
    if chains.is_empty() { Err(Error::Nothing.into()) } else { Ok(chains) }
}

errors! {
    /// An error while writing a bundle.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Nothing "no-runs": "there are no runs or threads here";
    File { path: PathBuf, source: io::Error } "io": "{} could not be written" [path.display()];
}
