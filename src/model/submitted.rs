//! Entry 0 of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use super::continued::Continues;
use super::digest::Oid;
use super::elsewhere::Import;
use super::event::Product;
use super::format;
use super::log_name::is_fingerprint;
use super::name::FilePath;
use super::plan::Need;
use super::role::{Keys, Role};

/// The fields of `run.submitted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSubmitted {
    /// The bytes of `plan.json`.
    pub plan: Product,
    /// The sealed files, by path.
    pub artifacts: BTreeMap<FilePath, Product>,
    /// The queue's rules; absent if it adds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Product>,
    /// The pipelines, by reference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Product>,
    /// The products from outside the run, by [`Need::import`](super::plan::Need::import).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, Import>,
    /// The continued run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// The base commit.
    pub base: Oid,
    /// The queue.
    pub queue: String,
    /// The queue's pattern.
    pub pattern: String,
    /// The keys that may append, by fingerprint, each with at least one role.
    #[serde(deserialize_with = "roles")]
    #[cfg_attr(feature = "schemas", schemars(with = "BTreeMap<super::formats::Fingerprint, BTreeSet<Role>>"))]
    pub roles: BTreeMap<String, BTreeSet<Role>>,
    /// The program that submitted the run.
    pub tool: String,
}

impl RunSubmitted {
    /// Returns entry 0 of a run with a plan alone, on the default queue.
    pub fn new(plan: Product, base: Oid, roles: BTreeMap<String, BTreeSet<Role>>) -> Self {
        Self {
            plan,
            artifacts: BTreeMap::new(),
            rules: None,
            pipelines: BTreeMap::new(),
            imports: BTreeMap::new(),
            continues: None,
            base,
            queue: "default".to_owned(),
            pattern: "dag".to_owned(),
            roles,
            tool: format::TOOL.to_owned(),
        }
    }

    /// Returns the sealed product for a need from outside the run.
    pub fn import(&self, need: &Need) -> Option<&Import> {
        self.imports.get(&need.import()?)
    }

    /// Returns the keys that may seal from entry 0 on, in order; their logs name the run.
    pub fn sealers(&self) -> Vec<String> {
        let keys = Keys::from_submitted(self);
        self.roles.keys().filter(|key| keys.has(key, Role::Seal)).cloned().collect()
    }
}

fn roles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, BTreeSet<Role>>, D::Error> {
    let roles = BTreeMap::<String, BTreeSet<Role>>::deserialize(deserializer)?;
    roles.keys().try_for_each(|key| checked(key)).map_err(serde::de::Error::custom)?;
    match roles.iter().find(|(_, roles)| roles.is_empty()) {
        Some((key, _)) => Err(serde::de::Error::custom(format!("the key {key} has no role"))),
        None => Ok(roles),
    }
}

/// Parses a fingerprint.
pub(super) fn fingerprint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let key = String::deserialize(deserializer)?;
    checked(&key).map_err(serde::de::Error::custom)?;
    Ok(key)
}

fn checked(key: &str) -> Result<(), String> {
    if is_fingerprint(key) { Ok(()) } else { Err(format!("{key:?} is no fingerprint")) }
}
