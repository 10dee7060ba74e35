//! Pictures as SVG, with presentation attributes alone: no style sheet and no script.

use std::fmt::Write as _;

use super::{Node, Outline, Picture, Standing, count_statuses, worst};
use crate::model::printable;
use crate::model::state::RunState;

/// The distance of a label from the left side of its box, and of its baseline from the middle.
const INDENT: u32 = 10;
const BASELINE: u32 = 5;

/// Writes a picture, with statuses if the state of the run is given.
#[must_use]
pub fn write(title: &str, outline: &Outline, picture: &Picture, state: Option<&RunState>) -> String {
    let (width, height) = (picture.width, picture.height);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(title)
    );
    for edge in &picture.edges {
        let (from, to) = (&picture.boxes[edge.from], &picture.boxes[edge.to]);
        let bend = edge.bend.map(|(x, y)| format!(" L{x} {y}")).unwrap_or_default();
        let (begin, middle) = (from.x + from.width, from.y + from.height / 2);
        let end = to.y + to.height / 2;
        let path = format!("M{begin} {middle}{bend} L{} {end}", to.x);
        writeln!(text, "<path d=\"{path}\" fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"1.5\"/>")
            .expect("a string can be written");
    }
    picture.boxes.iter().for_each(|node| text.push_str(&drawn(outline, node, state)));
    text + "</svg>\n"
}

fn drawn(outline: &Outline, node: &Node, state: Option<&RunState>) -> String {
    let name = match &node.group {
        Some(name) => format!("{name} ({})", node.members.len()),
        None => outline.items[node.members[0]].id.to_string(),
    };
    let counts = state.map(|state| count_statuses(state, &node.members)).unwrap_or_default();
    let counts: Vec<String> = counts.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    let title = if counts.is_empty() { name } else { format!("{name}: {}", counts.join(", ")) };
    let standing = state.and_then(|state| Some(Standing::read(state, worst(state, &node.members)?)));
    let (fill, stroke) = standing.unwrap_or(Standing::Waiting).colors();
    let mark = standing.map(|standing| format!("{} ", standing.mark())).unwrap_or_default();
    let line = if node.group.is_some() { 3 } else { 1 };
    let (x, y) = (node.x, node.y);
    format!(
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{fill}\" \
         stroke=\"{stroke}\" stroke-width=\"{line}\"/><text x=\"{}\" y=\"{}\" fill=\"#111111\">{mark}{}</text></g>\n",
        escaped(&title),
        node.width,
        node.height,
        x + INDENT,
        y + node.height / 2 + BASELINE,
        escaped(&node.label),
    )
}

/// Makes a text printable and escapes it for XML.
fn escaped(text: &str) -> String {
    printable::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
