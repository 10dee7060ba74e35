//! Test vectors for other implementations: clean and forged runs as git bundles, each with the verdict row by row.
//!
//! Every story is told again here, with the same keys and the same clock, and must end in the commits that `docs/vectors/` holds; and
//! what is there is verified and must read as `vectors.json` says. `HANDOFF_UPDATE_DOCS=1 cargo nextest run vectors` writes what is
//! found now; a bundle whose refs are the same is left as it is, since git packs differently from version to version.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clean;
mod forged;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use git_handoff::ledger::sign;
use serde_json::{Value, json};

use crate::common::Environment;
use crate::common::lab::{Lab, git, key};

/// A story, and the repository that it leaves.
pub(crate) struct Vector {
    name: &'static str,
    what: &'static str,
    object_format: &'static str,
    tell: fn(&Lab),
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, tell: fn(&Lab)) -> Self {
        Self { name, what, object_format: "sha1", tell }
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

/// Whom the verdicts trust.
const SIGNERS: &str = "signers";

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

/// Tells the story, holds its refs against those of the bundle, and returns what stands in the index about it.
fn check(vector: &Vector, env: &Environment) -> Value {
    let lab = Lab::with_format(vector.object_format);
    (vector.tell)(&lab);
    let told = refs(&lab.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]));
    let file = folder().join(vector.file());
    let heads = || refs(&git(lab.path(), &["bundle", "list-heads", file.to_str().unwrap()]));
    if updating() && !(file.exists() && heads() == told) {
        let version = if vector.object_format == "sha1" { "--version=2" } else { "--version=3" };
        let mut create = vec!["-c", "pack.threads=1", "bundle", "create", "-q", version, file.to_str().unwrap()];
        create.extend(told.keys().map(String::as_str));
        lab.git(&create);
    }
    assert_eq!(heads(), told, "{} is not what its story makes", vector.file());
    let arguments =
        ["verify", "--json", "--bundle", file.to_str().unwrap(), "--signers", "signers", RUN].map(str::to_owned);
    let said = env.handoff_in("home", arguments);
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}: {said}", vector.name));
    let rows = report["checks"].as_object().unwrap_or_else(|| panic!("{}: {said}", vector.name));
    let mark = |check: &Value| match &check["ok"] {
        Value::Bool(true) => "ok",
        Value::Bool(false) => "fail",
        _ => "open",
    };
    let rows: BTreeMap<&String, &str> = rows.iter().map(|(row, check)| (row, mark(check))).collect();
    json!({
        "file": vector.file(),
        "run": RUN,
        "objectFormat": vector.object_format,
        "description": vector.what,
        "refs": told,
        "rows": rows,
        "failure": report["failure"],
        "outcome": report["outcome"],
        "exit": said.status,
    })
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

#[test]
fn every_vector_is_told_again_and_reads_as_the_index_says() {
    let env = Environment::empty();
    let lab = Lab::new();
    let line = sign::allowed_signers_line("ada@example.com", lab.signer.public()).unwrap();
    let line = format!("{}\n", line.trim_end());
    env.write("home/signers", &line);
    holds(SIGNERS, &line);
    let clean = clean::VECTORS.iter().map(|vector| check(vector, &env)).collect::<Vec<_>>();
    for entry in &clean {
        assert!(!entry["rows"].as_object().unwrap().values().any(|row| row == "fail") || entry["exit"] == 3);
    }
    let forged = forged::VECTORS.iter().map(|vector| check(vector, &env)).collect::<Vec<_>>();
    for entry in &forged {
        assert!(entry["exit"] == 3 && !entry["failure"].is_null(), "a forgery passes: {entry}");
    }
    let table: String = clean.iter().chain(&forged).map(row).collect();
    let index = json!({
        "schema": "git-handoff.vectors/1",
        "signers": SIGNERS,
        "vectors": clean.into_iter().chain(forged).collect::<Vec<_>>(),
    });
    holds("vectors.json", &format!("{index:#}\n"));
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let (before, rest) = readme.split_once("<!-- table -->\n").unwrap();
    let after = rest.split_once("<!-- end -->").unwrap().1;
    let head = "| file | what it is | `failure` | rows that fail | rows that are open |\n|---|---|---|---|---|\n";
    holds("README.md", &format!("{before}<!-- table -->\n{head}{table}<!-- end -->{after}"));
    let mut named: Vec<String> = clean::VECTORS.iter().chain(forged::VECTORS).map(Vector::file).collect();
    named.sort();
    let there = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut there: Vec<String> = there.filter(|name| name.ends_with(".bundle")).collect();
    there.sort();
    assert_eq!(there, named, "the folder holds the bundles of the index and no others");
}

/// Returns a vector's line of the table.
fn row(vector: &Value) -> String {
    let of = |state: &str| {
        let rows = vector["rows"].as_object().unwrap().iter().filter(|(_, found)| *found == state);
        rows.map(|(row, _)| row.as_str()).collect::<Vec<_>>().join(", ")
    };
    let failure =
        vector["failure"].as_str().map_or_else(|| "none: intact".to_owned(), |failure| format!("`{failure}`"));
    let mut line = String::new();
    let (file, what) = (vector["file"].as_str().unwrap(), vector["description"].as_str().unwrap());
    writeln!(line, "| [`{file}`]({file}) | {what} | {failure} | {} | {} |", of("fail"), of("open")).unwrap();
    line
}

/// A key that the verdicts do not know.
fn stranger(lab: &Lab) -> sign::Signer {
    key(lab.path(), 2)
}
