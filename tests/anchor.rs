//! Anchors: places outside the repository, honest, absent, lying and forged.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod answers;
mod git;
pub(crate) mod moto;
mod pages;
mod programs;
mod rfc3161;
mod s3;
mod settings;
mod threads;
mod tsa;

use serde_json::Value;

use crate::common::report::verdict;
use crate::common::{Environment, Output};

pub(super) const RUN: &str = "handoff-dag-1";

/// Makes an environment with a sealed run.
pub(super) fn sealed() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    env
}

/// Rewrites the run and its log with the right key.
pub(super) fn forge(env: &Environment) {
    for reference in env.git(["for-each-ref", "--format=%(refname)", "refs/handoff"]).success().lines() {
        env.git(["update-ref", "-d", reference]).success();
    }
    env.handoff(["run", "plan.json"]).success();
    assert_eq!(verdict(&env.handoff(["verify", "--anchor", "local", RUN]).success()), "✓ INTACT · tamper-detecting");
}

/// Returns a report, which must end like this.
#[track_caller]
pub(super) fn verify(env: &Environment, more: &[&str], code: i32) -> Value {
    json(&env.handoff(["verify", "--json", RUN].iter().chain(more)).exit(code))
}

/// Returns what the row `anchor` of a report says.
pub(super) fn row(report: &Value) -> &str {
    report["checks"]["anchor"]["detail"].as_str().unwrap()
}

pub(super) fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap()
}

/// Says whose the key of the repository is, so that more can be claimed of what it signed.
fn know(env: &Environment) {
    let line = env.handoff(["key"]).success();
    env.write("home/signers", &line);
    env.git(["config", "handoff.signers", "../home/signers"]).success();
}

/// Returns every ref of the repository and what it points at.
pub(super) fn refs(env: &Environment) -> String {
    env.git(["for-each-ref"]).success()
}
