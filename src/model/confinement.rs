//! The confinement of workers: requested settings, and layers as a manifest names them.

use serde::{Deserialize, Serialize};

use super::words::words;

/// The layer that restricts files, signals and sockets.
pub const LANDLOCK: &str = "landlock";
/// The layer that restricts system calls.
pub const SECCOMP: &str = "seccomp";
/// The layer that hides what the others cannot restrict.
pub const BWRAP: &str = "bwrap";

/// The manifest's word for an unconfined worker.
pub const NONE: &str = "none";

/// Words in a manifest that invalidate all layers beside them.
const OFF: [&str; 2] = [NONE, "off"];

words! {
    as_str
    /// The setting `handoff.sandbox`.
    ///
    /// Ordered from weakest to strictest.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Asked {
        /// No confinement.
        None = "none",
        /// As far as this machine can.
        #[default]
        Auto = "auto",
        /// All layers, or nothing runs.
        Require = "require",
        /// All layers, and only files needed to run programs, or nothing runs.
        Strict = "strict",
    }
}

words! {
    as_str
    /// The setting `handoff.network`.
    ///
    /// Ordered from weakest to strictest.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Network {
        /// Unrestricted.
        #[default]
        Any = "any",
        /// Only loopback addresses.
        Loopback = "loopback",
        /// No internet sockets.
        None = "none",
    }
}

/// A home directory that was the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RealHome {
    /// No private one was made.
    Real,
}

/// Whether a worker can connect to the user's sockets in the file system, such as an SSH agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// No layer prevents that, whatever the network setting.
    Reachable,
}

/// Something that is refused to every worker, so that some programs fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Namespaces and mounts, for a program's own sandbox.
    Sandbox,
    /// The same for containers, and the daemons that start them.
    Container,
    /// Another user's rights.
    User,
    /// Calls that observe processes and memory, and queues into the kernel.
    Observation,
    /// A file system of the worker's own.
    FileSystem,
    /// Memory of System V, without bubblewrap.
    SystemV,
    /// The group of a terminal, which screen sets as root.
    Terminal,
    /// Settings of processes.
    Settings,
    /// The machine's queue of jobs.
    Jobs,
    /// Other repositories of this machine.
    Push,
    /// A file that is larger than the limit.
    FileSize,
    /// The store of Nix.
    Store,
}

/// Messages of programs to which this is refused.
const REFUSED: &[(Refusal, &[&str])] = &[
    (
        Refusal::Sandbox,
        &[
            // bubblewrap, and so Claude Code, Codex and Flatpak.
            "bwrap: No permissions to create new namespace",
            "bwrap: Creating new namespace failed",
            "bwrap: setting up uid map",
            "bwrap: Failed to make / slave",
            // Chromium, and so Electron, Playwright and Puppeteer.
            "No usable sandbox!",
            "Failed to move to new namespace",
            "Running as root without --no-sandbox is not supported",
            "The SUID sandbox helper binary was found, but is not configured correctly",
            // util-linux, Nix.
            "unshare: unshare failed: Operation not permitted",
            "this system does not support the kernel namespaces that are required for sandboxing",
        ],
    ),
    (
        Refusal::Container,
        &[
            "Cannot connect to the Docker daemon",
            "permission denied while trying to connect to the Docker daemon socket",
            "Error while fetching server API version: ",
            // Podman and Buildah, as a user and as root.
            "cannot clone: Operation not permitted",
            "mkdir /var/lib/containers: ",
            "open /var/lib/containers/",
            // runc.
            "mkdir /run/runc: ",
            "open /run/runc: ",
        ],
    ),
    (
        Refusal::User,
        &[
            "sudo: PERM_SUDOERS: setresuid",
            "sudo: The \"no new privileges\" flag is set",
            "sudo: unable to change to root gid",
            "su: System error",
            "su: cannot set groups: Operation not permitted",
        ],
    ),
    (
        Refusal::Observation,
        &[
            // perf, rr.
            "No permission to enable ",
            "Unable to open performance counter with 'perf_event_open'",
            "perf_event_open: Operation not permitted",
            "userfaultfd: Operation not permitted",
            "io_uring_setup: Operation not permitted",
            "io_uring_queue_init: Operation not permitted",
        ],
    ),
    (
        Refusal::FileSystem,
        &[
            "fuse: device not found",
            "fuse: failed to open /dev/fuse",
            "fusermount3: mount failed",
            "fusermount: mount failed",
        ],
    ),
    (
        Refusal::SystemV,
        &[
            "could not create shared memory segment: Operation not permitted",
            "fakeroot: error while starting the `faked' daemon.",
        ],
    ),
    (Refusal::Terminal, &["chown tty: Operation not permitted", "No screen session found."]),
    (Refusal::Settings, &["/oom_score_adj: "]),
    (Refusal::Jobs, &["You do not have permission to use at.", "Cannot open lockfile /var/spool/cron/atjobs/"]),
    (Refusal::Push, &["remote unpack failed: unable to create temporary object directory"]),
    (
        Refusal::Store,
        &["remounting /nix/store writable: Operation not permitted", "opening lock file '/nix/var/nix/db/big-lock'"],
    ),
    (Refusal::FileSize, &["File size limit exceeded", "File too large"]),
];

/// Returns what the sandbox refused to a program according to its output.
pub fn find_refusal(text: &str) -> Option<Refusal> {
    let found = REFUSED.iter().find(|(_, messages)| messages.iter().any(|message| text.contains(message)));
    found.map(|(refusal, _)| *refusal)
}

/// The setting `handoff.subagent.<name>.home`.
///
/// Ordered from strictest to weakest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// An empty one, removed afterwards.
    #[default]
    Private,
    /// The user's, without secrets.
    Real,
}

impl Asked {
    /// Returns true if a missing layer prevents a run.
    pub fn insists(self) -> bool {
        matches!(self, Self::Require | Self::Strict)
    }
}

/// Returns the recorded layers without their versions.
pub fn names(sandbox: &str) -> impl Iterator<Item = &str> {
    let layers = sandbox.split(' ').map(|layer| layer.split_once(':').map_or(layer, |(name, _)| name));
    layers.filter(|name| !name.is_empty() && *name != NONE)
}

/// Returns the first required layer that a manifest does not record.
///
/// A manifest with `none` or `off` anywhere records no layer.
pub fn missing<'a>(sandbox: &str, required: &[&'a str]) -> Option<&'a str> {
    let is_none = sandbox
        .split(|c: char| c == ':' || c.is_whitespace())
        .any(|word| OFF.iter().any(|off| word.eq_ignore_ascii_case(off)));
    required.iter().copied().find(|layer| is_none || !names(sandbox).any(|name| name == *layer))
}
