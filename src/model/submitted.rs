//! Entry 0 of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use super::continued::Continues;
use super::digest::{Digest, Oid};
use super::elsewhere::Import;
use super::log_name::is_fingerprint;
use super::name::FilePath;
use super::plan::Need;
use super::role::{Keys, Role};

/// The fields of `run.submitted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSubmitted {
    /// The digest of `plan.json`.
    pub plan: Digest,
    /// The digests of the files sealed at submit, by path.
    pub artifacts: BTreeMap<FilePath, Digest>,
    /// The digest of the rules that the queue adds to the plan's; absent where it adds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Digest>,
    /// The digests of the pipelines that the plan and the rules name, as they name them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Digest>,
    /// The products that items of the plan take from other runs and from threads, by [`Need::import`](super::plan::Need::import).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, Import>,
    /// The run that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// The commit that every item starts from.
    pub base: Oid,
    /// The queue that the run is placed on.
    pub queue: String,
    /// The queue's pattern.
    pub pattern: String,
    /// Whether items may be added until the run is closed.
    pub open_ended: bool,
    /// The fingerprints of the keys that may append to the run.
    #[serde(deserialize_with = "fingerprints")]
    pub writers: Vec<String>,
    /// What each of them may do; everything, where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeMap<String, BTreeSet<Role>>>,
    /// Whether `items/` fans out by hash.
    pub fan_out: bool,
    /// The repository's object format, `sha1` or `sha256`.
    pub object_format: String,
    /// The program that submitted the run.
    pub tool: String,
}

impl RunSubmitted {
    /// Returns whether exactly its writers have roles, each at least one, where it says anything of roles.
    pub(super) fn has_roles_of_its_writers(&self) -> bool {
        self.roles.as_ref().is_none_or(|roles| {
            roles.keys().collect::<BTreeSet<_>>() == self.writers.iter().collect()
                && roles.values().all(|roles| !roles.is_empty())
        })
    }

    /// Returns what was sealed for a need that is bound to what lies outside the run.
    pub fn import(&self, need: &Need) -> Option<&Import> {
        self.imports.get(&need.import()?)
    }

    /// Returns the keys that may seal the run from entry 0 on, in the order of its writers: their logs speak of it.
    pub fn sealers(&self) -> Vec<String> {
        let keys = Keys::of(self);
        let seals = |key: &&String| keys.has(key, Role::Seal);
        self.writers.iter().filter(seals).cloned().collect()
    }
}

fn fingerprints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let writers = Vec::<String>::deserialize(deserializer)?;
    writers.iter().try_for_each(|writer| checked(writer)).map_err(serde::de::Error::custom)?;
    Ok(writers)
}

/// Reads one fingerprint.
pub(super) fn fingerprint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let key = String::deserialize(deserializer)?;
    checked(&key).map_err(serde::de::Error::custom)?;
    Ok(key)
}

fn checked(key: &str) -> Result<(), String> {
    if is_fingerprint(key) { Ok(()) } else { Err(format!("{key:?} is no fingerprint")) }
}
