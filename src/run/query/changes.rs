//! Counts the changes of a patch by file.

use gix::bstr::ByteSlice as _;

use crate::git::quoted_path;

/// The changes of a patch to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChange {
    /// The path, after the patch.
    pub path: String,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
}

/// Returns the changed files of a patch as git writes it, in its order. Binary files have no lines.
pub fn read(patch: &[u8]) -> Vec<FileChange> {
    let mut files: Vec<FileChange> = Vec::new();
    // The remaining old and new lines of the hunk.
    let mut left = (0u64, 0u64);
    for line in patch.lines() {
        if left == (0, 0) {
            if let Some(names) = line.strip_prefix(b"diff --git ") {
                files.push(FileChange { path: path(names), ..FileChange::default() });
            } else if let Some(hunk) = line.strip_prefix(b"@@ -") {
                let (old, new, _) = hunk_ranges(hunk);
                left = (old, new);
            }
            continue;
        }
        let Some(file) = files.last_mut() else { break };
        match line.first() {
            Some(b'+') => {
                left.1 = left.1.saturating_sub(1);
                file.added += 1;
            }
            Some(b'-') => {
                left.0 = left.0.saturating_sub(1);
                file.removed += 1;
            }
            Some(b'\\') => {}
            _ => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
        }
    }
    files
}

/// Parses the path of `a/<path> b/<path>`; either may be quoted.
fn path(names: &[u8]) -> String {
    let unquoted = match quoted_path::read(names) {
        Some((path, _)) => path,
        // Both paths are equal, so each has half of the text beside the space.
        None => names[..names.len() / 2].into(),
    };
    unquoted.strip_prefix(b"a/").unwrap_or(&unquoted).to_str_lossy().into_owned()
}

/// Parses the rest of a hunk's line, `7,2 +9,3 @@ …`: the numbers of old and new lines and the
/// first new line number. A number that cannot be read is 0.
pub(crate) fn hunk_ranges(hunk: &[u8]) -> (u64, u64, u64) {
    let text = hunk.to_str_lossy();
    let mut words = text.split(' ');
    let (old, new) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let first = new.trim_start_matches('+').split(',').next().and_then(|first| first.parse().ok());
    (count_lines(old), count_lines(new), first.unwrap_or(0))
}

/// Returns the second number of `7,2`, which is 1 if it is left out.
fn count_lines(range: &str) -> u64 {
    range.split_once(',').map_or(1, |(_, count)| count.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_file() {
        let patch = b"diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\n+++ b/a b.txt\n@@ -1,2 +1,3 @@ x\n one\n-two\n+--- a/no\n+three\n\
            \\ No newline at end of file\n@@ -9 +10 @@\n-x\n+y\ndiff --git \"a/t\\303\\244\" \"b/t\\303\\244\"\nnew file mode 100644\nGIT binary patch\n\
            literal 3\nKcmYdfU}8\n\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-diff --git a/x b/x\n-\n";
        let file = |path: &str, added, removed| FileChange { path: path.to_owned(), added, removed };
        assert_eq!(read(patch), [file("a b.txt", 3, 2), file("tä", 0, 0), file("gone", 0, 2)]);
        assert_eq!(read(b""), []);
    }
}
