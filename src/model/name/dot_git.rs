//! The spellings that one file system or another takes for `.git`.

/// Whether `segment` names a git directory on Linux, on macOS (HFS+ ignores some code points) or on
/// Windows (NTFS ignores trailing dots and spaces, and has short names and streams).
///
/// The rules are git's own (`core.protectHFS`, `core.protectNTFS`), applied everywhere and together.
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
