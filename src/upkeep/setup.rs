//! Sets a repository up: the lines of its configuration for an agent, its check, protected files
//! and shared runs.
//!
//! All changes are composed before the first one is written.

mod changes;
mod dependencies;
mod guess;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::file_facts::is_executable;
use crate::git::protectable::{KnownFiles, committed, known_files};
use crate::git::remote::Remotes;
use crate::git::{program, store::Store};
use crate::model::any_error::AnyError;
use crate::model::confinement::Network;
use crate::model::format::{REFS, fetched_refs};
use crate::model::plan::BuiltIn;
use crate::model::problem::nearest;
use crate::model::protectable::{display, runner};
use crate::model::protected::pathspec_fault;
use crate::model::quote::quoted;
use crate::repository::agent::AgentNeeds;
use crate::repository::config::{Config, Executor, PRESETS, Preset};
use crate::repository::{Environment, Repository};

use changes::Composer;
pub use changes::{Line, Setup, SetupAnswer, WriteError};

/// The answers to the questions of `git handoff init`. `None` leaves the settings as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// A known agent. Without one, the check is that of the executor `command`.
    pub agent: Option<String>,
    /// The command line that checks the work; an empty one removes the check.
    pub check: Option<String>,
    /// All pathspecs of protected files. Without them, a check protects the known files of the
    /// repository.
    pub protect: Option<Vec<String>>,
    /// Whether a check leaves the known files unprotected.
    pub no_protect: bool,
    /// Whether, and from where, `git fetch` fetches runs.
    pub share: Option<Share>,
}

impl Answers {
    /// Returns true if they give a check.
    fn has_check(&self) -> bool {
        self.check.as_ref().is_some_and(|check| !check.trim().is_empty())
    }
}

/// Whether, and from where, `git fetch` fetches runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// From no remote.
    No,
    /// From the default remote.
    Default,
    /// From this remote.
    From(String),
}

/// The answers that suggest themselves.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The known agents whose programs are on `PATH`.
    pub agents: Vec<&'static str>,
    /// The agent that is registered already, else the first on `PATH`.
    pub agent: Option<String>,
    /// The pathspecs that are protected already, else those of known files.
    pub protect: Vec<String>,
    /// The remotes.
    pub remotes: Vec<String>,
    /// The remote that git uses by default, if it exists.
    pub remote: Option<String>,
    /// The first remote from which `git fetch` fetches runs already.
    pub shared: Option<String>,
}

impl Repository {
    /// Returns the answers that suggest themselves here.
    pub fn offer_setup(&self) -> Result<Offer, AnyError> {
        let local = Composer::read(&self.store)?;
        let agents: Vec<&str> =
            PRESETS.keys().map(String::as_str).filter(|name| is_on_path(&self.environment, name)).collect();
        let registered = self.config.registered_subagents().find(|name| PRESETS.contains_key(*name)).cloned();
        let protected: Vec<String> = local.values("handoff.protect").map(str::to_owned).collect();
        let protect = match (protected.is_empty(), self.config.protect.is_empty()) {
            (true, true) => known_files(&self.store).protect,
            _ => protected,
        };
        let remotes = Remotes::read(&self.store)?;
        let names: Vec<String> = remotes.names().into_iter().map(str::to_owned).collect();
        Ok(Offer {
            agent: registered.or_else(|| agents.first().map(|name| (*name).to_owned())),
            agents,
            protect,
            shared: names
                .iter()
                .find(|name| local.values(&format!("remote.{name}.fetch")).any(|it| it == refspec(name)))
                .cloned(),
            remote: default_remote(&remotes),
            remotes: names,
        })
    }

    /// Returns the check that is configured for the agent, else a guess.
    pub fn offer_check(&self, agent: Option<&str>) -> Option<String> {
        let config = &self.config;
        let settings = match agent {
            Some(name) => config.subagents.get(name),
            None => config.executors.get(BuiltIn::Command.name()),
        };
        let configured = settings.and_then(|settings| settings.verify.clone());
        configured.or_else(|| guess::check(&self.store).map(str::to_owned))
    }

    /// Composes the changes for some answers. Nothing is written.
    pub fn compose_setup(&self, answers: &Answers) -> Result<Setup, AnyError> {
        let mut composer = Composer::read(&self.store)?;
        if let Some(name) = &answers.agent {
            self.compose_agent(name, preset(name)?, &mut composer);
        }
        let worker = match &answers.agent {
            Some(name) => format!("handoff.subagent.{name}"),
            None => format!("handoff.executor.{}", BuiltIn::Command.name()),
        };
        if let Some(check) = &answers.check {
            composer.set(&format!("{worker}.verify"), Some(check.as_str()).filter(|line| !line.trim().is_empty()));
        }
        self.compose_fresh_check(answers, &worker, &mut composer);
        if let Some(pathspecs) = &answers.protect {
            self.compose_protection(pathspecs, &mut composer)?;
        } else if let Some(known) = self.known_protection(answers) {
            self.compose_protection(&known.protect, &mut composer)?;
            known.manifests.iter().for_each(|manifest| composer.note(left_out(manifest)));
            if self.config.on_protected_change.is_none() {
                // Work that adds a test is no fault, as long as the old ones pass.
                composer.set("handoff.onProtectedChange", Some("judge"));
            }
        }
        if let Some(share) = &answers.share {
            self.compose_sharing(share, &mut composer)?;
        }
        if let Some(name) = &answers.agent {
            // Last: until then nothing is registered, so that no agent runs without its check if
            // this program is killed.
            composer.set(&format!("{worker}.command"), Some(&preset(name)?.command));
        }
        Ok(composer.finish(&worker))
    }

    /// Lets a new check run in a fresh worktree if dependencies lie in the work tree, where workers
    /// can change them, and a command that installs them is known.
    fn compose_fresh_check(&self, answers: &Answers, worker: &str, composer: &mut Composer) {
        let settings = self.settings_of(answers).unwrap_or_default();
        if !answers.has_check() || settings.verify_in.is_some() {
            return;
        }
        let Some(found) = dependencies::find(&self.store) else { return };
        let extras = [&self.config.workspace_copy, &self.config.workspace_link];
        let is_given = extras.iter().any(|paths| found.are_in(paths));
        let can_install = settings.setup.is_some() || settings.network.unwrap_or(self.config.network) == Network::Any;
        if is_given || !can_install {
            return;
        }
        if settings.setup.is_none() {
            composer.set(&format!("{worker}.setup"), Some(found.setup));
        }
        composer.set(&format!("{worker}.verifyIn"), Some("fresh"));
        composer.note(format!(
            "setup runs twice: before the worker, and before the check in a fresh worktree, because {} lies in the work \
             tree; `git config {worker}.verifyIn worktree` checks without the second",
            found.folder
        ));
    }

    /// Returns the settings of the worker that answers are about.
    fn settings_of(&self, answers: &Answers) -> Option<Executor> {
        match &answers.agent {
            Some(name) => self.config.subagent(name),
            None => self.config.settings_of(BuiltIn::Command.name()),
        }
    }

    /// Returns the known files that a new check rests on, unless settings protect files already or
    /// none is committed.
    fn known_protection(&self, answers: &Answers) -> Option<KnownFiles> {
        let has_check = answers.has_check();
        let settings = self.settings_of(answers);
        let is_protected = !self.config.protect.is_empty() || settings.is_some_and(|it| !it.protect.is_empty());
        if !has_check || answers.no_protect || is_protected {
            return None;
        }
        Some(known_files(&self.store)).filter(|known| !known.protect.is_empty())
    }

    /// Adds what the agent needs. Lines that a person wrote for the same variable or path stay.
    fn compose_agent(&self, name: &str, preset: &Preset, composer: &mut Composer) {
        let environment = &self.environment;
        let key = |field: &str| format!("handoff.subagent.{name}.{field}");
        let known = self.config.subagents.get(name).cloned().unwrap_or_default();
        for (variable, value) in preset.env.iter().chain(&preset.confined) {
            if !known.env.contains_key(variable) {
                composer.add(&key("env"), &format!("{variable}={value}"));
            }
        }
        if let Some(line) = preset.version_command.as_deref().filter(|_| known.version_command.is_none()) {
            composer.set(&key("versionCommand"), Some(line));
        }
        let needs = environment.agent_needs(preset);
        let pass = needs.pass.iter().filter(|variable| !known.pass_env.contains(variable));
        composer.add_words(&key("passEnv"), pass);
        // An attempt fails if a secret is missing, so only those that are set are named.
        composer.add_words(
            &key("secretEnv"),
            needs.keys.iter().filter(|variable| !known.secret_env.iter().any(|secret| secret.name == **variable)),
        );
        for path in
            needs.readable.iter().filter(|path| !known.readable.contains(path) && !known.writable.contains(path))
        {
            composer.add(&key("readable"), &path.to_string_lossy());
        }
        for path in &needs.private {
            // Earlier versions gave the folder itself.
            let text = path.to_string_lossy();
            composer.remove(&key("writable"), &text);
            let chosen = known.readable.contains(path) || known.writable.contains(path);
            if !known.private.contains(path) && (!chosen || composer.removes(&key("writable"), &text)) {
                composer.add(&key("private"), &text);
            }
        }
        needs.remarks.iter().for_each(|remark| composer.warn(remark.clone()));
        self.warn_of_agent(name, preset, &known, &needs, composer);
    }

    /// Warns of what an agent lacks on this machine.
    fn warn_of_agent(
        &self,
        name: &str,
        preset: &Preset,
        known: &Executor,
        needs: &AgentNeeds,
        composer: &mut Composer,
    ) {
        let (environment, title) = (&self.environment, &preset.title);
        if !is_on_path(environment, name) {
            composer.warn(format!("{name} is not on PATH: install {title} before you run it"));
        }
        if !needs.has_login() && known.secret_env.is_empty() {
            composer.warn(format!(
                "{title} has neither a key nor a login here: set {} or log in, and run `git handoff init` again",
                preset.keys.join(" or ")
            ));
        }
        for secret in known.secret_env.iter().filter(|secret| secret.is_from_environment(&secret.name)) {
            if environment.variable(&secret.name).is_none() {
                composer.warn(format!("`{}` names {}, which is not set: attempts fail", secret.key, secret.name));
            }
        }
    }

    fn compose_protection(&self, pathspecs: &[String], composer: &mut Composer) -> Result<(), AnyError> {
        for pathspec in pathspecs {
            if let Some(fault) = pathspec_fault(pathspec) {
                return Err(Error::Pathspec(pathspec.clone(), fault).into());
            }
        }
        // Without a commit or a work tree, no pathspec selects anything.
        if !committed(&self.store, ".").is_empty() {
            // Known ones name files that a worker could add.
            let own = pathspecs.iter().filter(|pathspec| runner(pathspec).is_none());
            for pathspec in own.filter(|pathspec| committed(&self.store, pathspec).is_empty()) {
                composer
                    .warn(format!("the pathspec {pathspec:?} selects no committed file, so it protects nothing yet"));
            }
        }
        composer.list("handoff.protect", pathspecs);
        Ok(())
    }

    /// Adds or removes the refspec with which a plain `git fetch` brings runs.
    ///
    /// No refspec for `git push` is written: it would replace what a plain `git push` pushes, and
    /// tell the remote of all runs.
    fn compose_sharing(&self, share: &Share, composer: &mut Composer) -> Result<(), AnyError> {
        let remotes = Remotes::read(&self.store)?;
        let remote = match share {
            Share::No => {
                for name in remotes.names() {
                    composer.remove(&format!("remote.{name}.fetch"), &refspec(name));
                }
                return Ok(());
            }
            Share::Default => default_remote(&remotes).ok_or_else(|| Error::no_remote(&remotes))?,
            Share::From(name) if remotes.names().contains(&name.as_str()) => name.clone(),
            Share::From(name) => return Err(Error::UnknownRemote(name.clone()).into()),
        };
        composer.add(&format!("remote.{remote}.fetch"), &refspec(&remote));
        if prunes(&self.store, &remote)? {
            // Otherwise `git fetch` deletes the runs that the remote shows no more.
            composer.set(&format!("remote.{remote}.prune"), Some("false"));
        }
        Ok(())
    }
}

/// Says why a manifest is not protected, and how to protect it.
fn left_out(manifest: &str) -> String {
    let (name, pathspec) = (display(manifest), quoted(manifest));
    format!(
        "not protected, since honest work changes it: {name}; protect it with git config --add handoff.protect {pathspec}"
    )
}

/// Returns the preset of an agent.
fn preset(name: &str) -> Result<&'static Preset, Error> {
    PRESETS.get(name).ok_or_else(|| {
        let nearest = nearest(&name.to_ascii_lowercase(), agent_names()).map(str::to_owned);
        Error::UnknownAgent { name: name.to_owned(), nearest, known: agent_names().collect::<Vec<_>>().join(", ") }
    })
}

fn agent_names() -> impl Iterator<Item = &'static str> {
    PRESETS.keys().map(String::as_str)
}

/// Returns true if no agent, executor, check or protected file is configured.
pub fn is_unconfigured(config: &Config) -> bool {
    config.subagents.is_empty() && config.executors.is_empty() && config.protect.is_empty()
}

/// Returns the refspec that `docs/how-to/read-runs-with-plain-git.md` names. It forces nothing.
fn refspec(remote: &str) -> String {
    format!("{REFS}*:{}*", fetched_refs(remote))
}

/// Returns the remote that git uses by default, if it is configured.
fn default_remote(remotes: &Remotes) -> Option<String> {
    let default = remotes.default(false);
    remotes.names().contains(&default.as_str()).then_some(default)
}

/// Returns true if a plain `git fetch` from the remote prunes.
fn prunes(store: &Store, remote: &str) -> Result<bool, program::Error> {
    for key in [&format!("remote.{remote}.prune"), "fetch.prune"] {
        match store.git().args(["config", "--type=bool", "--get", key]).line() {
            Err(program::Error::Failed { code: Some(1), .. }) => {}
            answer => return Ok(answer? == "true"),
        }
    }
    Ok(false)
}

/// Returns true if a folder of `PATH` has an executable file of this name.
fn is_on_path(environment: &Environment, program: &str) -> bool {
    let path = environment.path.as_deref().unwrap_or_default().as_bytes();
    let mut folders = path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders.any(|folder| is_executable(&Path::new(OsStr::from_bytes(folder)).join(program)))
}

errors! {
    /// An error while composing a setup; nothing was written.
    #[derive(Debug, thiserror::Error)] pub enum Error = "no-remote";
    UnknownAgent { name: String, nearest: Option<String>, known: String } "unknown-agent":
        "the agent {name:?} is unknown; known agents: {known}";
    Pathspec(String, &'static str) "bad-pathspec": "the pathspec {0:?} {1}";
    NoRemote: "cannot share runs: the repository has no remote";
    NoDefaultRemote(String): "cannot share runs: no remote is the default one; name one of them: {0}";
    UnknownRemote(String): "cannot share runs: the repository has no remote {0:?}";
}

impl Error {
    fn no_remote(remotes: &Remotes) -> Self {
        let names = remotes.names();
        if names.is_empty() { Self::NoRemote } else { Self::NoDefaultRemote(names.join(", ")) }
    }
}
