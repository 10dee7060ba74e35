//! Settings in files inside the work tree. A commit can change these files, so they decide nothing
//! about trust and can only make limits stricter.

use super::entry::{Given, Key};
use super::{Config, Error, Executor, Setting};
use crate::model::confinement::{Asked, Network};
use crate::model::plan::BuiltIn;

/// Where a setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// In every file.
    Anywhere,
    /// Inside the work tree only if its value is at least as strict as the value without it.
    WhereStricter,
    /// Only outside the work tree.
    Outside,
}

impl Counts {
    /// Returns where a setting with this key takes effect.
    pub(super) fn for_key(key: &str) -> Self {
        const OF_GIT: [&str; 4] = ["user.signingkey", "gpg.ssh.allowedsignersfile", "gpg.ssh.program", "gpg.format"];
        if OF_GIT.contains(&key) {
            return Self::Outside;
        }
        let Some(key) = Key::parse(key) else { return Self::Anywhere };
        // An unknown setting of an anchor is treated like a known one.
        if key.section == Some("anchor") {
            return Self::Outside;
        }
        match key.entry() {
            Some(entry) if entry.asks_no_less.is_some() => Self::WhereStricter,
            Some(entry) if !entry.tracked => Self::Outside,
            _ => Self::Anywhere,
        }
    }
}

impl Config {
    /// Records a warning that a setting is ignored.
    pub(super) fn ignore(&mut self, setting: &Setting) {
        self.warnings.push(format!(
            "`{}` is ignored: a file inside the work tree sets it, and a commit can change that file",
            setting.key
        ));
    }

    /// Applies settings from files inside the work tree that are at least as strict as the settings
    /// outside it, and warns about the others.
    ///
    /// Each is compared with the settings outside alone, so that no tracked file can excuse
    /// another.
    pub(super) fn take_stricter(&mut self, tracked: &[Setting]) -> Vec<Error> {
        let (counting, ignored): (Vec<_>, Vec<_>) = tracked.iter().partition(|setting| {
            Key::parse(&setting.key).is_some_and(|key| {
                let judge = key.entry().and_then(|entry| entry.asks_no_less);
                judge.is_some_and(|judge| judge(self, &Given { key, setting, tracked: true }))
            })
        });
        ignored.into_iter().for_each(|setting| self.ignore(setting));
        counting.into_iter().filter_map(|setting| self.take(setting, true).err()).collect()
    }

    /// Returns the confinement that applies without this setting.
    pub(super) fn sandbox_of(&self, given: &Given<'_>) -> Asked {
        self.holding(given).and_then(|executor| executor.sandbox).unwrap_or(self.sandbox)
    }

    /// Returns the network access that applies without this setting.
    pub(super) fn network_of(&self, given: &Given<'_>) -> Network {
        self.holding(given).and_then(|executor| executor.network).unwrap_or(self.network)
    }

    /// Returns the effective settings of the executor or subagent that a setting names.
    fn holding(&self, given: &Given<'_>) -> Option<Executor> {
        let name = given.key.name?;
        match given.key.section? {
            "subagent" => self.subagent(name).or_else(|| self.executors.get(BuiltIn::Dispatch.name()).cloned()),
            _ => self.executors.get(name).cloned(),
        }
    }
}

/// Returns true for git's settings about reaching remotes and about checking fetched objects.
pub(super) fn is_of_reaching(key: &str) -> bool {
    const SECTIONS: [&str; 7] = ["url.", "http.", "credential.", "protocol.", "ssh.", "safe.", "fetch.fsck."];
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    SECTIONS.iter().any(|section| key.starts_with(section))
        || matches!(key, "core.sshcommand" | "core.gitproxy" | "core.askpass")
        || (key.starts_with("remote.") && matches!(name, "url" | "pushurl"))
}
