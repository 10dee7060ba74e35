//! The list of answers: every form that a source file makes stands in it, with the file that has
//! its fields.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git_handoff::plan::validate::Code;
use git_handoff::verify::{Rows, ThreadRows};
use serde_json::{Value, json};

use crate::common::answers;
use crate::layers::sources;

/// The prefix of schema names.
const PREFIX: &str = "git-handoff.";

#[test]
fn every_answer_is_listed_under_its_commands() {
    let sources = sources();
    let made: BTreeSet<(String, String)> = sources
        .iter()
        .flat_map(|source| {
            source.lines().flat_map(|(_, line)| schemas(line)).map(|schema| (schema, source.path.clone()))
        })
        .collect();
    assert!(made.len() > 30, "{made:?}");

    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/json.md")).unwrap();
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with(&format!("| [`{PREFIX}"))).collect();
    assert!(rows.is_sorted(), "{rows:?}");
    let listed: Vec<(String, String)> =
        rows.iter().map(|row| (between(row, "`", "`"), between(row, "(../../src/", ")"))).collect();
    for row in &listed {
        assert!(made.contains(row), "{} does not make {}", row.1, row.0);
    }
    let names =
        |all: &mut dyn Iterator<Item = &(String, String)>| all.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(names(&mut listed.iter()), names(&mut made.iter()));
}

#[test]
fn every_answer_in_the_list_has_a_schema_and_every_schema_is_in_it() {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/json.md")).unwrap();
    let mut listed = BTreeSet::from(["entry", "plan"].map(str::to_owned));
    for row in list.lines().filter(|line| line.starts_with("| [")) {
        let file = between(row, "](../schema/", ".json)");
        let form = between(row, "[", "]");
        match form.strip_suffix(".json") {
            Some(plain) => {
                assert_eq!(plain, file);
                let prints = answers::plain().remove(plain).unwrap_or_else(|| panic!("{row}: nobody prints it"));
                assert!(prints.iter().all(|command| row.contains(&format!("`{command}`"))), "{row}: {prints:?}");
            }
            None => assert_eq!(form, format!("`{PREFIX}{file}/1`")),
        }
        assert!(listed.insert(file), "{row}");
    }
    assert_eq!(listed, answers::schemas());
}

#[test]
fn the_schemas_are_schemas_and_let_fields_be_added() {
    for name in answers::schemas() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{name}.json"));
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\""), "{name}");
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        assert!(name == "plan" || !text.contains("\"additionalProperties\": false"), "{name} lets no field be added");
    }
    let answer = json!({"schema": "git-handoff.extend/1", "run": "r", "items": [], "more": {"yet": 1}});
    assert!(answers::published("extend").is_valid(&answer));
    let result = std::panic::catch_unwind(|| answers::hold_answer(&answer));
    assert!(result.is_err(), "the schema refuses a field that it does not describe");
}

#[test]
fn the_schemas_have_the_words_of_the_program() {
    let file = |name: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{name}.json"));
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(file("validate")["$defs"]["Code"]["enum"], json!(Code::ALL));
    let verify = file("verify");
    assert_eq!(keys(&verify["$defs"]["Checks"]["properties"]), words(Rows::<()>::NAMES));
    let thread = file("thread-verify");
    assert_eq!(keys(&thread["$defs"]["Checks"]["properties"]), words(ThreadRows::<()>::NAMES));
    // Every kind of entry is named, and has a branch of its own.
    let entry = file("entry");
    let kinds = entry["$defs"]["Kind"]["enum"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap());
    let branches = entry["oneOf"].as_array().unwrap().iter().map(|branch| {
        let name = branch["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        entry["$defs"][name]["properties"]["kind"]["const"].as_str().unwrap()
    });
    assert!(kinds.eq(branches), "{}", entry["$defs"]["Kind"]);
}

/// Returns the names of forms that stand in quotes on a line.
fn schemas(line: &str) -> Vec<String> {
    let words = line.split('"').skip(1).step_by(2);
    words.filter(|word| word.starts_with(PREFIX) && word.ends_with("/1")).map(str::to_owned).collect()
}

/// Returns what stands between two marks where they are first found.
fn between(row: &str, begin: &str, end: &str) -> String {
    let (_, rest) = row.split_once(begin).expect("a row has all its columns");
    rest.split_once(end).expect("what begins in a row ends there").0.to_owned()
}
