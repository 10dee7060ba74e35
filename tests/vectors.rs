//! Test vectors for other implementations: clean and forged runs as git bundles, each with the
//! verdict row by row.
//!
//! Every story is recorded again with the same keys and clock, and must give the commits in
//! `docs/vectors/`, whose verdicts must match `vectors.json`. `HANDOFF_UPDATE_DOCS=1 cargo test
//! --test it vectors` updates them; a bundle with unchanged refs is kept, because packs differ
//! between versions of git.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anchors;
mod broken;
mod clauses;
mod clean;
mod edges;
mod followed;
mod forged;
mod grown;
mod keys;
mod others;
mod planned;
mod proofs;
mod refused;
mod ruled;
mod shared;
mod table;
mod taken;
mod threads;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git_handoff::ledger::sign;
use git_handoff::model::digest::Oid;
use serde_json::{Value, json};

use crate::common::forge::{Forge, git, key};
use crate::common::{Environment, Output};

/// A story, and the repository that it leaves.
pub(crate) struct Vector {
    name: &'static str,
    what: &'static str,
    object_format: &'static str,
    /// Further arguments of the verifier.
    arguments: &'static [&'static str],
    /// Whether objects are missing from the bundle, so that git cannot make it.
    gaps: bool,
    /// The capabilities of a bundle of version 3, instead of what git writes.
    capabilities: Option<&'static str>,
    tell: fn(&Forge),
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, tell: fn(&Forge)) -> Self {
        Self { name, what, object_format: "sha1", arguments: TRUSTED, gaps: false, capabilities: None, tell }
    }

    const fn with_arguments(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    const fn with_gaps(self) -> Self {
        Self { gaps: true, ..self }
    }

    const fn capable(self, capabilities: &'static str) -> Self {
        Self { capabilities: Some(capabilities), ..self }
    }

    const fn sha256(self) -> Self {
        Self { object_format: "sha256", ..self }
    }

    fn file(&self) -> String {
        format!("{}.bundle", self.name)
    }
}

/// The run that every vector is about.
const RUN: &str = "handoff-dag-1";

/// The signers of most verdicts.
const SIGNERS: &str = "signers";

const TRUSTED: &[&str] = &["--signers", SIGNERS];

/// All clean runs.
fn clean() -> impl Iterator<Item = &'static Vector> {
    clean::VECTORS
        .iter()
        .chain(others::VECTORS)
        .chain(ruled::CLEAN)
        .chain(shared::CLEAN)
        .chain(clauses::CLEAN)
        .chain(edges::CLEAN)
}

/// All forged runs, by what is wrong with them.
fn forged() -> impl Iterator<Item = &'static Vector> {
    let groups = [
        forged::VECTORS,
        broken::VECTORS,
        keys::VECTORS,
        anchors::VECTORS,
        planned::VECTORS,
        grown::VECTORS,
        ruled::FORGED,
        taken::VECTORS,
        shared::FORGED,
        transitions::VECTORS,
        clauses::FORGED,
        edges::FORGED,
    ];
    groups.into_iter().flatten()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/vectors")
}

fn updating() -> bool {
    std::env::var_os("HANDOFF_UPDATE_DOCS").is_some()
}

/// Returns the refs that stand in lines of an object's name and a ref's.
fn refs(lines: &str) -> BTreeMap<String, String> {
    lines.lines().filter_map(|line| line.split_once(' ')).map(|(oid, name)| (name.into(), oid.into())).collect()
}

/// Records the story, compares its refs with the bundle's, and returns its line of the index.
fn check(vector: &Vector, env: &Environment) -> Value {
    let forge = Forge::with_format(vector.object_format);
    (vector.tell)(&forge);
    let current_refs = refs(&forge.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]));
    let file = folder().join(vector.file());
    let heads = || refs(&git(forge.path(), &["bundle", "list-heads", file.to_str().unwrap()]));
    let start = vector.capabilities.map(|lines| format!("# v3 git bundle\n{lines}"));
    let has_start =
        || start.as_ref().is_none_or(|start| fs::read(&file).is_ok_and(|bytes| bytes.starts_with(start.as_bytes())));
    let stale = updating() && !(file.exists() && heads() == current_refs && has_start());
    if let Some(start) = start.as_ref().filter(|_| stale) {
        let whole = bundle_of_what_is_here(&forge, &current_refs);
        let rest = whole.strip_prefix(b"# v2 git bundle\n").unwrap();
        fs::write(&file, [start.as_bytes(), rest].concat()).unwrap();
    } else if stale && vector.gaps {
        fs::write(&file, bundle_of_what_is_here(&forge, &current_refs)).unwrap();
    } else if stale {
        let version = if vector.object_format == "sha1" { "--version=2" } else { "--version=3" };
        let mut create = vec!["-c", "pack.threads=1", "bundle", "create", "-q", version, file.to_str().unwrap()];
        create.extend(current_refs.keys().map(String::as_str));
        forge.git(&create);
    }
    assert_eq!(heads(), current_refs, "{} is not what its story makes", vector.file());
    assert!(has_start(), "{} has other capabilities", vector.file());
    let mut arguments = vec!["verify", "--json", "--bundle", file.to_str().unwrap()];
    arguments.extend(vector.arguments);
    arguments.push(RUN);
    let output = env.handoff_in("home", arguments);
    let mut entry = verdict(vector.name, &output);
    entry["file"] = json!(vector.file());
    entry["objectFormat"] = json!(vector.object_format);
    entry["description"] = json!(vector.what);
    entry["refs"] = json!(current_refs);
    if vector.arguments != TRUSTED {
        entry["arguments"] = json!(vector.arguments);
    }
    entry
}

/// Returns the fields of the verifier's report that the index has.
fn verdict(name: &str, output: &Output) -> Value {
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{name}: {output}"));
    let rows = report["checks"].as_object().unwrap_or_else(|| panic!("{name}: {output}"));
    let failing: Vec<&String> = rows.iter().filter(|(_, check)| check["ok"] == false).map(|(row, _)| row).collect();
    assert_eq!(failing.is_empty(), report.get("finding").is_none(), "{output}");
    let mut verdict = json!({
        "run": RUN,
        "finding": report.get("finding"),
        "failure": report["failure"],
        "outcome": report["outcome"],
        "exit": output.status,
    });
    if failing.is_empty() {
        verdict["open"] = rows.iter().filter(|(_, check)| check["ok"] == "n/a").map(|(row, _)| row.as_str()).collect();
        if let Some(takeovers) = report.get("takeovers") {
            verdict["takeovers"] = takeovers.clone();
        }
    }
    verdict
}

/// Returns a bundle of all objects of the repository, which need not be all that the refs lead to.
fn bundle_of_what_is_here(forge: &Forge, refs: &BTreeMap<String, String>) -> Vec<u8> {
    let objects = forge.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    let lost = fs::read_to_string(forge.path().join(LOST)).unwrap_or_default();
    let remaining = objects.lines().filter(|name| lost.lines().all(|lost| lost != *name));
    let names = forge.path().join(".git/objects-to-pack");
    fs::write(&names, remaining.fold(String::new(), |list, name| list + name + "\n")).unwrap();
    let mut pack = Command::new("git");
    pack.args(["-c", "pack.threads=1", "pack-objects", "-q", "--stdout"]).current_dir(forge.path());
    let packed = pack.stdin(fs::File::open(&names).unwrap()).stderr(Stdio::inherit()).output().unwrap();
    assert!(packed.status.success());
    let mut head = "# v2 git bundle\n".to_owned();
    refs.iter().for_each(|(name, oid)| writeln!(head, "{oid} {name}").unwrap());
    [head.as_bytes(), b"\n", &packed.stdout].concat()
}

/// The file of the objects that the bundle is to lack.
const LOST: &str = ".git/objects-lost";

/// Leaves an object out of the bundle.
fn lose(forge: &Forge, oid: Oid) {
    fs::write(forge.path().join(LOST), format!("{oid}\n")).unwrap();
}

/// Writes the files that say whom and what a verifier trusts and wants.
fn write_wishes(env: &Environment) {
    let forge = Forge::new();
    let line = |name: &str, signer: &sign::Signer| {
        let line = sign::allowed_signers_line(name, signer.public()).unwrap();
        format!("{}\n", line.trim_end())
    };
    let ada = line("ada@example.com", &forge.signer);
    let both = ada.clone() + &line("bob@example.com", &stranger(&forge));
    let early = ada.replacen(' ', " valid-before=\"20250101Z\",", 1);
    let revoked = format!("{}\n", forge.signer.fingerprint());
    let plan = crate::common::forge::PLAN.replace("edit-b", "edit-c");
    let same: serde_json::Value = serde_json::from_str(crate::common::forge::PLAN).unwrap();
    let same = format!("{same:#}\n");
    let files = [
        (SIGNERS, ada),
        ("signers-of-both", both),
        ("signers-until-2025", early),
        ("revoked", revoked),
        ("another-plan.json", plan),
        ("same-plan.json", same),
    ];
    for (name, text) in files {
        env.write(&format!("home/{name}"), &text);
        holds(name, &text);
    }
}

/// Compares a file with what it must hold, or writes it.
#[track_caller]
fn holds(name: &str, text: &str) {
    let path = folder().join(name);
    if updating() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    assert!(found == text, "docs/vectors/{name} holds something else; what was found is\n{text}");
}

/// Checks vectors in several threads, since this is the longest test. Keeps their order.
fn each<V: Sync + 'static>(
    vectors: impl Iterator<Item = &'static V>,
    check: impl Fn(&V) -> Value + Sync,
) -> Vec<Value> {
    let vectors: Vec<&V> = vectors.collect();
    std::thread::scope(|scope| {
        let check = &check;
        let parts: Vec<_> = vectors
            .chunks(vectors.len().div_ceil(4))
            .map(|part| scope.spawn(move || part.iter().map(|vector| check(vector)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

#[test]
fn every_vector_matches_the_index() {
    let env = Environment::empty();
    write_wishes(&env);
    let whole = each(clean(), |vector| check(vector, &env));
    for entry in &whole {
        assert!(entry["finding"].is_null() || entry["exit"] == 3);
    }
    let forgeries = each(forged(), |vector| check(vector, &env));
    for entry in &forgeries {
        assert!(entry["exit"] == 3 && !entry["failure"].is_null(), "a forgery passes: {entry}");
    }
    let threads = each(threads::VECTORS.iter(), |vector| threads::check(vector, &env));
    let proofs: Vec<Value> = proofs::VECTORS.iter().map(|vector| proofs::check(vector, &env)).collect();
    let refused = refused::VECTORS.iter().map(|vector| refused::check(vector, &env));
    let refused: Vec<Value> =
        refused.chain(refused::PROOFS.iter().map(|vector| refused::check_proof(vector, &env))).collect();
    let index = json!({
        "schema": "git-handoff.vectors/1",
        "signers": SIGNERS,
        "vectors": whole.into_iter().chain(forgeries).collect::<Vec<_>>(),
        "threads": threads,
        "proofs": proofs,
        "refused": refused,
    });
    holds("vectors.json", &format!("{index:#}\n"));
    let files = clean().chain(forged()).map(Vector::file).chain(refused::VECTORS.iter().map(refused::Vector::file));
    let files = files.chain(refused::PROOFS.iter().map(|(file, ..)| (*file).to_owned()));
    let files = files.chain(threads::VECTORS.iter().map(threads::Vector::file));
    let files: Vec<String> = files.chain(proofs::VECTORS.iter().map(proofs::Vector::file)).collect();
    let distinct: BTreeSet<String> = files.iter().cloned().collect();
    assert_eq!(distinct.len(), files.len(), "two vectors have one name");
    let expected: Vec<String> = distinct.into_iter().collect();
    let there = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut there: Vec<String> =
        there.filter(|name| name.ends_with(".bundle") || name.ends_with(".proof.json")).collect();
    there.sort();
    assert_eq!(there, expected, "the folder holds the files of the index and no others");
}

/// A key that the verdicts do not know.
fn stranger(forge: &Forge) -> sign::Signer {
    key(forge.path(), 2)
}
