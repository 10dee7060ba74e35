//! Folders of agents that workers may write.

use super::{Finding, Patient};
use crate::model::confinement::Asked;
use crate::model::hints;

/// Notes settings that let workers write what an agent runs later without a sandbox.
pub(super) fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let config = &patient.repository.config;
    let environment = &patient.repository.environment;
    let all = config.executors.values().chain(config.subagents.values());
    let confined = all.filter(|settings| settings.sandbox.unwrap_or(config.sandbox) != Asked::None);
    let open = confined.flat_map(|settings| environment.open_agent_folders(settings));
    let mut findings: Vec<Finding> = Vec::new();
    for folder in open {
        let found = Finding::note("agent-folder-writable", folder.to_string());
        let found = found.hint(hints::private_folder(folder.agent));
        if !findings.contains(&found) {
            findings.push(found);
        }
    }
    findings
}
