//! Records work without a plan file: one command, or commits that were made before.

mod agent;
pub(super) mod left;
mod plan;
pub(super) mod sealed;
mod settings;
mod startable;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::git::protectable::KnownFiles;
use crate::git::snapshot::{self, IgnoreRules, Snapshot};
use crate::git::work_tree;
use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::name::{FilePath, RunId};
use crate::model::printable;
use crate::plan::validate::Problems;
use crate::repository::Repository;
use crate::repository::agent::AgentNeeds;
use crate::run::operate::submission::{Submission, Wanted};
use crate::run::operate::submit;
use crate::run::query::target::Target;

use super::machine;
use super::operations::Manner;
pub use plan::ITEM;
use sealed::Decided;
pub use sealed::Error as SettingsError;
pub use settings::Unknown;

/// The start of the id of a run without a given name.
const PREFIX: &str = "record-";

/// How many letters an id without a given name has. In four thousand ids of a day, two are equal
/// with a probability of one half; the second run is then refused by the remote that has the first.
const ID_LETTERS: usize = 5;

/// How many ids are tried before recording fails.
const ID_ATTEMPTS: u8 = 16;

/// The most changed files that an error names.
const NAMED: usize = 3;

/// A command to record.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The program and its arguments; empty with `agent`.
    pub command: Vec<String>,
    /// The preset or subagent whose own line runs, with the goal as its task.
    pub agent: Option<String>,
    /// The line of that agent, which `Repository::record` finds.
    pub line: Option<String>,
    /// The command line that checks the result.
    pub check: Option<String>,
    /// Whether the check protects the known files of the repository if no setting protects some.
    pub protect: bool,
    /// The goal, for readers.
    pub goal: Option<String>,
    /// The preset, subagent or executor whose settings apply, or `None` for that of the program.
    pub executor: Option<String>,
    /// Whether it runs in the user's own work tree, or `None` for a worktree of its own.
    pub here: Option<Here>,
}

/// How a command runs in the user's own work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// It must have no changes before.
    Clean,
    /// Its state before, with all changes, is the base.
    Dirty,
}

/// A submitted recording.
pub struct Begun {
    /// The submitted run.
    pub submission: Submission,
    /// How to drive it.
    pub manner: Manner,
    /// The known files that its plan protects, because no setting protects any, and those that it
    /// leaves out.
    pub known: KnownFiles,
    /// The needs of the known agent that it starts.
    pub agent: Option<AgentNeeds>,
    /// The shortcomings of the command line of a known agent.
    pub lacks: Option<Lacks>,
}

/// The shortcomings of the command line of a known agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// The agent.
    pub agent: &'static str,
    /// The shortcomings, each as a part of a sentence.
    pub remarks: Vec<&'static str>,
}

/// A run to submit under some id.
struct Draft<'a> {
    plan: &'a dyn Fn(&RunId) -> serde_json::Value,
    options: Wanted,
}

impl Repository {
    /// Submits a run of one item for a command. Problems of the plan are a result, not an error.
    ///
    /// An unfinished run of the same name and command is continued; any other is an error.
    pub fn record(&self, run: Option<&RunId>, recording: &Recording) -> Result<Result<Begun, Problems>, AnyError> {
        let recording = &agent::with_line(self, recording)?;
        let decided = Decided::read(self, recording).map_err(Error::Settings)?;
        let known = settings::protected(self, recording);
        let directory = self.directory()?;
        let head = submit::resolve_base(&self.store, "HEAD")?;
        startable::expect(self, recording, &decided, head, directory.as_ref())?;
        let base = recording.here.map(|here| self.base_here(here)).transpose()?;
        let plan = |id: &RunId| plan::of_command(id, recording, (&decided, &known.protect), directory.as_ref());
        let draft = Draft { plan: &plan, options: Wanted { base, recorded: true, ..Wanted::default() } };
        let submitted = self.submit_recording(run, &draft)?;
        let manner = if recording.here.is_some() { Manner::Here } else { Manner::Worktrees };
        let (agent, lacks) = (decided.agent.clone(), agent::lacks(recording));
        Ok(submitted.map(|submission| Begun { submission, manner, known, agent, lacks }))
    }

    /// Submits a run with one item for each commit of a range, along first parents. Problems of the
    /// plan are a result, not an error.
    pub fn record_commits(
        &self,
        run: Option<&RunId>,
        range: &str,
        goal: Option<&str>,
    ) -> Result<Result<Begun, Problems>, AnyError> {
        let (base, claims) =
            snapshot::first_parents(&self.store, range, self.config.max_items).map_err(Error::Snapshot)?;
        let items = plan::of_claims(&self.store, base, &claims, goal)?;
        let plan = |id: &RunId| plan::of_items(id, &items);
        let options = Wanted { base: Some(base.to_string()), claimed: true, ..Wanted::default() };
        let submitted = self.submit_recording(run, &Draft { plan: &plan, options })?;
        let (manner, known) = (Manner::Commits, KnownFiles::default());
        Ok(submitted.map(|submission| Begun { submission, manner, known, agent: None, lacks: None }))
    }

    /// Submits it under its name, or under an id that no other clone makes.
    fn submit_recording(
        &self,
        run: Option<&RunId>,
        draft: &Draft<'_>,
    ) -> Result<Result<Submission, Problems>, AnyError> {
        if let Some(run) = run {
            return self.submit_named(run, draft);
        }
        for attempt in 0..ID_ATTEMPTS {
            let new_run = self.new_id(draft, attempt)?;
            match self.submit_named(&new_run, draft) {
                // A run with this id is here, or was deleted.
                Ok(Ok(submission)) if !submission.created => {}
                Err(error) if is_used(&error) => {}
                other => return other,
            }
        }
        Err(Error::Ids.into())
    }

    /// Returns an id of today whose letters depend on the key, the time, the plan and chance. With
    /// a pinned clock there is no chance, so that equal commands have equal ids.
    fn new_id(&self, draft: &Draft<'_>, attempt: u8) -> Result<RunId, AnyError> {
        let now = self.environment.clock.now().to_string();
        let stem = format!("{PREFIX}{}-", now.split('T').next().unwrap_or_default());
        let id = |letters: &str| RunId::parse(&format!("{stem}{letters}")).map_err(|_| Error::Clock);
        let mut chance = [0; 16];
        if !self.environment.clock.is_pinned() {
            getrandom::fill(&mut chance).map_err(|_| Error::Ids)?;
        }
        let own = self.own_fingerprint().unwrap_or_default();
        let plan = (draft.plan)(&id("x")?).to_string();
        let parts = [own.as_bytes(), now.as_bytes(), plan.as_bytes(), &[attempt], &chance[..]];
        Ok(id(&letters(Digest::compute(&parts.join(&0))))?)
    }

    fn submit_named(&self, run: &RunId, draft: &Draft<'_>) -> Result<Result<Submission, Problems>, AnyError> {
        let bytes = serde_json::to_vec(&(draft.plan)(run)).expect("a JSON object serialises");
        let submitted =
            self.submit(&bytes, PathBuf::new(), &draft.options).map_err(|error| match error.downcast_ref() {
                Some(submit::Error::Different(used)) => Error::Taken(used.clone()).into(),
                _ => error,
            })?;
        match submitted {
            Ok(submission) if !submission.created && Target::own(run.clone()).view(&self.store)?.state.sealed => {
                Err(Error::Taken(run.clone()).into())
            }
            other => Ok(other),
        }
    }

    /// Returns the folder of the work tree that the caller is in, or `None` at the top or outside.
    fn directory(&self) -> Result<Option<FilePath>, AnyError> {
        let Some(top) = self.store.work_dir().map(|top| real(&top)) else { return Ok(None) };
        let here = real(&self.environment.directory);
        let Ok(below) = here.strip_prefix(&top) else { return Ok(None) };
        if below.as_os_str().is_empty() || here.starts_with(real(&self.store.git_dir())) {
            return Ok(None);
        }
        let path = below.to_str().and_then(|below| FilePath::parse(below).ok());
        Ok(Some(path.ok_or_else(|| Error::Directory(below.to_owned()))?))
    }

    /// Returns the base of a command in the user's own work tree: `HEAD`, or a commit of its state.
    fn base_here(&self, here: Here) -> Result<String, AnyError> {
        let excluded = [self.config.inputs.as_str(), self.config.outputs.as_str()];
        let (head, _) = work_tree::head(&self.store).map_err(Error::WorkTree)?.ok_or(submit::Error::Unborn)?;
        let usual = machine::user_folder(&self.environment, "XDG_CONFIG_HOME", ".config");
        let rules =
            IgnoreRules::read(&self.store, usual.map(|folder| folder.join("git/ignore"))).map_err(Error::Snapshot)?;
        let snapshot = Snapshot::new(&self.store, head).map_err(Error::Snapshot)?;
        let changed = snapshot.changed(&rules, &excluded).map_err(Error::Snapshot)?;
        if changed.is_empty() {
            return Ok(head.to_string());
        }
        if here == Here::Clean {
            let names: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
            return Err(Error::Dirty(printable::first_of(&names, NAMED)).into());
        }
        // Sealed files can be pushed.
        let gate = self.gate();
        for path in &changed {
            let place = snapshot.root().join(path);
            let Ok(meta) = place.symlink_metadata() else { continue };
            let mut content: Box<dyn Read> = if meta.is_symlink() {
                let target = std::fs::read_link(&place).map_err(|error| Error::Read(place.clone(), error))?;
                Box::new(io::Cursor::new(target.into_os_string().into_encoded_bytes()))
            } else if meta.is_file() {
                Box::new(std::fs::File::open(&place).map_err(|error| Error::Read(place.clone(), error))?)
            } else {
                continue;
            };
            gate.check_reader(&path.display().to_string(), &mut content)
                .map_err(|error| Error::Read(place.clone(), error))??;
        }
        Ok(snapshot::commit(&self.store, &excluded).map_err(Error::Snapshot)?.to_string())
    }
}

/// Returns the letters of an id.
fn letters(digest: Digest) -> String {
    let bytes = digest.as_bytes().iter().take(ID_LETTERS);
    bytes.map(|byte| char::from(b'a' + byte % 26)).collect()
}

/// Resolves a path, or returns it as it is if that fails.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns true if the id belongs to another run, here or deleted.
fn is_used(error: &AnyError) -> bool {
    matches!(error.downcast_ref(), Some(Error::Taken(_)))
        || matches!(error.downcast_ref(), Some(submit::Error::Used(_)))
}

errors! {
    /// Failures to record work.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Taken(RunId) "run-exists": "the run {0:?} exists already, and it is not the same work unfinished";
    Program(String) "no-program": "cannot find the program {0:?}";
    Uncommitted(String) "no-program":
        "cannot run {0:?}: it is not committed, and the command starts from the commit HEAD";
    Agent { name: String, near: Option<String> } "unknown-agent":
        "{name:?} is no known agent, and no subagent is registered here under that name";
    NoLine(String) "unknown-agent": "the subagent {0:?} is registered here without a command";
    Dirty(String) "dirty": "the work tree has changes before the command runs: {0}";
    Directory(PathBuf) "usage":
        "the folder {0:?} has a name that a plan cannot hold: start from the top of the work tree";
    Clock "usage": "the clock shows no valid date, so the run needs a name: --as NAME";
    NoRecording(RunId) "no-recording": "the run {0:?} is no recording of a command";
    NothingLeft(RunId) "nothing-left": "the command of {0:?} failed, and nothing of its work is left in a worktree";
    Ids: "cannot choose an id for the run: name one with --as NAME";
    Read(PathBuf, #[source] std::io::Error) "io": "{} could not be read" [.0.display()];
    #[from] Settings(sealed::Error), Snapshot(snapshot::Error);
    #[from "git"] WorkTree(work_tree::Error);
}
