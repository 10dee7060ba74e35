//! Shell quoting, for commands that users paste.

use std::fmt::Write as _;

use super::printable::is_unprintable;

/// Quotes a word for a POSIX shell, if necessary.
///
/// Names come from untrusted plans: without quotes, one could run a command.
pub fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c)) {
        return word.to_owned();
    }
    if word.chars().any(|c| is_unprintable(c) || c == '\n') {
        return byte_for_byte(word);
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes the words of a command and joins them.
pub fn quoted_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word with `$'…'`, so that nothing in it is invisible or controls the terminal.
fn byte_for_byte(word: &str) -> String {
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_unprintable(c) || c == '\n' => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    write!(quoted, "\\{byte:03o}").expect("writing to a string does not fail");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
