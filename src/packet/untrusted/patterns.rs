//! U1 to U5: the patterns, and what spares a passage; and what makes an order of a quotation.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::packet::data::{UNTRUSTED_PATTERNS, UNTRUSTED_WORDS};

/// The rules, in the order of their findings.
const RULES: [&str; 5] = ["U1", "U2", "U3", "U4", "U5"];

/// What stands for a part of the patterns; each may hold those behind it.
const PARTS: [&str; 9] = ["FILL", "GUARD", "SECRET", "FILE", "VARIABLE", "DOES", "POINTS", "QUOTED", "READER"];

/// The section of what makes an order of a quotation.
const HANDS_OVER: &str = "hands-over";

/// One rule.
struct Rule {
    id: &'static str,
    /// Over plain text.
    patterns: Vec<Regex>,
    /// Words right behind a match that make it mean something else.
    tails: &'static [&'static str],
}

impl Rule {
    fn read(id: &'static str) -> Self {
        Self { tails: UNTRUSTED_WORDS.section(&format!("{id} tails")), ..Self::without_tails(id) }
    }

    fn without_tails(id: &'static str) -> Self {
        let patterns = UNTRUSTED_PATTERNS.section(id).iter().map(|pattern| compiled(pattern)).collect();
        Self { id, patterns, tails: &[] }
    }
}

fn compiled(pattern: &str) -> Regex {
    let fill = |pattern: String, part: &&str| pattern.replace(part, UNTRUSTED_PATTERNS.section(part)[0]);
    let pattern = PARTS.iter().fold(pattern.to_owned(), fill);
    Regex::new(&pattern).expect("a test compiles every pattern")
}

/// How many words before a passage are looked at.
const BEFORE: usize = 5;

/// Returns the passages of a plain text that a rule is about, in the order of the rules.
pub(super) fn matches(plain: &str) -> Vec<(&'static str, Range<usize>)> {
    static READ: LazyLock<[Rule; 5]> = LazyLock::new(|| RULES.map(Rule::read));
    let mut found = Vec::new();
    for rule in READ.iter() {
        found.extend(first(rule, plain).map(|range| (rule.id, range)));
    }
    found
}

/// Returns whether a plain text tells its reader to do what is quoted there or elsewhere.
pub(super) fn hands_over(plain: &str) -> bool {
    static READ: LazyLock<Rule> = LazyLock::new(|| Rule::without_tails(HANDS_OVER));
    first(&READ, plain).is_some()
}

fn first(rule: &Rule, plain: &str) -> Option<Range<usize>> {
    let mut all = rule.patterns.iter().flat_map(|pattern| pattern.find_iter(plain)).map(|found| found.range());
    all.find(|range| !is_spared(plain, range, rule))
}

fn is_spared(plain: &str, range: &Range<usize>, rule: &Rule) -> bool {
    let tail = plain[range.end..].trim_start_matches(' ');
    let next = tail.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
    // Only a word that directly follows changes what the last one means.
    if plain[range.end..].starts_with(' ') && rule.tails.contains(&next) {
        return true;
    }
    // What is copied from, or shown as, an example holds nothing.
    if words_of("examples").iter().any(|ending| plain[range.end..].starts_with(ending)) {
        return true;
    }
    let mut from = range.start.saturating_sub(160);
    while !plain.is_char_boundary(from) {
        from -= 1;
    }
    let before = &plain[from..range.start];
    let clause = before.rsplit(['.', ';', ':', '!', '?', ',', '(', '\n']).next().unwrap_or_default();
    let words: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    let another = words_of("another");
    let own_clause = words.iter().rposition(|word| another.contains(word)).map_or(0, |at| at + 1);
    // "is read", "was sent": what is told of, and asked of nobody.
    if words.last().is_some_and(|word| words_of("passive").contains(word)) {
        return true;
    }
    let words = &words[own_clause.max(words.len().saturating_sub(BEFORE))..];
    let any = |list| words.iter().any(|word| words_of(list).contains(&word.trim_matches(['`', '\'', '"', '*'])));
    let own = plain[range.clone()].starts_with("do not") || plain[range.clone()].starts_with("don");
    !own && (any("negations") || any("hazards")) && !any("undone")
}

fn words_of(list: &str) -> &'static [&'static str] {
    UNTRUSTED_WORDS.section(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_patterns_that_compile_and_every_section_is_a_rule_or_a_part() {
        for rule in RULES.map(Rule::read) {
            assert!(!rule.patterns.is_empty(), "{} has no patterns", rule.id);
            let parts = |pattern: &Regex| PARTS.iter().any(|part| pattern.as_str().contains(part));
            assert!(!rule.patterns.iter().any(parts), "a part of a pattern of {} is not filled in", rule.id);
        }
        for (section, entries) in UNTRUSTED_PATTERNS.sections() {
            let part = PARTS.contains(&section);
            assert!(part || RULES.contains(&section) || section == HANDS_OVER, "no rule reads [{section}]");
            assert!(!part || entries.len() == 1, "[{section}] is more than one pattern");
        }
    }
}
