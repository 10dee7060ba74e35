//! Bundles that no verifier reads: two readers could understand them differently, or git refuses
//! an object in them.

use std::fs;

use gix::objs::Kind;
use serde_json::{Value, json};

use super::proofs::honest_proof;
use super::{RUN, SIGNERS, bundle_of_what_is_here, folder, holds, refs, updating};
use crate::common::Environment;
use crate::common::forge::Forge;

const REFERENCE: &str = "refs/handoff/runs/handoff-dag-1";

/// A bundle with a changed header, of an honest run.
pub(super) struct Vector {
    name: &'static str,
    what: &'static str,
    tell: fn(&Forge),
    /// Makes the header from that of version 2.
    head: fn(&str) -> String,
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, head: fn(&str) -> String) -> Self {
        Self { name, what, tell: honest, head }
    }

    pub(super) fn file(&self) -> String {
        format!("{}.bundle", self.name)
    }
}

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("head-with-a-ref-twice", "one ref at two entries of the run", |head| {
        let line = run_line(head);
        head.replace(line, &format!("{line}\n{line}"))
    }),
    Vector::new("head-with-two-object-formats", "the object formats `sha1` and `sha256`", |head| {
        newer(head, "@object-format=sha1\n@object-format=sha256\n")
    }),
    Vector::new("head-with-an-unknown-object-format", "the object format `sha512`", |head| {
        newer(head, "@object-format=sha512\n")
    }),
    Vector::new("head-with-a-capability-in-version-2", "a capability in a bundle of version 2", |head| {
        head.replace("bundle\n", "bundle\n@object-format=sha1\n")
    }),
    Vector::new("head-with-a-late-capability", "a capability after the refs", |head| {
        newer(head, "") + "@object-format=sha1\n"
    }),
    Vector::new("head-with-an-unknown-capability", "a capability that git does not know", |head| {
        newer(head, "@mood=good\n")
    }),
    Vector::new("head-with-a-filter-of-trees", "a filter of git that leaves out trees", |head| {
        newer(head, "@filter=tree:0\n")
    }),
    Vector::new("head-with-an-unknown-filter", "a filter that git does not know", |head| newer(head, "@filter=what\n")),
    Vector::new("head-with-a-filter-without-value", "a filter without a value", |head| newer(head, "@filter\n")),
    Vector::new("head-with-two-filters", "two filters of blobs", |head| {
        newer(head, "@filter=blob:none\n@filter=blob:limit=5\n")
    }),
    Vector::new("head-with-an-encoded-letter", "a ref whose name is not the encoding of a run's", |head| {
        head.replace(REFERENCE, "refs/handoff/runs/%68andoff-dag-1")
    }),
    Vector::new("head-with-a-deeper-ref", "a ref in a folder below those of runs", |head| {
        added(head, "refs/handoff/runs/a/b")
    }),
    Vector::new("head-with-a-run-named-like-an-option", "a ref whose name decodes to none of a run", |head| {
        added(head, "refs/handoff/runs/-x")
    }),
    Vector::new("head-with-a-log-of-no-key", "a ref of a log whose name is no fingerprint", |head| {
        added(head, "refs/handoff/logs/ada")
    }),
    Vector::new("head-with-an-archive-of-no-entry", "a ref of an archive without the digits of an entry", |head| {
        added(head, &format!("refs/handoff/archives/SHA256%3A{}", "A".repeat(43)))
    }),
    Vector::new("head-with-a-missing-object", "a ref at an object that the bundle lacks", |head| {
        format!("{head}{} refs/handoff/runs/other\n", "0123456789".repeat(4))
    }),
    Vector::new("head-with-a-ref-without-name", "an object name without a ref", |head| {
        format!("{head}{}\n", &run_line(head)[..40])
    }),
    Vector::new("head-without-a-blank", "no blank between an object name and its ref", |head| {
        head.replace(&format!(" {REFERENCE}"), REFERENCE)
    }),
    Vector::new("head-with-a-prerequisite", "a commit that a reader must have already", |head| {
        head.replace("bundle\n", &format!("bundle\n-{} x\n", "0123456789".repeat(4)))
    }),
    Vector {
        name: "commit-dated-before-1970",
        what: "a commit whose date is a negative number",
        tell: |forge| dated(forge, "-1"),
        head: str::to_owned,
    },
    Vector {
        name: "commit-dated-too-late",
        what: "a commit whose date has more than 63 bits",
        tell: |forge| dated(forge, "9223372036854775808"),
        head: str::to_owned,
    },
];

fn honest(forge: &Forge) {
    forge.honest();
}

/// Returns the line of the run.
fn run_line(head: &str) -> &str {
    head.lines().find(|line| line.ends_with(REFERENCE)).unwrap()
}

/// Returns the header as one of version 3, with these lines of capabilities.
fn newer(head: &str, capabilities: &str) -> String {
    head.replace("# v2 git bundle\n", &format!("# v3 git bundle\n{capabilities}"))
}

/// Adds a ref at the head of the run.
fn added(head: &str, reference: &str) -> String {
    format!("{head}{} {reference}\n", &run_line(head)[..40])
}

/// Appends a commit of this date to an honest run.
fn dated(forge: &Forge, date: &str) {
    let chain = forge.honest();
    let last = &chain.links[5];
    let who = format!("mallory <mallory@example.com> {date} +0000");
    let raw = format!("tree {}\nparent {}\nauthor {who}\ncommitter {who}\n\nno entry\n", last.tree, last.commit);
    forge.point_at(forge.store.write(Kind::Commit, raw.as_bytes()).unwrap());
}

/// Makes the bundle, compares its header with the file, and returns its line of the index.
pub(super) fn check(vector: &Vector, env: &Environment) -> Value {
    let forge = Forge::with_format("sha1");
    (vector.tell)(&forge);
    let current_refs = refs(&forge.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]));
    let plain: String = current_refs.iter().fold(String::new(), |lines, (name, oid)| lines + oid + " " + name + "\n");
    let head = (vector.head)(&format!("# v2 git bundle\n{plain}"));
    let file = folder().join(vector.file());
    let has_head = || fs::read(&file).is_ok_and(|bytes| bytes.starts_with(format!("{head}\nPACK").as_bytes()));
    if updating() && !has_head() {
        let whole = bundle_of_what_is_here(&forge, &current_refs);
        let end = whole.windows(2).position(|pair| pair == b"\n\n").unwrap() + 1;
        fs::write(&file, [head.as_bytes(), &whole[end..]].concat()).unwrap();
    }
    assert!(has_head(), "{} is not what its story makes", vector.file());
    let output = env.handoff_in("home", ["verify", "--bundle", file.to_str().unwrap(), "--signers", SIGNERS, RUN]);
    assert_eq!((output.status, output.stdout.as_str()), (Some(1), ""), "{}: {output}", vector.name);
    json!({ "file": vector.file(), "description": vector.what, "exit": output.status })
}

/// A proof that no verifier reads: its file, what it is, and how it comes from an honest one.
type Malformed = (&'static str, &'static str, fn(&str) -> String);

pub(super) const PROOFS: &[Malformed] = &[
    ("proof-cut-off.proof.json", "a proof whose last byte is missing", |text| {
        text.trim_end().strip_suffix('}').unwrap().to_owned()
    }),
    ("proof-with-another-field.proof.json", "a proof with a field that none has", |text| {
        text.replacen('{', "{\"more\":1,", 1)
    }),
    ("proof-with-a-number-as-text.proof.json", "a proof whose number of entries is a string", |text| {
        text.replacen("\"entries\":5", "\"entries\":\"5\"", 1)
    }),
    ("proof-with-a-path-of-the-seal.proof.json", "a proof with an inclusion path of the seal", |text| {
        text.replacen("\"last\":{", "\"last\":{\"path\":[],", 1)
    }),
    ("proof-without-the-path-of-entry-0.proof.json", "a proof without the inclusion path of entry 0", |text| {
        let mut proof: Value = serde_json::from_str(text).unwrap();
        proof["first"].as_object_mut().unwrap().remove("path");
        format!("{proof}\n")
    }),
    ("proof-with-an-entry-that-is-a-number.proof.json", "a proof that shows a number as an entry", |text| {
        let mut proof: Value = serde_json::from_str(text).unwrap();
        proof["shown"][0]["entry"] = json!(1);
        format!("{proof}\n")
    }),
    ("proof-of-another-schema-and-field.proof.json", "a proof of another schema, with a field that none has", |text| {
        text.replacen("proof/1", "proof/2", 1).replacen('{', "{\"more\":1,", 1)
    }),
];

/// Makes the proof, compares it with the file, and returns its line of the index.
pub(super) fn check_proof((file, what, bend): &Malformed, env: &Environment) -> Value {
    let forge = Forge::new();
    forge.honest();
    let honest = honest_proof(&forge);
    let bent = bend(&honest);
    assert_ne!(bent, honest, "{file}");
    holds(file, &bent);
    let path = folder().join(file);
    let output = env.handoff_in("home", ["verify", "--proof", path.to_str().unwrap(), "--signers", SIGNERS]);
    assert_eq!((output.status, output.stdout.as_str()), (Some(1), ""), "{file}: {output}");
    json!({ "file": file, "description": what, "exit": output.status })
}
