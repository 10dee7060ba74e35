//! Wraps lines between words for a terminal.

use git_handoff::model::printable::Color;

use super::Cell;

/// The indentation of continuation lines if the last column begins too far to the right.
const SET_IN: usize = 4;

/// A word with coloured parts, and the width of the space before it.
#[derive(Default)]
struct Word {
    space: usize,
    parts: Vec<(String, Option<Color>)>,
}

impl Word {
    fn width(&self) -> usize {
        self.parts.iter().map(|(text, _)| console::measure_text_width(text)).sum()
    }
}

/// Wraps a line to `width`. Continuation lines begin at `indent`, where the last column does, if
/// that leaves half of the width. A longer word stays whole.
pub(crate) fn lines(line: &Cell, width: usize, indent: usize) -> Vec<Cell> {
    if line.width() <= width || width == 0 {
        return vec![line.clone()];
    }
    let indent = if indent > 0 && indent <= width / 2 { indent } else { SET_IN };
    let (mut broken, mut current, mut used) = (Vec::new(), Cell::default(), 0);
    for word in words(line) {
        let wide = word.width();
        let mut space = word.space;
        if used > 0 && used + space + wide > width {
            broken.push(std::mem::take(&mut current));
            (space, used) = (indent, 0);
        }
        current = current.and(" ".repeat(space), None);
        used += space + wide;
        current = word.parts.into_iter().fold(current, |cell, (text, color)| cell.and(text, color));
    }
    broken.push(current);
    broken
}

/// Wraps plain text in the same way, with indented continuation lines.
pub(crate) fn text(line: &str, width: usize, indent: usize) -> Vec<String> {
    let broken = lines(&Cell::from(line), width, indent);
    broken.into_iter().map(|part| part.painted(false).as_str().to_owned()).collect()
}

/// Splits a line into words.
fn words(line: &Cell) -> Vec<Word> {
    let (mut words, mut word) = (Vec::new(), Word::default());
    for (text, color) in &line.0 {
        for piece in text.split_inclusive(' ') {
            let letters = piece.trim_end_matches(' ');
            if !letters.is_empty() {
                word.parts.push((letters.to_owned(), *color));
            }
            if letters.len() == piece.len() {
                continue;
            }
            if word.parts.is_empty() {
                word.space += 1;
            } else {
                words.push(std::mem::replace(&mut word, Word { space: 1, ..Word::default() }));
            }
        }
    }
    if !word.parts.is_empty() {
        words.push(word);
    }
    words
}

/// Truncates a text to a width at a word, with `…`. A single long word is cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let cut = console::truncate_str(text, width, "…");
    if cut.len() == text.len() && cut == text {
        return cut.into_owned();
    }
    let head = cut.trim_end_matches('…');
    let is_whole = text.get(head.len()..).is_some_and(|rest| rest.starts_with(' '));
    match head.rsplit_once(' ') {
        Some((whole, _)) if !is_whole => format!("{}…", whole.trim_end()),
        _ => cut.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(line: &str, width: usize, indent: usize) -> Vec<String> {
        text(line, width, indent)
    }

    #[test]
    fn lines_are_broken_between_words_and_set_in_below_the_last_column() {
        assert_eq!(broken("a  done  one two three", 80, 9), ["a  done  one two three"]);
        assert_eq!(broken("a  done  one two three", 18, 9), ["a  done  one two", "         three"]);
        // A column that begins too far to the right leaves no room below it.
        assert_eq!(broken("a  done  one two three", 17, 9), ["a  done  one two", "    three"]);
        assert_eq!(broken("a sha256:0123456789abcdef b", 10, 0), ["a", "    sha256:0123456789abcdef", "    b"]);
    }

    #[test]
    fn cut_text_ends_with_a_whole_word() {
        assert_eq!(cut("three words here", 80), "three words here");
        assert_eq!(cut("three words here", 14), "three words…");
        assert_eq!(cut("three words here", 12), "three words…");
        assert_eq!(cut("onewordonly", 5), "onew…");
    }
}
