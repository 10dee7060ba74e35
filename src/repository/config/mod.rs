//! The configuration, read with `git config`.
//!
//! git reads the files, so that every scope, `-c` and every kind of include works as in git.
//! Settings that decide whom to trust are never taken from a file inside a work tree.

mod allowed;
mod colors;
mod entry;
mod executor;
mod kind;
mod listed;
mod origin;
mod outside;
mod pager;
mod preset;
mod read;
mod registration;
mod secret_env;
mod table;
mod trust;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::git::program;
use crate::git::store::Durability;
use crate::model::confinement::{Asked, Network};
use crate::model::credential::allow::Allowed;
use crate::model::hints::{self, Hint};
use crate::model::limits::Limits;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::OnProtectedChange;
use crate::model::schema::Schema;

pub use colors::{Colors, When};
pub use entry::{Entry, Group};
use entry::{Given, Key};
pub use executor::{Executor, OnVerifyFail, Unregistered};
use listed::Setting;
pub use origin::{is_in_work_tree, work_trees};
pub use outside::Outside;
pub use pager::Paging;
pub use preset::{AgentFolder, MessageRule, PRESETS, Preset, Service, TokenRule};
pub use registration::Registration;
use registration::place;
pub use secret_env::{SecretEnv, SecretSource};
pub use table::SETTINGS;

/// The settings of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// How many items run at the same time.
    pub concurrency: Option<usize>,
    /// The execution pattern.
    pub pattern: Option<String>,
    /// A file of rules that apply to all runs on the queue.
    pub rules: Option<PathBuf>,
    /// The maximum number of attempts of an item.
    pub max_attempts: Option<u32>,
}

/// The whole configuration, with defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Config {
    /// `handoff.executor.<name>.*`
    pub executors: BTreeMap<String, Executor>,
    /// `handoff.subagent.<name>.*`
    pub subagents: BTreeMap<String, Executor>,
    /// `handoff.queue.<name>.*`
    pub queues: BTreeMap<String, Queue>,
    /// `handoff.anchor.<name>.*`: settings by anchor; keys in lower case.
    pub anchors: BTreeMap<String, BTreeMap<String, String>>,
    /// `handoff.shape.<id>.path`
    pub shapes: BTreeMap<String, Registration>,
    /// `handoff.pipeline.<id>.path`
    pub pipelines: BTreeMap<String, Registration>,
    /// `handoff.schema.<id>@<version>.path`
    pub schemas: BTreeMap<Schema, Registration>,
    /// `handoff.protect` and `handoff.protectExcept`: the files protected from every worker.
    pub protect: Vec<ProtectRule>,
    /// `handoff.onProtectedChange`
    pub on_protected_change: Option<OnProtectedChange>,
    /// `handoff.recordProgram`: record the programs of attempts in manifests.
    pub record_program: bool,
    /// `handoff.signingKey`, or `user.signingKey` where `gpg.format` is `ssh`.
    pub signing_key: Option<String>,
    /// The configuration files, and the files that they name.
    pub outside: Outside,
    /// `gpg.ssh.program`: signs with keys whose private half is not in a file.
    pub signing_program: Option<PathBuf>,
    /// `handoff.signers`: the allowed-signers file that verify enforces.
    pub signers: Option<PathBuf>,
    /// `handoff.revoked`: keys that are no longer trusted.
    pub revoked: Option<PathBuf>,
    /// `gpg.ssh.allowedSignersFile`: names for keys; not enforced.
    pub allowed_signers: Option<PathBuf>,
    /// `handoff.durability`
    pub durability: Durability,
    /// `handoff.sandbox`: the requested confinement.
    pub sandbox: Asked,
    /// `handoff.network`: the network that workers may reach.
    pub network: Network,
    /// `handoff.max…`: resource limits of one attempt.
    pub limits: Limits,
    /// Limits set by files inside the work tree; they can only lower the others.
    pub tracked_limits: Limits,
    /// `handoff.maxCrashes`: after this many driver crashes during an item, the item fails.
    pub max_crashes: u32,
    /// `handoff.heartbeat`: the time between two beats of a driver of a run that is shared here.
    pub heartbeat: Duration,
    /// `handoff.lostAfter`: the silence after which such a driver counts as lost.
    pub lost_after: Duration,
    /// `handoff.via.interval`: the shortest time between two pushes of a driver.
    pub via_interval: Duration,
    /// `handoff.remoteTimeout`: the time without progress after which a call to the remote ends.
    pub remote_timeout: Duration,
    /// `handoff.captureTimeout`: the time limit for capturing an attempt's products, in seconds.
    pub capture_timeout: u64,
    /// `handoff.maxItems`
    pub max_items: usize,
    /// `handoff.maxProductSize`, in bytes.
    pub max_product_size: u64,
    /// `handoff.maxFetchSize`: the size limit of one fetch or one bundle, in bytes.
    pub max_fetch_size: u64,
    /// `handoff.workspace.root`
    pub workspace_root: Option<PathBuf>,
    /// `handoff.workspace.keep`: keep the worktrees of failed attempts.
    pub keep: bool,
    /// `handoff.workspace.cap`, in bytes: above it, used worktrees are removed instead of reused.
    pub workspace_cap: u64,
    /// `handoff.workspace.copy`: untracked paths to copy into every worktree.
    pub workspace_copy: Vec<String>,
    /// `handoff.workspace.link`: paths to link into every worktree.
    pub workspace_link: Vec<String>,
    /// `handoff.workspace.lfs`: run the filter `lfs`.
    pub workspace_lfs: bool,
    /// `handoff.workspace.sparse`: apply the work tree's sparse checkout.
    pub workspace_sparse: bool,
    /// `handoff.workspace.refs`: give worktrees the repository's branches, tags and remotes.
    pub workspace_refs: bool,
    /// `handoff.workspace.submodules`: check out submodules.
    pub workspace_submodules: bool,
    /// `handoff.submodules`: capture changes inside submodules instead of failing the item.
    pub capture_submodules: bool,
    /// `handoff.workspace.inputs`
    pub inputs: String,
    /// `handoff.workspace.outputs`
    pub outputs: String,
    /// When to use colour.
    pub colors: Colors,
    /// Whether to use a pager.
    pub paging: Paging,
    /// `user.name` and `user.email`, if both are set.
    pub user: Option<(String, String)>,
    /// `user.name`
    pub user_name: Option<String>,
    /// git's own settings for reaching remotes, without those from the work tree, in order.
    pub reaching: Vec<(String, String)>,
    /// `handoff.secrets.allow`: exceptions for what looks like a credential.
    pub secrets_allowed: Vec<Allowed>,
    /// `handoff.mcp.executors`: executors that plans submitted over MCP may name; if empty, all but
    /// `command`.
    pub mcp_executors: Vec<String>,
    /// `handoff.mcp.remotes`: remotes that agents may push threads to and fetch them from.
    pub mcp_remotes: Vec<String>,
    /// `handoff.mcp.drive`: `run` without a name also drives runs that agents submitted.
    pub mcp_drive: bool,
    /// Warnings about ignored settings.
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
            protect: Vec::new(),
            on_protected_change: None,
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
            heartbeat: Duration::from_secs(5),
            lost_after: Duration::from_secs(60),
            remote_timeout: Duration::from_secs(60),
            via_interval: Duration::from_millis(500),
            capture_timeout: 300,
            max_fetch_size: 2 << 30,
            workspace_root: None,
            keep: false,
            workspace_cap: 10 << 30,
            workspace_copy: Vec::new(),
            workspace_link: Vec::new(),
            record_program: true,
            workspace_lfs: true,
            workspace_sparse: true,
            workspace_refs: true,
            workspace_submodules: false,
            capture_submodules: false,
            inputs: "inputs".into(),
            outputs: "outputs".into(),
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
    /// Reads one setting; ignores those outside `handoff.`.
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

    /// Stores a setting of an anchor. The anchor validates it, because its settings depend on each
    /// other.
    fn set_anchor(&mut self, given: &Given<'_>, value: String) {
        self.anchors.entry(given.name()).or_default().insert(given.key.field.to_owned(), value);
    }
}

errors! {
    /// An error in the configuration.
    #[derive(Debug, thiserror::Error)] pub enum Error = "config";
    Git(#[source] program::Error): "the configuration could not be read";
    Value { key: String, value: String, origin: Option<PathBuf>, why: Cow<'static, str> }:
        "the setting `{key}` = {value:?}{} {why}" [place(.origin.as_deref())];
    OneFolder(String, String):
        "`handoff.workspace.inputs` = {0:?} and `handoff.workspace.outputs` = {1:?} name one folder: what an item consumes would be taken \
         for what it made";
    BuiltIn { key: String, origin: Option<PathBuf>, why: &'static str }:
        "the setting `{key}`{} means nothing: {why}" [place(.origin.as_deref())];
    Unknown { key: String, origin: Option<PathBuf>, nearest: Option<String> }:
        "the setting `{key}`{} is not known{}" [place(.origin.as_deref()), meant(.nearest.as_deref())];
}

impl Error {
    fn bad(setting: &Setting, why: impl Into<Cow<'static, str>>) -> Self {
        let why = why.into();
        Self::Value { key: setting.key.clone(), value: setting.value.clone(), origin: setting.origin.clone(), why }
    }

    /// Returns the way out.
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

/// Formats a suggestion for the end of a message.
fn meant(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
