//! Excerpts of program output for reasons.

use super::ansi;
use super::credential;
use super::printable;

/// The maximum number of lines and characters of an excerpt.
const LINES: usize = 5;
const LETTERS: usize = 400;

/// Returns the last lines of output on one line, printable and without credentials.
pub fn last_lines(output: &[u8]) -> String {
    let text = ansi::without(&String::from_utf8_lossy(output));
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    let line = printable::line(&credential::redact(&lines.join(" | ")));
    match line.char_indices().rev().nth(LETTERS) {
        Some((at, letter)) => format!("…{}", &line[at + letter.len_utf8()..]),
        None => line,
    }
}
