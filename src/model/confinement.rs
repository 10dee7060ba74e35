//! The confinement of workers: requested settings, and layers as a manifest names them.

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// The setting `handoff.sandbox`.
///
/// Ordered from weakest to strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// No confinement.
    None,
    /// As far as this machine can.
    #[default]
    Auto,
    /// All layers, or nothing runs.
    Require,
    /// All layers, and only files needed to run programs, or nothing runs.
    Strict,
}

/// The setting `handoff.network`.
///
/// Ordered from weakest to strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Unrestricted.
    #[default]
    Any,
    /// Only loopback addresses.
    Loopback,
    /// No internet sockets.
    None,
}

/// A home directory that was the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RealHome {
    /// No private one was made.
    Real,
}

/// Whether a worker can connect to the user's sockets in the file system, such as an SSH agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// No layer prevents that, whatever the network setting.
    Reachable,
}

/// Messages of programs whose own sandbox cannot start inside a worker, because it cannot create
/// namespaces or mounts.
const NESTED: [&str; 11] = [
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
    // util-linux, Podman, Nix.
    "unshare: unshare failed: Operation not permitted",
    "cannot clone: Operation not permitted",
    "this system does not support the kernel namespaces that are required for sandboxing",
];

/// Returns true if a program's output reports that its own sandbox cannot start.
pub fn says_nested(text: &str) -> bool {
    NESTED.iter().any(|message| text.contains(message))
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

    /// Returns the word of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Require => "require",
            Self::Strict => "strict",
            Self::None => "none",
        }
    }
}

impl Network {
    /// Returns the word of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Loopback => "loopback",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
    let is_off = |word: &str| OFF.iter().any(|off| word.eq_ignore_ascii_case(off));
    let is_none = sandbox.split(|c: char| c == ':' || c.is_whitespace()).any(is_off);
    required.iter().copied().find(|layer| is_none || !names(sandbox).any(|name| name == *layer))
}
