//! The table "finding → row → failure" of section 9 and that of the JavaScript verifier, both
//! written from the code: `HANDOFF_UPDATE_DOCS=1 cargo test vectors`. Each line has a vector.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use git_handoff::verify::{Code, Rows, Stage};
use serde_json::Value;

use super::folder;
use crate::common::part;

#[test]
fn the_format_has_a_line_for_each_code() {
    let mut table = "| code | finding | stage | row | failure |\n|---|---|---|---|---|\n".to_owned();
    for code in Code::ALL {
        let finding = code.finding();
        assert!(finding.len() > 10 && !finding.contains(['|', '\n']), "{finding:?}");
        let (stage, row, failure) = (code.stage(), code.row(), code.failure());
        writeln!(table, "| `{}` | {finding} | {stage} | {row} | {failure} |", code.word()).unwrap();
    }
    part::check("docs/reference/format.md", "<!-- table: findings -->", &table);
}

/// The other implementation refuses pages with other codes, so that it has the same table.
#[test]
fn the_other_implementation_has_the_same_codes() {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let mut table = format!("export const rowNames = [{}];\nconst codesOfStages = {{\n", quoted(Rows::<()>::NAMES));
    for stage in Stage::ALL {
        writeln!(table, "  {stage}: [").unwrap();
        for code in Code::ALL.iter().filter(|code| code.stage() == stage) {
            let (row, failure) = (code.row(), code.failure().as_str());
            let line = [code.word(), row, failure];
            writeln!(table, "    [{}],", quoted(&line[..if failure == row { 2 } else { 3 }])).unwrap();
        }
        table += "  ],\n";
    }
    table += "};\n";
    let begin = "// codes: a test writes them from src/verify/codes.rs, up to the end";
    part::check("src/report/verify/findings.mjs", begin, &table);
}

#[test]
fn each_line_has_a_vector_whose_verdict_follows_from_the_table() {
    if super::updating() {
        // Another test is writing the index.
        return;
    }
    let index: Value = serde_json::from_slice(&fs::read(folder().join("vectors.json")).unwrap()).unwrap();
    let table: BTreeMap<&str, (&str, &str)> =
        Code::ALL.iter().map(|code| (code.word(), (code.stage().word(), code.failure().as_str()))).collect();
    let mut without = table.clone();
    for vector in index["vectors"].as_array().unwrap() {
        let finding = &vector["finding"];
        let Some(code) = finding["code"].as_str() else { continue };
        let (stage, failure) = &table[code];
        assert_eq!((finding["stage"].as_str(), vector["failure"].as_str()), (Some(*stage), Some(*failure)), "{vector}");
        without.remove(code);
    }
    assert!(without.is_empty(), "no vector has one of these findings: {:?}", without.keys());
}
