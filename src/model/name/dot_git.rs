//! Spellings that some file system treats as `.git`.

/// Returns true if `segment` names a git directory on Linux, macOS (HFS+ ignores some code points)
/// or Windows (NTFS ignores trailing dots and spaces, and has short names and streams).
///
/// The rules are those of git's `core.protectHFS` and `core.protectNTFS`, always combined.
pub fn is_dot_git(segment: &str) -> bool {
    let visible: String = segment.chars().filter(|c| !hfs_ignores(*c)).collect();
    let stem = visible.split([':', '\\']).next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']);
    stem.eq_ignore_ascii_case(".git") || stem.eq_ignore_ascii_case("git~1")
}

fn hfs_ignores(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}
