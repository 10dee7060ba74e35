//! Audit bundles of another orchestrator: its own, as `tests/interop/make_bundle.py` writes one,
//! and ours.

use std::fmt::Write as _;

use git_handoff::model::digest::Digest;
use git_handoff::report::export::verify_bundle_json;
use git_handoff::verify::{Failure, Options, Report, Row, Signers, State};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::common::report::{verdict, without_hashes};
use crate::common::{Environment, assert_output};

pub(crate) const BUNDLE: &str = include_str!("../fixtures/foreign-bundle.json");

/// The key that signed it.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";

pub(super) fn bundle() -> Value {
    serde_json::from_str(BUNDLE).expect("the fixture is JSON")
}

pub(crate) fn trusting() -> Options {
    let signers = Signers::parse(&format!("bo@example.com {KEY}"), &TimeZone::UTC).expect("a good line");
    Options { signers: Some(signers), strict_signers: true, ..Options::default() }
}

pub(super) fn check(bundle: &Value) -> Report {
    let bytes = serde_json::to_vec(bundle).expect("JSON");
    verify_bundle_json(&bytes, None, None, &trusting()).expect("it is a bundle")
}

/// A forgery: its name, what it does, the failure it leads to, and a part of what a row says.
type Case = (&'static str, fn(&mut Value), Failure, &'static str);

/// Recomputes hashes and root without a signature, as any writer of the bundle can.
fn relinked(mut bundle: Value) -> Value {
    let mut previous = String::new();
    let mut leaves = Vec::new();
    for (seq, entry) in bundle["auditLog"]["entries"].as_array_mut().expect("entries").iter_mut().enumerate() {
        entry["seq"] = seq.into();
        let names = ["kind", "runId", "itemId", "status", "actor", "manifestRef", "resultRef", "at", "seq"];
        let mut array: Vec<Value> = names.iter().map(|name| entry[name].clone()).collect();
        for name in ["authorization", "outputRefs"] {
            array.extend(entry.get(name).map(|value| Value::from(value.to_string())));
        }
        let text = Value::from(array).to_string() + &previous;
        entry["prevHash"] = previous.into();
        let hash = Digest::compute(text.as_bytes());
        previous = hash.hex();
        entry["entryHash"] = previous.clone().into();
        leaves.push(git_handoff::model::format::leaf_hash(hash.as_bytes()));
    }
    bundle["auditLog"]["root"]["root"] = json!(git_handoff::ledger::merkle::root(leaves).as_bytes());
    bundle
}

#[test]
fn a_bundle_from_elsewhere_is_read_with_our_rows() {
    let report = check(&bundle());
    assert_output!("bundle_json", report.to_text(false));
    let known: Vec<_> = report.signers.iter().map(|signer| signer.principal.as_deref()).collect();
    assert_eq!(known, [Some("bo@example.com")]);
    assert!(check(&relinked(bundle())).intact, "the tests' own algorithm is the one of the script");
}

#[test]
fn forged_bundles_fail_with_different_rows() {
    let cases: [Case; 12] = [
        (
            "renamed",
            |b| b["runId"] = "other".into(),
            Failure::Chain,
            "chain: the root is of another run, \"nightly/ü\"",
        ),
        (
            "entry dropped",
            |b| drop(entries(b).remove(2)),
            Failure::Signature,
            "signature: by \"key-1\", a key that you do not have",
        ),
        (
            "truncated",
            |b| entries(b).truncate(7),
            Failure::Manifest,
            "plan: ship is shown as skipped, the entries say nothing of it",
        ),
        ("begun in the middle", |b| drop(entries(b).remove(0)), Failure::Chain, "chain: entry 0 is item.fired"),
        ("gone on", |b| entries(b).swap(10, 11), Failure::Chain, "chain: entry 11 follows run.completed"),
        (
            "no manifest",
            |b| drop(entry(b, 5).remove("manifestRef")),
            Failure::Manifest,
            "manifest: entry 5: no manifest here is what review was dispatched with",
        ),
        (
            "one too many",
            |b| {
                let other = entry(b, 1)["manifestRef"].clone();
                entry(b, 3)["manifestRef"] = other;
            },
            Failure::Manifest,
            "manifest: a manifest of edit belongs to no dispatch",
        ),
        (
            "done before",
            |b| drop(entries(b).remove(3)),
            Failure::Manifest,
            "plan: entry 3: item.reconciled does not fit edit, which is waiting",
        ),
        (
            "consumed before",
            |b| entries(b).swap(4, 5),
            Failure::Handoff,
            "handoff: review consumed as \"work\" what no item had produced: \
             \"pangolin://default/artifact/edit/sha256:…\"",
        ),
        (
            "shown otherwise",
            |b| b["items"][1]["status"] = "done".into(),
            Failure::Plan,
            "plan: review is shown as done, the entries say failed",
        ),
        ("never ended", |b| drop(entries(b).remove(6)), Failure::Plan, "plan: review was dispatched and never ended"),
        (
            "unsigned",
            |b| b["auditLog"]["root"]["signature"] = Value::Null,
            Failure::Signature,
            "signature: the root is not signed",
        ),
    ];
    let mut summary = String::new();
    for (name, forge, failure, expected) in cases {
        let mut bundle = bundle();
        forge(&mut bundle);
        let report = check(&relinked(bundle));
        let rows = report.rows.iter().filter(|row| row.state == State::Failed);
        let first = |row: &Row| row.findings.first().map_or_else(|| row.detail.clone(), |first| first.text.clone());
        let all: Vec<String> = rows.map(|row| format!("{}: {}", row.name, first(row))).collect();
        writeln!(summary, "{name}: {all:?}").expect("a string takes it");
        assert_eq!(report.failure, Some(failure), "{summary}");
        assert!(all.iter().any(|row| without_hashes(row) == expected), "{expected}\n{summary}");
    }
}

fn entries(bundle: &mut Value) -> &mut Vec<Value> {
    bundle["auditLog"]["entries"].as_array_mut().expect("entries")
}

fn entry(bundle: &mut Value, at: usize) -> &mut serde_json::Map<String, Value> {
    entries(bundle)[at].as_object_mut().expect("an object")
}

#[test]
fn cancelled_item_may_have_been_running() {
    // An item that was cancelled while it ran: it ends all the same, or it does not.
    let mut bundle = bundle();
    let mut cancel = entry(&mut bundle, 2).clone();
    cancel.insert("kind".into(), "run.cancelled".into());
    cancel.insert("itemId".into(), "notes".into());
    entries(&mut bundle).insert(10, Value::Object(cancel));
    let state = |bent_bundle: Value| check(&relinked(bent_bundle)).rows.plan.clone();
    assert_eq!(state(bundle.clone()).state, State::NotApplicable, "{}", state(bundle.clone()).detail);
    entries(&mut bundle).remove(11);
    assert_eq!(state(bundle.clone()).detail, "notes is shown as done, the entries say cancelled (and 1 more)");
    bundle["items"][4] = json!({"id": "notes", "status": "cancelled", "attempts": 1});
    assert_eq!(state(bundle).state, State::NotApplicable);
}

#[test]
fn a_root_known_from_elsewhere_vouches_where_no_key_does() {
    let bytes = BUNDLE.as_bytes();
    let ask = |root| verify_bundle_json(bytes, None, root, &Options::default()).expect("it is a bundle");
    let open = ask(None);
    assert_eq!((open.failure, open.headline), (Some(Failure::Incomplete), "INCOMPLETE"));
    let root = open.root.expect("a root");
    assert!(ask(Some(root)).intact);
    assert_eq!(ask(Some(Digest::compute(b"another"))).failure, Some(Failure::Root));
}

#[test]
fn ours_are_read_back() {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    let ours = env.handoff(["export", "handoff-dag-1", "--format", "bundle-json"]).success();
    env.write("bundle.json", &ours);
    env.write("changed.json", &ours.replacen("human:ada", "human:eve", 1));
    env.write("foreign.json", BUNDLE);
    env.write("signers", &format!("bo@example.com {KEY}\n"));
    env.write("nothing.json", r#"{"runId": 3, "auditLog": {"entries": [{}]}}"#);
    env.handoff(["verify", "--bundle-json", "../bundle.json"]).success();
    let changed = env.handoff(["verify", "--json", "--bundle-json", "../changed.json"]).exit(3).stdout;
    insta::assert_snapshot!(changed, @r#"{"base":null,"checks":{"anchor":{"detail":"not judged, since the row chain fails","ok":"n/a"},"chain":{"detail":"entry 0 hashes to 1dbc2fa3, not to what it says (and 10 more)","findings":[{"code":null,"text":"entry 0 hashes to 1dbc2fa3, not to what it says"},{"code":null,"text":"entry 1 does not name the hash of the entry before it"},{"code":null,"text":"entry 1 hashes to ffb64c9b, not to what it says"},{"code":null,"text":"entry 2 does not name the hash of the entry before it"},{"code":null,"text":"entry 2 hashes to bb2fd92d, not to what it says"},{"code":null,"text":"entry 3 does not name the hash of the entry before it"},{"code":null,"text":"entry 3 hashes to c50b9e21, not to what it says"},{"code":null,"text":"entry 4 does not name the hash of the entry before it"},{"code":null,"text":"entry 4 hashes to 8448e56a, not to what it says"},{"code":null,"text":"entry 5 does not name the hash of the entry before it"},{"code":null,"text":"entry 5 hashes to 2a6b1845, not to what it says"}],"ok":false},"content":{"detail":"not judged, since the row chain fails","ok":"n/a"},"handoff":{"detail":"not judged, since the row chain fails","ok":"n/a"},"manifest":{"detail":"not judged, since the row chain fails","ok":"n/a"},"plan":{"detail":"not judged, since the row chain fails","ok":"n/a"},"root":{"detail":"the bundle's root is not ca349840, which its entries give","ok":false},"signature":{"detail":"the signature does not match the root","ok":false}},"claim":"tamper-detecting","entries":6,"failure":"chain","finding":{"entry":0,"stage":"chain"},"guarantee":"detect","intact":false,"outcome":null,"plan":null,"root":"sha256:ca3498402ef88466b8f380413e412d7541e7fffee6ea3f4592ac98cc1f082cb8","run":"handoff-dag-1","sandbox":{},"schema":"git-handoff.verify/1","sealed":true,"signers":[],"trusted":false,"uncovered":[{"detail":"no hash covers it","path":"auditLog.root.receipt"},{"detail":"not checked","path":"auditLog.root.signature"},{"detail":"no hash covers it","path":"items[].attempts"}]}"#);
    // No repository is needed.
    let foreign = ["verify", "--bundle-json", "../foreign.json", "--signers", "../signers"];
    env.handoff_in("home", foreign).ends(4);
    env.handoff_in("home", [&foreign[..], &["--allow-partial"]].concat()).ends(0);
    let unknown = env.handoff_in("home", ["verify", "--bundle-json", "../foreign.json"]).exit(3);
    assert_eq!(verdict(&unknown.stdout), "✗ INCOMPLETE");
    assert_output!(env.handoff(["verify", "--bundle-json", "../nothing.json"]), @r"
    ------- stderr -------
    error: ../nothing.json holds no audit bundle: wrong-type at runId: expected a string, found 3
    hint: git handoff export RUN --format bundle-json
    [exit status: 1]
    ");
}
