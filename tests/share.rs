//! Sharing: runs go to remotes over real transports, come from them, and travel in files; what is
//! hostile is refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ambiguous;
mod archives;
mod bundles;
mod ci;
mod clones;
mod hostile;
mod hosts;
mod many;
mod pages;
mod partial;
mod protected_files;
mod refusals;
mod rivals;
mod rotated;
mod same_id;
mod server;
mod threads;
mod told;
mod transports;
mod vanished;

use serde_json::Value;

use crate::common::{Environment, Output};

/// The run of the example.
const RUN: &str = "handoff-dag-1";

/// Its ref.
const RUN_REF: &str = "refs/handoff/runs/handoff-dag-1";

/// Returns an environment with a finished run in `repo`, whose remote `origin` is the bare
/// repository `hub`.
fn shared() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    env.handoff(["run", RUN]).success();
    env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    for setting in ["receive.fsckObjects", "uploadpack.allowFilter"] {
        env.git_in("hub", ["config", setting, "true"]).success();
    }
    env.git(["remote", "add", "origin", "../hub"]).success();
    env.git(["push", "--quiet", "--set-upstream", "origin", "main"]).success();
    env
}

/// Returns such an environment after a push, with an empty clone `clone` of a person with another
/// key.
fn pushed() -> Environment {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    clone(&env, "clone");
    env
}

fn clone(env: &Environment, name: &str) {
    env.git_in(".", ["clone", "--quiet", "hub", name]).success();
    env.git_in(name, ["config", "handoff.signingKey", ""]).success();
}

/// Returns the refs of ours in a repository, each with its object.
fn refs(env: &Environment, dir: &str) -> String {
    env.git_in(dir, ["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]).success()
}

/// Returns an answer as JSON.
fn json(output: &Output) -> Value {
    serde_json::from_str(output.stdout.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}\n{output}"))
}

/// Returns the states of a report's rows in order, as `✓`, `✗` or `─`.
fn marks(output: &Output) -> String {
    let rows = output.stdout.lines().skip(1).take(8);
    rows.map(|line| line.chars().next().unwrap_or(' ')).collect()
}
