//! Searches for all shapes at once: first for keywords, then around each for the shapes that have
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

use super::rule::{Level, Rule};
use super::shapes;
use super::wide::Wide;

/// The maximum distance of a shape's start before its keyword.
const BEFORE: usize = 256;

/// The maximum distance of a shape's end after it.
pub(super) const AFTER: usize = 8 << 10;

/// All shapes and their keywords.
struct Shapes {
    rules: Vec<Rule>,
    words: AhoCorasick,
    /// The rules of each keyword.
    of: Vec<Vec<usize>>,
    /// The lowest certainty to search for.
    level: Level,
}

impl Shapes {
    fn up_to(level: Level) -> Self {
        let rules: Vec<Rule> = shapes::rules().into_iter().filter(|rule| rule.level <= level).collect();
        let mut by_word: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, rule) in rules.iter().enumerate() {
            for word in rule.words.iter().collect::<BTreeSet<_>>() {
                by_word.entry(word).or_default().push(at);
            }
        }
        let words = AhoCorasick::builder().ascii_case_insensitive(true).build(by_word.keys());
        let (words, of) = (words.expect("the words are few"), by_word.into_values().collect());
        Self { rules, words, of, level }
    }

    /// Returns the search for a certainty.
    fn get(level: Level) -> &'static Self {
        static SHAPES: [OnceLock<Shapes>; 3] = [const { OnceLock::new() }; 3];
        let shapes = SHAPES[level as usize].get_or_init(|| Self::up_to(level));
        debug_assert_eq!(shapes.level, level);
        shapes
    }
}

/// Adds every secret in a text with its rule, and those of its parts in UTF-16. In an open text,
/// omits a match at its end, which may continue.
pub(super) fn look(
    text: &[u8],
    level: Level,
    path: Option<&str>,
    open: bool,
    add: &mut dyn FnMut(Range<usize>, &'static Rule),
) {
    look_once(text, level, path, open, add);
    if text.contains(&0) {
        let wide = Wide::find(text);
        look_once(&wide.text, level, path, false, &mut |at, rule| {
            let at = wide.original(at);
            // The last character may lack its second byte.
            if !(open && at.end + 1 >= text.len()) {
                add(at, rule);
            }
        });
    }
}

fn look_once(
    text: &[u8],
    level: Level,
    path: Option<&str>,
    open: bool,
    add: &mut dyn FnMut(Range<usize>, &'static Rule),
) {
    if text.is_empty() {
        return;
    }
    let shapes = Shapes::get(level);
    let mut around: Vec<Vec<Range<usize>>> = vec![Vec::new(); shapes.rules.len()];
    for word in shapes.words.find_overlapping_iter(text) {
        for rule in &shapes.of[word.pattern().as_usize()] {
            let part = word.start().saturating_sub(BEFORE)..text.len().min(word.end() + AFTER);
            match around[*rule].last_mut() {
                Some(last) if part.start <= last.end => last.end = part.end.max(last.end),
                _ => around[*rule].push(part),
            }
        }
    }
    for (rule, parts) in shapes.rules.iter().zip(around) {
        for part in parts {
            rule.find(text, part, path, &mut |at| {
                if !(open && at.end == text.len()) {
                    add(at, rule);
                }
            });
        }
    }
}

/// Finds the secrets in a text, with their replacement names.
pub(super) fn find(text: &[u8], level: Level) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    look(text, level, None, false, &mut |at, rule| found.push((at, rule.label.as_str())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles_and_is_looked_for() {
        for rule in shapes::rules() {
            let exceptions = rule.exceptions.iter().flat_map(|one| one.patterns.iter().chain(&one.paths));
            for pattern in exceptions.chain(&rule.path).chain([&rule.pattern]) {
                pattern.try_compile().unwrap_or_else(|error| panic!("{}: {error}", rule.name));
            }
            assert!(!rule.words.is_empty() && rule.words.iter().all(|word| *word == word.to_ascii_lowercase()));
        }
    }
}
