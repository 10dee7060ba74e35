//! What confines a worker: what is asked for, and the layers as a manifest names them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The layer that says which files, signals and sockets a worker reaches.
pub const LANDLOCK: &str = "landlock";
/// The layer that says which system calls it may make.
pub const SECCOMP: &str = "seccomp";
/// The layer that hides what the others cannot.
pub const BWRAP: &str = "bwrap";

/// What a manifest records where nothing confines the worker.
pub const NONE: &str = "none";

/// Words in a manifest that take back every layer beside them.
const OFF: [&str; 2] = [NONE, "off"];

/// How much is asked for: `handoff.sandbox`.
///
/// Each asks for more than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// Nothing.
    None,
    /// Whatever this machine can enforce.
    #[default]
    Auto,
    /// All layers, or nothing runs.
    Require,
    /// All layers, and of files only what is needed to run programs, or nothing runs.
    Strict,
}

/// Whom a worker may speak to: `handoff.network`.
///
/// Each lets it speak to fewer than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Everybody.
    #[default]
    Any,
    /// Only itself, over addresses of this machine.
    Loopback,
    /// Nobody: there are no sockets of the internet's kinds.
    None,
}

/// Whether a worker can connect to sockets that lie in the file system and belong to the user, such as those of an SSH agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// No layer keeps it from any of them, whatever the network.
    Reachable,
}

/// Messages of programs whose own sandbox cannot start inside a worker's: no namespace can be made there, and nothing mounted.
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

/// Returns true if a program said that its own sandbox cannot start.
pub fn says_nested(text: &str) -> bool {
    NESTED.iter().any(|message| text.contains(message))
}

/// Which home directory a worker has: `handoff.subagent.<name>.home`.
///
/// Each gives it more than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// One of its own, which goes with it.
    #[default]
    Private,
    /// That of who drives the run, but for what is secret in it.
    Real,
}

impl Asked {
    /// Returns whether nothing may run where a layer is missing.
    pub fn insists(self) -> bool {
        matches!(self, Self::Require | Self::Strict)
    }

    /// Returns the word for it.
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
    /// Returns the word for it.
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

/// Returns the names of the layers that a manifest records, without their versions.
pub fn names(sandbox: &str) -> impl Iterator<Item = &str> {
    let layers = sandbox.split(' ').map(|layer| layer.split_once(':').map_or(layer, |(name, _)| name));
    layers.filter(|name| !name.is_empty() && *name != NONE)
}

/// Returns the first of the required layers that a manifest does not record.
///
/// A manifest that says `none` or `off` anywhere, as a layer or as its version, records none of them.
pub fn missing<'a>(sandbox: &str, required: &[&'a str]) -> Option<&'a str> {
    let is_off = |word: &str| OFF.iter().any(|off| word.eq_ignore_ascii_case(off));
    let is_none = sandbox.split(|c: char| c == ':' || c.is_whitespace()).any(is_off);
    required.iter().copied().find(|layer| is_none || !names(sandbox).any(|name| name == *layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_counted_by_name() {
        let all = "landlock:7 seccomp bwrap:0.8";
        assert_eq!(names(all).collect::<Vec<_>>(), [LANDLOCK, SECCOMP, BWRAP]);
        assert_eq!(names(NONE).count(), 0);
        assert_eq!(missing(all, &[LANDLOCK, SECCOMP, BWRAP]), None);
        assert_eq!(missing("landlock:7 seccomp", &[LANDLOCK, BWRAP]), Some(BWRAP));
        let off =
            ["none landlock:7 seccomp", "landlock:7 seccomp off", "landlock:off seccomp", "landlock seccomp:NONE"];
        for less in off {
            assert_eq!(missing(less, &[LANDLOCK, SECCOMP]), Some(LANDLOCK), "{less}");
            assert_eq!(missing(less, &[]), None);
        }
        assert_eq!(missing("landlock:7 seccomp offline", &[LANDLOCK, SECCOMP]), None);
        for less in [NONE, "", "landlocked seccomp", "LANDLOCK seccomp", "none landlock:"] {
            assert!(missing(less, &[LANDLOCK, SECCOMP]).is_some(), "{less}");
        }
    }
}
