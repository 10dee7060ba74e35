//! Names of items and groups in pictures, without characters that could mislead.

use std::fmt::Write as _;

use crate::model::printable;

/// Returns true for letters that are written from right to left, which would reorder a line.
fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}

/// Escapes a name for a line of text: invisible characters, and those that change its direction.
pub fn plain(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for c in printable::written_out(name).chars() {
        if is_right_to_left(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Escapes a name to printable ASCII and cuts it to `most` columns.
pub fn label(name: &str, most: usize) -> String {
    cut(&ascii(name), most)
}

/// Returns the label of a group: its name and the number of its items, which is never cut off.
pub fn counted_label(name: &str, count: usize, most: usize) -> String {
    let number = format!(" ({count})");
    cut(&ascii(name), most.saturating_sub(number.len())) + &number
}

fn ascii(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            ' '..='~' => safe.push(c),
            c => write!(safe, "{}", c.escape_unicode()).expect("writing to a string does not fail"),
        }
    }
    safe
}

/// Cuts ASCII to a number of columns, with `...` at its end.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most { text.to_owned() } else { format!("{}...", &text[..most.saturating_sub(3)]) }
}
