//! Pictures as Mermaid flowcharts, which hosts show in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::plain;
use super::{BOXES, Outline, Picture, Standing, count_statuses, worst};
use crate::model::printable::cut_to;
use crate::model::state::RunState;

/// The number of edges above which Mermaid refuses a diagram unless it is configured otherwise.
pub const MOST_EDGES: usize = 500;

/// The length, in UTF-16 units, above which Mermaid refuses a diagram.
pub const MOST_UNITS: usize = 50_000;

/// The maximum number of characters of a name.
const LONGEST: usize = 60;

/// Writes an outline as a flowchart, with statuses if the state of the run is given. It has fewer
/// boxes than other pictures if Mermaid would refuse it.
#[must_use]
pub fn write(outline: &Outline, state: Option<&RunState>) -> String {
    let mut most = BOXES;
    loop {
        let picture = Picture::new(outline, most);
        let text = flowchart(outline, &picture, state);
        let fits = picture.edges.len() <= MOST_EDGES && text.encode_utf16().count() <= MOST_UNITS;
        // A single box has no edges and a short text.
        if fits || most == 1 {
            return text;
        }
        most = picture.boxes.len().min(most) * 3 / 4;
    }
}

fn flowchart(outline: &Outline, picture: &Picture, state: Option<&RunState>) -> String {
    let mut text = String::from("flowchart LR\n");
    let mut classes: BTreeMap<Standing, Vec<String>> = BTreeMap::new();
    for (at, node) in picture.boxes.iter().enumerate() {
        let mut label = match &node.group {
            Some(name) => format!("{} ({})", name_of(name), node.members.len()),
            None => name_of(outline.items[node.members[0]].id.as_str()),
        };
        if let Some(state) = state {
            if node.group.is_some() {
                let counts = count_statuses(state, &node.members).into_iter();
                let counts: Vec<String> = counts.map(|(word, count)| format!("{count} {word}")).collect();
                write!(label, ": {}", counts.join(", ")).expect("a string can be written");
            }
            let standing = worst(state, &node.members).map(|worst_at| Standing::read(state, worst_at));
            standing.into_iter().for_each(|standing| classes.entry(standing).or_default().push(format!("n{at}")));
        }
        writeln!(text, "  n{at}[\"{label}\"]").expect("a string can be written");
    }
    for edge in &picture.edges {
        writeln!(text, "  n{} --> n{}", edge.from, edge.to).expect("a string can be written");
    }
    for (standing, nodes) in classes {
        let (word, (area, border)) = (standing.word(), standing.colors());
        writeln!(text, "  classDef {word} fill:{area},stroke:{border},color:#212529").expect("a string can be written");
        writeln!(text, "  class {} {word}", nodes.join(",")).expect("a string can be written");
    }
    text
}

/// Returns a name with everything escaped that has a meaning in a label: quotes, HTML, entities and
/// Markdown.
fn name_of(name: &str) -> String {
    let mut safe = String::new();
    for c in cut_to(plain(name), LONGEST).chars() {
        match c {
            c if c.is_alphanumeric() => safe.push(c),
            ' ' | '-' | '.' | '/' | ':' | '(' | ')' | ',' | '…' => safe.push(c),
            c => write!(safe, "#{};", u32::from(c)).expect("a string can be written"),
        }
    }
    safe
}
