//! The lines of a key file written by people. No line may be ambiguous.

/// Returns the lines that are neither empty nor comments, each with its number. Returns the number
/// of the first line that another program would split differently.
///
/// Lines end with LF or CR LF. A byte order mark may begin the text. Elsewhere the mark is an
/// error, as are a bare CR, other control characters and Unicode line separators. This also holds
/// in comments, because the rest could be meant as a line.
pub(super) fn lines(text: &str) -> Result<Vec<(usize, &str)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let ended = line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let line = ended.unwrap_or(line);
        if line.contains(divides) {
            return Err(at + 1);
        }
        let line = line.trim_matches([' ', '\t']);
        if !line.is_empty() && !line.starts_with('#') {
            found.push((at + 1, line));
        }
    }
    Ok(found)
}

fn divides(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// Returns true if a comment after a key looks like another key or an option.
pub(super) fn names_a_key(comment: &str) -> bool {
    let folded = comment.to_ascii_lowercase();
    let has_option = ["sha256:", "sha512:", "md5:", "since="].iter().any(|word| folded.contains(word));
    // Every OpenSSH public key begins with these letters, which encode the length of its type.
    has_option || comment.contains("AAAA")
}
