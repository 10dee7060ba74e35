//! Entries that a program signs: `ssh-keygen`, or the program of a password manager, called as git
//! calls it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::report::masked;
use crate::common::{Environment, Output};

/// Signs with the private key in `vault/key`, whatever file it is given, as password managers do;
/// it needs no agent, and refuses any other form than git's.
const VAULT: &str = r#"#!/bin/bash
set -eu
[ "$1 $2 $3 $4 $5" = "-Y sign -n git -f" ] && [ -f "$6" ] || { echo "unknown call: $*" >&2; exit 9; }
shift 6
[ "$1" != -U ] || shift
[ $# = 1 ] && [ -f "$1" ] || { echo "no file to sign: $*" >&2; exit 9; }
exec ssh-keygen -Y sign -n git -f "$(dirname "$0")/key" "$1"
"#;

/// A repository whose commits are signed by the program `vault/sign`, which alone has the key.
fn vault() -> Environment {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo && mkdir vault && ssh-keygen -q -t ed25519 -N '' -C vault -f vault/key")
        .success();
    program(&env, VAULT);
    let vault = env.path().join("vault");
    env.git(["config", "--global", "--unset-all", "handoff.signingKey"]).success();
    for (key, value) in [
        ("gpg.format", "ssh"),
        ("gpg.ssh.program", vault.join("sign").to_str().expect("plain")),
        ("user.signingKey", public(&env).trim()),
    ] {
        env.git(["config", "--global", key, value]).success();
    }
    env
}

fn program(env: &Environment, text: &str) {
    env.write("vault/sign", text);
    fs::set_permissions(env.path().join("vault/sign"), fs::Permissions::from_mode(0o755)).expect("it is there");
}

/// The public half, without the comment.
fn public(env: &Environment) -> String {
    let line = fs::read_to_string(env.path().join("vault/key.pub")).expect("it is there");
    line.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Writes an entry.
fn save(env: &Environment) -> Output {
    env.write("state", "state");
    env.handoff(["--json", "checkpoint", "t", "--state", "../state"])
}

#[track_caller]
fn refused(output: &Output) -> Value {
    assert_eq!(output.status, Some(1), "{output}");
    let failure: Value = serde_json::from_str(output.stderr.lines().last().unwrap_or_default())
        .unwrap_or_else(|e| panic!("{e}: {output}"));
    assert_eq!(failure["code"], "signing", "{output}");
    failure
}

#[test]
fn entries_are_signed_by_the_program_that_signs_commits() {
    for literal in [true, false] {
        let env = vault();
        if !literal {
            // The public half in a file of its own, and the private one nowhere near.
            env.write("keys/id.pub", &format!("\u{feff}{}\r\n", public(&env)));
            env.git(["config", "--global", "user.signingKey", "~/../keys/id.pub"]).success();
        }
        save(&env).success();
        env.handoff(["thread", "verify", "t"]).success();
        // Stock git finds the signature good.
        env.write("signers", &format!("ada@example.com {}\n", public(&env)));
        let signers = env.path().join("signers");
        env.git(["config", "--global", "gpg.ssh.allowedSignersFile", signers.to_str().expect("plain")]).success();
        env.git(["config", "--global", "--unset", "gpg.ssh.program"]).success();
        env.git(["verify-commit", "refs/handoff/threads/t"]).success();
        // The key is only usable through the program.
        let failure = refused(&save(&env));
        let hint = failure["hint"].as_str().expect("a hint");
        assert!(hint.starts_with("git config handoff.signingKey ''"), "{failure}");
        env.git(["config", "handoff.signingKey", ""]).success();
        env.write("state", "next");
        env.handoff(["checkpoint", "u", "--state", "../state"]).success();
    }
}

#[test]
fn signing_program_output_must_be_a_signature_by_the_key() {
    for (text, reason) in [
        ("#!/bin/sh\necho 'vault is locked' >&2; exit 3", "did not sign: vault is locked"),
        ("#!/bin/sh\nexit 0", "did not sign: "),
        (
            "#!/bin/sh\nfor last; do :; done; echo nonsense >\"$last.sig\"",
            "did not sign with the configured key: it wrote no SSH signature",
        ),
        (
            "#!/bin/sh\nfor last; do :; done; cd \"$(dirname \"$0\")\"; [ -f x ] || ssh-keygen -q -t ed25519 -N '' -f x; exec ssh-keygen -Y sign -n git -f x \"$last\"",
            "did not sign with the configured key: it is by the key SHA256:…",
        ),
        (
            "#!/bin/sh\nfor last; do :; done; exec ssh-keygen -Y sign -n file -f \"$(dirname \"$0\")/key\" \"$last\"",
            "did not sign with the configured key: the signature does not match",
        ),
        (
            "#!/bin/sh\nfor last; do :; done; echo more >>\"$last\"; exec ssh-keygen -Y sign -n git -f \"$(dirname \"$0\")/key\" \"$last\"",
            "did not sign with the configured key: the signature does not match",
        ),
    ] {
        let env = vault();
        program(&env, text);
        let failure = refused(&save(&env));
        assert_eq!(masked(failure["message"].as_str().expect("a message")), format!("$TEST/vault/sign {reason}"));
        assert_eq!(
            failure["hint"].as_str().expect("a hint"),
            "git config handoff.signingKey ''   # signs with a key of this repository's own; the keys of an agent: ssh-add -l"
        );
        assert_eq!(env.git(["for-each-ref"]).success(), "");
    }
    let env = vault();
    env.git(["config", "--global", "gpg.ssh.program", "/nowhere/op-ssh-sign"]).success();
    let failure = refused(&save(&env));
    assert_eq!(failure["message"], "cannot sign: cannot run /nowhere/op-ssh-sign");
}

#[test]
fn a_tracked_file_names_no_program() {
    let env = vault();
    env.git(["config", "--global", "--unset", "gpg.ssh.program"]).success();
    let pwned = env.path().join("pwned");
    env.write("repo/evil", &format!("[gpg \"ssh\"]\n\tprogram = touch {}\n", pwned.display()));
    env.git(["config", "include.path", "../evil"]).success();
    refused(&save(&env));
    assert!(!pwned.exists());
}

#[test]
fn keys_of_other_types_are_refused_in_words() {
    let env = vault();
    env.shell("vault", "ssh-keygen -q -t ecdsa -N '' -f ec && ssh-keygen -q -t rsa -b 2048 -N '' -f rsa && ssh-keygen -q -t ecdsa -m PEM -N '' -f pem").success();
    // A FIDO key as `ssh-keygen -t ed25519-sk` makes it, which takes a device.
    let fido = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAICFo/k5LU8863u66YC9eUO2170QduohPURkQnbLa/dczAAAABHNzaDo=";
    env.write("vault/fido.pub", fido);
    let vault = env.path().join("vault").to_str().expect("plain").to_owned();
    for (key, key_type) in [
        (format!("{vault}/ec.pub"), "ecdsa-sha2-nistp256"),
        (format!("{vault}/ec"), "ecdsa-sha2-nistp256"),
        (format!("{vault}/rsa.pub"), "ssh-rsa"),
        (format!("{vault}/rsa"), "ssh-rsa"),
        (format!("{vault}/pem"), "ecdsa"),
        (format!("{vault}/fido.pub"), "sk-ssh-ed25519@openssh.com"),
        (format!("key::{fido}"), "sk-ssh-ed25519@openssh.com"),
        (fido.to_owned(), "sk-ssh-ed25519@openssh.com"),
        (
            format!("key::{}", fs::read_to_string(env.path().join("vault/ec.pub")).expect("it is there").trim()),
            "ecdsa-sha2-nistp256",
        ),
    ] {
        env.git(["config", "--global", "user.signingKey", &key]).success();
        let failure = refused(&save(&env));
        let message = failure["message"].as_str().expect("a message");
        assert!(message.contains(&format!("of type {key_type}; git-handoff signs with ed25519")), "{key}: {message}");
        assert_eq!(
            failure["hint"],
            "git config handoff.signingKey ~/.ssh/id_ed25519   # or '' for a key of this repository's own"
        );
    }
}

#[test]
fn a_certificate_signs_with_its_key() {
    let env = vault();
    let made = "ssh-keygen -q -t ed25519 -N '' -f ca && ssh-keygen -q -s ca -I ada -n ada@example.com key.pub && cp key-cert.pub alone-cert.pub &&
        ssh-keygen -q -t ecdsa -N '' -f ec && ssh-keygen -q -s ca -I ada -n ada@example.com ec.pub";
    env.shell("vault", made).success();
    let vault = env.path().join("vault").to_str().expect("plain").to_owned();
    let text = fs::read_to_string(env.path().join("vault/key-cert.pub")).expect("it is there");
    // Beside its key; alone, with a program that has the key; and in the setting itself.
    for setting in [format!("{vault}/key-cert.pub"), format!("{vault}/alone-cert.pub"), format!("key::{}", text.trim())]
    {
        env.git(["config", "--global", "user.signingKey", &setting]).success();
        save(&env).success();
        assert!(env.handoff(["key"]).success().trim_end().ends_with(&public(&env)), "{setting}");
    }
    env.handoff(["thread", "verify", "t"]).success();
    env.git(["config", "--global", "--unset", "gpg.ssh.program"]).success();
    env.git(["config", "--global", "user.signingKey", &format!("{vault}/key-cert.pub")]).success();
    save(&env).success();
    // Without the key, the program says so.
    env.git(["config", "--global", "user.signingKey", &format!("{vault}/alone-cert.pub")]).success();
    let message = refused(&save(&env))["message"].as_str().expect("a message").to_owned();
    assert!(message.starts_with("ssh-keygen did not sign: "), "{message}");
    env.write("vault/notes", "no key\n");
    for (file, reason) in [
        ("ec-cert.pub", "is a key of type ecdsa-sha2-nistp256-cert-v01@openssh.com; git-handoff signs with ed25519"),
        ("notes", "holds no OpenSSH key"),
    ] {
        env.git(["config", "--global", "user.signingKey", &format!("{vault}/{file}")]).success();
        let failure = refused(&save(&env));
        assert_eq!(masked(failure["message"].as_str().expect("a message")), format!("$TEST/vault/{file} {reason}"));
        assert_eq!(failure["causes"], Value::Array(Vec::new()));
    }
}
