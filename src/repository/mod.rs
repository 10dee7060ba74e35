//! A repository with its configuration and the acting user: the entry point of the library.
//!
//! Operations on runs, threads and documents start from a [`Repository`]. The caller passes the
//! environment in as a value, so that an embedding program controls all of it.

pub mod agent;
pub mod config;
pub mod key;
pub(crate) mod marks;
mod notes;
pub mod pipelines;
pub mod remote_record;
pub mod trust;

pub use trust::Trust;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use serde_json::Value;
use ssh_key::PublicKey;

use crate::clock::Clock;
use crate::git::remote::{PROTOCOLS, Reach};
use crate::git::save;
use crate::git::scratch_repo::ScratchRepo;
use crate::git::store::{self, KeepGuard, Store};
use crate::ledger::chain::Writer;
use crate::ledger::sign::{self, Signer};
use crate::model::any_error::AnyError;
use crate::model::catalog::{Catalog, Shape};
use crate::model::credential::gate::Gate;
use crate::model::entry::Product;
use crate::model::json;
use crate::model::registered::Registered;
use crate::plan::MAX_PLAN_BYTES;
use crate::plan::schemas::Schemas;
use crate::repository::config::{Config, Registration, SecretSource};

/// The variable that names the actor by default.
const ACTOR: &str = "HANDOFF_ACTOR";

/// The variable that names the agent that adopts by default.
const ME: &str = "HANDOFF_ME";

/// git's variable for the allowed transports.
const PROTOCOL_VARIABLE: &str = "GIT_ALLOW_PROTOCOL";

/// The maximum length of an actor's name, in bytes.
const MAX_ACTOR: usize = 256;

/// Process-level inputs: clock, directory, environment. Only the caller reads them.
#[derive(Clone)]
pub struct Environment {
    /// The clock.
    pub clock: Clock,
    /// The directory to look for a repository in.
    pub directory: PathBuf,
    /// The actor. If it is `None`, `HANDOFF_ACTOR`, the configuration or the login name decides.
    pub actor: Option<String>,
    /// The environment. Executors see a part of it.
    pub variables: Arc<BTreeMap<String, OsString>>,
    /// `PATH` without its relative folders.
    pub path: Option<OsString>,
    /// An executable that provides the helper processes of `git-handoff`: schema validation and the
    /// supervision of commands. Without one, nothing that has a schema is accepted.
    pub program: Option<PathBuf>,
    /// Whether git may ask for a password.
    pub may_ask: bool,
    /// Looks up the time zone for times that people enter.
    pub zone: fn() -> TimeZone,
}

impl Environment {
    /// Returns a variable, or `None` if it is unset or empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name)?.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// Sets the actor unless one is given explicitly or by `HANDOFF_ACTOR`.
    #[must_use]
    pub fn with_actor(self, otherwise: &str) -> Self {
        let actor = self.actor.clone().or_else(|| self.variable(ACTOR)).unwrap_or_else(|| otherwise.to_owned());
        Self { actor: Some(actor), ..self }
    }

    /// Returns the name under which offers are adopted: the given one, else `HANDOFF_ME`, else
    /// `None`.
    pub fn adopter(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.variable(ME))
    }

    /// Opens the repository that contains the directory, or returns `None`. A repository that
    /// belongs to another user is an error.
    pub fn store(&self) -> Result<Option<Store>, store::Error> {
        match Store::discover(&self.directory) {
            Err(foreign @ store::Error::Foreign(_)) => Err(foreign),
            found => Ok(found.ok()),
        }
    }

    /// Expands `~/` as git does in path settings.
    pub fn expand(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.variable("HOME")) {
            (Ok(rest), Some(home)) => Path::new(&home).join(rest),
            _ => path.to_owned(),
        }
    }
}

/// An open repository with its configuration and the acting user.
pub struct Repository {
    /// Objects and refs. Outside a repository, those of an empty temporary one.
    pub store: Store,
    /// The configuration.
    pub config: Arc<Config>,
    /// Process-level inputs.
    pub environment: Environment,
    /// Whether runs are shown and changed without reading the remotes that they were pushed to.
    pub offline: bool,
    /// Notes of operations besides their results.
    notes: Mutex<Vec<String>>,
    /// The temporary repository, if the directory is not in one.
    outside: Option<ScratchRepo>,
    /// Keeps saved objects from being pruned before a ref names them.
    guard: Mutex<KeepGuard>,
}

impl Repository {
    /// Opens the repository that contains the directory.
    pub fn open(environment: Environment) -> Result<Self, AnyError> {
        let store = Store::discover(&environment.directory)?;
        Self::from_store(store, None, environment)
    }

    /// Opens it, or an empty temporary one to read the user's own configuration.
    pub fn open_anywhere(environment: Environment) -> Result<Self, AnyError> {
        match Store::discover(&environment.directory) {
            Err(store::Error::Nowhere(_) | store::Error::Open(..)) => {
                let scratch = ScratchRepo::new("sha1")?;
                Self::from_store(scratch.store().clone(), Some(scratch), environment)
            }
            found => Self::from_store(found?, None, environment),
        }
    }

    fn from_store(store: Store, outside: Option<ScratchRepo>, environment: Environment) -> Result<Self, AnyError> {
        let config = Config::read(&store)?;
        Ok(Self::assemble(store, config, environment, outside))
    }

    /// Opens the same repository with another configuration.
    pub(crate) fn with_config(&self, config: Config) -> Result<Self, AnyError> {
        let store = Store::discover(&self.environment.directory)?;
        Ok(Self { offline: self.offline, ..Self::assemble(store, config, self.environment.clone(), None) })
    }

    fn assemble(store: Store, config: Config, environment: Environment, outside: Option<ScratchRepo>) -> Self {
        let (store, config) = (store.with_durability(config.durability), Arc::new(config));
        Self { store, config, environment, offline: false, notes: Mutex::default(), outside, guard: Mutex::default() }
    }

    /// Returns true if the directory is not in a repository.
    pub fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// Returns the actor: the given one, else `HANDOFF_ACTOR`, else the user.
    pub fn actor(&self) -> Result<String, AnyError> {
        let configured = self.environment.actor.clone().or_else(|| self.environment.variable(ACTOR));
        let actor = configured.unwrap_or_else(|| {
            let name = self.config.user_name.clone();
            format!(
                "human:{}",
                name.or_else(|| self.environment.variable("LOGNAME").or_else(|| self.environment.variable("USER")))
                    .unwrap_or_else(|| "unknown".into())
            )
        });
        if actor.trim().is_empty() || actor.len() > MAX_ACTOR {
            return Err(Error::Actor.into());
        }
        Ok(actor)
    }

    /// Returns what appending needs; creates the repository's key on first use.
    ///
    /// The repository of an attempt is refused: it is removed with the attempt.
    pub fn writer(&self) -> Result<Writer, AnyError> {
        if self.store.is_of_attempt() {
            return Err(Error::Attempt.into());
        }
        let (clock, actor) = (self.environment.clock, self.actor()?);
        self.free_of_secrets("actor", &actor)?;
        Ok(Writer { store: self.store.clone(), signer: self.signer()?, clock, actor })
    }

    /// Returns the writer of logs, or `None` if there is no key yet and so nothing to log.
    pub fn log_writer(&self) -> Result<Option<Writer>, AnyError> {
        self.own_key().filter(|_| !self.store.is_of_attempt()).map(|_| self.writer()).transpose()
    }

    /// Returns the signing key: the configured one, else the repository's own.
    pub fn signer(&self) -> Result<Signer, AnyError> {
        let folder = self.store.common_dir().join("handoff");
        let signer = match &self.config.signing_key {
            Some(key) => match sign::literal(key) {
                Some(literal) => Signer::from_literal(literal, &folder)?,
                None => match Signer::from_file(&self.below_top(Path::new(key))) {
                    // An agent may have the key of a certificate.
                    Err(sign::Error::Certificate(_, key)) => Signer::from_literal(&sign::in_one_line(&key)?, &folder)?,
                    other => other?,
                },
            },
            None => Signer::own(&folder.join("signing_key"))?,
        };
        let program = self.config.signing_program.as_deref().map(|path| self.environment.expand(path).into_os_string());
        Ok(signer.through(program.as_ref()))
    }

    /// Returns the public half of the signing key without creating one.
    pub fn own_key(&self) -> Option<PublicKey> {
        let has_key = self.config.signing_key.is_some() || self.store.common_dir().join("handoff/signing_key").exists();
        if has_key { self.signer().ok().map(|signer| signer.public().clone()) } else { None }
    }

    /// Returns its fingerprint.
    pub fn own_fingerprint(&self) -> Option<String> {
        self.own_key().as_ref().map(sign::fingerprint)
    }

    /// Returns how to reach remotes: as git is allowed to, but never by a transport that runs a
    /// command from the URL.
    pub fn reach(&self) -> Reach {
        let allowed = self.environment.variables.get(PROTOCOL_VARIABLE).map(|list| list.to_string_lossy().into_owned());
        let is_allowed =
            |name: &&str| allowed.as_ref().is_none_or(|list| list.split(':').any(|protocol| protocol == *name));
        let protocols: Vec<&str> = PROTOCOLS.into_iter().filter(is_allowed).collect();
        let refused =
            self.environment.variable("GIT_TERMINAL_PROMPT").is_some_and(|value| value == "0" || value == "false");
        let prompt = !refused && self.environment.may_ask;
        Reach {
            protocols: protocols.join(":"),
            prompt,
            largest: self.config.max_fetch_size,
            within: None,
            idle: None,
            unless: None,
            isolated_config: None,
        }
    }

    /// Returns what plans for a queue may refer to.
    pub fn catalog(&self, queue: &str, reserved_in_base: Vec<String>) -> Result<Catalog, AnyError> {
        let rules = self.config.queues.get(queue).and_then(|settings| settings.rules.as_deref());
        let mut catalog = Catalog {
            queue_rules: rules.map(|path| self.queue_rules(queue, path)).transpose()?,
            pattern: self.config.queues.get(queue).and_then(|settings| settings.pattern.clone()),
            schemas: self.schemas(),
            shapes: self.shapes(),
            pipelines: self.pipelines(),
            max_items: self.config.max_items,
            inputs_dir: self.config.inputs.clone(),
            outputs_dir: self.config.outputs.clone(),
            reserved_in_base,
            ..Catalog::default()
        };
        catalog.executors.extend(self.config.registered_executors().cloned());
        catalog.subagents.extend(self.config.registered_subagents().cloned());
        catalog.queues.extend(self.config.queues.keys().cloned());
        Ok(catalog)
    }

    /// Returns the check for credentials: known kinds, and the secrets in our environment.
    pub fn gate(&self) -> Gate {
        let executors = self.config.executors.values().chain(self.config.subagents.values());
        let ours = executors.flat_map(|executor| &executor.secret_env);
        let ours = ours.filter(|secret| secret.source == SecretSource::Environment);
        let values = ours.filter_map(|secret| self.environment.variables.get(&secret.name));
        let values: BTreeSet<&OsString> = values.collect();
        let values: Vec<Vec<u8>> = values.into_iter().map(|value| value.as_encoded_bytes().to_vec()).collect();
        self.config.gate().with(&values)
    }

    /// Refuses to record a text that contains a credential; `what` names the text in messages.
    pub fn free_of_secrets(&self, what: &str, text: &str) -> Result<(), AnyError> {
        Ok(self.gate().check(what, text.as_bytes())?)
    }

    /// Stores a file and keeps it for the life of this value; `name` names it in messages.
    pub fn save(&self, name: &Path, file: File) -> Result<Product, AnyError> {
        let display = name.display().to_string();
        let saved = save::save(&self.store, file, self.config.max_product_size, |file| {
            Ok(self.gate().check_reader(&display, file).map_err(save::Error::Read)??)
        });
        let (product, guard) = saved.map_err(|error: AnyError| match error.downcast() {
            Ok(source) => Error::Saved { name: name.to_owned(), source }.into(),
            Err(other) => other,
        })?;
        self.keep(guard);
        Ok(product)
    }

    /// Stores bytes and keeps them for the life of this value; `name` names them in messages.
    pub fn save_bytes(&self, name: &str, bytes: &[u8]) -> Result<Product, AnyError> {
        let limit = self.config.max_product_size;
        if bytes.len() as u64 > limit {
            return Err(save::Error::TooLarge(limit).into());
        }
        self.gate().check(name, bytes)?;
        let mut batch = self.store.batch();
        let product = batch.write_named(bytes)?;
        self.keep(batch.keep()?);
        Ok(product)
    }

    /// Keeps objects for the life of this value.
    pub fn keep(&self, guard: KeepGuard) {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).join(guard);
    }

    /// Returns the registered schemas. Each file is read on first use.
    pub fn schemas(&self) -> Schemas {
        self.all_registered(&self.config.schemas, Ok)
    }

    /// Returns the registered shapes. Each file is read on first use.
    pub fn shapes(&self) -> Registered<String, Shape> {
        self.all_registered(&self.config.shapes, |value| {
            Shape::from_json(&value).map_err(|problems| problems.first().map(ToString::to_string).unwrap_or_default())
        })
    }

    fn all_registered<K: Ord + Clone, V: 'static>(
        &self,
        registrations: &BTreeMap<K, Registration>,
        take: fn(Value) -> Result<V, String>,
    ) -> Registered<K, V> {
        let mut all = Registered::default();
        for (name, registration) in registrations {
            let (path, place) = (self.below_top(&registration.path), registration.place());
            let file = place.file.clone();
            all.add(
                name.clone(),
                place,
                Box::new(move || {
                    let bytes = read_up_to(&path, MAX_PLAN_BYTES as u64)
                        .map_err(|e| format!("could not be read from {file}: {e}"))?;
                    let value =
                        json::lenient(json::unmarked(&bytes)).map_err(|e| format!("in {file} is not JSON: {e}"))?;
                    take(value).map_err(|why| format!("in {file} is none: {why}"))
                }),
            );
        }
        all
    }

    /// Reads a queue's file of rules.
    fn queue_rules(&self, queue: &str, path: &Path) -> Result<Vec<u8>, AnyError> {
        let read = read_up_to(&self.below_top(path), MAX_PLAN_BYTES as u64);
        Ok(json::unmarked(&read.map_err(|source| Error::Rules {
            queue: queue.to_owned(),
            path: path.to_owned(),
            source,
        })?)
        .to_vec())
    }

    /// Resolves a path from a setting; a relative one starts from the top of the work tree.
    pub(crate) fn below_top(&self, path: &Path) -> PathBuf {
        self.store.work_dir().unwrap_or_else(|| self.store.git_dir()).join(self.environment.expand(path))
    }
}

/// Reads a file up to a size limit.
pub fn read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

errors! {
    /// An error while opening a repository or reading what belongs to it.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Attempt "in-attempt":
        "nothing can be recorded in the repository of an attempt: it is removed when the attempt ends";
    Actor "usage" 2: "the actor must have 1 to {MAX_ACTOR} bytes";
    Principal(String) "usage" 2: "{0:?} cannot stand in an allowed-signers file";
    Rules { queue: String, path: PathBuf, source: io::Error } "bad-rule":
        "the file of rules of the queue {queue:?} could not be read from {}" [path.display()];
    Saved { name: PathBuf, source: save::Error }: "{}: {source}" [name.display()];
}
