//! Finds agents whose login a sandbox would hide from them.

use std::path::{Path, PathBuf};

use crate::model::confinement::Asked;
use crate::model::plan::Item;
use crate::repository::Repository;
use crate::repository::config::AgentFolder;
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
        let is_given = |login: &str| {
            let mut given = settings.readable.iter().chain(&settings.writable).chain(&settings.private);
            let below =
                |path: &PathBuf| path.strip_prefix("~").or_else(|_| path.strip_prefix(&home)).map(Path::to_owned);
            given.any(|path| below(path).is_ok_and(|below| Path::new(login).starts_with(below)))
        };
        let (_, login) = TOOLS.logins.iter().copied().find(|(agent, login)| {
            line.split_whitespace().any(|word| word.rsplit('/').next() == Some(agent))
                && !is_given(login)
                && self.login_exists(&home, login)
        })?;
        let key = match resolved.subagent {
            Some(name) => format!("handoff.subagent.{name}.private"),
            None => format!("handoff.executor.{}.private", item.executor),
        };
        Some((key, login))
    }

    /// Returns true if a login exists, wherever a variable puts the folder of a known agent.
    fn login_exists(&self, home: &Path, login: &str) -> bool {
        let folder = AgentFolder::at(&Path::new("~").join(login));
        folder.map_or_else(|| home.join(login), |folder| self.environment.place_of(folder)).exists()
    }
}
