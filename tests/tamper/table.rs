//! The tables of `docs/tamper.md`, each between two marks and owned by one test.

use std::fmt::Write as _;

use crate::common::part;

/// Compares a table with the one in the document, or writes it there.
#[track_caller]
pub(crate) fn check(name: &str, head: &[&str], rows: &[Vec<String>]) {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    part::check("docs/tamper.md", &format!("<!-- table: {name} -->"), &table);
}
