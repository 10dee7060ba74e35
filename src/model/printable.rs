//! What may be printed: the one place that knows which characters steer a terminal, hide, or turn a text round.
//!
//! Names, reasons, actors, summaries and what other programs say are other people's words. A terminal obeys control characters, a
//! reader is led astray by directions and by what is not seen; none of them is ever printed. Emoji that are joined of several
//! (by U+200D) fall apart for it.

use std::fmt::Write as _;

/// Cuts a text that is longer than anybody reads, after 1,000 letters: what an entry says of itself may be as long as an entry.
pub fn cut(text: String) -> String {
    cut_to(text, 1000)
}

/// Cuts a text after so many letters.
pub fn cut_to(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

/// Returns whether a character is seen nowhere, or only in what it does to others.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character is never printed: control characters but line ends and tabs, separators of lines and paragraphs,
/// and what is invisible but the selectors that make a sign an emoji.
pub fn is_unprintable(c: char) -> bool {
    match c {
        '\n' | '\t' | '\u{fe00}'..='\u{fe0f}' => false,
        '\u{2028}' | '\u{2029}' => true,
        c => c.is_control() || is_invisible(c),
    }
}

/// Returns whether a character is written out where a text is quoted exactly: what is never printed, and what is not seen.
pub fn is_written_out(c: char) -> bool {
    is_unprintable(c) || is_invisible(c)
}

/// Returns a text of one or more lines as it may be printed, with U+FFFD for what may not.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns a text as it may be printed on one line: a line end could begin a line that nobody said.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) || c == '\n' { '\u{fffd}' } else { c }).collect()
}

/// Returns a text on one line with what may not be printed written out, for quotations.
pub fn written_out(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            c if is_written_out(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns the beginning of a text, of at most so many bytes, and a sign where it was longer.
pub fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Returns JSON that means the same, and that may be printed: such characters stand only in strings, where they can be escaped.
pub fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_written_out(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(safe, "\\u{unit:04x}").expect("writing to a string does not fail");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Lines that may be printed as they are: the words in them are clean, and the colours are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painted(String);

/// A colour of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// For what holds, and what is done.
    Green,
    /// For what does not, and what failed.
    Red,
    /// For what somebody should see, and what is still to be done.
    Yellow,
    /// For what can be pasted.
    Cyan,
    /// For what could not be checked, and what does not count.
    Dim,
}

impl Painted {
    /// Adds words to the line.
    #[must_use]
    pub fn words(mut self, words: &str) -> Self {
        self.0.push_str(&line(words));
        self
    }

    /// Adds words in a colour, if there are any and there is one.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that no terminal may see.
    fn hostile() -> Vec<char> {
        let all = (0..=0x0010_ffff).filter_map(char::from_u32);
        all.filter(|c| {
            matches!(*c as u32, 0..=8 | 0xb..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e
                | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f)
        })
        .collect()
    }

    #[test]
    fn nothing_hostile_is_left() {
        for c in hostile() {
            let text = format!("a{c}b");
            assert_eq!(line(&text), "a\u{fffd}b", "{c:?}");
            assert_eq!(lines(&text), "a\u{fffd}b", "{c:?}");
            assert!(!written_out(&text).contains(c) && !json(&text).contains(c), "{c:?}");
        }
        assert_eq!((line("a\nb"), lines("a\nb\tc")), ("a\u{fffd}b".to_owned(), "a\nb\tc".to_owned()));
    }

    #[test]
    fn what_people_write_stays() {
        for text in ["naïve — über 10 €", "שלום עולם", "مرحبا", "日本語", "✓ ✗ ─ ▶ ·", "❤\u{fe0f}", "a\u{301}"]
        {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn json_means_the_same() {
        let text: String = hostile().into_iter().chain("\"\\\n\tä𝄞\u{e0041}".chars()).collect();
        let value = serde_json::json!({ text.clone(): [text] });
        let printed = json(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).expect("it is JSON"), value);
        assert!(!printed.chars().any(is_unprintable));
    }

    #[test]
    fn colours_are_ours_alone() {
        let painted = Painted::default().painted("x\x1b[31m", Some(Color::Green)).words("\x1b[0m\ny").end();
        assert_eq!(painted.as_str(), "\x1b[32mx\u{fffd}[31m\x1b[0m\u{fffd}[0m\u{fffd}y\n");
        assert_eq!(Painted::default().painted("", Some(Color::Red)).as_str(), "", "no words, no colour");
    }
}
