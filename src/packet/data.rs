//! What the rules go by, in plain files: one entry a line below the heading of its `[section]`; a line that begins with `#` is a
//! comment. Each file is read once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The word lists that `docs/reference/packet.md` repeats.
pub(super) static WORDS: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/words.txt")));
/// Phrases, and words that only one place asks for.
pub(super) static PHRASES: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/phrases.txt")));
/// What names something by its form: patterns.
pub(super) static NAMES: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/names.txt")));
/// What credentials look like: names with patterns.
pub(super) static CREDENTIALS: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/credentials.txt")));
/// What no packet may ask: patterns, and what stands for parts of them.
pub(super) static UNTRUSTED_PATTERNS: LazyLock<Data> =
    LazyLock::new(|| Data::read(include_str!("data/untrusted-patterns.txt")));
/// Orders in plain English, by kind: verbs, and what they are about.
pub(super) static UNTRUSTED_ORDERS: LazyLock<Data> =
    LazyLock::new(|| Data::read(include_str!("data/untrusted-orders.txt")));
/// What spares a passage that one of those patterns finds.
pub(super) static UNTRUSTED_WORDS: LazyLock<Data> =
    LazyLock::new(|| Data::read(include_str!("data/untrusted-words.txt")));
/// How people call the fields of a packet in notes.
pub(super) static NOTES: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/notes.txt")));
/// Letters, each with the code points of what looks like it.
pub(super) static LOOK_ALIKES: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/look-alikes.txt")));

/// The entries of a file, by section, in their order.
pub(super) struct Data {
    sections: BTreeMap<&'static str, Vec<&'static str>>,
}

impl Data {
    fn read(text: &'static str) -> Self {
        let mut sections: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut section = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(heading) => section = heading,
                None => sections.entry(section).or_default().push(line),
            }
        }
        Self { sections }
    }

    /// Returns the entries of a section. The files are part of the program, so one that is asked for is there.
    pub(super) fn section(&self, name: &str) -> &[&'static str] {
        self.sections.get(name).expect("the file has the section")
    }

    /// Returns the entries of a section whose first word is set apart from what follows.
    pub(super) fn pairs(&self, name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.section(name)
            .iter()
            .map(|entry| entry.split_once(' ').expect("the entry is a word and what belongs to it"))
    }

    /// Returns every section with its entries.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&'static str, &[&'static str])> {
        self.sections.iter().map(|(name, entries)| (*name, entries.as_slice()))
    }
}
