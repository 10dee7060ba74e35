//! The tables of what was tried and which rows failed, each a snapshot that belongs to one test.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::assert_output;

/// Compares a table with its snapshot.
pub(crate) fn check(name: &str, head: &[&str], rows: &[Vec<String>]) {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    assert_output!(name, table);
}

/// Checks that rows of a sample are in the table, whose second column says how many times in all.
#[track_caller]
pub(crate) fn check_sample(name: &str, rows: &[Vec<String>]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("snapshots/{name}.snap"));
    let table = fs::read_to_string(file).unwrap();
    let known = table.lines().filter(|line| line.starts_with('|')).skip(2).map(|line| {
        let mut cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        cells.remove(1);
        cells
    });
    let known: Vec<Vec<&str>> = known.collect();
    for row in rows {
        assert!(known.iter().any(|cells| cells == row), "the table {name} has no such row: {row:?}");
    }
}
