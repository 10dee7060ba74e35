//! Pictures in DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::text::plain;
use super::{Node, Outline, Picture, Standing, worst};
use crate::model::state::RunState;

/// Writes a picture in DOT, in colour if the state of the run is given.
///
/// A box has the id of its item. Groups, and items with escapes in their names, have ids that begin
/// with `@`, as no item's does.
#[must_use]
pub fn write(title: &str, outline: &Outline, picture: &Picture, state: Option<&RunState>) -> String {
    let ids: Vec<String> = picture.boxes.iter().enumerate().map(|(at, node)| id(at, node, outline)).collect();
    let mut text = format!("digraph {} {{\n", quoted(title));
    text.push_str("  rankdir=LR;\n");
    text.push_str("  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\"];\n");
    for (node, id) in picture.boxes.iter().zip(&ids) {
        let label = match &node.group {
            Some(name) => format!("{} ({})", plain(name), node.members.len()),
            None => plain(outline.items[node.members[0]].id.as_str()),
        };
        let standing = state.and_then(|state| Some(Standing::read(state, worst(state, &node.members)?)));
        let style = standing.map_or_else(String::new, |standing| {
            let (area, border) = standing.colors();
            format!(", class=\"{}\", fillcolor=\"{area}\", color=\"{border}\"", standing.word())
        });
        writeln!(text, "  {} [label={}{style}];", quoted(id), quoted_label(&label)).expect("a string can be written");
    }
    for edge in &picture.edges {
        let (from, to) = (quoted(&ids[edge.from]), quoted(&ids[edge.to]));
        writeln!(text, "  {from} -> {to};").expect("a string can be written");
    }
    text + "}\n"
}

fn id(at: usize, node: &Node, outline: &Outline) -> String {
    let name = node.group.as_deref().unwrap_or_else(|| outline.items[node.members[0]].id.as_str());
    let safe = plain(name);
    // With an escape in it, the name of another item may look the same.
    let is_unique = node.group.is_none() && !safe.contains('\\');
    if is_unique { safe } else { format!("@{at} {safe}") }
}

/// Quotes an id. A backslash is kept as it is, except that one before the closing quote would
/// escape it, so each is doubled.
fn quoted(id: &str) -> String {
    format!("\"{}\"", id.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes a label, in which Graphviz would also replace escapes and entities.
fn quoted_label(label: &str) -> String {
    quoted(&label.replace('&', "&amp;"))
}
