//! Documents: put on a run and read back, produced and consumed by items, refused where something
//! is not as declared.

mod growing;
mod items;
mod putting;
mod reading;
mod refusing;
mod typed;

use serde_json::{Value, json};

use crate::common::Output;
use crate::common::repo::{TestRepo, item};
use crate::common::report::without_hashes;

/// A repository in which the schemas `score@1` and `score@2` are registered.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    let number = json!({"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    repo.env.write("repo/schemas/score-1.json", &number.to_string());
    repo.env.write("repo/schemas/score-2.json", &list.to_string());
    repo.config("handoff.schema.score@1.path", "schemas/score-1.json");
    repo.config("handoff.schema.score@2.path", "schemas/score-2.json");
    repo
}

/// Such a repository with an open run `r` of one item that does nothing.
fn open() -> TestRepo {
    let repo = repo();
    repo.submit("r", &[item("a", "true")]);
    repo
}

/// Puts a text on the run `r`.
fn put(repo: &TestRepo, name: &str, text: &str, more: &[&str]) -> Output {
    repo.env.write("text", text);
    repo.env.handoff([&["doc", "put", "r", name, "../text"], more].concat())
}

fn get(repo: &TestRepo, name: &str, more: &[&str]) -> Output {
    repo.env.handoff([&["doc", "get", "r", name], more].concat())
}

fn value(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}\n{output}"))
}

/// Asserts that a command fails with an exit code, prints a line on stderr (`…` for each hash) and
/// nothing on stdout, and changes no ref.
#[track_caller]
fn refused(repo: &TestRepo, code: i32, line: &str, command: impl FnOnce() -> Output) {
    let before = repo.refs();
    let output = command();
    assert_eq!(output.status, Some(code), "{output}");
    assert_eq!(output.stdout, "", "{output}");
    let stderr = without_hashes(&output.stderr);
    assert!(stderr.lines().any(|printed_line| printed_line == line), "{line}\n{output}");
    assert_eq!(repo.refs(), before, "{output}");
}
