//! People with their own keys: they approve, reject, write documents and get roles, and none can
//! act for another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopt;
mod elsewhere;
pub(crate) mod forged;
mod here;
mod hostile;
mod keys;
mod proofs;
pub(crate) mod seals;
mod votes;

use serde_json::{Value, json};

use crate::common::repo::TestRepo;
use crate::common::{Environment, Output};
use git_handoff::ledger::sign::Signer;

/// A command that makes a product.
const BUILD: &str = "echo three >>a.txt; mkdir outputs; echo built >outputs/report";

/// A run that needs an approval.
fn items() -> Vec<Value> {
    vec![
        json!({ "id": "build", "executor": "command", "inputs": { "command": BUILD } }),
        json!({ "id": "sign-off", "executor": "approval", "depends_on": ["build"] }),
        json!({ "id": "ship", "executor": "command", "inputs": { "command": "mkdir outputs; echo out >outputs/shipped" },
                "depends_on": ["sign-off"] }),
    ]
}

/// A repository in which such a run waits, to which another key has these roles.
fn waiting(roles: &str) -> TestRepo {
    let repo = TestRepo::new();
    let bob = person(&repo.env, "bob");
    let file = repo.plan("r", &items());
    repo.env.handoff(["submit", &file, "--admit", &format!("{bob}={roles}")]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    repo
}

/// Makes the key of a person, the same in every round, and returns its fingerprint.
fn person(env: &Environment, name: &str) -> String {
    let seed = name.bytes().fold(7_u8, u8::wrapping_add);
    let pair = ssh_key::private::Ed25519Keypair::from_seed(&[seed; 32]);
    let text = ssh_key::PrivateKey::from(pair).to_openssh(ssh_key::LineEnding::LF).unwrap();
    env.write(&format!("home/{name}"), &text);
    signer(env, name).fingerprint()
}

fn signer(env: &Environment, name: &str) -> Signer {
    Signer::from_file(&env.path().join("home").join(name)).unwrap()
}

/// Runs a command in a person's name.
fn as_person(env: &Environment, dir: &str, name: &str, args: &[&str]) -> Output {
    let key = env.path().join("home").join(name);
    let mut command = env.command(crate::common::program_path(), dir);
    command.args(args).env("HANDOFF_ACTOR", format!("human:{name}"));
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "handoff.signingKey").env("GIT_CONFIG_VALUE_0", key);
    env.ended(command)
}

/// The statuses of a run's items, in order.
fn statuses(repo: &TestRepo, run: &str) -> String {
    let status = repo.status(run);
    let words = status["items"].as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap());
    words.collect::<Vec<_>>().join(" ")
}
