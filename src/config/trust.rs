//! What a file inside the work tree has a say in: a commit changes it, so it decides about nobody's trust and loosens nothing.

use super::entry::{Given, Key};
use super::{Config, Error, Executor, Setting};
use crate::model::confinement::{Asked, Network};
use crate::model::plan::DISPATCH;

/// Where a setting counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Wherever it stands.
    Anywhere,
    /// Inside the work tree only where it asks for no less than what holds without it.
    WhereStricter,
    /// Nowhere inside the work tree.
    Outside,
}

impl Counts {
    /// Returns where a setting of this key counts.
    pub(super) fn of(key: &str) -> Self {
        const OF_GIT: [&str; 4] = ["user.signingkey", "gpg.ssh.allowedsignersfile", "gpg.ssh.program", "gpg.format"];
        if OF_GIT.contains(&key) {
            return Self::Outside;
        }
        let Some(key) = Key::parse(key) else { return Self::Anywhere };
        // One of an anchor's that nobody knows decides no more than the others.
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
    /// Says that a setting does not count, and why.
    pub(super) fn ignore(&mut self, setting: &Setting) {
        self.warnings.push(format!(
            "`{}` is ignored: it stands in a file inside the work tree, which decides about nobody's trust",
            setting.key
        ));
    }

    /// Takes in those settings of files inside the work tree that ask for no less than what all others come to, and says of the rest
    /// that they are ignored.
    ///
    /// Each is held against what stands outside alone, wherever git lists it: what one tracked file says excuses no other.
    pub(super) fn take_stricter(&mut self, tracked: &[Setting]) -> Vec<Error> {
        let asks_no_less = |setting: &&Setting| {
            Key::parse(&setting.key).is_some_and(|key| {
                let judge = key.entry().and_then(|entry| entry.asks_no_less);
                judge.is_some_and(|judge| judge(self, &Given { key, setting, tracked: true }))
            })
        };
        let (counting, ignored): (Vec<_>, Vec<_>) = tracked.iter().partition(asks_no_less);
        ignored.into_iter().for_each(|setting| self.ignore(setting));
        counting.into_iter().filter_map(|setting| self.take(setting, true).err()).collect()
    }

    /// Returns how much confines the workers that a setting is about.
    pub(super) fn sandbox_of(&self, given: &Given<'_>) -> Asked {
        self.holding(given).and_then(|executor| executor.sandbox).unwrap_or(self.sandbox)
    }

    /// Returns whom the workers may speak to that a setting is about.
    pub(super) fn network_of(&self, given: &Given<'_>) -> Network {
        self.holding(given).and_then(|executor| executor.network).unwrap_or(self.network)
    }

    /// Returns what holds for the executor or subagent that a setting is about; for a subagent, with the settings of `dispatch`.
    fn holding(&self, given: &Given<'_>) -> Option<Executor> {
        let name = given.key.name?;
        match given.key.section? {
            "subagent" => self.subagent(name).or_else(|| self.executors.get(DISPATCH).cloned()),
            _ => self.executors.get(name).cloned(),
        }
    }
}

/// Returns true if a setting of git's own says how others are reached, or what of theirs git's check lets through.
pub(super) fn is_of_reaching(key: &str) -> bool {
    const SECTIONS: [&str; 7] = ["url.", "http.", "credential.", "protocol.", "ssh.", "safe.", "fetch.fsck."];
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    let of_remote = || key.starts_with("remote.") && matches!(name, "url" | "pushurl");
    SECTIONS.iter().any(|section| key.starts_with(section))
        || matches!(key, "core.sshcommand" | "core.gitproxy" | "core.askpass")
        || of_remote()
}
