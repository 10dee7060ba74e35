//! Valid and invalid entries by the letter of `docs/reference/format.md`.

use git_handoff::model::entry::{Entry, Event};
use git_handoff::model::role::every_role;
use git_handoff::model::time::Moment;
use serde_json::{Value, json};

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, assert_fails, assert_intact, assert_says};

/// An honest run whose entry 0 is bent before anything is written.
fn submitted(bend: impl Fn(&Forge, &mut git_handoff::model::entry::RunSubmitted)) -> git_handoff::verify::Report {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    bend(&forge, e);
    forge.finish(run);
    forge.verify()
}

#[test]
fn writers_are_fingerprints() {
    let other = "SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8";
    assert_intact(&submitted(|_, e| e.roles.extend(every_role([other.to_owned()]))));
    let letters = &other["SHA256:".len()..];
    for bad in [
        "SHA256:zz".to_owned(),
        letters.to_owned(),
        format!("{other}="),
        format!("{other}A"),
        format!("{other} "),
        format!("sha256:{letters}"),
        // The last letter holds two bits that no byte has.
        format!("{}9", &other[..other.len() - 1]),
        format!("SHA256:{}", letters.replace('+', "-")),
        String::new(),
    ] {
        let report = submitted(|_, e| e.roles.extend(every_role([bad.clone()])));
        assert_fails(&report, "chain", "entry");
        let (_, why) = report.rows.chain.findings[0].text.split_once(": ").unwrap();
        assert_eq!(why, format!("the fields of the run.submitted entry are wrong: {bad:?} is no fingerprint"));
    }
}

#[test]
fn a_base_is_a_name_of_the_repository_s_format() {
    for (format, digits) in [("sha1", 64), ("sha256", 40)] {
        let forge = Forge::with_format(format);
        let mut run = ChainBuilder::honest(&forge);
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.base = "1".repeat(digits).parse().unwrap();
        forge.finish(run);
        assert_says(&forge.verify(), "plan", "entry 0: the base does not have the repository's object format");
    }
}

/// Reads an entry of a log or a thread with one field changed.
fn reads(entry: &Value, path: &str, value: Value) -> bool {
    let mut bent = entry.clone();
    *bent.pointer_mut(path).unwrap() = value;
    Entry::parse(&git_handoff::model::format::entry_text(&bent)).is_ok()
}

fn thread_in_log() -> Value {
    json!({ "v": 2, "kind": "log.recorded", "thread": "t", "seq": 3, "at": "2026-06-04T02:00:00.000Z", "actor": "human:ada",
        "prev": format!("sha256:{}", "0".repeat(64)), "log": "SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8",
        "first": format!("sha256:{}", "2".repeat(64)), "lastSeq": 2, "last": format!("sha256:{}", "1".repeat(64)) })
}

#[test]
fn numbers_are_integers_that_everybody_reads_alike() {
    let entry = thread_in_log();
    for (number, valid) in [(json!(1), true), (json!(9_007_199_254_740_991_u64), true), (json!(-1), false)] {
        assert_eq!(reads(&entry, "/lastSeq", number.clone()), valid, "{number}");
    }
    for number in
        [json!(9_007_199_254_740_992_u64), json!(1_u64 << 60), json!(u64::MAX), json!(1.5), json!(-1), json!(1e300)]
    {
        assert!(!reads(&entry, "/lastSeq", number.clone()), "{number}");
        assert!(!reads(&entry, "/seq", number.clone()), "{number}");
    }
    let retried = json!({ "v": 2, "kind": "item.retried", "run": "r", "seq": 3, "at": "2026-06-04T02:00:00.000Z",
        "actor": "human:ada", "prev": format!("sha256:{}", "0".repeat(64)), "item": "a", "attempt": 1, "reason": "failure",
        "exit": { "code": 1 }, "durationMs": 5 });
    for (path, number, valid) in [
        ("/attempt", json!(u32::MAX), true),
        ("/attempt", json!(1_u64 << 32), false),
        ("/exit/code", json!(i32::MIN), true),
        ("/exit/code", json!(1_u64 << 31), false),
        ("/durationMs", json!(9_007_199_254_740_991_u64), true),
        ("/durationMs", json!(9_007_199_254_740_992_u64), false),
    ] {
        assert_eq!(reads(&retried, path, number.clone()), valid, "{path} {number}");
    }
}

#[test]
fn times_have_one_spelling_and_four_digits_of_a_year() {
    let entry = thread_in_log();
    for time in
        ["2026-06-04T02:00:00.123Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2028-02-29T00:00:00.000Z"]
    {
        assert_eq!(time.parse::<Moment>().unwrap().to_string(), time);
        assert!(reads(&entry, "/at", json!(time)), "{time}");
    }
    assert_eq!("9999-12-31T23:59:59.999Z".parse::<Moment>().unwrap().seconds(), 253_402_300_799);
    for time in [
        "1969-12-31T23:59:59.999Z",
        "0000-01-01T00:00:00.000Z",
        "2026-06-04T02:00:00Z",
        "2026-06-04T02:00:00.12Z",
        "2026-06-04T02:00:00.1234Z",
        "2026-06-04t02:00:00.123Z",
        "2026-06-04T02:00:00.123z",
        "2026-06-04 02:00:00.123Z",
        "2026-06-04T02:00:00.123+00:00",
        "2026-06-04T02:00:00,123Z",
        "2016-12-31T23:59:60.000Z",
        "2026-02-29T00:00:00.000Z",
        "2026-06-04T24:00:00.000Z",
        "-001-06-04T02:00:00.123Z",
        "10000-01-01T00:00:00.000Z",
        "20260604T020000.123Z",
        "",
    ] {
        assert!(time.parse::<Moment>().is_err(), "{time}");
    }
}

#[test]
fn plan_follows_the_document() {
    let with = |path: &str, value: Value| {
        let mut plan: Value = serde_json::from_str(PLAN).unwrap();
        let (parent, key) = path.rsplit_once('/').unwrap();
        plan.pointer_mut(parent).unwrap()[key] = value;
        git_handoff::plan::parse(plan.to_string().as_bytes()).is_ok()
    };
    let patch = json!({ "kind": "patch" });
    let output = |path: &str| json!({ "kind": "output", "path": path });
    let document = json!({ "kind": "document", "name": "d", "path": "d.md" });
    for (path, value, valid) in [
        ("/items/0/timeout", json!(1), true),
        ("/items/0/timeout", json!(315_360_000), true),
        ("/items/0/timeout", json!(315_360_001), false),
        ("/items/0/timeout", json!(0), false),
        ("/items/0/timeout", json!(5.0), false),
        ("/items/0/maxAttempts", json!(100), true),
        ("/items/0/maxAttempts", json!(101), false),
        ("/items/0/maxAttempts", json!(null), false),
        ("/items/0/inputs", json!({ "command": ["true"], "any": [null, 1.5, { "x": -0.0 }] }), true),
        ("/items/0/inputs", json!({ "command": ["true"], "any": 1e20 }), false),
        ("/items/0/inputs", json!([]), false),
        ("/items/0/executor", json!(""), false),
        ("/items/0/depends_on", json!(["edit-b", "edit-b"]), true),
        ("/items/0/depends_on", json!(["@artifacts"]), false),
        ("/items/0/resourceLocks", json!(["a", "a"]), false),
        ("/items/0/resourceLocks", json!([""]), false),
        ("/items/0/produces", json!([]), true),
        ("/items/0/produces", json!([patch, output("x"), document]), true),
        ("/items/0/produces", json!([patch, patch]), false),
        ("/items/0/produces", json!([output("x"), output("X")]), false),
        ("/items/0/produces", json!([{ "kind": "document", "name": "d" }]), false),
        ("/items/0/produces", json!([{ "kind": "patch", "type": "" }]), false),
        ("/items/1/needs", json!({ "x": { "from": "@artifacts", "select": patch } }), true),
        ("/items/1/needs", json!({ "x": { "from": "@documents", "select": output("x") } }), true),
        ("/items/1/needs", json!({ "x": { "from": "@other", "select": patch } }), false),
        ("/items/1/needs", json!({ "x": { "from": "edit-a" } }), false),
        ("/items/1/needs", json!({ "x": { "from": "edit-a", "select": { "kind": "patch", "path": "x" } } }), false),
        ("/queue", json!(""), false),
        ("/base", json!("v1"), true),
        ("/openEnded", json!(1), false),
        ("/items", json!([]), false),
        ("/more", json!(1), false),
        ("/artifacts", json!({ "a": "x", "A": "x" }), false),
        ("/rules", json!([{ "id": "", "when": {}, "create": { "executor": "command" } }]), false),
        ("/rules", json!([{ "id": "r", "when": { "atMost": 10_000 }, "create": { "executor": "command" } }]), true),
        ("/rules", json!([{ "id": "r", "when": {}, "create": { "id": "x", "executor": "command" } }]), false),
    ] {
        assert_eq!(with(path, value.clone()), valid, "{path} {value}");
    }
}
