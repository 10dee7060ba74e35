//! The tables of `docs/reference/tamper.md`, each between two marks and owned by one test.

use std::fmt::Write as _;

use crate::common::part;

const DOCUMENT: &str = "docs/reference/tamper.md";

fn begin(name: &str) -> String {
    format!("<!-- table: {name} -->")
}

/// Compares a table with the one in the document, or writes it there.
#[track_caller]
pub(crate) fn check(name: &str, head: &[&str], rows: &[Vec<String>]) {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    part::check(DOCUMENT, &begin(name), &table);
}

/// Holds that rows which a sample led to stand in the table, whose second column tells how many
/// times in all.
#[track_caller]
pub(crate) fn check_sample(name: &str, rows: &[Vec<String>]) {
    let shown = part::shown(DOCUMENT, &begin(name));
    let known = shown.lines().skip(2).map(|line| {
        let mut cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        cells.remove(1);
        cells
    });
    let known: Vec<Vec<&str>> = known.collect();
    for row in rows {
        assert!(known.iter().any(|cells| cells == row), "{DOCUMENT} has no such row in the table {name}: {row:?}");
    }
}
