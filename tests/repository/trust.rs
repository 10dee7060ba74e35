//! Trust through the program: keys, lists of keys, and planted runs.

use crate::common::Environment;
use crate::common::finished;
use crate::common::report::{find_line, find_row, verdict};

/// The line that makes others know the environment's key.
fn line(env: &Environment, principal: &str) -> String {
    let line = env.handoff(["key"]).success();
    let (_, rest) = line.split_once(' ').expect("a principal stands first");
    format!("{principal} {rest}")
}

#[test]
fn signers_decide_whom_verify_trusts() {
    let env = finished();
    env.write("signers", &line(&env, "*@example.com"));
    env.write("others", "");
    let verify = |more: &[&str]| env.handoff([&["verify", "handoff-dag-1"][..], more].concat());
    insta::assert_snapshot!(find_row(&verify(&["--signers", "../signers"]).success(), "signature"), @"✓ signature  ed25519 SHA256:DEO… · trusted as *@example.com");
    let _ = verify(&["--signers", "../signers", "--signer", "ci@example.com", "--require-trusted"]).success();
    let other = verify(&["--signers", "../signers", "--signer", "ci@example.org"]).exit(3);
    assert_eq!(verdict(&other.stdout), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&other.stdout, "signature"), @"✗ signature  entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is not known as ci@example.org's (and 5 more)");
    assert_eq!(verdict(&verify(&["--signers", "../others"]).exit(3).stdout), "✗ UNTRUSTED");
    assert_eq!(verdict(&verify(&["--require-trusted"]).exit(3).stdout), "✗ UNTRUSTED");
    insta::assert_snapshot!(verify(&["--signer", "ci@example.com"]).exit(1).stderr, @"
    error: no allowed-signers file names the signer's keys
    hint: git handoff verify --signers FILE --signer PRINCIPAL RUN
    ");
    env.git(["config", "handoff.signers", "../signers"]).success();
    let _ = verify(&["--require-trusted"]).success();
    let claim = verify(&["--require", "tamper-evident"]).exit(3);
    assert_eq!(verdict(&claim.stdout), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&claim.stdout, "required"), @"✗ required   tamper-evident was required; it takes trusted signers and an anchor that cannot be rewritten: the strongest guarantee is detect");
    let _ = verify(&["--require", "tamper-detecting"]).success();
    let _ = verify(&["--require", "everything"]).exit(2);
}

#[test]
fn a_revoked_key_is_never_trusted() {
    let env = finished();
    env.write("signers", &line(&env, "ci@example.com"));
    let key = line(&env, "x");
    let key = &key[key.find("ssh-ed25519").expect("the key stands in the line")..];
    env.write("revoked", &format!("# lost\n{key}\n"));
    let by_option =
        env.handoff(["verify", "handoff-dag-1", "--signers", "../signers", "--revoked", "../revoked"]).exit(3);
    insta::assert_snapshot!(find_row(&by_option.stdout, "signature"), @"✗ signature  entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 5 more)");
    assert_eq!(verdict(&by_option.stdout), "✗ UNTRUSTED");
    env.git(["config", "handoff.revoked", "../revoked"]).success();
    insta::assert_snapshot!(find_row(&env.handoff(["verify", "handoff-dag-1"]).exit(3).stdout, "signature"), @"✗ signature  entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 5 more)");
    env.write("revoked", "ada\n");
    insta::assert_snapshot!(env.handoff(["verify", "handoff-dag-1"]).exit(1).stderr, @"error: $TEST/repo/../revoked cannot be used: line 1 is not one SHA256 fingerprint or one public key, perhaps after since=2026-06-04T02:00:00Z and before a comment that names no other");
}

#[test]
fn nothing_in_the_work_tree_decides_whom_to_trust() {
    let env = finished();
    env.write("repo/.handoff/signers", &line(&env, "eve@example.com"));
    env.write("repo/.handoff/trust", "[handoff]\n\tsigners = .handoff/signers\n\trevoked = .handoff/signers\n");
    env.git(["config", "--add", "include.path", "../.handoff/trust"]).success();
    let report = env.handoff(["verify", "handoff-dag-1"]).exit(0);
    insta::assert_snapshot!(find_row(&report.stdout, "signature"), @"✓ signature  ed25519 SHA256:DEO… · this repository's key");
    let why = "is ignored: a file inside the work tree sets it, and a commit can change that file";
    for key in ["handoff.signers", "handoff.revoked"] {
        let warning = format!("warning: `{key}` {why}");
        assert!(report.stderr.lines().any(|line| line == warning), "{report}");
    }
    // Nor does a list inside it that our own configuration points at.
    for key in ["handoff.signers", "handoff.revoked"] {
        env.git(["config", key, ".handoff/signers"]).success();
        let refused = env.handoff(["verify", "handoff-dag-1"]).exit(1);
        let second_why = format!("error: `{key}` names $TEST/repo/.handoff/signers, which lies inside the work tree");
        assert_eq!(find_line(&refused.stderr, "error: "), second_why);
        env.git(["config", "--unset", key]).success();
    }
    env.git(["config", "gpg.ssh.allowedSignersFile", ".handoff/signers"]).success();
    let verify_report = env.handoff(["verify", "handoff-dag-1"]).exit(0);
    insta::assert_snapshot!(find_row(&verify_report.stdout, "signature"), @"✓ signature  ed25519 SHA256:DEO… · this repository's key");
    insta::assert_snapshot!(verify_report.stderr, @"
    warning: `handoff.signers` is ignored: a file inside the work tree sets it, and a commit can change that file
    warning: `handoff.revoked` is ignored: a file inside the work tree sets it, and a commit can change that file
    warning: `gpg.ssh.allowedSignersFile` names $TEST/repo/.handoff/signers, which lies inside the work tree; it is ignored
    ");
}

#[test]
fn run_uses_the_requested_plan_and_base() {
    let env = finished();
    let _ = env.handoff(["verify", "handoff-dag-1", "--plan", "plan.json", "--base", "HEAD"]).success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Next"]).success();
    insta::assert_snapshot!(find_row(&env.handoff(["verify", "handoff-dag-1", "--base", "HEAD"]).exit(3).stdout, "plan"), @"✗ plan       the run starts from 9d4c0e5, not from afff78e");
    env.shell("repo", "sed 's/edit-a/edit-c/g' plan.json >other.json").success();
    insta::assert_snapshot!(find_row(&env.handoff(["verify", "handoff-dag-1", "--plan", "other.json"]).exit(3).stdout, "plan"), @"✗ plan       the run is of plan 8cf69944, not of the given one, 46e0257c");
}

#[test]
fn a_run_that_is_gone_is_missed_among_all() {
    let env = finished();
    let _ = env.handoff(["verify", "--all"]).success();
    env.git(["update-ref", "-d", "refs/handoff/runs/handoff-dag-1"]).success();
    let gone = env.handoff(["verify", "--all"]).exit(3);
    insta::assert_snapshot!(gone.stderr, @"error: the ref refs/handoff/runs/handoff-dag-1 is gone, but the log refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg holds the run");
}

/// Records the example's plan with another key than the environment's.
fn plant(env: &Environment, finish: bool) {
    env.git(["config", "handoff.signingKey", "../eve"]).success();
    env.shell("repo", "ssh-keygen -q -t ed25519 -N '' -C eve -f ../eve").success();
    let _ = env.handoff(if finish { ["run", "plan.json"] } else { ["submit", "plan.json"] }).success();
    env.git(["config", "--unset", "handoff.signingKey"]).success();
}

#[test]
fn planted_runs_are_neither_continued_nor_trusted() {
    for finish in [false, true] {
        let env = Environment::example("handoff-dag");
        plant(&env, finish);
        let before = env.git(["for-each-ref", "refs/handoff"]).success();
        for command in [
            &["submit", "plan.json"][..],
            &["run", "plan.json"],
            &["run", "handoff-dag-1"],
            &["close", "handoff-dag-1"],
            &["cancel", "handoff-dag-1"],
        ] {
            let refused = env.handoff(command).exit(1);
            assert!(refused.stdout.is_empty(), "{command:?}\n{refused}");
        }
        assert_eq!(env.git(["for-each-ref", "refs/handoff"]).success(), before);
    }
}
