//! What `git config` says about handoffs.
//!
//! git itself reads the files, so that every scope, `-c` and every kind of include counts as it does for git. Settings that
//! decide whom to trust are never taken from a file inside a work tree.

mod origin;
mod registration;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::git::program;
use crate::git::store::{Durability, Store};
use crate::model::schema::Schema;

use origin::WorkTrees;
pub use origin::is_in_work_tree;
pub use registration::Registration;
use registration::place;

/// How one kind of work is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executor {
    /// The command line, for `sh -c`.
    pub command: Option<String>,
    /// The command line run before it.
    pub setup: Option<String>,
    /// The command line run after it.
    pub verify: Option<String>,
    /// Seconds after which an attempt is ended.
    pub timeout: Option<u64>,
    /// How many attempts an item gets.
    pub max_attempts: Option<u32>,
    /// Environment variables set for it.
    pub env: BTreeMap<String, String>,
    /// Environment variables handed through to it.
    pub pass_env: Vec<String>,
    /// Environment variables handed through to it whose values are secrets.
    pub secret_env: Vec<String>,
}

/// How a queue is driven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// How many items run at the same time.
    pub concurrency: Option<usize>,
    /// The execution pattern.
    pub pattern: Option<String>,
    /// The file of the rules that it adds to those of its runs.
    pub rules: Option<PathBuf>,
    /// How many attempts an item gets.
    pub max_attempts: Option<u32>,
}

/// Everything that is configured, with defaults where nothing is.
#[derive(Clone, Debug)]
pub struct Config {
    /// `handoff.executor.<name>.*`
    pub executors: BTreeMap<String, Executor>,
    /// `handoff.subagent.<name>.*`
    pub subagents: BTreeMap<String, Executor>,
    /// `handoff.queue.<name>.*`
    pub queues: BTreeMap<String, Queue>,
    /// `handoff.anchor.<name>.*`: the places outside that hold roots, as they are set; keys in lower case.
    pub anchors: BTreeMap<String, BTreeMap<String, String>>,
    /// `handoff.shape.<id>.path`
    pub shapes: BTreeMap<String, Registration>,
    /// `handoff.schema.<id>@<version>.path`
    pub schemas: BTreeMap<Schema, Registration>,
    /// `handoff.signingKey`, or `user.signingKey` where `gpg.format` is `ssh`.
    pub signing_key: Option<String>,
    /// `handoff.signers`: the allowed-signers file that verify is strict about.
    pub signers: Option<PathBuf>,
    /// `handoff.revoked`: the list of keys that verify trusts no more.
    pub revoked: Option<PathBuf>,
    /// `gpg.ssh.allowedSignersFile`, which only informs.
    pub allowed_signers: Option<PathBuf>,
    /// `handoff.durability`
    pub durability: Durability,
    /// `handoff.maxCrashes`: how many attempts of an item a crash of the conductor may take before the item fails.
    pub max_crashes: u32,
    /// `handoff.maxItems`
    pub max_items: usize,
    /// `handoff.maxProductSize`, in bytes.
    pub max_product_size: u64,
    /// `handoff.maxFetchSize`, in bytes: the most that one fetch or one bundle may bring.
    pub max_fetch_size: u64,
    /// `handoff.workspace.root`
    pub workspace_root: Option<PathBuf>,
    /// `handoff.workspace.keep`: leave the worktrees of failed attempts where they are.
    pub keep: bool,
    /// `handoff.workspace.inputs`
    pub inputs: String,
    /// `handoff.workspace.outputs`
    pub outputs: String,
    /// Whether git may tidy up by itself here: `maintenance.auto` and `gc.auto` do not say no.
    pub maintenance: bool,
    /// `user.name` and `user.email`, if both are set.
    pub user: Option<(String, String)>,
    /// `user.name`
    pub user_name: Option<String>,
    /// How others are reached, as git's own settings say it outside the work tree: keys and values, in order.
    pub reaching: Vec<(String, String)>,
    /// What was ignored, in sentences.
    pub warnings: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            executors: BTreeMap::new(),
            subagents: BTreeMap::new(),
            queues: BTreeMap::new(),
            anchors: BTreeMap::new(),
            shapes: BTreeMap::new(),
            schemas: BTreeMap::new(),
            signing_key: None,
            signers: None,
            revoked: None,
            allowed_signers: None,
            durability: Durability::Strict,
            max_items: 10_000,
            max_product_size: 100 << 20,
            max_crashes: 10,
            max_fetch_size: 2 << 30,
            workspace_root: None,
            keep: false,
            inputs: "inputs".into(),
            outputs: "outputs".into(),
            maintenance: true,
            user: None,
            user_name: None,
            reaching: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// One setting as git lists it.
struct Setting {
    origin: Option<PathBuf>,
    key: String,
    value: String,
}

impl Config {
    /// Reads the configuration that holds for a repository.
    pub fn read(store: &Store) -> Result<Self, Error> {
        let listed = store.git().args(["config", "--list", "-z", "--show-origin", "--includes"]).run();
        let listed = String::from_utf8_lossy(&listed.map_err(Error::Git)?).into_owned();
        let work_trees = WorkTrees::of(store);
        let mut config = Self::default();
        let mut user = (None, None);
        let mut gpg_format = String::new();
        let (mut user_key, mut silenced) = (None, Vec::new());
        for setting in parse_list(&listed) {
            let tracked = || setting.origin.as_ref().is_some_and(|origin| work_trees.hold(origin));
            if is_trust_root(&setting.key) && tracked() {
                config.warnings.push(format!(
                    "`{}` is ignored: it stands in a file inside the work tree, which decides about nobody's trust",
                    setting.key
                ));
                continue;
            }
            // Those of the command line reach git by themselves.
            if is_of_reaching(&setting.key) && setting.origin.is_some() {
                if tracked() {
                    silenced.push(setting.key.clone());
                } else {
                    config.reaching.push((setting.key.clone(), setting.value.clone()));
                }
            }
            match setting.key.as_str() {
                "user.name" => user.0 = Some(setting.value),
                "user.email" => user.1 = Some(setting.value),
                "gpg.format" => gpg_format = setting.value,
                "user.signingkey" => user_key = Some(setting.value),
                "gpg.ssh.allowedsignersfile" => config.allowed_signers = Some(setting.value.into()),
                // Our own calls of git say no on their command line, which is not what the user says.
                "gc.auto" | "maintenance.auto" if setting.origin.is_some() => {
                    config.maintenance &= !matches!(setting.value.as_str(), "0" | "false" | "no" | "off");
                }
                key if key.starts_with("handoff.") => config.set(&setting)?,
                _ => {}
            }
        }
        if gpg_format == "ssh" && config.signing_key.is_none() {
            config.signing_key = user_key;
        }
        silenced.retain(|_| !config.anchors.is_empty());
        config.warnings.extend(silenced.iter().map(|key| {
            format!("`{key}` has no say in how anchors are reached: it stands in a file inside the work tree")
        }));
        // An empty one asks for the repository's own, whatever else is configured.
        config.signing_key = config.signing_key.filter(|key| !key.is_empty());
        config.user_name.clone_from(&user.0);
        config.user = user.0.zip(user.1);
        Ok(config)
    }

    fn set(&mut self, setting: &Setting) -> Result<(), Error> {
        let key = setting.key.strip_prefix("handoff.").unwrap_or(&setting.key);
        let value = setting.value.as_str();
        if let Some((section, rest)) = key.split_once('.')
            && let Some((name, field)) = rest.rsplit_once('.')
        {
            let name = name.to_owned();
            match section {
                "executor" => return set_executor(self.executors.entry(name).or_default(), field, setting),
                "subagent" => return set_executor(self.subagents.entry(name).or_default(), field, setting),
                "queue" => return set_queue(self.queues.entry(name).or_default(), field, setting),
                "anchor" => {
                    self.anchors.entry(name).or_default().insert(field.to_owned(), value.to_owned());
                    return Ok(());
                }
                "shape" if field == "path" => {
                    self.shapes.insert(name, Registration::of(setting));
                    return Ok(());
                }
                "schema" if field == "path" => {
                    self.set_schema(&name, setting);
                    return Ok(());
                }
                _ => {}
            }
        }
        match key {
            "signingkey" => self.signing_key = Some(value.to_owned()),
            "signers" => self.signers = Some(value.into()),
            "revoked" => self.revoked = Some(value.into()),
            "durability" => {
                self.durability = match value {
                    "strict" => Durability::Strict,
                    "relaxed" => Durability::Relaxed,
                    _ => return Err(Error::bad(setting, "is neither `strict` nor `relaxed`")),
                }
            }
            "maxcrashes" => self.max_crashes = number(setting)?,
            "maxitems" => self.max_items = number(setting)?,
            "maxproductsize" => self.max_product_size = number(setting)?,
            "maxfetchsize" => self.max_fetch_size = number(setting)?,
            "workspace.root" => self.workspace_root = Some(value.into()),
            "workspace.keep" => self.keep = boolean(setting)?,
            "workspace.inputs" => self.inputs = folder(setting)?,
            "workspace.outputs" => self.outputs = folder(setting)?,
            _ => {}
        }
        Ok(())
    }
}

fn set_executor(executor: &mut Executor, field: &str, setting: &Setting) -> Result<(), Error> {
    let value = setting.value.clone();
    let words = || setting.value.split_whitespace().map(str::to_owned);
    match field {
        "command" => executor.command = Some(value),
        "setup" => executor.setup = Some(value),
        "verify" => executor.verify = Some(value),
        "timeout" => executor.timeout = Some(number(setting)?),
        "maxattempts" => executor.max_attempts = Some(attempts(setting)?),
        "env" => {
            let (name, value) =
                setting.value.split_once('=').ok_or_else(|| Error::bad(setting, "is not NAME=value"))?;
            executor.env.insert(name.to_owned(), value.to_owned());
        }
        "passenv" => executor.pass_env.extend(words()),
        "secretenv" => executor.secret_env.extend(words()),
        _ => {}
    }
    Ok(())
}

fn set_queue(queue: &mut Queue, field: &str, setting: &Setting) -> Result<(), Error> {
    match field {
        "concurrency" => match number(setting)? {
            0 => return Err(Error::bad(setting, "is 0; nothing would ever run")),
            count => queue.concurrency = Some(count),
        },
        "pattern" => queue.pattern = Some(setting.value.clone()),
        "rules" => queue.rules = Some(setting.value.clone().into()),
        "maxattempts" => queue.max_attempts = Some(attempts(setting)?),
        _ => {}
    }
    Ok(())
}

/// Returns whether a setting decides whom or what to trust.
fn is_trust_root(key: &str) -> bool {
    const NAMES: [&str; 7] = [
        "handoff.signingkey",
        "handoff.signers",
        "handoff.revoked",
        "handoff.sandbox",
        "user.signingkey",
        "gpg.ssh.allowedsignersfile",
        "gpg.format",
    ];
    NAMES.contains(&key) || key.starts_with("handoff.anchor.")
}

/// Returns whether a setting of git's own says how others are reached.
fn is_of_reaching(key: &str) -> bool {
    const SECTIONS: [&str; 6] = ["url.", "http.", "credential.", "protocol.", "ssh.", "safe."];
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    let of_remote = || key.starts_with("remote.") && matches!(name, "url" | "pushurl");
    SECTIONS.iter().any(|section| key.starts_with(section))
        || matches!(key, "core.sshcommand" | "core.gitproxy" | "core.askpass")
        || of_remote()
}

/// Reads `git config --list -z --show-origin`: origin NUL key [LF value] NUL.
fn parse_list(listed: &str) -> Vec<Setting> {
    let mut fields = listed.split('\0');
    let mut settings = Vec::new();
    while let (Some(origin), Some(pair)) = (fields.next(), fields.next()) {
        // A key without a value means true.
        let (key, value) = pair.split_once('\n').unwrap_or((pair, "true"));
        settings.push(Setting {
            origin: origin.strip_prefix("file:").map(PathBuf::from),
            key: key.to_owned(),
            value: value.to_owned(),
        });
    }
    settings
}

/// Reads a whole number with git's suffixes `k`, `m`, `g`.
fn number<T: TryFrom<u64>>(setting: &Setting) -> Result<T, Error> {
    let text = setting.value.trim().to_ascii_lowercase();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text.as_str(), 1u64),
    };
    let number = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| Error::bad(setting, "is not a whole number"))
}

fn attempts(setting: &Setting) -> Result<u32, Error> {
    match number(setting)? {
        count @ 1..=100 => Ok(count),
        _ => Err(Error::bad(setting, "is not between 1 and 100")),
    }
}

fn boolean(setting: &Setting) -> Result<bool, Error> {
    match setting.value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" => Ok(false),
        _ => Err(Error::bad(setting, "is neither true nor false")),
    }
}

fn folder(setting: &Setting) -> Result<String, Error> {
    let name = &setting.value;
    match crate::model::name::FilePath::parse(name) {
        Ok(_) if !name.contains('/') => Ok(name.clone()),
        _ => Err(Error::bad(setting, "is not the name of one folder")),
    }
}

/// What can go wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// git could not list it.
    #[error("the configuration could not be read")]
    Git(#[source] program::Error),
    /// A value makes no sense.
    #[error("the setting `{key}` = {value:?}{} {why}", place(.origin.as_deref()))]
    Value {
        /// The key, as git lists it.
        key: String,
        /// Its value.
        value: String,
        /// The file it stands in.
        origin: Option<PathBuf>,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl Error {
    fn bad(setting: &Setting, why: &'static str) -> Self {
        Self::Value { key: setting.key.clone(), value: setting.value.clone(), origin: setting.origin.clone(), why }
    }
}
