//! Data of the rules in plain files: one entry a line below a `[section]` heading; `#` starts a
//! comment. Each file is parsed once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The words and phrases of the replay rules.
pub(super) static WORDS: LazyLock<Data> = LazyLock::new(|| Data::read_words(include_str!("data/words.txt")));
/// Patterns of names by form.
pub(super) static NAMES: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/names.txt")));
/// Patterns of credentials, with names.
pub(super) static CREDENTIALS: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/credentials.txt")));
/// Patterns of forbidden requests, and placeholders for their parts.
pub(super) static UNTRUSTED: LazyLock<Data> = LazyLock::new(|| Data::read(include_str!("data/untrusted.txt")));
/// Letters with their look-alikes.
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

    /// Parses a file with several words a line, separated by commas.
    fn read_words(text: &'static str) -> Self {
        let mut data = Self::read(text);
        for words in data.sections.values_mut() {
            *words = words.iter().flat_map(|line| line.split(',')).map(str::trim).collect();
            words.retain(|word| !word.is_empty());
        }
        data
    }

    /// Returns the entries of a section. The files are part of the program, so the section exists.
    pub(super) fn section(&self, name: &str) -> &[&'static str] {
        self.sections.get(name).expect("the file has the section")
    }

    /// Returns the entries of a section, split after the first word.
    pub(super) fn pairs(&self, name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.section(name)
            .iter()
            .map(|entry| entry.split_once(' ').expect("the entry is a word and what belongs to it"))
    }
}
