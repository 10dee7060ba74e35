//! Errors of usage do not repeat an argument that looks like a credential.

use crate::common::repo::TestRepo;

/// A token of no meaning, made of parts.
fn token(prefix: &str, length: usize) -> String {
    let letters = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8xC0".chars().cycle();
    prefix.chars().chain(letters.take(length)).collect()
}

#[test]
fn a_usage_error_prints_no_argument_that_looks_like_a_credential() {
    let repo = TestRepo::new();
    for secret in [token("dckr_pat_", 27), token("ghp_", 36), token("gsk_", 52), token("r8_", 37), token("cio", 32)] {
        for arguments in [
            &["runs", &secret][..],
            &["record", "--agent", "claude", "task", &secret],
            &[&secret],
            &["--json", "runs", &secret],
            &["run", "-j", &secret, "r"],
        ] {
            let output = repo.env.handoff(arguments).exit(2);
            let all = format!("{}{}", output.stdout, output.stderr);
            assert!(!all.contains(&secret[..20]) && all.contains("[redacted:"), "{arguments:?}: {output}");
        }
    }
    // Suspected by the word before it.
    let output = repo.env.handoff(["runs", "password=Tr0ub4dor-and-3"]).exit(2);
    assert!(!output.stderr.contains("Tr0ub4dor") && output.stderr.contains("[redacted:password]"), "{output}");
    // Anything else is named.
    let runs_output = repo.env.handoff(["runs", "nonsense"]).exit(2);
    assert!(runs_output.stderr.contains("unexpected argument 'nonsense'"), "{runs_output}");
}
