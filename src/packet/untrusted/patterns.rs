//! The patterns of U1 to U8, what makes an order of a quotation, and what is nothing but a pointer.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::orders::orders;
use super::plain::Plain;
use super::spare::is_spared;
use crate::packet::data::UNTRUSTED_PATTERNS;

/// The rules, in the order of their findings.
const RULES: [&str; 7] = ["U1", "U2", "U3", "U4", "U5", "U7", "U8"];

/// What stands for a part of the patterns; each may hold those behind it.
const PARTS: [&str; 10] =
    ["FILL", "GUARD", "SECRET", "FILE", "VARIABLE", "DOES", "POINTS", "QUOTED", "READER", "PAPER"];

/// The section of what makes an order of a quotation.
const HANDS_OVER: &str = "hands-over";

/// The section of texts that are nothing but a pointer.
const POINTERS: &str = "pointers";

/// One rule.
struct Rule {
    id: &'static str,
    /// Over plain text.
    patterns: Vec<Regex>,
}

impl Rule {
    fn read(id: &'static str) -> Self {
        let patterns = UNTRUSTED_PATTERNS.section(id).iter().map(|pattern| compiled(pattern)).collect();
        Self { id, patterns }
    }
}

fn compiled(pattern: &str) -> Regex {
    let fill = |pattern: String, part: &&str| pattern.replace(part, UNTRUSTED_PATTERNS.section(part)[0]);
    let pattern = PARTS.iter().fold(pattern.to_owned(), fill);
    Regex::new(&pattern).expect("a test compiles every pattern")
}

/// Returns the passages of a plain text that a rule is about, in the order of the rules.
pub(super) fn matches(plain: &Plain) -> Vec<(&'static str, Range<usize>)> {
    static READ: LazyLock<[Rule; 7]> = LazyLock::new(|| RULES.map(Rule::read));
    let mut found = Vec::new();
    for rule in READ.iter() {
        found.extend(first(rule, plain).map(|range| (rule.id, range)));
    }
    let more = orders(plain);
    found.extend(more.into_iter().filter(|(rule, _)| found.iter().all(|(known, _)| known != rule)).collect::<Vec<_>>());
    found
}

/// Returns whether a plain text tells its reader to do what is quoted there or elsewhere.
pub(super) fn hands_over(plain: &Plain) -> bool {
    static READ: LazyLock<Rule> = LazyLock::new(|| Rule::read(HANDS_OVER));
    first(&READ, plain).is_some()
}

fn first(rule: &Rule, plain: &Plain) -> Option<Range<usize>> {
    let mut all = rule.patterns.iter().flat_map(|pattern| pattern.find_iter(&plain.text)).map(|found| found.range());
    all.find(|range| !is_spared(plain, range, rule.id))
}

/// Returns the line that is nothing but a pointer to other content: all of a text, or an entry of a list in it.
///
/// The heading of a note's part is no line of it.
pub(super) fn pointer(plain_lines: &[(usize, String)]) -> Option<usize> {
    static READ: LazyLock<Vec<Regex>> =
        LazyLock::new(|| UNTRUSTED_PATTERNS.section(POINTERS).iter().map(|pattern| compiled(pattern)).collect());
    let is_pointer = |text: &str| READ.iter().any(|pattern| pattern.is_match(text));
    let said: Vec<&(usize, String)> =
        plain_lines.iter().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let entry = |line: &str| {
        let text = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        ["- ", "* ", "+ ", ". ", ") "].iter().find_map(|mark| text.strip_prefix(mark)).map(str::to_owned)
    };
    match said.as_slice() {
        [(number, line)] if is_pointer(&entry(line).unwrap_or_else(|| line.clone())) => Some(*number),
        lines => {
            lines.iter().find(|(_, line)| entry(line).is_some_and(|text| is_pointer(&text))).map(|(number, _)| *number)
        }
    }
}
