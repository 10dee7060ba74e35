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
    let said = printable::line(&credential::without(&lines.join(" | ")));
    match said.char_indices().rev().nth(LETTERS) {
        Some((at, letter)) => format!("…{}", &said[at + letter.len_utf8()..]),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_check_said_last_is_repeated_in_bounds() {
        assert_eq!(last_lines(b""), "");
        assert_eq!(last_lines(b"1\n2\n\n3\n 4 \n5\n6\n"), "2 | 3 | 4 | 5 | 6");
        let long = last_lines("ä".repeat(4_000).as_bytes());
        assert_eq!((long.chars().count(), long.starts_with('…')), (LETTERS + 1, true));
        assert!(!last_lines(b"a\x1b[31mb\r\nc").contains('\x1b'));
        assert_eq!(last_lines(b"\x1b[1;31merror\x1b[0m: no\n\x1b]0;title\x07end\x1b(B\n"), "error: no | end");
        let token = format!("token ghp_{}", "a1B2".repeat(9));
        assert!(last_lines(token.as_bytes()).contains("[redacted:"), "{}", last_lines(token.as_bytes()));
    }
}
