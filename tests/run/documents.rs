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
use crate::common::ground::{Ground, item};

/// A repository in which the schemas `score@1` and `score@2` are registered.
fn ground() -> Ground {
    let ground = Ground::new();
    let number = json!({"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    ground.env.write("repo/schemas/score-1.json", &number.to_string());
    ground.env.write("repo/schemas/score-2.json", &list.to_string());
    ground.config("handoff.schema.score@1.path", "schemas/score-1.json");
    ground.config("handoff.schema.score@2.0.0.path", "schemas/score-2.json");
    ground
}

/// Such a repository with an open run `r` of one item that does nothing.
fn open() -> Ground {
    let ground = ground();
    ground.submit("r", &[item("a", "true")]);
    ground
}

/// Puts a text on the run `r`.
fn put(ground: &Ground, name: &str, text: &str, more: &[&str]) -> Output {
    ground.env.write("text", text);
    ground.env.handoff([&["doc", "put", "r", name, "../text"], more].concat())
}

fn get(ground: &Ground, name: &str, more: &[&str]) -> Output {
    ground.env.handoff([&["doc", "get", "r", name], more].concat())
}

fn value(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}\n{output}"))
}

/// Holds that a command is refused with an exit code and these words, prints nothing on stdout, and
/// changes no ref.
#[track_caller]
fn refused(ground: &Ground, code: i32, words: &str, command: impl FnOnce() -> Output) {
    let before = ground.refs();
    let output = command();
    assert_eq!(output.status, Some(code), "{output}");
    assert_eq!(output.stdout, "", "{output}");
    assert!(output.stderr.contains(words), "{words}\n{output}");
    assert_eq!(ground.refs(), before, "{output}");
}
