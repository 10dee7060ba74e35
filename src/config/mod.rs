//! What `git config` says about handoffs.
//!
//! git itself reads the files, so that every scope, `-c` and every kind of include counts as it does for git. Settings that
//! decide whom to trust are never taken from a file inside a work tree.

mod allowed;
mod colors;
mod entry;
mod executor;
mod kind;
mod listed;
mod origin;
mod outside;
mod pager;
mod read;
mod registration;
mod secret_env;
mod table;
mod trust;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::git::program;
use crate::git::store::Durability;
use crate::model::confinement::{Asked, Network};
use crate::model::credential::allow::Allowed;
use crate::model::hints::{self, Hint};
use crate::model::limits::Limits;
use crate::model::schema::Schema;

pub use colors::{Colors, When};
pub use entry::{Entry, Group};
use entry::{Given, Key};
pub use executor::{Executor, OnVerifyFail, Unregistered};
use listed::Setting;
pub use origin::{is_in_work_tree, work_trees};
pub use outside::Outside;
pub use pager::Paging;
pub use registration::Registration;
use registration::place;
pub use secret_env::{SecretEnv, SecretSource};
pub use table::SETTINGS;

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
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
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
    /// `handoff.pipeline.<id>.path`
    pub pipelines: BTreeMap<String, Registration>,
    /// `handoff.schema.<id>@<version>.path`
    pub schemas: BTreeMap<Schema, Registration>,
    /// `handoff.signingKey`, or `user.signingKey` where `gpg.format` is `ssh`.
    pub signing_key: Option<String>,
    /// The files that the configuration consists of, and those that it names.
    pub outside: Outside,
    /// `gpg.ssh.program`: the program that signs with a key that is not at hand.
    pub signing_program: Option<PathBuf>,
    /// `handoff.signers`: the allowed-signers file that verify is strict about.
    pub signers: Option<PathBuf>,
    /// `handoff.revoked`: the list of keys that verify trusts no more.
    pub revoked: Option<PathBuf>,
    /// `gpg.ssh.allowedSignersFile`, which only informs.
    pub allowed_signers: Option<PathBuf>,
    /// `handoff.durability`
    pub durability: Durability,
    /// `handoff.sandbox`: how much is asked to confine workers.
    pub sandbox: Asked,
    /// `handoff.network`: whom they may speak to.
    pub network: Network,
    /// `handoff.max…`: how much of this machine one attempt may use.
    pub limits: Limits,
    /// What files inside the work tree say of that, which only lowers it.
    pub tracked_limits: Limits,
    /// `handoff.maxCrashes`: how many attempts of an item a crash of the driver may take before the item fails.
    pub max_crashes: u32,
    /// The seconds that it may take to take what one attempt left.
    pub capture_timeout: u64,
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
    /// The most bytes that worktrees may take before spent ones are not kept to be used again.
    pub workspace_cap: u64,
    /// What is copied from the work tree into every worktree.
    pub workspace_copy: Vec<String>,
    /// What every worktree has a link to.
    pub workspace_link: Vec<String>,
    /// Whether the filter `lfs` runs.
    pub workspace_lfs: bool,
    /// Whether worktrees leave out what the work tree leaves out.
    pub workspace_sparse: bool,
    /// Whether worktrees have the branches, the tags and the remotes of the repository.
    pub workspace_refs: bool,
    /// Whether submodules are checked out.
    pub workspace_submodules: bool,
    /// Whether what an item does to the files of submodules is taken; otherwise it fails the item.
    pub capture_submodules: bool,
    /// `handoff.workspace.inputs`
    pub inputs: String,
    /// `handoff.workspace.outputs`
    pub outputs: String,
    /// Whether git may tidy up by itself here: `maintenance.auto` and `gc.auto` do not say no.
    pub maintenance: bool,
    /// Whether answers and messages are to be in colour.
    pub colors: Colors,
    /// Whether long answers go through a pager.
    pub paging: Paging,
    /// `user.name` and `user.email`, if both are set.
    pub user: Option<(String, String)>,
    /// `user.name`
    pub user_name: Option<String>,
    /// How others are reached, as git's own settings say it outside the work tree: keys and values, in order.
    pub reaching: Vec<(String, String)>,
    /// `handoff.secrets.allow`: what is stored although it looks like a credential.
    pub secrets_allowed: Vec<Allowed>,
    /// The executors that plans may name which agents submit over MCP; every one but `command` where there is none.
    pub mcp_executors: Vec<String>,
    /// The remotes that agents may push threads to and fetch them from over MCP.
    pub mcp_remotes: Vec<String>,
    /// Whether what agents submitted is driven without being named.
    pub mcp_drive: bool,
    /// What was ignored, in sentences.
    pub warnings: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            outside: Outside::default(),
            executors: BTreeMap::new(),
            subagents: BTreeMap::new(),
            queues: BTreeMap::new(),
            anchors: BTreeMap::new(),
            shapes: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            schemas: BTreeMap::new(),
            signing_key: None,
            signing_program: None,
            signers: None,
            revoked: None,
            allowed_signers: None,
            durability: Durability::Strict,
            sandbox: Asked::default(),
            network: Network::default(),
            limits: Limits { processes: Some(4096), disk: Some(20 << 30), output: Some(1 << 30), ..Limits::default() },
            tracked_limits: Limits::default(),
            max_items: 10_000,
            max_product_size: 100 << 20,
            max_crashes: 10,
            capture_timeout: 300,
            max_fetch_size: 2 << 30,
            workspace_root: None,
            keep: false,
            workspace_cap: 10 << 30,
            workspace_copy: Vec::new(),
            workspace_link: Vec::new(),
            workspace_lfs: true,
            workspace_sparse: true,
            workspace_refs: true,
            workspace_submodules: false,
            capture_submodules: false,
            inputs: "inputs".into(),
            outputs: "outputs".into(),
            maintenance: true,
            colors: Colors::default(),
            paging: Paging::default(),
            user: None,
            user_name: None,
            reaching: Vec::new(),
            secrets_allowed: Vec::new(),
            mcp_executors: Vec::new(),
            mcp_remotes: Vec::new(),
            mcp_drive: false,
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// Takes in a setting of ours; one of anybody else's is none of our business.
    fn take(&mut self, setting: &Setting, tracked: bool) -> Result<(), Error> {
        let Some(key) = Key::parse(&setting.key) else { return Ok(()) };
        let Some(entry) = key.entry() else { return Err(Error::unknown(&key, setting)) };
        if let Some(why) = executor::refusal(&key) {
            return Err(Error::BuiltIn { key: setting.key.clone(), origin: setting.origin.clone(), why });
        }
        (entry.set)(self, &Given { key, setting, tracked })
    }

    fn queue(&mut self, given: &Given<'_>) -> &mut Queue {
        self.queues.entry(given.name()).or_default()
    }

    /// Takes in a setting of an anchor, which is read when the anchor is: what it may be depends on the others.
    fn set_anchor(&mut self, given: &Given<'_>, value: String) {
        self.anchors.entry(given.name()).or_default().insert(given.key.field.to_owned(), value);
    }
}

/// What can go wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the configuration could not be read")]
    Git(#[source] program::Error),
    #[error("the setting `{key}` = {value:?}{} {why}", place(.origin.as_deref()))]
    Value { key: String, value: String, origin: Option<PathBuf>, why: Cow<'static, str> },
    #[error(
        "`handoff.workspace.inputs` = {0:?} and `handoff.workspace.outputs` = {1:?} name one folder: what an item consumes would be taken \
         for what it made"
    )]
    OneFolder(String, String),
    #[error("the setting `{key}`{} means nothing: {why}", place(.origin.as_deref()))]
    BuiltIn { key: String, origin: Option<PathBuf>, why: &'static str },
    #[error("the setting `{key}`{} is not known{}", place(.origin.as_deref()), meant(.nearest.as_deref()))]
    Unknown { key: String, origin: Option<PathBuf>, nearest: Option<String> },
}

impl Error {
    fn bad(setting: &Setting, why: impl Into<Cow<'static, str>>) -> Self {
        let why = why.into();
        Self::Value { key: setting.key.clone(), value: setting.value.clone(), origin: setting.origin.clone(), why }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Value { key, .. } => Some(hints::setting(key)),
            Self::OneFolder(..) => Some(hints::folders()),
            Self::Unknown { key, origin, nearest } => {
                Some(hints::rename_setting(key, origin.as_deref(), nearest.as_deref()))
            }
            Self::BuiltIn { key, origin, .. } => Some(hints::rename_setting(key, origin.as_deref(), None)),
            Self::Git(_) => None,
        }
    }

    fn unknown(key: &Key<'_>, setting: &Setting) -> Self {
        Self::Unknown { key: setting.key.clone(), origin: setting.origin.clone(), nearest: key.nearest() }
    }
}

/// Returns what was probably meant, as messages have it behind what was written.
fn meant(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
