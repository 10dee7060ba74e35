//! The list of answers: every form that a source file makes stands in it, with the file that has its fields.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::layers::sources;

/// What the name of every form begins with.
const PREFIX: &str = "git-handoff.";

#[test]
fn every_answer_is_in_the_list_and_where_it_says() {
    let sources = sources();
    let made: BTreeSet<(String, String)> = sources
        .iter()
        .flat_map(|source| {
            source.lines().flat_map(|(_, line)| schemas(line)).map(|schema| (schema, source.path.clone()))
        })
        .collect();
    assert!(made.len() > 30, "{made:?}");

    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/answers.md")).unwrap();
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with(&format!("| `{PREFIX}"))).collect();
    assert!(rows.is_sorted(), "{rows:?}");
    let listed: Vec<(String, String)> =
        rows.iter().map(|row| (between(row, "`", "`"), between(row, "(../src/", ")"))).collect();
    for row in &listed {
        assert!(made.contains(row), "{} does not make {}", row.1, row.0);
    }
    let names =
        |all: &mut dyn Iterator<Item = &(String, String)>| all.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(names(&mut listed.iter()), names(&mut made.iter()));
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
