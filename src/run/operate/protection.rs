//! Warns about protected files that the base does not have.

use std::collections::BTreeSet;

use crate::git::merge::Scratch;
use crate::git::protected::Protection;
use crate::model::plan::{Item, Plan};
use crate::model::protect_rule::ProtectRule;
use crate::model::protectable::runner;
use crate::repository::Repository;

use super::submit::resolve_base;

impl Repository {
    /// Returns a warning for each rule that is to protect files from a plan's workers and selects
    /// no file of the base, except for known pathspecs: they name files that a worker could add.
    /// Other commands report a base or a pathspec that git refuses.
    pub(super) fn unmatched_protection(&self, plan: &Plan, revision: &str) -> Vec<String> {
        let mut rules = self.protected_by(plan);
        rules.retain(|rule| rule.pathspec().is_none_or(|pathspec| runner(pathspec).is_none()));
        if rules.is_empty() {
            return Vec::new();
        }
        let base = resolve_base(&self.store, revision).ok();
        let Some(scratch) = base.and_then(|base| Scratch::isolated(&self.store, base).ok()) else { return Vec::new() };
        rules
            .into_iter()
            .filter(|rule| Protection::new(&scratch, [rule]).selects_any().is_ok_and(|any| !any))
            .map(|rule| format!("{rule} selects no file of the base, so it protects nothing"))
            .collect()
    }

    /// Returns the rules of a plan and of the settings of its items' executors.
    fn protected_by(&self, plan: &Plan) -> BTreeSet<ProtectRule> {
        let config = &self.config;
        let settings = |item: &Item| {
            let subagent = item.inputs.get("subagent").and_then(serde_json::Value::as_str);
            subagent.and_then(|name| config.subagent(name)).or_else(|| config.settings_of(&item.executor))
        };
        let of_items = plan.items.iter().flat_map(|item| {
            item.protect.iter().cloned().chain(settings(item).map(|settings| settings.protect).unwrap_or_default())
        });
        config.protect.iter().cloned().chain(of_items).collect()
    }
}
