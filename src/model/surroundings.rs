//! The claims of a manifest's writer about an attempt's surroundings.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::claims::take;
use super::confinement::{Network, RealHome, Sockets};
use super::digest::Digest;
use super::program::{Interpreter, Program};

/// The claims of a manifest's writer about an attempt's surroundings. No verifier judges them: any
/// JSON object is valid. A field that is unknown or has another form than here is kept as it is, in
/// `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    /// The digest of the three commands as run, if credentials were removed from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_digest: Option<Digest>,
    /// The program of the command, unless it is unknown or not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The program's interpreter, if the program is a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<Interpreter>,
    /// The names of the executor's environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The names of secret environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
    /// The layers of confinement with their versions; `none` if unconfined.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// The network access, if confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Set if it was confined but could connect to the user's sockets in the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Sockets>,
    /// Set if it was confined and had the user's own home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<RealHome>,
    /// The places that settings let it read, if confined: `~/…`, paths from the top of the
    /// repository, or names of settings. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub readable: Vec<String>,
    /// Those that settings let it write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub writable: Vec<String>,
    /// The paths and patterns that the worktree had as links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub linked: Vec<String>,
    /// Those that it had as copies of untracked files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub copied: Vec<String>,
    /// The digest of the worktree's tags, or `None` if it had no refs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Digest>,
    /// The program that dispatched it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// All other fields.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Surroundings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let of = &mut fields;
        Ok(Self {
            command_digest: take(of, "commandDigest"),
            program: take(of, "program"),
            interpreter: take(of, "interpreter"),
            env: take(of, "env"),
            secret_env: take(of, "secretEnv"),
            sandbox: take(of, "sandbox"),
            network: take(of, "network"),
            sockets: take(of, "sockets"),
            home: take(of, "home"),
            readable: take(of, "readable"),
            writable: take(of, "writable"),
            linked: take(of, "linked"),
            copied: take(of, "copied"),
            tags: take(of, "tags"),
            tool: take(of, "tool"),
            others: fields,
        })
    }
}
