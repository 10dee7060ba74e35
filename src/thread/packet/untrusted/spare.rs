//! Exempts passages that match a pattern but request nothing.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::plain::Plain;
use crate::thread::packet::data::{UNTRUSTED_ORDERS, UNTRUSTED_WORDS};

/// The number of words before a passage to consider.
const BEFORE: usize = 5;

/// The distance before a passage to consider, in bytes.
const REACH: usize = 160;

/// The option of a dry run.
const DRY_RUN: &str = "--dry-run";

fn words_of(list: &str) -> &'static [&'static str] {
    UNTRUSTED_WORDS.section(list)
}

/// Returns true if a passage of a plain text requests nothing.
pub(super) fn is_spared(text: &Plain, range: &Range<usize>, rule: &str) -> bool {
    let plain = text.text.as_str();
    let end = range.start + plain[range.clone()].trim_end().len();
    let (passage, behind) = (&plain[range.start..end], &plain[end..]);
    if follows_tail(behind, rule) || words_of("examples").iter().any(|ending| behind.starts_with(ending)) {
        return true;
    }
    let mut from = range.start.saturating_sub(REACH).max(text.line_start(range.start));
    while !plain.is_char_boundary(from) {
        from -= 1;
    }
    let before = &plain[from..range.start];
    let clause = before.rsplit(['.', ';', ':', '!', '?', ',', '(', '\n']).next().unwrap_or_default();
    let words: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    // "is read", "was sent": a report.
    if words.last().is_some_and(|word| words_of("passive").contains(word)) {
        return true;
    }
    let another = words_of("another");
    let own_clause = words.iter().rposition(|word| another.contains(word)).map_or(0, |at| at + 1);
    let words = &words[own_clause.max(words.len().saturating_sub(BEFORE))..];
    let words: Vec<&str> = words.iter().map(|word| word.trim_matches(['`', '\'', '"', '*'])).collect();
    let any = |list| words.iter().any(|word| words_of(list).contains(word));
    let own = passage.starts_with("do not") || passage.starts_with("don");
    if !own && (any("negations") || any("hazards")) && !is_undone(&words) {
        return true;
    }
    // Another person or program will do it.
    let is_asked = |word: &&str| UNTRUSTED_ORDERS.section("asked").contains(word);
    if words.contains(&"will") && !words.iter().any(is_asked) {
        return true;
    }
    is_command(passage) && (is_mentioned(&words) || is_refused(behind))
}

/// Returns true if the next word changes the meaning of the last one.
fn follows_tail(behind: &str, rule: &str) -> bool {
    let tails = UNTRUSTED_WORDS.sections().find(|(section, _)| section.strip_suffix(" tails") == Some(rule));
    let next = behind.trim_start_matches(' ').split(|c: char| !c.is_alphanumeric() && c != '-').next();
    behind.starts_with(' ') && tails.zip(next).is_some_and(|((_, words), next)| words.contains(&next))
}

/// Returns true if a word reverses a negation, or addresses the reader.
fn is_undone(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let is_only = *word == "only" && (at == 0 || words[at - 1] != "not");
        words_of("undone").contains(word) && !is_only
    })
}

/// Returns true if a passage is a command or flag, which texts also mention.
fn is_command(passage: &str) -> bool {
    let passage = passage.trim_matches(['`', '\'', '"', '(', ' ']);
    let first = passage.split(' ').next().unwrap_or_default();
    passage.starts_with('-') || words_of("tools").contains(&first)
}

/// Returns true if a command is the object of a report or of writing: "ran it with", "document
/// why".
fn is_mentioned(before: &[&str]) -> bool {
    let is_told = |word: &str| words_of("reports").contains(&word) || words_of("mentions").contains(&word);
    let is_link = |word: &str| {
        let names = word.starts_with(['#', '@']) || word.starts_with(|c: char| c.is_ascii_digit());
        word.is_empty() || names || words_of("links").contains(&word)
    };
    let found = before.iter().rev().find(|word| is_told(word) || !is_link(word));
    found.is_some_and(|word| is_told(word))
}

/// Returns true if a refusal, result or dry run follows a command.
fn is_refused(behind: &str) -> bool {
    static REFUSED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(words_of("refusals")[0]).expect("a test compiles the pattern"));
    let rest = behind.split(['`', ';', '!', '?']).next().unwrap_or_default();
    let near = rest.char_indices().nth(40).map_or(rest, |(at, _)| &rest[..at]);
    near.contains(DRY_RUN) || REFUSED.is_match(behind)
}
