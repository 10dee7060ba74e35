//! Which words are on which of the lists that the rules of replay go by.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::data::{PHRASES, WORDS};
use super::stem::stem;

/// A list of words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    /// Words that carry no meaning of their own.
    Stop,
    /// Verbs that do not say what to do.
    Vague,
    /// Nouns and adjectives that do not say what to do it to.
    Generic,
    /// Verbs that begin something.
    Start,
    /// Verbs that make something: which one is used does not matter.
    Create,
    /// Words that say that something is done.
    Done,
    /// Words that say that something is done in part.
    Partial,
    /// Words that say that something is done once more, or that another one is meant.
    Again,
    /// Words that begin the circumstances of an action.
    Preposition,
    /// Words that begin no action.
    Determiner,
    /// Other verbs that begin an action.
    Verb,
    /// Words that say that something waits for something.
    Blocked,
    /// Abbreviations, days and months, which name nothing although they are written like names.
    NoName,
}

impl List {
    /// Returns the name of the list in the documentation, which is that of its section in the data.
    fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop words",
            Self::Vague => "vague verbs",
            Self::Generic => "generic words",
            Self::Start => "start verbs",
            Self::Create => "making verbs",
            Self::Done => "done words",
            Self::Partial => "part words",
            Self::Again => "again words",
            Self::Preposition => "prepositions",
            Self::Determiner => "determiners",
            Self::Verb => "action verbs",
            Self::Blocked => "blocking words",
            Self::NoName => "no names",
        }
    }
}

/// Returns whether a word, of which the stem is given, is on a list.
pub(super) fn on(list: List, stemmed: &str) -> bool {
    static STEMS: LazyLock<HashMap<&str, HashSet<String>>> = LazyLock::new(|| {
        let stems = |words: &[&str]| words.iter().map(|word| stem(word)).collect();
        WORDS.sections().map(|(name, words)| (name, stems(words))).collect()
    });
    STEMS.get(list.name()).is_some_and(|stems| stems.contains(stemmed))
}

/// Returns whether a text says that there is none.
pub(super) fn is_none(text: &str) -> bool {
    PHRASES.section("none").contains(&bare(text).as_str())
}

/// Returns whether a text stands for what nobody wrote yet.
pub(super) fn is_placeholder(text: &str) -> bool {
    let bare = bare(text);
    PHRASES.section("placeholders").contains(&bare.as_str()) || bare.is_empty()
}

fn bare(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let inner = text.trim_matches(|c: char| matches!(c, '<' | '>' | '[' | ']' | '(' | ')' | '"' | '\''));
    let short = inner.trim_end_matches(['.', '!', ',', ';', ':']).trim();
    if short.is_empty() { inner.trim().to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: [List; 13] = [
        List::Stop,
        List::Vague,
        List::Generic,
        List::Start,
        List::Create,
        List::Done,
        List::Partial,
        List::Again,
        List::Preposition,
        List::Determiner,
        List::Verb,
        List::Blocked,
        List::NoName,
    ];

    #[test]
    fn the_documentation_has_every_word() {
        let text = include_str!("../../docs/packet.md");
        for (name, words) in WORDS.sections() {
            let line = format!("- **{name}**: {}\n", words.join(" "));
            assert!(text.contains(&line), "docs/packet.md has other {name}: {line}");
        }
    }

    #[test]
    fn every_list_is_a_section_and_every_section_a_list() {
        let lists: Vec<&str> = LISTS.iter().map(|list| list.name()).collect();
        assert!(lists.iter().all(|list| !WORDS.section(list).is_empty()));
        assert_eq!(WORDS.sections().count(), lists.len());
    }
}
