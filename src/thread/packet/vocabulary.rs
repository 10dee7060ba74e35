//! The word lists of the replay rules.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::data::{PHRASES, WORDS};

/// A word list: its section in `data/words.txt` and in the documentation.
pub(super) type List = &'static str;

pub(super) const STOP: List = "stop words";
pub(super) const VAGUE: List = "vague verbs";
pub(super) const GENERIC: List = "generic words";
pub(super) const START: List = "start verbs";
pub(super) const MAKING: List = "making verbs";
pub(super) const DONE: List = "done words";
pub(super) const PARTIAL: List = "part words";
pub(super) const DETERMINER: List = "determiners";
pub(super) const VERB: List = "action verbs";
pub(super) const BLOCKING: List = "blocking words";
pub(super) const NO_NAME: List = "no names";

/// Returns the stem of a word, which `migrate`, `migrating` and `migrations` share.
pub(super) fn stem(word: &str) -> String {
    static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));
    static IRREGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| PHRASES.pairs("irregular forms").collect());
    let word = word.to_lowercase().replace('\u{2019}', "'");
    let word = word.strip_suffix("'s").unwrap_or(&word);
    ENGLISH.stem(IRREGULAR.get(word).copied().unwrap_or(word)).into_owned()
}

/// Returns true if a word with this stem is in a list.
pub(super) fn on(list: List, stemmed: &str) -> bool {
    static STEMS: LazyLock<HashMap<&str, HashSet<String>>> = LazyLock::new(|| {
        let stems = |words: &[&str]| words.iter().map(|word| stem(word)).collect();
        WORDS.sections().map(|(name, words)| (name, stems(words))).collect()
    });
    STEMS[list].contains(stemmed)
}

/// Returns true if a text means "none".
pub(super) fn is_none(text: &str) -> bool {
    PHRASES.section("none").contains(&bare(text).as_str())
}

/// Returns true if a text is a placeholder.
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
