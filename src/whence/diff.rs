//! Parses a patch into added and removed lines by file. Pure.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BString, ByteSlice as _};

use crate::git::quoted_path;
use crate::model::digest::{Digest, Hasher};
use crate::run::query::changes::hunk_ranges;

/// A patch's changes to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The distinct added lines.
    pub(crate) added: BTreeSet<Vec<u8>>,
    /// The numbers of the added lines in the new file.
    pub(crate) places: Vec<u64>,
    /// The distinct removed lines.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// The new blob of a binary file.
    pub(crate) binary: Option<String>,
    /// Whether it deletes the file.
    pub(crate) gone: bool,
    /// Whether it creates the file.
    pub(crate) new: bool,
}

/// A patch's changes.
#[derive(Clone, Debug)]
pub(crate) struct Diff {
    /// The changes by file.
    pub(crate) files: BTreeMap<BString, FileDiff>,
    /// The digest of the patch without positions: line numbers, hunk headings and names of text
    /// blobs.
    pub(crate) verbatim: Digest,
}

impl Diff {
    /// Parses the output of `git diff-tree -p --binary --full-index --no-renames`.
    pub(crate) fn read(patch: &[u8]) -> Self {
        let mut reader = Reader::default();
        for line in patch.lines_with_terminator() {
            reader.take(line);
        }
        reader.end();
        Self { files: reader.files, verbatim: reader.hasher.finish().0 }
    }
}

#[derive(Default)]
struct Reader {
    files: BTreeMap<BString, FileDiff>,
    now: Option<(BString, FileDiff)>,
    /// The blob names of the file, until it is known whether the file is binary.
    blobs: Vec<u8>,
    /// The remaining old and new lines of the hunk.
    left: (u64, u64),
    /// The next new line number.
    next: u64,
    hasher: Hasher,
}

impl Reader {
    fn take(&mut self, line: &[u8]) {
        if self.left != (0, 0) || line.starts_with(b"\\") {
            return self.content(line);
        }
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            self.end();
            self.now = Some((path(names.trim_end_with(|c| c == '\n')), FileDiff::default()));
            self.hasher.update(line);
        } else if let Some(blobs) = line.strip_prefix(b"index ") {
            self.blobs = blobs.to_vec();
        } else if let Some(hunk) = line.strip_prefix(b"@@ -") {
            let (old, new, next) = hunk_ranges(hunk);
            (self.left, self.next) = ((old, new), next);
            self.hasher.update(b"@@\n");
        } else if line.starts_with(b"GIT binary patch") {
            let blobs = self.blobs.to_str_lossy().into_owned();
            let made =
                blobs.split_once("..").map(|(_, new)| new.split_whitespace().next().unwrap_or_default().to_owned());
            if let Some((_, file)) = &mut self.now {
                file.binary = made;
            }
            self.hasher.update(blobs.as_bytes());
            self.hasher.update(line);
        } else {
            if let Some((_, file)) = &mut self.now {
                file.gone |= line.starts_with(b"deleted file mode ");
                file.new |= line.starts_with(b"new file mode ");
            }
            self.hasher.update(line);
        }
    }

    /// Reads a line of a hunk.
    fn content(&mut self, line: &[u8]) {
        self.hasher.update(line);
        let Some((first, text)) = line.split_first() else { return };
        let (old, new) = (&mut self.left.0, &mut self.left.1);
        let Some((_, file)) = &mut self.now else { return };
        let text = text.strip_suffix(b"\n").unwrap_or(text).to_vec();
        match first {
            b'+' => {
                *new = new.saturating_sub(1);
                file.added.insert(text);
                file.places.push(self.next);
                self.next = self.next.saturating_add(1);
            }
            b'-' => {
                *old = old.saturating_sub(1);
                file.removed.insert(text);
            }
            b'\\' => {}
            _ => {
                (*old, *new) = (old.saturating_sub(1), new.saturating_sub(1));
                self.next = self.next.saturating_add(1);
            }
        }
    }

    fn end(&mut self) {
        self.files.extend(self.now.take());
        self.blobs.clear();
        self.left = (0, 0);
    }
}

/// Parses the path of `a/<path> b/<path>`; either may be quoted.
fn path(names: &[u8]) -> BString {
    let name = match quoted_path::read(names) {
        Some((path, _)) => path,
        // Both paths are equal, so each has half of the text beside the space.
        None => names[..names.len().saturating_sub(1) / 2].into(),
    };
    name.strip_prefix(b"a/").map(BString::from).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/x y.txt b/x y.txt\nindex 1..2 100644\n--- a/x y.txt\t\n+++ b/x y.txt\t\n\
        @@ -10,3 +20,4 @@ fn\n one\n--- two\n+++ zwei\n+@@ -1 +1 @@\n three\n\\ No newline at end of file\n\
        diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100755\nindex 0..abc\nGIT binary patch\nliteral 1\nIc$@\n\n";

    #[test]
    fn lines_are_told_by_file() {
        let diff = Diff::read(PATCH.as_bytes());
        let text = &diff.files[&BString::from("x y.txt")];
        assert_eq!((&text.added, &text.removed), (&to_set(&["++ zwei", "@@ -1 +1 @@"]), &to_set(&["-- two"])));
        assert_eq!(diff.files[&BString::from("ü")].binary.as_deref(), Some("abc"));
        assert_eq!(diff.files.len(), 2);
    }

    fn to_set(lines: &[&str]) -> BTreeSet<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect::<BTreeSet<_>>()
    }

    #[test]
    fn only_where_it_stands_does_not_count() {
        let verbatim = |patch: &str| Diff::read(patch.as_bytes()).verbatim;
        let same = PATCH.replace("-10,3 +20,4 @@ fn", "-110,3 +7,4 @@").replace("index 1..2", "index 8..9");
        assert_eq!(verbatim(PATCH), verbatim(&same));
        for (from, to) in [(" one", "  one"), ("index 0..abc", "index 0..abd"), ("100755", "100644"), ("+@@", "-@@")] {
            assert_ne!(verbatim(PATCH), verbatim(&PATCH.replace(from, to)), "{from}");
        }
    }
}
