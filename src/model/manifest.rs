//! The dispatch manifest: what one attempt runs, and how.
//!
//! It says nothing about which item of which run this is for, so equal work has equal bytes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::bounds;
use super::digest::{Digest, Oid};
use super::format;
use super::json;
use super::plan::Item;
use super::protect_rule::ProtectRule;
use super::protected::{OnProtectedChange, VerifyIn};
use super::surroundings::Surroundings;

/// The manifest's `schema`.
pub const SCHEMA: &str = "git-handoff.manifest/1";

/// A manifest, written as canonical JSON, whose bytes the entry names. Item, attempt and inputs are
/// in that entry.
///
/// It has names of environment variables, no values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// Always [`SCHEMA`].
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.manifest/1")))]
    pub schema: String,
    /// The tree that it began on: the base with the patches that its needs apply; absent if they
    /// apply none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Oid>,
    /// The plan's executor.
    pub executor: String,
    /// The plan's subagent, for the executor `dispatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The resolved command.
    pub argv: Vec<String>,
    /// The setup command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Vec<String>>,
    /// The verify command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// The digest of the files laid over the worktree for the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Digest>,
    /// True if the check must fail before the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub red_first: bool,
    /// Where the check runs.
    #[serde(default, skip_serializing_if = "VerifyIn::is_worktree")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "fresh")))]
    pub verify_in: VerifyIn,
    /// The rules of protected files.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub protect: BTreeSet<ProtectRule>,
    /// The effect of a change to them, unless it makes the item red.
    #[serde(default, skip_serializing_if = "is_red")]
    pub on_protected_change: OnProtectedChange,
    /// The digest of the pipeline, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Digest>,
    /// The digest of the canonical form of the item's `inputs` as submitted.
    pub inputs: Digest,
    /// The time limit in seconds.
    pub timeout: u64,
    /// The writer's claims about the attempt's surroundings.
    pub claims: Surroundings,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_red(effect: &OnProtectedChange) -> bool {
    *effect == OnProtectedChange::Red
}

impl Manifest {
    /// Returns the manifest of an item that runs nothing yet.
    pub fn begin(item: &Item) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            start: None,
            executor: item.executor.clone(),
            subagent: None,
            argv: Vec::new(),
            setup: None,
            verify: None,
            held_out: None,
            red_first: false,
            verify_in: VerifyIn::default(),
            protect: BTreeSet::new(),
            on_protected_change: OnProtectedChange::default(),
            pipeline: None,
            inputs: format::digest_of(&item.inputs),
            timeout: 0,
            claims: Surroundings { tool: format::TOOL.to_owned(), ..Surroundings::default() },
        }
    }

    /// Returns the digest of the recorded commands.
    pub fn digest_of_lines(&self) -> Digest {
        format::digest_of(&json!({ "argv": self.argv, "setup": self.setup, "verify": self.verify }))
    }

    /// Returns the lists of places that the worker could reach besides its worktree, with their
    /// names.
    pub fn places(&self) -> [(&'static str, &[String]); 4] {
        let Surroundings { writable, readable, linked, copied, .. } = &self.claims;
        [("writable", writable), ("readable", readable), ("linked", linked), ("copied", copied)]
    }

    /// Returns the fields as JSON, with the claims beside them. A claim with the name of a
    /// field is left out.
    fn fields(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { return Map::new() };
        if let Some(Value::Object(claims)) = fields.remove("claims") {
            for (name, value) in claims {
                fields.entry(name).or_insert(value);
            }
        }
        fields
    }

    /// Returns the names of the fields and claims in which two manifests differ, sorted.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let (one, other) = (self.fields(), other.fields());
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
    }

    /// Returns the manifest's bytes.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Parses a manifest; fails unless it is in canonical form.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if !bounds::is_light(bytes) {
            return Err(Error::Heavy);
        }
        let value = json::lenient(bytes).map_err(Error::Json)?;
        let safe = format::has_safe_numbers(&value);
        let manifest: Self = serde_json::from_value(value).map_err(Error::Json)?;
        if !safe || manifest.schema != SCHEMA || manifest.canonical() != bytes {
            return Err(Error::NotCanonical);
        }
        Ok(manifest)
    }
}

/// Counts a list of places: `writable: 2 places`.
pub fn places_in_words(name: &str, count: usize) -> String {
    format!("{name}: {count} {}", if count == 1 { "place" } else { "places" })
}

errors! {
    /// The reason why bytes are not a manifest.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Json(serde_json::Error): "the manifest cannot be read: {0}";
    Heavy:
        "the manifest has more than {} arrays and objects, or more than {} values" [bounds::CONTAINERS, bounds::VALUES];
    NotCanonical: "the manifest is not a canonical {SCHEMA}";
}
