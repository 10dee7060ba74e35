//! The vectors of docs/reference/format.md are what the code computes, so that the document cannot
//! drift.

use git_handoff::git::codec;
use git_handoff::ledger::merkle;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Entry, Event, Product, RunSealed, RunSubmitted};
use git_handoff::model::format;
use git_handoff::model::name::{FilePath, RunId, encode_segment};
use git_handoff::model::plan::ProductKey;
use git_handoff::model::role::every_role;
use git_handoff::model::time::Moment;

const DOCUMENT: &str = include_str!("../../docs/reference/format.md");

#[track_caller]
fn stands(block: &str) {
    assert!(DOCUMENT.contains(block), "docs/reference/format.md does not hold:\n{block}");
}

const PLAN: &str = r#"{"id":"nightly","items":[{"id":"a","executor":"command","inputs":{"command":["true"]}}]}"#;

fn submitted() -> RunSubmitted {
    let plan = Product::from_bytes(PLAN.as_bytes(), gix::hash::Kind::Sha1).unwrap();
    let base = "4be1f2a04be1f2a04be1f2a04be1f2a04be1f2a0".parse().unwrap();
    let roles = every_role(["SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8".to_owned()]);
    RunSubmitted { tool: "git-handoff 0.1.0".to_owned(), ..RunSubmitted::new(plan, base, roles) }
}

fn entry(seq: u64, prev: Option<Digest>, event: Event) -> Entry {
    Entry {
        about: "nightly".parse::<RunId>().unwrap().into(),
        seq,
        at: Moment::from_millis(1_780_538_400_123),
        actor: "human:Ada <ada@example.com>".to_owned(),
        prev,
        pinned: false,
        event,
    }
}

#[test]
fn the_worked_entry_is_what_the_code_makes() {
    stands(PLAN);
    let first = entry(0, None, Event::RunSubmitted(submitted()));
    stands(std::str::from_utf8(&first.canonical()).unwrap());
    stands(&first.hash().to_string());
    let tree: Oid = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap();
    stands(&String::from_utf8(codec::payload(&first, tree, &[])).unwrap());
    let root = merkle::root([first.hash()]);
    let seal = RunSealed::new(root);
    let second = entry(1, Some(first.hash()), Event::RunSealed(seal));
    stands(std::str::from_utf8(&second.canonical()).unwrap());
    stands(&second.hash().to_string());
}

#[test]
fn the_roots_are_what_the_code_computes() {
    let leaves: Vec<Digest> = [&b""[..], b"\x00", b"\x10", b"\x20\x21", b"\x30\x31"].map(format::leaf_hash).into();
    for count in 0..=leaves.len() {
        let root = merkle::root(leaves[..count].iter().copied());
        stands(&format!("| {count} | `{}` |", root.hex()));
    }
}

#[test]
fn the_encodings_are_what_the_code_writes() {
    let names = [
        "nightly@2026-06-04T02:00:00Z",
        "we ird.bin",
        ".gitmodules",
        "v1..2",
        "trailing.",
        "a.lock",
        "a.LOCK",
        "ünï",
        "100%",
        "SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8",
    ];
    for name in names {
        stands(&format!("| `{name}` | `{}` |", encode_segment(name)));
    }
    let path = FilePath::parse("docs/we ird.md").unwrap();
    stands(&format!("`{}`", format::product_path(&ProductKey::Output(path))));
    stands(&format!("`{}`", format::item_path(&"edit-a".parse().unwrap())));
    stands(&format!("`{}`", format::log_path(&"nightly".parse().unwrap())));
}

#[test]
fn every_kind_has_its_section() {
    for kind in super::kinds() {
        stands(&format!("`{kind}`"));
    }
    for row in git_handoff::verify::Rows::<()>::NAMES {
        stands(&format!("**{row}**"));
    }
}
