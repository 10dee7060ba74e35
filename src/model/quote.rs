//! Shell quoting, for commands that users paste.

use std::fmt::Write as _;

use super::printable::is_written_out;

/// Quotes a word for a POSIX shell, if necessary.
///
/// Names come from untrusted plans: without quotes, one could run a command.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().any(|c| is_written_out(c) || c == '\n') {
        return byte_for_byte(word);
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a word with `$'…'`, so that nothing in it is invisible or controls the terminal.
fn byte_for_byte(word: &str) -> String {
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_written_out(c) || c == '\n' => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::printable::is_unprintable;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in ["plain", "a b", "it's", "$(x)", "a\u{202e}b", "\u{1b}]0;x\u{7}'\\n7", "\u{9b}1\u{200b}é"] {
            let line = format!("printf %s {}", quoted(word));
            assert!(!line.chars().any(is_unprintable), "{line}");
            let said = std::process::Command::new("bash").args(["-c", &line]).output().expect("there is a shell");
            assert_eq!(String::from_utf8_lossy(&said.stdout), word);
        }
    }
}
