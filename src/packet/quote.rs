//! Other people's words made safe to print.

use crate::model::credential;
use crate::model::printable::written_out;

/// The longest quotation, in characters.
const LONGEST: usize = 120;

/// Returns a text in quotation marks: cut, its credentials taken out, nothing in it that steers a terminal or hides.
pub fn quoted(text: &str) -> String {
    // Cut first, generously: looking for credentials in all of a long text would cost more than what is shown is worth.
    let near: String = text.chars().take(4 * LONGEST).collect();
    let clean = credential::without(&near);
    let mut shown: String = clean.chars().take(LONGEST).collect();
    if clean.chars().count() > LONGEST || near.len() < text.len() {
        shown.push('…');
    }
    let marked = shown.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", written_out(&marked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_quoted_steers_a_terminal() {
        assert_eq!(quoted("a\u{1b}[2Jb\nc\u{202e}d\u{200b}e"), r#""a\u{1b}[2Jb\nc\u{202e}d\u{200b}e""#);
        assert_eq!(quoted("\u{9b}31m\u{7}"), r#""\u{9b}31m\u{7}""#);
        assert_eq!(quoted(r#"say "\n" twice"#), r#""say \"\\n\" twice""#);
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn nothing_quoted_gives_a_credential_away() {
        let token = format!("use ghp_{} now", "A1b2".repeat(9));
        assert_eq!(quoted(&token), r#""use [redacted:github-token] now""#);
    }
}
