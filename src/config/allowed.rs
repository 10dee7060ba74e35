//! What is let through: bytes that look like credentials, and what agents may ask for over MCP.

use crate::model::credential::gate::Gate;

use super::Config;

impl Config {
    /// Returns what may not be stored.
    pub fn gate(&self) -> Gate {
        Gate::new(self.secrets_allowed.clone())
    }

    /// Returns whether a plan may name an executor that an agent submits over MCP.
    pub fn mcp_allows(&self, executor: &str) -> bool {
        match self.mcp_executors.as_slice() {
            [] => executor != "command",
            allowed => allowed.iter().any(|one| one == executor),
        }
    }
}
