//! Makes foreign text safe to print: the only code that knows which characters control a terminal,
//! are invisible, or change the direction of text. `src/report/verify.mjs` has the same list.
//!
//! Names, reasons, actors, summaries and program output are untrusted. Control characters affect a
//! terminal, and directional or invisible characters mislead readers, so none is printed. Emoji
//! lose their selectors by this, and their sequences are split.

use std::fmt::Write as _;

/// Truncates a text to 1,000 characters.
pub fn cut(text: String) -> String {
    cut_to(text, 1000)
}

/// Truncates a text to a number of characters.
pub fn cut_to(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

/// Returns true for invisible characters.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true for characters that are never printed, and are escaped in exact quotations: control
/// characters except newline and tab, line and paragraph separators, and invisible ones.
pub fn is_unprintable(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' => true,
        c => c.is_control() || is_invisible(c),
    }
}

/// Makes a text of several lines printable, with U+FFFD for forbidden characters.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// Makes a text printable on one line, because a newline could imitate another message.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) || c == '\n' { '\u{fffd}' } else { c }).collect()
}

/// Makes a text printable on one line with escapes, for quotations.
pub fn written_out(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            c if is_unprintable(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// Truncates a text to a number of bytes, with a mark.
pub fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Escapes forbidden characters in JSON, where they occur only in strings.
pub fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(safe, "\\u{unit:04x}").expect("writing to a string does not fail");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Printable lines with our own colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painted(String);

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Success.
    Green,
    /// Failure.
    Red,
    /// Attention, unfinished work.
    Yellow,
    /// Text to paste.
    Cyan,
    /// Unchecked or irrelevant.
    Dim,
}

impl Painted {
    /// Adds words.
    #[must_use]
    pub fn words(mut self, words: &str) -> Self {
        self.0.push_str(&line(words));
        self
    }

    /// Adds words in an optional colour.
    #[must_use]
    pub fn painted(mut self, words: &str, color: Option<Color>) -> Self {
        let Some(color) = color.filter(|_| !words.is_empty()) else { return self.words(words) };
        let code = match color {
            Color::Green => "32",
            Color::Red => "31",
            Color::Yellow => "33",
            Color::Cyan => "36",
            Color::Dim => "2",
        };
        write!(self.0, "\x1b[{code}m{}\x1b[0m", line(words)).expect("writing to a string does not fail");
        self
    }

    /// Ends the line.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.0.push('\n');
        self
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Painted {
    fn from(words: &str) -> Self {
        Self::default().words(words)
    }
}

impl From<&String> for Painted {
    fn from(words: &String) -> Self {
        Self::from(words.as_str())
    }
}

impl From<Painted> for String {
    fn from(painted: Painted) -> Self {
        painted.0
    }
}
/// Lists the first names, and how many more there are.
pub fn first_of<S: std::borrow::Borrow<str>>(names: &[S], most: usize) -> String {
    let (first, more) = names.split_at(names.len().min(most));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    first.join(", ") + &more
}
