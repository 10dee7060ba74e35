//! The table "finding → row → failure" of section 9, held against the code and the vectors.

use std::collections::BTreeMap;
use std::fs;

use git_handoff::verify::Code;
use serde_json::Value;

use super::folder;
use crate::common::part;

/// A line of the table: the code, its row and its failure.
type Line = (String, String, String);

fn lines() -> Vec<Line> {
    let table = part::shown("docs/reference/format.md", "<!-- table: findings -->");
    let one = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 4, "a line of the table has four cells: {line}");
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        assert!(cells[1].len() > 10, "the finding of {} is not told", cells[0]);
        (bare(cells[0]), bare(cells[2]), bare(cells[3]))
    };
    table.lines().skip(2).map(one).collect()
}

#[test]
fn the_table_has_a_line_for_each_code_of_the_product_and_no_other() {
    let codes = Code::ALL
        .iter()
        .map(|code| (code.word().to_owned(), code.row().to_owned(), code.failure().as_str().to_owned()));
    assert_eq!(lines(), codes.collect::<Vec<_>>());
}

/// The other implementation refuses pages with other codes, so that it has the same table.
#[test]
fn the_other_implementation_has_the_same_codes() {
    let script =
        "import('./src/report/verify.mjs').then((all) => console.log(JSON.stringify(all.default.codesOfRows)))";
    let mut node = std::process::Command::new("node");
    let output = node.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-e", script]).output().unwrap();
    let found: BTreeMap<String, Vec<String>> = serde_json::from_slice(&output.stdout).unwrap();
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for code in Code::ALL {
        expected.entry(code.row().to_owned()).or_default().push(code.word().to_owned());
    }
    assert_eq!(found, expected);
}

/// The rank of a failure among several: the verdict names the first.
fn rank(failure: &str) -> usize {
    let found = Code::ALL.iter().map(|code| code.failure()).filter(|known| known.as_str() == failure).min();
    found.map_or_else(|| panic!("no code has the failure {failure}"), |known| known as usize)
}

#[test]
fn each_line_has_a_vector_whose_verdict_follows_from_the_table() {
    let index: Value = serde_json::from_slice(&fs::read(folder().join("vectors.json")).unwrap()).unwrap();
    let table: BTreeMap<String, (String, String)> =
        lines().into_iter().map(|(code, row, failure)| (code, (row, failure))).collect();
    let mut without = table.clone();
    for vector in index["vectors"].as_array().unwrap() {
        let mut failures = Vec::new();
        for (row, codes) in vector["codes"].as_object().unwrap() {
            for code in codes.as_array().unwrap() {
                let (of, failure) = &table[code.as_str().unwrap()];
                assert_eq!(of, row, "{vector}");
                failures.push(failure.as_str());
                without.remove(code.as_str().unwrap());
            }
        }
        failures.sort_by_key(|failure| rank(failure));
        assert_eq!(vector["failure"].as_str(), failures.first().copied(), "{vector}");
    }
    assert!(without.is_empty(), "no vector has one of these findings: {:?}", without.keys());
}
