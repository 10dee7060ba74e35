//! Allowed-signers files mean what they mean to `ssh-keygen`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use git_handoff::clock::Clock;
use git_handoff::ledger::chain::{Head, Writer};
use git_handoff::ledger::sign;
use git_handoff::model::time::Moment;
use git_handoff::verify::{Options, Signers, State, revoked};
use jiff::tz::TimeZone;

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_fails, assert_intact, assert_says, key};

/// Options before the key of the line, principals in front of them, and the principal that is asked
/// for. The entries' time is 2026-06-04T02:00:00Z, which is 04:00 in the zone.
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
    let forge = Forge::new();
    forge.honest();
    let zone = TimeZone::posix("EET-2").unwrap();
    let key = forge.signer.public().to_openssh().unwrap();
    let message = forge.path().join("message");
    let signature = forge.path().join("message.sig");
    fs::write(&message, "signed\n").unwrap();
    fs::write(&signature, forge.signer.sign(b"signed\n").unwrap() + "\n").unwrap();
    let file = forge.path().join("signers");
    for (principals, options, identity) in LINES {
        let line = format!("{principals} {options} {key} a comment\n");
        fs::write(&file, &line).unwrap();
        let second_options = Options {
            signers: Some(Signers::parse(&line, &zone).unwrap()),
            signer: Some((*identity).to_owned()),
            ..forge.options()
        };
        let report = forge.verify_with(&second_options);
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-Y", "verify", "-n", "git", "-O", "verify-time=20260604020000Z", "-I", identity]);
        keygen.arg("-f").arg(&file).arg("-s").arg(&signature).env("TZ", "EET-2");
        keygen.stdin(fs::File::open(&message).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        let trusted = keygen.status().unwrap().success();
        assert_eq!(report.intact, trusted, "{line}{}", report.to_text(false));
        assert_eq!(report.signers[0].trusted, trusted, "{line}");
    }
}

#[test]
fn lines_that_cannot_be_obeyed_are_refused() {
    let key = Forge::new().signer.public().to_openssh().unwrap();
    let quotes = ": the value of the option `namespaces` is not in one pair of quotes";
    let control = "contains a control character, such as a bare CR, or a byte order mark; lines end with LF or CR LF";
    for (line, reason) in [
        ("ci namespaces=\"git\",namespaces=\"git\"", "has the option `namespaces` twice"),
        (
            "ci valid-after=\"20260102\",valid-before=\"20260101\"",
            "is valid at no time: `valid-before` is not after `valid-after`",
        ),
        ("ci valid-after=\"20261301\"", "has a time that is not YYYYMMDD[HHMM[SS]][Z]"),
        ("ci valid-after=\"2026\"", "has a time that is not YYYYMMDD[HHMM[SS]][Z]"),
        ("ci touch-required", "has the unknown option `touch-required`"),
        ("ci namespaces=\"git", "is not `principals [options] key`"),
        ("ci namespaces=git", quotes),
        ("ci namespaces=\"git\"\"file\"", quotes),
        ("ci namespaces=\"g\\\"it\\\"\"", quotes),
        ("ci valid-before=20260101", ": the value of the option `valid-before` is not in one pair of quotes"),
        ("\"ci\",ada", "is not `principals [options] key`"),
        ("\"ci", "is not `principals [options] key`"),
        ("c\\i", "is not `principals [options] key`"),
        ("# team\n\u{feff}ci", control),
        ("\u{feff}\u{feff}ci", control),
        ("ci\u{feff}", control),
        ("# gone\rci", control),
        ("ci\u{2028}", control),
    ] {
        let refused = Signers::parse(&format!("{line} {key}\n"), &TimeZone::UTC).unwrap_err().to_string();
        let (number, blank) = (line.lines().count(), if reason.starts_with(':') { "" } else { " " });
        assert_eq!(refused.replace('"', "`"), format!("line {number}{blank}{reason}"), "{line}");
    }
    for behind in [format!("\rada {key}"), format!("\r\rada {key}"), "\r".to_owned(), "\u{b}ada".to_owned()] {
        let refused = Signers::parse(&format!("ci {key}{behind}"), &TimeZone::UTC).unwrap_err().to_string();
        assert_eq!(
            refused,
            "line 1 contains a control character, such as a bare CR, or a byte order mark; lines end with LF or CR LF"
        );
    }
    let two = Signers::parse(&format!("ci {key} ada {key}\n"), &TimeZone::UTC).unwrap_err().to_string();
    insta::assert_snapshot!(two, @"line 1 names more than one key");
    for honest in ["\r\n", "\n", "", " ada@host's laptop, \"the old one\"\n", "\t# since 2026\r\n"] {
        Signers::parse(&format!("# team\r\n\r\n\t ci\t{key}{honest}"), &TimeZone::UTC).unwrap();
    }
    // Additions by text editors and web forms before the first line and after each.
    for text in
        [format!("\u{feff}ci {key}\n"), format!("\u{feff}# team\r\n\r\nci {key}\r\n"), format!("\u{feff}\nci {key}")]
    {
        let signers = Signers::parse(&text, &TimeZone::UTC).unwrap();
        let plain = Signers::parse(&format!("ci {key}\n"), &TimeZone::UTC).unwrap();
        assert_eq!(format!("{signers:?}"), format!("{plain:?}"), "{text:?}");
    }
    // Keys of other types are ignored, even cut off; an ed25519 key must be whole.
    for (signer, skipped) in
        [("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7", Some(1)), ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", None)]
    {
        let parsed = Signers::parse(&format!("ci {signer}\n"), &TimeZone::UTC);
        assert_eq!(parsed.ok().map(|signers| signers.skipped().len()), skipped, "{signer}");
    }
}

#[test]
fn a_signature_of_ssh_keygen_counts() {
    let forge = Forge::new();
    let message = forge.path().join("message");
    fs::write(&message, "signed\n").unwrap();
    let private = forge.path().join(".git/key-1");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-Y", "sign", "-n", "git", "-f"]).arg(&private).arg(&message);
    assert!(keygen.output().unwrap().status.success());
    let armour = fs::read_to_string(forge.path().join("message.sig")).unwrap();
    let key = sign::check(b"signed\n", armour.trim_end()).unwrap();
    assert_eq!(sign::fingerprint(&key), forge.signer.fingerprint());
}

#[test]
fn a_list_of_revoked_keys_holds_fingerprints_and_keys() {
    let forge = Forge::new();
    forge.honest();
    let fingerprint = forge.signer.fingerprint();
    let key = forge.signer.public().to_openssh().unwrap();
    for list in [
        format!("# gone\n\n{fingerprint}\n"),
        format!("256 {fingerprint} ada@host (ED25519)\n"),
        format!("{key} ada@host\n"),
        format!("\u{feff}{fingerprint}\r\n"),
        format!("\u{feff}# gone\r\n{key}\r\n"),
    ] {
        let options = Options { revoked: revoked(&list).unwrap(), ..forge.options() };
        assert_fails(&forge.verify_with(&options), "signature", "key-revoked, entry 0");
    }
    assert_intact(&forge.verify_with(&Options { revoked: revoked("# nobody\n").unwrap(), ..forge.options() }));
    for list in ["ada@example.com\n", "SHA256:short\n", "MD5:00\n"] {
        assert!(revoked(list).is_err(), "{list}");
    }
}

#[test]
fn no_line_about_revoked_keys_is_read_by_half() {
    let forge = Forge::new();
    let (one, other) = (forge.signer.fingerprint(), key(forge.path(), 2).fingerprint());
    let (public, public_too) = (forge.signer.public().to_openssh().unwrap(), key(forge.path(), 2));
    let public_too = public_too.public().to_openssh().unwrap();
    let refused = [
        // Two keys on one line, however they are told apart.
        format!("{one} {other}\n"),
        format!("{one},{other}\n"),
        format!("{one}\t256 {other} ada@host (ED25519)\n"),
        format!("{one} # and {other}\n"),
        format!("{one} {}\n", other.to_lowercase()),
        format!("{public} {public_too}\n"),
        format!("{public} {other}\n"),
        format!("{one} {public_too}\n"),
        // Lines that end in another way, also where a comment would hide them.
        format!("{one}\r{other}\r"),
        format!("# gone\r{one}\n"),
        format!("{one}\r"),
        format!("# gone\u{2028}{one}\n"),
        format!("{one}\u{85}{other}\n"),
        format!("{one}\u{b}{other}\n"),
        format!("{one}\0{other}\n"),
        format!("\u{feff}\u{feff}{one}\n"),
        format!("# gone\n\u{feff}{one}\n"),
        // Spellings that are not those of `ssh-keygen`.
        format!("{one}=\n"),
        format!("{}\n", one.to_lowercase()),
        format!("{}\n", one.to_uppercase()),
        format!("SHA256:{}\n", one[7..].to_lowercase()),
        format!("ada {one}\n"),
        format!("- {one}\n"),
        format!("256 {public}\n"),
        "256\n".to_owned(),
        // A time that is not where it counts, or no time.
        format!("{one} since=2026-07-01T00:00:00Z\n"),
        format!("since=2026-07-01T00:00:00Z since=2026-08-01T00:00:00Z {one}\n"),
        format!("since=2026-07-01 {one}\n"),
        format!("since=\"2026-07-01T00:00:00Z {one}\n"),
        format!("Since=2026-07-01T00:00:00Z {one}\n"),
        "since=2026-07-01T00:00:00Z\n".to_owned(),
    ];
    for list in &refused {
        assert!(revoked(list).is_err(), "{list:?} gave {:?}", revoked(list));
    }
    let all_read = [
        format!("{one}\r\n{other}\r\n"),
        format!("# one\n\n\t{one}  \n{other} # left the team, ada@host"),
        format!("256 {one} ada@host (ED25519)\n{public_too}\n"),
        format!("{public}\tada@host\n256  {other}  no comment (ED25519)\n"),
    ];
    for list in &all_read {
        assert_eq!(revoked(list).unwrap(), [(one.clone(), None), (other.clone(), None)].into(), "{list:?}");
    }
    let since = revoked(&format!("since=\"2026-07-01T00:00:00Z\" {one} ada\nsince=2026-07-01T02:00:00+02:00 {public}"));
    assert_eq!(since.unwrap().values().next().unwrap().unwrap().to_string(), "2026-07-01T00:00:00.000Z");
}

#[test]
fn a_validity_ends_with_its_second_as_it_does_for_git() {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    run.drafts.truncate(1);
    let writer =
        Writer { clock: Clock::Pinned(Moment::from_millis(1_780_538_400_999)), ..forge.writer_with(&forge.signer) };
    let head = Head::unborn("refs/handoff/runs/handoff-dag-1".to_owned());
    writer.append(&head, run.drafts).unwrap().publish().unwrap();
    let public = forge.signer.public().to_openssh().unwrap();
    for (time, valid) in [("20260604015959Z", false), ("20260604020000Z", true), ("20260604020001Z", true)] {
        let text = format!("ci@example.com valid-before=\"{time}\" {public}\n");
        let signers = Some(Signers::parse(&text, &TimeZone::UTC).unwrap());
        let report = forge.verify_with(&Options { signers, ..Options::default() });
        assert_eq!(report.rows.signature.state == State::Ok, valid, "{time}\n{}", report.to_text(false));
    }
}

#[test]
fn an_old_run_outlives_the_key_it_was_signed_with() {
    let forge = Forge::new();
    forge.honest();
    let key = forge.signer.public().to_openssh().unwrap();
    let text = format!("ci@example.com valid-before=\"20260701Z\" {key}\n");
    let rotated = Options {
        signers: Some(Signers::parse(&text, &TimeZone::UTC).unwrap()),
        strict_signers: true,
        ..Options::default()
    };
    assert_intact(&forge.verify_with(&rotated));
    let second_text = format!("ci@example.com valid-before=\"20260601Z\" {key}\n");
    let ended = Options { signers: Some(Signers::parse(&second_text, &TimeZone::UTC).unwrap()), ..rotated };
    let report = forge.verify_with(&ended);
    assert_says(
        &report,
        "signature",
        "entry 0: the key SHA256:… was not valid at 2026-06-04T02:00:00.000Z, the time that the entry \
         asserts",
    );
    assert_eq!((report.headline, report.rows.chain.state), ("UNTRUSTED", State::Ok));
}
