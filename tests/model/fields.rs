//! The fields of plans and items, and the built-in executors, as the documentation lists them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use git_handoff::model::plan::{BuiltIn, Item, Plan};

use crate::common::part;

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

#[test]
fn the_documentation_has_every_executor() {
    let mut table = "| `executor` of the item | runs |\n|---|---|\n".to_owned();
    for executor in BuiltIn::in_plans() {
        writeln!(table, "| `{executor}` | {} |", executor.runs().unwrap()).unwrap();
    }
    table += "| any other name | the executor registered as `handoff.executor.<name>.command` |\n";
    part::check("docs/reference/workers.md", "<!-- executors -->", &table);
}
