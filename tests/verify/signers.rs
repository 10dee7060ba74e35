//! Allowed-signers files mean what they mean to `ssh-keygen`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use git_handoff::sign;
use git_handoff::verify::{Options, Signers, State, revoked};
use jiff::tz::TimeZone;

use super::lab::{Lab, assert_fails, assert_intact};

/// Options before the key of the line, principals in front of them, and the principal that is asked for. The entries' time
/// is 2026-06-04T02:00:00Z, which is 04:00 in the zone.
const LINES: &[(&str, &str, &str)] = &[
    ("ci@example.com", "", "ci@example.com"),
    ("ci@example.com", "", "ci@example.org"),
    ("*@example.com", "", "ci@example.com"),
    ("*@example.com,!ci@example.com", "", "ci@example.com"),
    ("!ci@example.com", "", "ada@example.com"),
    ("ada,ci@example.com", "", "ci@example.com"),
    ("c?@example.com", "", "ci@example.com"),
    ("c?@example.com", "", "cxi@example.com"),
    ("\"ci@example.com\"", "", "ci@example.com"),
    ("ci@example.com", "namespaces=\"git\"", "ci@example.com"),
    ("ci@example.com", "namespaces=\"file\"", "ci@example.com"),
    ("ci@example.com", "namespaces=\"file,git\"", "ci@example.com"),
    ("ci@example.com", "namespaces=\"g*\"", "ci@example.com"),
    ("ci@example.com", "namespaces=\"*,!git\"", "ci@example.com"),
    ("ci@example.com", "NAMESPACES=\"git\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"20260604\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"20260604Z\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"20260605\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"202606040400\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"202606040401\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"202606040200Z\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"202606040201Z\"", "ci@example.com"),
    ("ci@example.com", "valid-before=\"20260604040000\"", "ci@example.com"),
    ("ci@example.com", "valid-before=\"20260604035959\"", "ci@example.com"),
    ("ci@example.com", "valid-before=\"20260604020000Z\"", "ci@example.com"),
    ("ci@example.com", "valid-before=\"20260604015959Z\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"20260101\",valid-before=\"20270101\",namespaces=\"git\"", "ci@example.com"),
    ("ci@example.com", "valid-after=\"20250101\",valid-before=\"20260101\"", "ci@example.com"),
];

#[test]
fn lines_mean_what_they_mean_to_ssh_keygen() {
    let lab = Lab::new();
    lab.honest();
    let zone = TimeZone::posix("EET-2").unwrap();
    let key = lab.signer.public().to_openssh().unwrap();
    let message = lab.path().join("message");
    let signature = lab.path().join("message.sig");
    fs::write(&message, "signed\n").unwrap();
    fs::write(&signature, lab.signer.sign(b"signed\n").unwrap() + "\n").unwrap();
    let file = lab.path().join("signers");
    for (principals, options, asked) in LINES {
        let line = format!("{principals} {options} {key} a comment\n");
        fs::write(&file, &line).unwrap();
        let options = Options {
            signers: Some(Signers::parse(&line, &zone).unwrap()),
            signer: Some((*asked).to_owned()),
            ..lab.options()
        };
        let report = lab.verify_with(&options);
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-Y", "verify", "-n", "git", "-O", "verify-time=20260604020000Z", "-I", asked]);
        keygen.arg("-f").arg(&file).arg("-s").arg(&signature).env("TZ", "EET-2");
        keygen.stdin(fs::File::open(&message).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        let trusted = keygen.status().unwrap().success();
        assert_eq!(report.intact, trusted, "{line}{}", report.to_text(false));
        assert_eq!(report.signers[0].trusted, trusted, "{line}");
    }
}

#[test]
fn lines_that_cannot_be_obeyed_are_refused() {
    let key = Lab::new().signer.public().to_openssh().unwrap();
    for (line, said) in [
        ("*@example.com cert-authority", "certificates are not supported"),
        ("ci namespaces=\"git\",namespaces=\"git\"", "`namespaces` twice"),
        ("ci valid-after=\"20260102\",valid-before=\"20260101\"", "valid at no time"),
        ("ci valid-after=\"20261301\"", "YYYYMMDD"),
        ("ci valid-after=\"2026\"", "YYYYMMDD"),
        ("ci touch-required", "unknown option"),
        ("ci namespaces=\"git", "principals"),
    ] {
        let refused = Signers::parse(&format!("{line} {key}\n"), &TimeZone::UTC).unwrap_err().to_string();
        assert!(refused.replace('"', "`").contains(said), "{line}: {refused}");
    }
    // Keys of other types name nobody here, and spoil nothing.
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7";
    assert!(Signers::parse(&format!("ci {rsa}\n"), &TimeZone::UTC).is_err(), "a cut-off key");
}

#[test]
fn a_signature_of_ssh_keygen_counts() {
    let lab = Lab::new();
    let message = lab.path().join("message");
    fs::write(&message, "signed\n").unwrap();
    let private = lab.path().join(".git/key-1");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-Y", "sign", "-n", "git", "-f"]).arg(&private).arg(&message);
    assert!(keygen.output().unwrap().status.success());
    let armour = fs::read_to_string(lab.path().join("message.sig")).unwrap();
    let key = sign::check(b"signed\n", armour.trim_end()).unwrap();
    assert_eq!(sign::fingerprint(&key), lab.signer.fingerprint());
}

#[test]
fn a_list_of_revoked_keys_holds_fingerprints_and_keys() {
    let lab = Lab::new();
    lab.honest();
    let fingerprint = lab.signer.fingerprint();
    let key = lab.signer.public().to_openssh().unwrap();
    for list in [
        format!("# gone\n\n{fingerprint}\n"),
        format!("256 {fingerprint} ada@host (ED25519)\n"),
        format!("{key} ada@host\n"),
    ] {
        let options = Options { revoked: revoked(&list).unwrap(), ..lab.options() };
        assert_fails(&lab.verify_with(&options), "signature", "is revoked");
    }
    assert_intact(&lab.verify_with(&Options { revoked: revoked("# nobody\n").unwrap(), ..lab.options() }));
    for list in ["ada@example.com\n", "SHA256:short\n", "MD5:00\n"] {
        assert!(revoked(list).is_err(), "{list}");
    }
}

#[test]
fn an_old_run_outlives_the_key_it_was_signed_with() {
    let lab = Lab::new();
    lab.honest();
    let key = lab.signer.public().to_openssh().unwrap();
    let text = format!("ci@example.com valid-before=\"20260701Z\" {key}\n");
    let rotated = Options {
        signers: Some(Signers::parse(&text, &TimeZone::UTC).unwrap()),
        strict_signers: true,
        ..Options::default()
    };
    assert_intact(&lab.verify_with(&rotated));
    let text = format!("ci@example.com valid-before=\"20260601Z\" {key}\n");
    let ended = Options { signers: Some(Signers::parse(&text, &TimeZone::UTC).unwrap()), ..rotated };
    let report = lab.verify_with(&ended);
    assert_fails(&report, "signature", "was not valid at 2026-06-04T02:00:00.000Z, the time that the entry asserts");
    assert_eq!((report.headline, report.row("chain").unwrap().state), ("UNTRUSTED", State::Ok));
}
