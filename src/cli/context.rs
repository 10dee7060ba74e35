//! What every command starts from. The only reader of the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use git_handoff::anchor::{Environment, Means};
use git_handoff::clock::Clock;
use git_handoff::config::{Config, Registration};
use git_handoff::engine::drive::Machine;
use git_handoff::git::remote::{PROTOCOLS, Reach};
use git_handoff::git::save;
use git_handoff::git::scratch::Scratch;
use git_handoff::git::store::{self, Kept, Store};
use git_handoff::ledger::chain::Writer;
use git_handoff::ledger::sign::{self, Signer};
use git_handoff::model::catalog::{Catalog, Shape};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Product;
use git_handoff::model::json;
use git_handoff::model::registered::Registered;
use git_handoff::plan::MAX_PLAN_BYTES;
use git_handoff::plan::schemas::Schemas;
use git_handoff::worker::host::Host;
use git_handoff::worker::supervisor;
use serde_json::Value;
use ssh_key::PublicKey;

use super::failure::Failure;
use super::output::Output;

/// Fixes the clock for tests; entries made under it say so.
const CLOCK: &str = "HANDOFF_CLOCK";
/// Which transports git may use, as git reads it.
const PROTOCOL_VARIABLE: &str = "GIT_ALLOW_PROTOCOL";
/// Names the actor where `--actor` does not.
const ACTOR: &str = "HANDOFF_ACTOR";

/// The repository, its configuration, and who is asking.
pub(crate) struct Context {
    /// The repository; outside of one, an empty throw-away one.
    pub(crate) store: Store,
    /// That throw-away one, where there is no repository around the current directory.
    pub(crate) outside: Option<Scratch>,
    /// Its configuration.
    pub(crate) config: Arc<Config>,
    /// Where moments come from.
    pub(crate) clock: Clock,
    ambient: Arc<BTreeMap<String, OsString>>,
    actor: Option<String>,
    /// What was saved and may not be named by any ref before the command is over.
    kept: Mutex<Kept>,
}

/// What is there before any repository: the environment, the clock, the current directory.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// Where moments come from.
    pub(crate) clock: Clock,
    here: PathBuf,
    ambient: Arc<BTreeMap<String, OsString>>,
    actor: Option<String>,
}

impl Surroundings {
    /// Reads the environment.
    pub(crate) fn new(actor: Option<String>) -> Result<Self, Failure> {
        let ambient: BTreeMap<String, OsString> =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let clock = match ambient.get(CLOCK) {
            None => Clock::System,
            Some(text) => {
                let moment = text.to_str().and_then(|text| text.parse().ok());
                Clock::Pinned(moment.ok_or_else(|| {
                    let text = text.to_string_lossy();
                    Failure::usage(format!("{CLOCK} is {text:?}, which is no time like 2026-06-04T02:00:00.000Z"))
                })?)
            }
        };
        let here = std::env::current_dir().map_err(|e| Failure::io("the current directory is gone", &e))?;
        Ok(Self { clock, here, ambient: Arc::new(ambient), actor })
    }

    /// Settles in whose name everything is done: `--actor`, else `HANDOFF_ACTOR`, else this.
    pub(crate) fn with_actor(self, otherwise: &str) -> Self {
        let set = || self.ambient.get(ACTOR)?.to_str().filter(|value| !value.is_empty()).map(str::to_owned);
        let actor = self.actor.clone().or_else(set).unwrap_or_else(|| otherwise.to_owned());
        Self { actor: Some(actor), ..self }
    }

    /// Returns the repository around the current directory; none where there is none, for commands that can do without.
    pub(crate) fn store(&self) -> Option<Store> {
        Store::discover(&self.here).ok()
    }
}

impl Context {
    /// Opens the repository around the current directory; there may be none for a command that can do `anywhere`.
    pub(crate) fn new(around: Surroundings, anywhere: bool, output: &mut Output) -> Result<Self, Failure> {
        let Surroundings { clock, here, ambient, actor } = around;
        let (store, outside) = match Store::discover(&here) {
            // What is read there is the user's own configuration and nothing else.
            Err(store::Error::Open(..)) if anywhere => {
                let scratch = Scratch::new("sha1")?;
                output.remove_at_exit(scratch.store().git_dir());
                (scratch.store().clone(), Some(scratch))
            }
            found => (found?, None),
        };
        let config = Config::read(&store)?;
        let store = store.with_durability(config.durability);
        Ok(Self { store, outside, config: Arc::new(config), clock, ambient, actor, kept: Mutex::default() })
    }

    /// Returns who acts: `--actor`, else `HANDOFF_ACTOR`, else the person at the keyboard.
    pub(crate) fn actor(&self) -> Result<String, Failure> {
        let named = self.actor.clone().or_else(|| self.variable(ACTOR));
        let actor = named.unwrap_or_else(|| {
            let name = self.config.user_name.clone();
            let login = || self.variable("LOGNAME").or_else(|| self.variable("USER"));
            format!("human:{}", name.or_else(login).unwrap_or_else(|| "unknown".into()))
        });
        if actor.trim().is_empty() || actor.len() > 256 {
            return Err(Failure::usage("the actor must have 1 to 256 bytes".into()));
        }
        Ok(actor)
    }

    /// Returns what appending takes, making the repository's key on first use.
    pub(crate) fn writer(&self) -> Result<Writer, Failure> {
        Ok(Writer { store: self.store.clone(), signer: self.signer()?, clock: self.clock, actor: self.actor()? })
    }

    /// Returns the signing key: the configured one, else the repository's own.
    pub(crate) fn signer(&self) -> Result<Signer, Failure> {
        let folder = self.store.common_dir().join("handoff");
        match &self.config.signing_key {
            Some(key) => match key.strip_prefix("key::").or_else(|| key.starts_with("ssh-").then_some(key)) {
                Some(literal) => Ok(Signer::from_literal(literal, &folder)?),
                None => Ok(Signer::from_file(&self.expand(Path::new(key)))?),
            },
            None => Ok(Signer::own(&folder.join("signing_key"))?),
        }
    }

    /// Returns how remotes may be reached: as git is allowed to, and never by a transport that runs what a URL says.
    pub(crate) fn reach(&self, output: &Output) -> Reach {
        let allowed = self.ambient.get(PROTOCOL_VARIABLE).map(|list| list.to_string_lossy().into_owned());
        let is_allowed =
            |name: &&str| allowed.as_ref().is_none_or(|list| list.split(':').any(|allowed| allowed == *name));
        let protocols: Vec<&str> = PROTOCOLS.into_iter().filter(is_allowed).collect();
        let refused = self.variable("GIT_TERMINAL_PROMPT").is_some_and(|value| value == "0" || value == "false");
        let prompt = !refused && output.can_ask();
        Reach { protocols: protocols.join(":"), prompt, largest: self.config.max_fetch_size, within: None, apart: None }
    }

    /// Returns what it takes to reach anchors.
    pub(crate) fn means(&self, output: &Output) -> Means {
        let aws = |(name, value): (&String, &OsString)| {
            Some((name.clone(), value.to_str().filter(|value| !value.is_empty())?.to_owned()))
        };
        let variables = self.ambient.iter().filter(|(name, _)| name.starts_with("AWS_")).filter_map(aws).collect();
        let environment = Environment { variables, home: self.variable("HOME").map(PathBuf::from) };
        let settings = self.config.reaching.clone();
        Means { store: self.store.clone(), reach: self.reach(output), settings, clock: self.clock, environment }
    }

    /// Returns the public half of the signing key, without making one.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        let has_key = self.config.signing_key.is_some() || self.store.common_dir().join("handoff/signing_key").exists();
        if has_key { self.signer().ok().map(|signer| signer.public().clone()) } else { None }
    }

    /// Returns its fingerprint.
    pub(crate) fn own_fingerprint(&self) -> Option<String> {
        self.own_key().as_ref().map(sign::fingerprint)
    }

    /// Returns a path with `~/` resolved, as git does for settings that are paths.
    pub(crate) fn expand(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.variable("HOME")) {
            (Ok(rest), Some(home)) => Path::new(&home).join(rest),
            _ => path.to_owned(),
        }
    }

    /// Returns the time zone of the person at the keyboard.
    #[expect(clippy::unused_self, reason = "the environment is read through the context")]
    pub(crate) fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::system()
    }

    /// Returns what driving a run takes.
    pub(crate) fn machine(&self, close: bool) -> Result<Machine, Failure> {
        let config = self.config.clone();
        let (host, schemas) = (Arc::new(self.host()?), Arc::new(self.schemas()));
        let supervisor = this_program().filter(|_| cfg!(target_os = "linux"));
        Ok(Machine { config, ambient: self.ambient.clone(), host, schemas, close, supervisor })
    }

    /// Returns where worktrees are made: outside the repository, under the user's cache.
    pub(crate) fn host(&self) -> Result<Host, Failure> {
        let root = match &self.config.workspace_root {
            Some(root) => self.expand(root),
            None => self.cache()?.join("git-handoff"),
        };
        let repository = Digest::of(self.store.common_dir().as_os_str().as_encoded_bytes());
        let mut host = Host::new(self.store.clone(), root.join(&repository.hex()[..16]));
        host.inputs.clone_from(&self.config.inputs);
        host.outputs.clone_from(&self.config.outputs);
        host.max_product = self.config.max_product_size;
        host.user.clone_from(&self.config.user);
        host.path = self.ambient.get("PATH").and_then(|path| {
            let absolute: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
            std::env::join_paths(absolute).ok()
        });
        Ok(host)
    }

    fn cache(&self) -> Result<PathBuf, Failure> {
        let absolute = |name: &str| self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache"))).ok_or_else(|| {
            Failure::refused("no-cache", "neither XDG_CACHE_HOME nor HOME says where worktrees may be made".into())
                .hint("git config --global handoff.workspace.root /var/tmp/git-handoff")
        })
    }

    /// Returns what plans may refer to here that are to be placed on a queue.
    pub(crate) fn catalog(&self, queue: &str, reserved_in_base: Vec<String>) -> Result<Catalog, Failure> {
        let rules = self.config.queues.get(queue).and_then(|settings| settings.rules.as_deref());
        let mut catalog = Catalog {
            queue_rules: rules.map(|path| self.rules(queue, path)).transpose()?,
            schemas: self.schemas().known,
            checker: this_program(),
            shapes: self.shapes(),
            max_items: self.config.max_items,
            inputs_dir: self.config.inputs.clone(),
            outputs_dir: self.config.outputs.clone(),
            reserved_in_base,
            ..Catalog::default()
        };
        catalog.executors.extend(self.config.executors.keys().cloned());
        catalog.subagents.extend(self.config.subagents.keys().cloned());
        catalog.queues.extend(self.config.queues.keys().cloned());
        Ok(catalog)
    }

    /// Writes a file, or standard input where the name is `-`, into the repository.
    pub(crate) fn save(&self, path: &Path) -> Result<Product, Failure> {
        let file = if path == Path::new("-") { stdin_file() } else { std::fs::File::open(path) };
        let name = path.display();
        let file = file.map_err(|e| Failure::io(&format!("{name} could not be read"), &e))?;
        let saved = save::save(&self.store, file, self.config.max_product_size).map_err(|error| {
            let failure = Failure::from(error);
            Failure { message: format!("{name}: {}", failure.message), ..failure }
        });
        let (product, kept) = saved?;
        self.keep(kept);
        Ok(product)
    }

    /// Writes bytes that came by another way into the repository.
    pub(crate) fn save_bytes(&self, bytes: &[u8]) -> Result<Product, Failure> {
        let (limit, size) = (self.config.max_product_size, bytes.len() as u64);
        if size > limit {
            return Err(save::Error::TooLarge(limit).into());
        }
        let mut batch = self.store.batch();
        let oid = batch.write_blob(bytes)?;
        self.keep(batch.keep()?);
        Ok(Product { sha256: Digest::of(bytes), oid, size })
    }

    /// Keeps objects until the command is over.
    pub(crate) fn keep(&self, kept: Kept) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).join(kept);
    }

    /// Returns the schemas of documents that are registered, of which none is read before it is needed.
    pub(crate) fn schemas(&self) -> Schemas {
        Schemas { known: self.all_registered(&self.config.schemas, Ok), checker: this_program() }
    }

    /// Returns the shapes that are registered, of which none is read before it is needed.
    pub(crate) fn shapes(&self) -> Registered<String, Shape> {
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
            let read = move || {
                let bytes =
                    bounded(&path, MAX_PLAN_BYTES as u64).map_err(|e| format!("could not be read from {file}: {e}"))?;
                let value = json::lenient(&bytes).map_err(|e| format!("in {file} is not JSON: {e}"))?;
                take(value).map_err(|why| format!("in {file} is none: {why}"))
            };
            all.add(name.clone(), place, Box::new(read));
        }
        all
    }

    /// Reads the file of rules of a queue.
    fn rules(&self, queue: &str, path: &Path) -> Result<Vec<u8>, Failure> {
        bounded(&self.below_top(path), MAX_PLAN_BYTES as u64).map_err(|error| {
            let message = format!("the file of rules of the queue {queue:?} could not be read from {}", path.display());
            Failure { code: "bad-rule", ..Failure::io(&message, &error) }
        })
    }

    /// Returns a path that a setting names; a relative one starts from the top of the work tree.
    fn below_top(&self, path: &Path) -> PathBuf {
        self.store.work_dir().unwrap_or_else(|| self.store.git_dir()).join(self.expand(path))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.ambient.get(name)?.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
    }
}

/// Returns the file of this very program, which starts itself again for what is better done apart; none where the system does not say.
fn this_program() -> Option<PathBuf> {
    // On Linux this is what runs now, also when its file was replaced or removed meanwhile.
    let running = Path::new("/proc/self/exe");
    if running.exists() { Some(running.to_owned()) } else { std::env::current_exe().ok() }
}

/// Returns whether the command line asks for JSON, for one that cannot be parsed.
pub(crate) fn asks_for_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Returns the command that this process is to supervise, where that is what it was started for.
pub(crate) fn supervised() -> Option<impl Iterator<Item = OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == supervisor::ARGUMENT).then_some(arguments)
}

/// Reads a file up to a limit.
fn bounded(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file, or stdin where the name is `-`, up to a limit that no honest plan reaches.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map(|_| bytes)
    } else {
        bounded(path, limit)
    };
    read.map_err(|e| Failure::io(&format!("{} could not be read", path.display()), &e))
}

/// Returns standard input as a file, so that a plain one can be read where it lies.
fn stdin_file() -> std::io::Result<std::fs::File> {
    use std::os::fd::AsFd as _;
    std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from)
}
