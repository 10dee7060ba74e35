//! Writes XML. Pure.

use std::fmt::Write as _;

use crate::model::printable;

/// The text in place of a character that XML 1.0 cannot have.
const REPLACEMENT: char = '\u{fffd}';

/// An element, with its attributes and children in order.
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    pub(super) fn attribute(mut self, name: &'static str, value: &str) -> Self {
        self.attributes.push((name, value.to_owned()));
        self
    }

    pub(super) fn child(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        self.children.push(Node::Text(text.to_owned()));
        self
    }

    /// Returns a document with this root.
    pub(super) fn document(&self) -> String {
        let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        write!(out, "{indent}<{}", self.name).expect("writing to a string does not fail");
        for (name, value) in &self.attributes {
            write!(out, " {name}=\"{}\"", escaped(value, true)).expect("writing to a string does not fail");
        }
        if self.children.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push('>');
        let elements = self.children.iter().any(|child| matches!(child, Node::Element(_)));
        if elements {
            out.push('\n');
        }
        for child in &self.children {
            match child {
                Node::Element(element) => element.write(out, depth + 1),
                Node::Text(text) => out.push_str(&escaped(text, false)),
            }
        }
        if elements {
            out.push_str(&indent);
        }
        writeln!(out, "</{}>", self.name).expect("writing to a string does not fail");
    }
}

/// Formats milliseconds as seconds.
pub(super) fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// Escapes a text or the value of an attribute, and replaces characters that XML 1.0 cannot have.
fn escaped(text: &str, attribute: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' if attribute => escaped.push_str("&quot;"),
            // Readers would turn them into spaces or line feeds.
            '\t' | '\n' if attribute => write!(escaped, "&#{};", u32::from(c)).expect("a string takes it"),
            '\r' => escaped.push_str("&#13;"),
            '\t' | '\n' => escaped.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push(REPLACEMENT),
            // A terminal would act on them.
            c if printable::is_unprintable(c) => write!(escaped, "&#{};", u32::from(c)).expect("a string takes it"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped_or_replaced() {
        let text = "a<b>&\"\t\r\n\0\u{1b}\u{fffe}\u{9b}ü]]>";
        let document = Element::new("e").attribute("a", text).child(Element::new("t").text(text)).document();
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <e a=\"a&lt;b&gt;&amp;&quot;&#9;&#13;&#10;\u{fffd}\u{fffd}\u{fffd}&#155;ü]]&gt;\">\n  \
            <t>a&lt;b&gt;&amp;\"\t&#13;\n\u{fffd}\u{fffd}\u{fffd}&#155;ü]]&gt;</t>\n</e>\n";
        assert_eq!(document, expected);
    }

    #[test]
    fn times_have_three_places() {
        assert_eq!([0, 7, 61_050].map(seconds), ["0.000", "0.007", "61.050"]);
    }
}
