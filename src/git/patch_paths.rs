//! Reads which paths a patch changes, and what it states of them before and after. Pure.
//!
//! Only the form that `git diff-tree -p --full-index --binary` writes is accepted, with or without
//! names of objects and renames. `git apply` accepts more: whatever it would skip or guess is
//! refused here, so that no change is overlooked.

use std::collections::BTreeMap;
use std::ops::Range;

use gix::bstr::{BString, ByteSlice as _};

use super::quoted_path;
use crate::model::digest::Oid;

/// A path before or after a patch, as the patch states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// There is no such path.
    Absent,
    /// There is one; a mode or object that the patch does not state is `None`.
    Present(Option<u32>, Option<Oid>),
}

/// A path that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path before the patch.
    pub old: Side,
    /// The path after the patch.
    pub new: Side,
}

/// The changed paths of a patch.
pub type Changes = BTreeMap<BString, Change>;

/// The part of a patch from one `diff --git` to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its bytes in the patch.
    pub bytes: Range<usize>,
    /// The changed paths.
    pub changes: Vec<(BString, Change)>,
    /// The path that it copies.
    pub copied_from: Option<BString>,
}

impl Section {
    /// Returns the paths whose files `git apply` reads.
    pub fn reads(&self) -> impl Iterator<Item = &BString> {
        let present = self.changes.iter().filter(|(_, change)| change.old != Side::Absent);
        present.map(|(path, _)| path).chain(&self.copied_from)
    }
}

/// A line that git does not write at its place, by its number from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of the patch is not as git writes it")]
pub struct Malformed(pub usize);

/// Returns the changed paths of a patch. Takes time in proportion to its size.
pub fn read(patch: &[u8]) -> Result<Changes, Malformed> {
    let mut changes = Changes::new();
    for (path, change) in sections(patch)?.into_iter().flat_map(|section| section.changes) {
        // A change of the type is a deletion and a creation.
        changes.entry(path).and_modify(|earlier| earlier.new = change.new.clone()).or_insert(change);
    }
    Ok(changes)
}

/// Returns the sections of a patch in order. Takes time in proportion to its size.
pub fn sections(patch: &[u8]) -> Result<Vec<Section>, Malformed> {
    let mut reader = Reader { sections: Vec::new(), open: None };
    let (mut number, mut at) = (0, 0);
    for line in patch.lines_with_terminator() {
        number += 1;
        reader.read(at, line.strip_suffix(b"\n").unwrap_or(line)).ok_or(Malformed(number))?;
        at += line.len();
    }
    reader.end_section(at).ok_or(Malformed(number))?;
    Ok(reader.sections)
}

struct Reader {
    sections: Vec<Section>,
    /// The section being read, and the position of its first byte.
    open: Option<(usize, OpenSection)>,
}

#[derive(Default)]
struct OpenSection {
    /// The name that both sides have in the first line, if they have one.
    name: Option<BString>,
    /// The names of the lines `---` and `+++`, but not `/dev/null`.
    labels: Vec<BString>,
    rename: [Option<BString>; 2],
    copy: [Option<BString>; 2],
    created: bool,
    deleted: bool,
    modes: [Option<u32>; 2],
    oids: [Option<Oid>; 2],
    part: Part,
}

#[derive(Default)]
enum Part {
    #[default]
    Header,
    /// The remaining old and new lines of the hunk.
    Hunk(u64, u64),
    Binary,
}

impl Reader {
    fn read(&mut self, at: usize, line: &[u8]) -> Option<()> {
        if let Some((_, section)) = &mut self.open
            && section.read_body(line)?
        {
            return Some(());
        }
        let names = line.strip_prefix(b"diff --git ")?;
        self.end_section(at)?;
        self.open = Some((at, OpenSection { name: both_names(names), ..OpenSection::default() }));
        Some(())
    }

    fn end_section(&mut self, at: usize) -> Option<()> {
        let Some((start, section)) = self.open.take() else { return Some(()) };
        if !matches!(section.part, Part::Header | Part::Hunk(0, 0) | Part::Binary) {
            return None;
        }
        let copied_from = section.copy[0].clone();
        self.sections.push(Section { bytes: start..at, changes: section.changes()?, copied_from });
        Some(())
    }
}

impl OpenSection {
    /// Reads a line after the first one. Returns false if the line begins another section, and
    /// `None` if git does not write it here.
    fn read_body(&mut self, line: &[u8]) -> Option<bool> {
        match &mut self.part {
            Part::Hunk(0, 0) if line.starts_with(b"\\ ") => return Some(true),
            Part::Hunk(0, 0) => {}
            Part::Hunk(old, new) => {
                let sides = match line.first() {
                    Some(b'+') => [0, 1],
                    Some(b'-') => [1, 0],
                    Some(b' ') | None => [1, 1],
                    Some(b'\\') => [0, 0],
                    _ => return None,
                };
                (*old, *new) = (old.checked_sub(sides[0])?, new.checked_sub(sides[1])?);
                return Some(true);
            }
            Part::Binary if line.starts_with(b"diff --git ") => return Some(false),
            Part::Binary => return is_binary(line).then_some(true),
            Part::Header => {
                if let Some(header) = self.read_header(line) {
                    return header.then_some(true);
                }
            }
        }
        if let Some(hunk) = line.strip_prefix(b"@@ -") {
            let (old, new) = hunk_lengths(hunk)?;
            self.part = Part::Hunk(old, new);
            return Some(true);
        }
        line.starts_with(b"diff --git ").then_some(false)
    }

    /// Reads a line of the header. Returns `None` if it is another line, and false if it is not
    /// as git writes it.
    fn read_header(&mut self, line: &[u8]) -> Option<bool> {
        let (word, value) = HEADERS.iter().find_map(|word| Some((*word, line.strip_prefix(word.as_bytes())?)))?;
        Some(self.set_header(word, value).is_some())
    }

    fn set_header(&mut self, word: &str, value: &[u8]) -> Option<()> {
        match word {
            "old mode " => self.modes[0] = Some(mode(value)?),
            "new mode " => self.modes[1] = Some(mode(value)?),
            "new file mode " => (self.created, self.modes[1]) = (true, Some(mode(value)?)),
            "deleted file mode " => (self.deleted, self.modes[0]) = (true, Some(mode(value)?)),
            "index " => {
                let mut fields = value.split_str(" ");
                let (old, new) = fields.next()?.split_once_str("..")?;
                self.oids = [oid(old), oid(new)];
                if let Some(both) = fields.next() {
                    self.modes = [Some(mode(both)?); 2];
                }
            }
            "--- " | "+++ " => {
                let (prefix, is_absent) = if word == "--- " { ("a/", self.created) } else { ("b/", self.deleted) };
                // Git ends a name that has spaces with a tab.
                let value = value.strip_suffix(b"\t").unwrap_or(value);
                if value != b"/dev/null" {
                    self.labels.push(quoted_path::unquoted(value).strip_prefix(prefix.as_bytes())?.into());
                } else if !is_absent {
                    return None;
                }
            }
            "rename from " => self.rename[0] = Some(quoted_path::unquoted(value)),
            "rename to " => self.rename[1] = Some(quoted_path::unquoted(value)),
            "copy from " => self.copy[0] = Some(quoted_path::unquoted(value)),
            "copy to " => self.copy[1] = Some(quoted_path::unquoted(value)),
            "GIT binary patch" => {
                self.part = Part::Binary;
                return value.is_empty().then_some(());
            }
            _ => {}
        }
        Some(())
    }

    /// Returns the changed paths, or `None` if the names of the section contradict one another.
    fn changes(self) -> Option<Vec<(BString, Change)>> {
        let [old, new] = [0, 1].map(|at| Side::Present(self.modes[at].or(self.modes[1 - at]), self.oids[at]));
        let is_labelled = |names: &[&BString]| self.labels.iter().all(|label| names.contains(&label));
        let [_, copied_to] = self.copy;
        match (self.rename, copied_to, self.name) {
            ([Some(from), Some(to)], None, _) => {
                let is_known = is_labelled(&[&from, &to]);
                let gone = Change { old, new: Side::Absent };
                is_known.then(|| vec![(from, gone), (to, Change { old: Side::Absent, new })])
            }
            // The source of a copy stays as it was.
            ([None, None], Some(to), _) => Some(vec![(to, Change { old: Side::Absent, new })]),
            ([None, None], None, Some(name)) => {
                let is_known = is_labelled(&[&name]);
                let old = if self.created { Side::Absent } else { old };
                let new = if self.deleted { Side::Absent } else { new };
                is_known.then(|| vec![(name, Change { old, new })])
            }
            _ => None,
        }
    }
}

/// The beginnings of the lines of a header. The last one ends it.
const HEADERS: [&str; 14] = [
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "index ",
    "--- ",
    "+++ ",
    "GIT binary patch",
];

/// Returns the name in `a/<name> b/<name>`, if it is the same twice; each may be quoted.
fn both_names(names: &[u8]) -> Option<BString> {
    let (old, new): (BString, BString) = if let Some((old, rest)) = quoted_path::read(names) {
        (old, quoted_path::unquoted(rest.strip_prefix(b" ")?))
    } else {
        let (old, new) = names.split_at_checked(names.len() / 2)?;
        (old.into(), new.strip_prefix(b" ")?.into())
    };
    let (old, new) = (old.strip_prefix(b"a/")?, new.strip_prefix(b"b/")?);
    (old == new && !old.is_empty()).then(|| old.into())
}

fn mode(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(text.to_str().ok()?, 8).ok()
}

fn oid(text: &[u8]) -> Option<Oid> {
    text.to_str().ok()?.parse().ok()
}

/// Parses `7,2 +9,3 @@ …` into the numbers of old and new lines.
fn hunk_lengths(hunk: &[u8]) -> Option<(u64, u64)> {
    let (old, rest) = hunk.split_once_str(" +")?;
    let (new, _) = rest.split_once_str(" @@")?;
    Some((read_length(old)?, read_length(new)?))
}

fn read_length(range: &[u8]) -> Option<u64> {
    let (start, length) = range.split_once_str(",").unwrap_or((range, b"1"));
    read_number(start).and(read_number(length))
}

fn read_number(digits: &[u8]) -> Option<u64> {
    let is_number = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    digits.to_str().ok().filter(|_| is_number)?.parse().ok()
}

/// Returns true for a line after `GIT binary patch`: a length, base85 data, or nothing.
fn is_binary(line: &[u8]) -> bool {
    let length = line.strip_prefix(b"literal ").or_else(|| line.strip_prefix(b"delta "));
    match length {
        Some(digits) => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        None => line.iter().all(u8::is_ascii_graphic),
    }
}
