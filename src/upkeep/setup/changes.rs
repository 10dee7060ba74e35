//! Composes changes of a repository's configuration, and writes them with `git config`.

use serde::Serialize;

use crate::git::{program, store::Store};
use crate::repository::Repository;
use crate::repository::config::SETTINGS;

/// A line of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Line {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// The composed changes.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    steps: Vec<Step>,
    /// Lines that stay as they are.
    pub unchanged: Vec<Line>,
    /// Warnings about answers that do not fit this machine or repository.
    pub warnings: Vec<String>,
    /// Notes on the changes, such as their costs and the files that are not protected.
    pub notes: Vec<String>,
}

/// One call of `git config`.
#[derive(Clone, Debug)]
struct Step {
    key: String,
    /// All values of the key, or the only one to remove if nothing is added.
    removed: Vec<String>,
    added: Option<String>,
}

/// The output of `init --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.init/1")]
pub struct SetupAnswer<'a> {
    /// The configuration file.
    pub file: String,
    /// Lines that were written.
    pub added: Vec<Line>,
    /// Lines that were removed.
    pub removed: Vec<Line>,
    /// Lines that were there before and stay.
    #[serde(rename = "kept")]
    pub unchanged: &'a [Line],
    /// Notes on the changes, such as a file that is not protected.
    pub notes: &'a [String],
}

impl Step {
    fn write(&self, store: &Store) -> Result<(), program::Error> {
        let git = store.git().args(["config", "--local"]);
        let git = match (&self.added, self.removed.first()) {
            (Some(value), None) => git.args(["--add", &self.key, value]),
            (Some(value), Some(_)) => git.args(["--replace-all", &self.key, value]),
            (None, Some(value)) => git.args(["--fixed-value", "--unset-all", &self.key, value]),
            (None, None) => return Ok(()),
        };
        git.run().map(drop)
    }

    fn line(&self, value: &str) -> Line {
        Line { key: self.key.clone(), value: value.to_owned() }
    }
}

impl Setup {
    /// Returns true if nothing is to be changed.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the lines to remove.
    pub fn removed(&self) -> Vec<Line> {
        self.steps.iter().flat_map(|step| step.removed.iter().map(|value| step.line(value))).collect()
    }

    /// Returns the lines to add, in the order in which they are written.
    pub fn added(&self) -> Vec<Line> {
        self.steps.iter().filter_map(|step| step.added.as_ref().map(|value| step.line(value))).collect()
    }
}

/// Collects changes of the settings in the repository's own file.
pub(super) struct Composer {
    local: Vec<Line>,
    setup: Setup,
}

impl Composer {
    /// Reads the repository's own file, without the files that it includes.
    pub(super) fn read(store: &Store) -> Result<Self, program::Error> {
        let listed = store.git().args(["config", "--local", "--no-includes", "-z", "--list"]).run()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let local = listed
            .split('\0')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('\n').unwrap_or((pair, "true"));
                Line { key: key.to_owned(), value: value.to_owned() }
            })
            .collect();
        Ok(Self { local, setup: Setup::default() })
    }

    /// Returns the values of a key.
    pub(super) fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.local.iter().filter(move |line| is_same_key(&line.key, key)).map(|line| line.value.as_str())
    }

    /// Gives a key one value, or none.
    pub(super) fn set(&mut self, key: &str, value: Option<&str>) {
        let before: Vec<String> = self.values(key).map(str::to_owned).collect();
        match value {
            Some(value) if before == [value] => {}
            Some(value) => self.step(key, before, Some(value)),
            None => before.into_iter().for_each(|earlier| self.step(key, vec![earlier], None)),
        }
    }

    /// Adds a value, unless the key has it.
    pub(super) fn add(&mut self, key: &str, value: &str) {
        if !self.values(key).any(|there| there == value) {
            self.step(key, Vec::new(), Some(value));
        }
    }

    /// Returns true if a value of a key is to be removed.
    pub(super) fn removes(&self, key: &str, value: &str) -> bool {
        self.setup.steps.iter().any(|step| is_same_key(&step.key, key) && step.removed.iter().any(|it| it == value))
    }

    /// Adds words as one value, unless there is none.
    pub(super) fn add_words<'a>(&mut self, key: &str, words: impl Iterator<Item = &'a String>) {
        let words: Vec<&str> = words.map(String::as_str).collect();
        if !words.is_empty() {
            self.step(key, Vec::new(), Some(&words.join(" ")));
        }
    }

    /// Removes a value.
    pub(super) fn remove(&mut self, key: &str, value: &str) {
        if self.values(key).any(|there| there == value) {
            self.step(key, vec![value.to_owned()], None);
        }
    }

    /// Gives a key exactly these values.
    pub(super) fn list(&mut self, key: &str, values: &[String]) {
        let before: Vec<String> = self.values(key).map(str::to_owned).collect();
        for (at, value) in values.iter().enumerate() {
            if !values[..at].contains(value) {
                self.add(key, value);
            }
        }
        for (at, value) in before.iter().enumerate() {
            if !values.contains(value) && !before[..at].contains(value) {
                self.remove(key, value);
            }
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.setup.notes.push(note);
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.setup.warnings.push(warning);
    }

    /// Returns the changes. `worker` is the section whose other lines are listed as kept, as are
    /// protected files.
    pub(super) fn finish(mut self, worker: &str) -> Setup {
        let steps = &self.setup.steps;
        let unchanged = self.local.iter().filter(|line| {
            let section = line.key.rsplit_once('.').map_or("", |(section, _)| section);
            let is_ours = section == worker
                || line.key == "handoff.protect"
                || is_same_key(&line.key, "handoff.onProtectedChange");
            is_ours && !steps.iter().any(|step| is_same_key(&line.key, &step.key) && step.removed.contains(&line.value))
        });
        self.setup.unchanged = unchanged.map(|line| Line { key: as_documented(&line.key), ..line.clone() }).collect();
        self.setup
    }

    fn step(&mut self, key: &str, removed: Vec<String>, added: Option<&str>) {
        self.setup.steps.push(Step { key: key.to_owned(), removed, added: added.map(str::to_owned) });
    }
}

/// Returns a key that git lists in lower case with the capitals of the documentation.
fn as_documented(key: &str) -> String {
    let names = SETTINGS.iter().flat_map(|group| group.entries).flat_map(|entry| entry.names);
    let mut fields = names.filter_map(|name| name.rsplit_once('.').map(|(_, field)| field));
    match key.rsplit_once('.') {
        Some((section, last)) => {
            let field = fields.find(|field| field.eq_ignore_ascii_case(last)).unwrap_or(last);
            format!("{section}.{field}")
        }
        None => key.to_owned(),
    }
}

/// Returns true if two keys are the same for git, which ignores case in their last part.
fn is_same_key(listed: &str, key: &str) -> bool {
    match (listed.rsplit_once('.'), key.rsplit_once('.')) {
        (Some((section, name)), Some((other_section, other))) => {
            section == other_section && name.eq_ignore_ascii_case(other)
        }
        _ => false,
    }
}

impl Repository {
    /// Writes the changes into the repository's configuration, one line after the other. An error
    /// names what is in it.
    pub fn write_setup<'a>(&self, setup: &'a Setup) -> Result<SetupAnswer<'a>, WriteError> {
        for (at, step) in setup.steps.iter().enumerate() {
            step.write(&self.store).map_err(|source| {
                let written = setup.steps[..at].iter().map(|done| format!("`{}`", done.key)).collect();
                WriteError { key: step.key.clone(), written, source }
            })?;
        }
        Ok(self.describe_setup(setup))
    }

    /// Returns the answer about changes that are written, or that are none.
    pub fn describe_setup<'a>(&self, setup: &'a Setup) -> SetupAnswer<'a> {
        SetupAnswer {
            file: self.setup_file(),
            added: setup.added(),
            removed: setup.removed(),
            unchanged: &setup.unchanged,
            notes: &setup.notes,
        }
    }

    /// Returns the path of the configuration file that is written, which all worktrees share.
    pub fn setup_file(&self) -> String {
        self.store.common_dir().join("config").display().to_string()
    }
}

/// A line could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the setting `{key}`; {}", written_so_far(.written))]
pub struct WriteError {
    /// The key of the line.
    pub key: String,
    /// The keys that were changed before it.
    pub written: Vec<String>,
    #[source]
    source: program::Error,
}

fn written_so_far(written: &[String]) -> String {
    if written.is_empty() {
        return "nothing was written".to_owned();
    }
    format!("these were written before it: {}", written.join(", "))
}
