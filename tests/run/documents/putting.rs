//! Revisions are sequential, for any writers and during a run.

use std::collections::BTreeMap;

use git_handoff::clock::Clock;
use git_handoff::git::store::Store;
use git_handoff::ledger::chain::Writer;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, InputRef, ItemFired, Product};
use git_handoff::model::name::{FilePath, RunId};
use git_handoff::model::plan::Need;
use git_handoff::model::state::Phase;
use git_handoff::plan::schemas::Schemas;
use git_handoff::run::operate::revisions::{self, Put};
use git_handoff::run::operate::{NewEntry, OpenRun};
use serde_json::{Value, json};

use super::{open, put, repo, value};
use crate::common::repo::{Driver, after, item, wait_for};

#[test]
fn revisions_are_numbered_linked_and_signed_like_everything() {
    let repo = open();
    let first = put(&repo, "notes/plan of attack.md", "one\n", &[]).success();
    let digest = "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806";
    assert_eq!(first, format!("r: notes/plan of attack.md revision 1 {digest}\n"));
    let second = put(&repo, "notes/plan of attack.md", "two\n", &["--json", "--actor", "agent:b"]);
    let answer = value(&second);
    assert_eq!(answer["schema"], "git-handoff.document/1");
    assert_eq!(answer["document"]["revision"], 2);
    assert_eq!(answer["document"]["previous"], digest);
    assert_eq!(answer["document"]["author"], json!({"actor": "agent:b"}));
    let output =
        repo.env.git(["show", "refs/handoff/runs/r^{/document.written notes}:documents/notes/plan%20of%20attack.md"]);
    assert_eq!(output.success(), "two\n");
    let entry = repo.entries("r").pop().unwrap();
    assert_eq!(entry["kind"], "document.written");
    assert_eq!((&entry["actor"], &entry["author"]), (&json!("agent:b"), &Value::Null));
    assert_eq!(entry["commit"], answer["document"]["commit"]);
    let subjects = repo.env.git(["log", "--format=%s", "refs/handoff/runs/r"]).success();
    assert!(subjects.starts_with("document.written notes/plan of attack.md #2\n"), "{subjects}");
    repo.env.handoff(["run", "r"]).success();
    repo.is_intact("r");
    repo.is_sound();
}

#[test]
fn doc_put_accepts_standard_input_and_any_bytes() {
    let repo = open();
    repo.env.shell("repo", r"printf 'a\0b\377' | git handoff doc put r raw").success();
    assert_eq!(repo.env.handoff(["doc", "get", "r", "raw"]).raw, b"a\0b\xff");
    repo.env.shell("repo/dir", "git handoff doc put r empty - </dev/null").success();
    assert_eq!(repo.env.handoff(["doc", "cat", "r", "empty"]).success(), "");
}

#[test]
fn a_revision_may_say_what_it_follows() {
    let repo = open();
    put(&repo, "n", "one\n", &["--if-match", "none"]).success();
    let digest = "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806";
    put(&repo, "n", "two\n", &["--if-match", digest]).success();
    super::refused(&repo, 5, "error: the document \"n\" changed: it is sha256:…", || {
        put(&repo, "n", "three\n", &["--if-match", &format!("sha256:{digest}")])
    });
    super::refused(&repo, 5, "error: the document \"n\" changed: it is sha256:…", || {
        put(&repo, "n", "x", &["--if-match", "none"])
    });
    super::refused(&repo, 5, "error: the document \"m\" changed: it does not exist", || {
        put(&repo, "m", "x", &["--if-match", digest])
    });
    super::refused(&repo, 2, "error: \"latest\" is neither a SHA-256 nor `none`", || {
        put(&repo, "n", "x", &["--if-match", "latest"])
    });
}

#[test]
fn of_many_at_once_all_get_a_revision_or_exactly_the_one_that_expected_it() {
    let repo = open();
    let start = |more: &[&str]| repo.start(&[&["doc", "put", "r", "n", "a.txt"], more].concat());
    let hands: Vec<Driver> = (0..4).map(|_| start(&[])).collect();
    for hand in hands {
        let (status, output) = hand.wait();
        assert_eq!(status.code(), Some(0), "{output}");
    }
    let log = value(&repo.env.handoff(["doc", "log", "r", "n", "--json"]));
    let numbers: Vec<u64> =
        log["revisions"].as_array().unwrap().iter().map(|one| one["revision"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
    let doc_start = |_| repo.start(&["doc", "put", "r", "m", "a.txt", "--if-match", "none"]);
    let second_hands: Vec<Driver> = (0..4).map(doc_start).collect();
    let mut codes: Vec<i32> = second_hands.into_iter().map(|hand| hand.wait().0.code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 5, 5, 5]);
    repo.env.handoff(["run", "r"]).success();
    repo.is_intact("r");
    repo.is_sound();
}

#[test]
fn the_driver_of_the_run_accepts_it() {
    let repo = repo();
    let reader = json!({"n": {"from": "@documents", "select": {"kind": "document", "name": "n"}}});
    let mut second = after("b", &["a"], "cat inputs/n > outputs/seen");
    second["needs"] = reader;
    repo.submit(
        "r",
        &[item("a", "touch \"$HOME/../started\"; while ! test -e \"$HOME/../go\"; do sleep 0.05; done"), second],
    );
    put(&repo, "n", "old\n", &[]).success();
    let driver = repo.start(&["run", "r"]);
    wait_for("the first item", || repo.path("started").exists());
    put(&repo, "n", "new\n", &[]).success();
    repo.env.write("go", "");
    let (status, output) = driver.wait();
    assert!(status.success(), "{output}");
    assert_eq!(repo.env.handoff(["cat", "r/b:outputs/seen"]).success(), "new\n");
    repo.is_intact("r");
    let kinds: Vec<Value> = repo.entries("r").into_iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "document.written").count(), 2);
}

/// A value resolved before another write is not recorded.
#[test]
fn a_dispatch_that_lost_a_race_does_not_consume_an_older_revision() {
    let repo = repo();
    let mut reader = item("a", "true");
    reader["needs"] =
        json!({"n": {"from": "@documents", "select": {"kind": "document", "name": "n", "schema": "score@1"}}});
    repo.submit("r", &[reader.clone()]);
    put(&repo, "n", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    let writer = Writer {
        store: Store::discover(&repo.env.repo()).unwrap(),
        signer: Signer::from_file(&repo.path("home/signing_key")).unwrap(),
        clock: Clock::System,
        actor: "human:ada".into(),
    };
    let run = RunId::parse("r").unwrap();
    let key = FilePath::parse("n").unwrap();
    let need: Need = serde_json::from_value(reader["needs"]["n"].clone()).unwrap();
    let fired = |bytes: &[u8]| {
        let input = InputRef { from: need.from.clone(), select: need.select.clone(), digest: Digest::compute(bytes) };
        let manifest = writer.store.compute_product(b"manifest").unwrap();
        let refs = BTreeMap::from([(key.clone(), input)]);
        let fired = ItemFired::new("a".parse().unwrap(), 1, manifest, refs);
        [NewEntry::plain(Event::ItemFired(fired))]
    };
    let write = |builder: &mut OpenRun, bytes: &[u8], schema: Option<&str>| {
        let oid = writer.store.write_blob(bytes).unwrap();
        let product = Product { sha256: Digest::compute(bytes), oid, size: bytes.len() as u64 };
        let schema = schema.map(|schema| schema.parse().unwrap());
        let put = Put { name: key.clone(), product, schema: None, instead_of: None, statement: None };
        let known = schema.iter().map(|schema: &git_handoff::model::schema::Schema| (schema.clone(), json!({})));
        let schemas: Schemas = known.collect();
        revisions::put(builder, &Put { schema: schema.clone(), ..put }, &schemas).unwrap()
    };
    let mut driver = OpenRun::open(&writer, &run).unwrap();
    let mut other = OpenRun::open(&writer, &run).unwrap();
    // Other bytes; then the same bytes, which do not match the expected schema any more.
    for (bytes, schema) in [(&br#"{"score":2}"#[..], Some("score@1")), (br#"{"score":2}"#, None)] {
        let before = driver.state.documents.latest(&key).unwrap().product.sha256;
        write(&mut other, bytes, schema);
        let stale = if before == Digest::compute(bytes) { bytes } else { br#"{"score":1}"# };
        assert!(driver.record(&fired(stale)).unwrap().is_empty());
        assert_eq!(driver.state.items.first().unwrap().phase, Phase::Waiting);
    }
    write(&mut other, br#"{"score":3}"#, Some("score@1"));
    driver.refresh().unwrap();
    assert_eq!(driver.record(&fired(br#"{"score":3}"#)).unwrap().len(), 1);
    assert_eq!(driver.state.items.first().unwrap().phase, Phase::Running);
}
