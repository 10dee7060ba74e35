//! The week of two people that an example plays, screen by screen.

use std::process::Command;

use regex::Regex;

use crate::common::{Environment, assert_output, examples, program_path};

#[test]
fn every_screen_of_the_week_in_two_clones() {
    let env = Environment::empty();
    // The order of the logs on a screen is that of the fingerprints, so the keys are the same each
    // time.
    for (seed, name) in (1_u8..).zip(["ada", "ben", "carol", "ada-new", "ben-new"]) {
        let pair = ssh_key::private::Ed25519Keypair::from_seed(&[seed; 32]);
        let key = ssh_key::PrivateKey::from(pair).to_openssh(ssh_key::LineEnding::LF);
        env.write(&format!("keys/{name}"), &key.expect("an unencrypted key is written"));
    }
    let mut command: Command = env.command("sh", ".");
    command.arg("-c").arg(format!("{}/two-clones/run.sh 2>&1", examples().display()));
    command.env("HANDOFF_BIN", program_path()).env("TMPDIR", env.path()).env("EXAMPLE_KEYS", env.path().join("keys"));
    let mut output = env.ended(command);
    // An offer holds a random number, and what is signed over it differs each time.
    for (what, instead) in [
        (r"\$TEST/tmp\.[A-Za-z0-9]+", "$$WEEK"),
        (r"\b[0-9a-f]{64}\b", "<hash>"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"\b0-[0-9a-f]{12}\b", "0-<entry>"),
        (r"\.[0-9a-f]{12}\b", ".<entry>"),
        (r"merkle [0-9a-f]{8}\b", "merkle <root>"),
        (r"root sha256:[0-9a-f]{8}…", "root sha256:<root>…"),
        (r"plan sha256:[0-9a-f]{4}…", "plan sha256:<plan>…"),
        (r"(base|✓) [0-9a-f]{7,12} ", "$1 <commit> "),
    ] {
        output.stdout = Regex::new(what).unwrap().replace_all(&output.stdout, instead).into_owned();
    }
    // No run was altered in this week.
    assert!(!output.stdout.contains("TAMPERED"), "{output}");
    assert_output!("week_in_two_clones", output);
}
