//! Exceptions: credentials that may be stored, executors that agents may name over MCP.

use crate::model::credential::gate::Gate;
use crate::model::plan::BuiltIn;

use super::Config;

impl Config {
    /// Returns the check for credentials, with the configured exceptions.
    pub fn gate(&self) -> Gate {
        Gate::new(self.secrets_allowed.clone())
    }

    /// Returns true if a plan that an agent submits over MCP may name this executor.
    pub fn mcp_allows(&self, executor: &str) -> bool {
        match self.mcp_executors.as_slice() {
            [] => BuiltIn::from_name(executor).and_then(BuiltIn::line).is_none(),
            allowed => allowed.iter().any(|one| one == executor),
        }
    }
}
