//! Words as a shell reads them, for commands that people paste.

/// Returns a word as a POSIX shell must be given it; one that is safe as it is stays so.
///
/// Names come from whoever wrote a plan: pasted without quotes, one could run a command.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
