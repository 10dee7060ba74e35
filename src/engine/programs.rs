//! Identifies the programs of attempts by path, digest and version.

mod search;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::credential;
use crate::model::digest::{Digest, HashingReader};
use crate::model::printable;
use crate::model::program::{Interpreter, MAX_VERSION, Program};
use crate::repository::Repository;
use crate::sandbox::Confinement;

use super::command::Resolved;
use super::shell_line;
use search::Search;
pub(super) use search::{is_there, missing, name_of};

/// The largest file that is hashed, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// The time limit of a version command.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of a version command's output that are read.
const MAX_OUTPUT: u64 = 4096;

/// The most bytes of a script's first line that Linux reads.
const MAX_FIRST_LINE: u64 = 256;

/// Identified programs, each hashed once and asked for its version once while the driver lives.
pub(crate) struct Programs {
    is_recorded: bool,
    variables: Arc<BTreeMap<String, OsString>>,
    top: PathBuf,
    files: Mutex<HashMap<FileKey, FileContent>>,
    versions: Mutex<BTreeMap<String, Result<String, String>>>,
    /// The notes that an operator already has.
    noted: Mutex<BTreeSet<String>>,
}

/// The program of an attempt.
#[derive(Default)]
pub(super) struct Executed {
    pub(super) program: Option<Program>,
    pub(super) interpreter: Option<Interpreter>,
    /// Why something is missing. Each reason is given once.
    pub(super) notes: Vec<String>,
}

/// The state of a file: a changed file has another one.
#[derive(PartialEq, Eq, Hash)]
struct FileKey {
    path: PathBuf,
    place: (u64, u64),
    size: u64,
    times: [(i64, i64); 2],
}

#[derive(Clone)]
struct FileContent {
    sha256: Digest,
    size: u64,
    /// The line after `#!`, for a script.
    interpreter: Option<String>,
}

impl Programs {
    /// Returns an empty cache.
    pub(crate) fn new(repository: &Repository) -> Self {
        let store = &repository.store;
        Self {
            is_recorded: repository.config.record_program,
            variables: repository.environment.variables.clone(),
            top: store.work_dir().unwrap_or_else(|| store.git_dir()),
            files: Mutex::default(),
            versions: Mutex::default(),
            noted: Mutex::default(),
        }
    }

    /// Identifies the program of a command that runs with these variables.
    ///
    /// The program is absent if the settings say so, if it is not found, which ends the attempt, or
    /// if it is in the worktree, which the base determines.
    pub(super) fn identify(
        &self,
        command: &Resolved,
        env: &BTreeMap<String, OsString>,
        by: Option<&Confinement>,
    ) -> Executed {
        let mut executed = Executed::default();
        if !self.is_recorded {
            return executed;
        }
        let search = Search::new(&command.env, env, by);
        let Some(found) = search.program(&command.argv, command.settings.command.is_some()) else { return executed };
        let Some((path, content)) = self.read(&found, &mut executed) else { return executed };
        let line = content.interpreter.as_deref();
        if let Some(interpreter) = line.and_then(|line| search.interpreter(line))
            && let Some((interpreter_path, FileContent { sha256, size, .. })) = self.read(&interpreter, &mut executed)
        {
            executed.interpreter = Some(Interpreter { path: interpreter_path, sha256, size });
        }
        let version = command.settings.version_command.as_ref();
        let version = version.and_then(|version_line| match self.version(version_line) {
            Ok(output) => Some(output),
            Err(why) => {
                self.note(&mut executed, format!("the version command `{version_line}` gives no version: {why}"));
                None
            }
        });
        executed.program = Some(Program { path, sha256: content.sha256, size: content.size, version });
        executed
    }

    /// Returns the real path and the content of a file, or `None` with a note.
    fn read(&self, found: &Path, executed: &mut Executed) -> Option<(String, FileContent)> {
        let read = fs::canonicalize(found).and_then(|real| Ok((self.content(&real)?, real)));
        match read {
            Ok((content, real)) => Some((real.to_string_lossy().into_owned(), content)),
            Err(error) => {
                self.note(executed, format!("the program {} is not recorded: {error}", found.display()));
                None
            }
        }
    }

    fn content(&self, real: &Path) -> io::Result<FileContent> {
        let mut file = File::open(real)?;
        let meta = file.metadata()?;
        if meta.len() > MAX_FILE {
            return Err(io::Error::other(format!("it has more than {} MiB", MAX_FILE >> 20)));
        }
        let key = FileKey {
            path: real.to_owned(),
            place: (meta.dev(), meta.ino()),
            size: meta.len(),
            times: [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())],
        };
        if let Some(content) = lock(&self.files).get(&key) {
            return Ok(content.clone());
        }
        let mut start = Vec::new();
        file.by_ref().take(MAX_FIRST_LINE).read_to_end(&mut start)?;
        let mut all = HashingReader::new(start.as_slice().chain(file.take(MAX_FILE)));
        io::copy(&mut all, &mut io::sink())?;
        let (sha256, size) = all.finish();
        let first = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let interpreter = first.strip_prefix(b"#!").map(|line| String::from_utf8_lossy(line).into_owned());
        let content = FileContent { sha256, size, interpreter };
        lock(&self.files).insert(key, content.clone());
        Ok(content)
    }

    /// Returns the first line that a version command prints.
    fn version(&self, line: &str) -> Result<String, String> {
        // The lock is held while the command runs, so that it runs only once.
        let mut known = lock(&self.versions);
        known.entry(line.to_owned()).or_insert_with(|| self.ask_version(line)).clone()
    }

    fn ask_version(&self, line: &str) -> Result<String, String> {
        let out = shell_line::run(line, &self.top, &self.variables, TIME_LIMIT)?;
        let mut bytes = Vec::new();
        out.take(MAX_OUTPUT).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        let first = text.lines().next().unwrap_or_default().trim();
        let version: String = printable::line(&credential::redact(first)).chars().take(MAX_VERSION).collect();
        if version.is_empty() { Err("its first line is empty".to_owned()) } else { Ok(version) }
    }

    fn note(&self, executed: &mut Executed, note: String) {
        if lock(&self.noted).insert(note.clone()) {
            executed.notes.push(note);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
