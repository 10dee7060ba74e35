//! `git handoff doctor`

use std::path::Path;

use git_handoff::engine::machine::host;
use git_handoff::repository::Repository;
use git_handoff::upkeep::doctor::{Finding, Patient, Severity, examine};
use serde_json::{Value, json};

use super::{Ending, Failure, Output};

/// Find what is half-done, missing or dangerous here, and the command that mends it
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Mend what cannot lose anything
    #[arg(long)]
    fix: bool,
}

/// Prints what was found.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    // A key is made by those who write, not by those who look.
    let writer = repository.own_fingerprint().map(|_| repository.writer()).transpose()?;
    let key_file = match &repository.config.signing_key {
        Some(key) if key.starts_with("key::") || key.starts_with("ssh-") || is_public(key) => None,
        Some(key) => Some(repository.environment.expand(Path::new(key))),
        None => Some(repository.store.common_dir().join("handoff/signing_key")),
    };
    let (store, host) = (repository.store.clone(), host(repository)?);
    let patient = Patient { store, writer, key_file, host, schemas: repository.schemas(), shapes: repository.shapes() };
    let findings = examine(&patient, arguments.fix)?;
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.doctor/1",
            "findings": findings.iter().map(value).collect::<Vec<_>>(),
        }));
    } else {
        findings.iter().for_each(|finding| print(finding, output));
        if findings.is_empty() {
            output.note("nothing to complain about");
        }
    }
    Ok(if findings.iter().any(Finding::needs_attention) { Ending::CheckFailed } else { Ending::Done })
}

/// Returns whether the key is a public one, which anybody may read; its private half is with an agent.
fn is_public(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|extension| extension == "pub")
}

fn print(finding: &Finding, output: &mut Output) {
    let word = match (finding.fixed, finding.severity) {
        (true, _) => "mended",
        (false, Severity::Problem) => "problem",
        (false, Severity::Note) => "note",
    };
    output.line(&format!("{word}: {}", finding.message));
    if let Some(hint) = finding.hint.as_ref().filter(|_| !finding.fixed) {
        output.line(&format!("  {hint}"));
    }
}

fn value(finding: &Finding) -> Value {
    let severity = match finding.severity {
        Severity::Problem => "problem",
        Severity::Note => "note",
    };
    json!({
        "code": finding.code,
        "severity": severity,
        "message": finding.message,
        "hint": finding.hint,
        "fixed": finding.fixed,
    })
}
