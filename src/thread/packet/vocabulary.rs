//! The word lists of the replay rules, and the comparison of words.

use super::data::WORDS;

/// A word list: its section in `data/words.txt`.
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
pub(super) const LEAD: List = "lead words";
pub(super) const UNIT: List = "units";

/// The minimum length of a common beginning.
const COMMON: usize = 5;

/// The maximum number of letters of the shorter word behind a common beginning.
const BEHIND: usize = 2;

/// Returns a word in lower case, without a possessive ending.
pub(super) fn plain(word: &str) -> String {
    let word = word.to_lowercase().replace('\u{2019}', "'");
    word.strip_suffix("'s").unwrap_or(&word).to_owned()
}

/// Returns true if a plain word is in a list, with or without a final "s".
pub(super) fn on(list: List, word: &str) -> bool {
    let words = WORDS.section(list);
    words.contains(&word) || words.contains(&singular(word))
}

/// Returns true if two plain words are forms of one: `migrate` and `migration`, `user` and `users`.
///
/// Ordinary words are if they have a long enough beginning in common; names must be equal.
pub(super) fn same(one: &str, other: &str) -> bool {
    if one.chars().next() != other.chars().next() {
        return false;
    }
    if !is_alphabetic(one) || !is_alphabetic(other) {
        return one == other;
    }
    let (one, other) = (singular(one), singular(other));
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    one == other || (common >= COMMON && one.chars().count().min(other.chars().count()) <= common + BEHIND)
}

fn is_alphabetic(word: &str) -> bool {
    word.chars().all(char::is_alphabetic)
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// Returns true if a text means "none".
pub(super) fn is_none(text: &str) -> bool {
    WORDS.section("none").contains(&bare(text).as_str())
}

/// Returns true if a text is a placeholder.
pub(super) fn is_placeholder(text: &str) -> bool {
    let bare = bare(text);
    WORDS.section("placeholders").contains(&bare.as_str()) || bare.is_empty()
}

fn bare(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let inner = text.trim_matches(|c: char| matches!(c, '<' | '>' | '[' | ']' | '(' | ')' | '"' | '\''));
    let short = inner.trim_end_matches(['.', '!', ',', ';', ':']).trim();
    if short.is_empty() { inner.trim().to_owned() } else { short.to_owned() }
}
