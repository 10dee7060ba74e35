//! The table "finding → row → failure" of section 9, compared with the code and the vectors.

use std::collections::BTreeMap;
use std::fs;

use git_handoff::verify::Code;
use serde_json::Value;

use super::folder;
use crate::common::part;

/// A line of the table: the code, its stage, its row and its failure.
type Line = (String, String, String, String);

fn lines() -> Vec<Line> {
    let table = part::read_part("docs/reference/format.md", "<!-- table: findings -->");
    let one = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 5, "a line of the table has five cells: {line}");
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        assert!(cells[1].len() > 10, "the finding of {} is not told", cells[0]);
        (bare(cells[0]), bare(cells[2]), bare(cells[3]), bare(cells[4]))
    };
    table.lines().skip(2).map(one).collect()
}

#[test]
fn the_table_has_a_line_for_each_code_of_the_product_and_no_other() {
    let line = |code: &Code| {
        let words = [code.word(), code.stage().word(), code.row(), code.failure().as_str()];
        words.map(str::to_owned).into()
    };
    assert_eq!(lines(), Code::ALL.iter().map(line).collect::<Vec<Line>>());
}

/// The other implementation refuses pages with other codes, so that it has the same table.
#[test]
fn the_other_implementation_has_the_same_codes() {
    let script =
        "import('./src/report/verify.mjs').then((all) => console.log(JSON.stringify(all.default.codesOfStages)))";
    let mut node = std::process::Command::new("node");
    let output = node.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-e", script]).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut expected: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for code in Code::ALL {
        let mut line = vec![code.word(), code.row()];
        line.extend(Some(code.failure().as_str()).filter(|failure| *failure != code.row()));
        expected.entry(code.stage().word()).or_default().push(line);
    }
    assert_eq!(found, serde_json::json!(expected));
}

#[test]
fn each_line_has_a_vector_whose_verdict_follows_from_the_table() {
    let index: Value = serde_json::from_slice(&fs::read(folder().join("vectors.json")).unwrap()).unwrap();
    let table: BTreeMap<String, (String, String)> =
        lines().into_iter().map(|(code, stage, _, failure)| (code, (stage, failure))).collect();
    let mut without = table.clone();
    for vector in index["vectors"].as_array().unwrap() {
        let finding = &vector["finding"];
        let Some(code) = finding["code"].as_str() else { continue };
        let (stage, failure) = &table[code];
        assert_eq!(
            (finding["stage"].as_str(), vector["failure"].as_str()),
            (Some(&**stage), Some(&**failure)),
            "{vector}"
        );
        without.remove(code);
    }
    assert!(without.is_empty(), "no vector has one of these findings: {:?}", without.keys());
}
