//! The tables of `docs/tamper.md`, each between two marks and owned by one test.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Compares a table with the one in the document, or writes it there.
#[track_caller]
pub(crate) fn check(name: &str, head: &[&str], rows: &[Vec<String>]) {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tamper.md");
    let lock = fs::File::open(&path).unwrap();
    let update = std::env::var_os("HANDOFF_UPDATE_DOCS").is_some();
    if update {
        // Other tests write their tables at the same time.
        lock.lock().unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- table: {name} -->\n");
    let start = text.find(&begin).unwrap_or_else(|| panic!("docs/tamper.md has no table {name}")) + begin.len();
    let end = start + text[start..].find("<!-- end -->").unwrap();
    if update {
        fs::write(&path, format!("{}{table}{}", &text[..start], &text[end..])).unwrap();
        return;
    }
    let shown = &text[start..end];
    assert!(shown == table, "docs/tamper.md shows another table {name}; what was found is\n{table}");
}
