//! Normalises a text: lower case, no accents, no look-alikes, no invisible characters, single
//! spaces and line ends; with a map to the original.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::model::printable::is_invisible;
use crate::thread::packet::data::LOOK_ALIKES;

/// A normalised text.
pub(super) struct Plain {
    /// The text.
    pub(super) text: String,
    /// For each byte, the position of its original character.
    origins: Vec<usize>,
}

impl Plain {
    /// Maps a range to the original.
    pub(super) fn original(&self, range: Range<usize>, text: &str) -> Range<usize> {
        let start = self.origins.get(range.start).copied().unwrap_or(text.len());
        let last = self.origins.get(range.end.saturating_sub(1)).copied().unwrap_or(start);
        let end = text[last..].chars().next().map_or(text.len(), |c| last + c.len_utf8());
        start..end.max(start)
    }
}

/// Returns the normalised forms: without invisible characters and, if there are any, with spaces in
/// their place.
pub(super) fn variants(text: &str) -> Vec<Plain> {
    let mut variants = vec![plain(text, false)];
    if text.chars().any(is_invisible) {
        variants.push(plain(text, true));
    }
    variants
}

/// Returns true for characters that make readers see another text: directions and tags.
pub(super) fn steers_reading(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0001}'..='\u{e007f}')
}

fn plain(text: &str, gaps: bool) -> Plain {
    let mut plain = Plain { text: String::with_capacity(text.len()), origins: Vec::with_capacity(text.len()) };
    for (at, c) in text.char_indices() {
        if let Some(hidden) = tag(c) {
            push(&mut plain, hidden.to_ascii_lowercase(), at);
        } else if is_invisible(c) {
            if gaps {
                push(&mut plain, ' ', at);
            }
        } else if c.is_ascii() {
            push(&mut plain, c.to_ascii_lowercase(), at);
        } else {
            for part in std::iter::once(c).nfkd().filter(|part| !is_combining_mark(*part)) {
                part.to_lowercase().for_each(|lower| push(&mut plain, look_alike(lower), at));
            }
        }
    }
    plain
}

fn push(plain: &mut Plain, c: char, at: usize) {
    let c = match c {
        '\n' | '\r' => '\n',
        c if c.is_whitespace() || c.is_control() => ' ',
        c => c,
    };
    if matches!(c, ' ' | '\n') && plain.text.ends_with([' ', '\n']) {
        // A line end replaces spaces before it.
        if c == '\n' && plain.text.pop().is_some() {
            plain.text.push(c);
        }
        return;
    }
    plain.text.push(c);
    plain.origins.extend(std::iter::repeat_n(at, c.len_utf8()));
}

/// Returns the letter hidden in a tag character.
fn tag(c: char) -> Option<char> {
    let code = u32::from(c).checked_sub(0xe0000)?;
    (0x20..0x7f).contains(&code).then(|| char::from_u32(code)).flatten()
}

/// Returns the Latin letter or ASCII character that a character looks like.
fn look_alike(c: char) -> char {
    static LATIN: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
        LOOK_ALIKES
            .pairs("look-alikes")
            .flat_map(|(latin, others)| {
                others.split(' ').map(move |other| {
                    (
                        other
                            .strip_prefix("U+")
                            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                            .and_then(char::from_u32)
                            .expect("it is a code point"),
                        latin.chars().next().expect("an entry begins with a letter"),
                    )
                })
            })
            .collect()
    });
    LATIN.get(&c).copied().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_other_scripts_are_read_as_what_they_look_like() {
        assert_eq!(look_alike('\u{430}'), 'a');
        assert_eq!(look_alike('\u{2212}'), '-');
        assert_eq!(look_alike('\u{44d}'), '\u{44d}');
    }
}
