//! One target for each parser.

use std::sync::LazyLock;

use git_handoff::git::codec;
use git_handoff::ledger::{prove, sign};
use git_handoff::model::descriptor::Received;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Entry;
use git_handoff::model::extension::definition;
use git_handoff::model::manifest::Manifest;
use git_handoff::model::proof::Proof;
use git_handoff::model::time::Moment;
use git_handoff::model::{format, json};
use git_handoff::plan;
use git_handoff::report::export::verify_bundle_json;
use git_handoff::thread::packet::{self, Terms, check, no_facts};
use git_handoff::verify::{AtHand, Beside, Logs, Options, Signers, revoked, verify_proof};
use jiff::tz::TimeZone;

use super::feed;
use crate::common::Environment;
use crate::common::chain_builder::BuiltChain;
use crate::common::forge::{self, Forge};
use crate::tamper::run::{End, PLAN, RUN, story};
use crate::verify::bundle_json::{BUNDLE, trusting};

/// A run with every kind of entry.
fn honest_chain(forge: &Forge) -> BuiltChain {
    forge.finish(story(forge, End::Closed))
}

/// A thread with a packet, and the descriptor by which it was offered.
fn offered() -> (Environment, Vec<u8>) {
    let env = Environment::empty();
    env.git_in(".", ["init", "--quiet", "repo"]).success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
    env.write("packet.json", PACKET);
    env.write("state", "so far");
    env.handoff(["checkpoint", "run-42", "--state", "../state", "--packet", "../packet.json"]).success();
    let descriptor = env.handoff(["offer", "run-42", "--to", "agent:b"]).exit(0).raw;
    (env, descriptor)
}

const PACKET: &str = r#"{"objective": "Parse the dates of the 2026 export", "completed": ["src/dates.rs reads ISO dates"],
  "unresolved": ["week dates are refused"], "assumptions": ["all times are UTC"], "next_action": "Make `parse_week` read 2026-W23-4",
  "risks": ["none"], "updated_at": "2026-06-04T01:59:00Z", "resume_token": "dates-export-0007"}"#;

#[test]
fn entries() {
    let samples = || {
        let forge = Forge::new();
        honest_chain(&forge).links.iter().map(|link| link.entry.canonical()).collect()
    };
    feed("fuzz::targets::entries", samples, |bytes| {
        let Ok(entry) = Entry::parse(bytes) else { return false };
        assert_eq!(entry.canonical(), bytes);
        assert_eq!(entry.hash(), format::leaf_hash(bytes));
        assert!(!entry.subject().contains('\n'), "{}", entry.subject());
        true
    });
}

#[test]
fn commits() {
    let samples = || {
        let (forge, (env, _)) = (Forge::with_format("sha256"), offered());
        let of = |commit| forge.store.read(commit).unwrap().1;
        let mut samples: Vec<Vec<u8>> = honest_chain(&forge).links.iter().map(|link| of(link.commit)).collect();
        samples.push(env.git(["cat-file", "commit", "refs/handoff/threads/run-42"]).exit(0).raw);
        samples
    };
    feed("fuzz::targets::commits", samples, |bytes| {
        let Ok(read) = codec::decode(bytes) else { return false };
        let again = match &read.signature {
            Some(signature) => codec::signed(&read.entry, read.tree, &read.parents, signature),
            None => codec::payload(&read.entry, read.tree, &read.parents),
        };
        assert_eq!(again, bytes);
        assert_eq!(read.hash, read.entry.hash());
        assert_eq!(read.payload, codec::payload(&read.entry, read.tree, &read.parents));
        true
    });
}

#[test]
fn manifests() {
    let samples = || {
        let forge = Forge::new();
        let of = |link: &git_handoff::ledger::chain::Link| {
            let paths = forge.git(&["ls-tree", "-r", "--name-only", &link.commit.to_string()]);
            let found = paths.lines().filter(|path| path.ends_with("manifest.json"));
            let read =
                found.map(|path| forge::git(forge.path(), &["cat-file", "blob", &format!("{}:{path}", link.commit)]));
            read.map(String::into_bytes).collect::<Vec<_>>()
        };
        honest_chain(&forge).links.iter().flat_map(of).collect()
    };
    feed("fuzz::targets::manifests", samples, |bytes| {
        let Ok(manifest) = Manifest::parse(bytes) else { return false };
        assert_eq!(manifest.canonical(), bytes);
        true
    });
}

#[test]
fn proofs() {
    let samples = || {
        let forge = Forge::new();
        honest_chain(&forge);
        let proof = prove::item(&forge.store, RUN, &"make".parse().unwrap(), Some(&"patch".parse().unwrap())).unwrap();
        vec![serde_json::to_vec(&proof).unwrap()]
    };
    let line = LazyLock::new(|| {
        let forge = Forge::new();
        sign::allowed_signers_line("ada@example.com", forge.signer.public()).unwrap()
    });
    let logs = Logs::default();
    feed("fuzz::targets::proofs", samples, |bytes| {
        let Ok(proof) = Proof::parse(bytes) else { return false };
        let again = serde_json::to_vec(&proof).unwrap();
        assert_eq!(Proof::parse(&again).unwrap(), proof);
        let signers = Some(Signers::parse(&line, &TimeZone::UTC).unwrap());
        let options = Options { signers, strict_signers: true, ..Options::default() };
        let report = verify_proof(&proof, Beside::default(), &options, &AtHand::logs(&logs));
        assert!(!report.intact || (report.run == "handoff-dag-1" && report.entries == 29), "{}", report.to_text(false));
        report.to_json();
        true
    });
}

#[test]
fn audit_bundles() {
    let whole = BUNDLE.as_bytes();
    let options = trusting();
    let healthy = verify_bundle_json(whole, None, None, &options).unwrap();
    feed(
        "fuzz::targets::audit_bundles",
        || vec![whole.to_vec()],
        |bytes| {
            let Ok(report) = verify_bundle_json(bytes, None, None, &options) else { return false };
            assert!(!report.intact || report.root == healthy.root, "{}", report.to_text(false));
            report.to_json();
            true
        },
    );
}

#[test]
fn descriptors() {
    feed(
        "fuzz::targets::descriptors",
        || vec![offered().1],
        |bytes| {
            let Ok(received) = Received::parse(bytes) else { return false };
            let value = json::parse(bytes).unwrap();
            assert_eq!(received.digest, Digest::compute(&format::canonical(&value)));
            // Written values parse to the same value.
            let written = received.descriptor.signed(&received.signature).to_string();
            let again = Received::parse(written.as_bytes()).unwrap();
            assert_eq!(again.descriptor, received.descriptor);
            assert_eq!(again.signed, received.descriptor.payload());
            true
        },
    );
}

#[test]
fn packets() {
    let now: Moment = "2026-06-04T02:00:00.000Z".parse().unwrap();
    feed(
        "fuzz::targets::packets",
        || vec![PACKET.as_bytes().to_vec()],
        |bytes| {
            let read = packet::read(bytes);
            let report = check(&read, no_facts(), &Terms::new(now));
            let text = report.to_text();
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
            serde_json::to_value(&report).expect("a report is JSON");
            read.is_ok()
        },
    );
}

#[test]
fn allowed_signers() {
    let samples = || {
        let forge = Forge::new();
        let line = sign::allowed_signers_line("ada@example.com", forge.signer.public()).unwrap();
        let dated = line.replace("namespaces", "valid-after=\"20260101\",valid-before=\"202701010000Z\",namespaces");
        let dated = dated.replacen("ada@example.com", "\"bo,ada@example.com\"", 1);
        vec![format!("# team\n\n{line}\n{dated}\n").into_bytes()]
    };
    feed("fuzz::targets::allowed_signers", samples, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let read = Signers::parse(&text, &TimeZone::UTC);
        // A file with only comments and blank lines is valid and empty.
        let empty = text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#'));
        let plain = text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic());
        assert!(!empty || !plain || read.is_ok(), "{:?}", read.err());
        read.is_ok()
    });
}

#[test]
fn revoked_keys() {
    let samples = || {
        let forge = Forge::new();
        let (print, key) = (forge.signer.fingerprint(), forge.signer.public().to_openssh().unwrap());
        vec![format!("# gone\n{print}\nsince=2026-06-04T02:00:00Z {key}\n256 {print} ada (ED25519)\n").into_bytes()]
    };
    feed("fuzz::targets::revoked_keys", samples, |bytes| {
        let Ok(keys) = revoked(&String::from_utf8_lossy(bytes)) else { return false };
        let lines = keys.iter().map(|(key, since)| match since {
            Some(since) => format!("since={since} {key}\n"),
            None => format!("{key}\n"),
        });
        assert_eq!(revoked(&lines.collect::<String>()).unwrap(), keys);
        true
    });
}

#[test]
fn plans() {
    let samples = || {
        let plan = plan::parse(PLAN.as_bytes()).unwrap();
        let rules = json::parse(PLAN.as_bytes()).unwrap()["rules"].to_string().into_bytes();
        plan.items.iter().map(definition).chain([PLAN.as_bytes().to_vec(), rules]).collect()
    };
    feed("fuzz::targets::plans", samples, |bytes| {
        let (plan, item) = (plan::parse(bytes), plan::parse_item(bytes));
        let items = plan.iter().flat_map(|plan| &plan.items).chain(&item);
        for written in items.map(definition) {
            assert_eq!(definition(&plan::parse_item(&written).unwrap()), written);
        }
        plan.is_ok() || item.is_ok() || plan::parse_rules(bytes).is_ok()
    });
}

#[test]
fn json_values() {
    let samples = || [BUNDLE, PLAN, PACKET].map(|text| text.as_bytes().to_vec()).to_vec();
    feed("fuzz::targets::json_values", samples, |bytes| {
        let Ok(value) = json::parse(bytes) else { return false };
        let written = format::canonical(&value);
        assert_eq!(format::canonical(&json::parse(&written).unwrap()), written);
        true
    });
}
