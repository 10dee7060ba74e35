//! The fields of plans and items, as the documentation lists them.

use std::collections::BTreeSet;

use git_handoff::model::plan::{Item, Plan};

/// Returns the first cells of the rows below a heading of a table.
fn rows(text: &'static str, heading: &str) -> BTreeSet<&'static str> {
    let (_, table) = text.split_once(heading).expect("the documentation has the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_documentation_has_every_field() {
    let text = include_str!("../../docs/reference/format.md");
    for (heading, fields) in [("| field of a plan |", Plan::FIELDS), ("| field of an item |", Item::FIELDS)] {
        assert_eq!(
            rows(text, heading),
            fields.iter().copied().collect(),
            "docs/reference/format.md has other fields: {heading}"
        );
        assert_eq!(fields[0], "id", "a rule's item has all fields but the first");
    }
}
