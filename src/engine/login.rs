//! Finds agents whose login a sandbox would hide from them.

use std::path::{Path, PathBuf};

use crate::model::confinement::Asked;
use crate::model::plan::Item;
use crate::repository::Repository;
use crate::sandbox::TOOLS;

use super::command;

impl Repository {
    /// Returns the setting that would give the agent of an item its login, and the login's path
    /// below the home directory.
    ///
    /// Returns `None` if the agent has its login or another way to log in, or if it is not a known
    /// agent.
    pub fn login_out_of_reach(&self, item: &Item) -> Option<(String, &'static str)> {
        let home = PathBuf::from(self.environment.variable("HOME")?);
        let resolved = command::resolve(item, &self.config).ok()?;
        let settings = &resolved.settings;
        if settings.sandbox.unwrap_or(self.config.sandbox) == Asked::None || !settings.secret_env.is_empty() {
            return None;
        }
        let line = settings.command.as_ref()?;
        let runs = |agent: &str| line.split_whitespace().any(|word| word.rsplit('/').next() == Some(agent));
        let is_given = |login: &str| {
            let mut given = settings.readable.iter().chain(&settings.writable);
            let below =
                |path: &PathBuf| path.strip_prefix("~").or_else(|_| path.strip_prefix(&home)).map(Path::to_owned);
            given.any(|path| below(path).is_ok_and(|below| Path::new(login).starts_with(below)))
        };
        let is_hidden = |(agent, login): &(&str, &str)| runs(agent) && !is_given(login) && home.join(login).exists();
        let (_, login) = TOOLS.logins.iter().copied().find(is_hidden)?;
        let key = match resolved.subagent {
            Some(name) => format!("handoff.subagent.{name}.writable"),
            None => format!("handoff.executor.{}.writable", item.executor),
        };
        Some((key, login))
    }
}
