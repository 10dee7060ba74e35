//! The lines of a file about keys that people wrote, where no line may be read by half.

/// Returns the lines that are neither empty nor comments, each with its number; an error is the number of a line that another
/// program, or a person, would divide otherwise.
///
/// Lines end with LF or CR LF. A mark of byte order may begin the text. Elsewhere the mark is refused, and so are a CR alone, any
/// other control character and Unicode's own line ends, in comments too: what follows one could be meant as a line.
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

/// Whether what stands behind a key, which is read as a comment, could be meant as another key or as more about this one.
pub(super) fn names_a_key(comment: &str) -> bool {
    let folded = comment.to_ascii_lowercase();
    let said = ["sha256:", "sha512:", "md5:", "since="].iter().any(|word| folded.contains(word));
    // Every public key in OpenSSH's form begins so: with the length of its type.
    said || comment.contains("AAAA")
}
