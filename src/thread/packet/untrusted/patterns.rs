//! The patterns of U1 to U8, of requests to follow a quotation, and of mere pointers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::orders::orders;
use super::plain::Plain;
use super::spare::is_spared;
use crate::thread::packet::data::UNTRUSTED_PATTERNS;

/// The rules, in order of findings.
const RULES: [&str; 7] = ["U1", "U2", "U3", "U4", "U5", "U7", "U8"];

/// Placeholders in patterns; each may contain later ones.
const PARTS: [&str; 10] =
    ["FILL", "GUARD", "SECRET", "FILE", "VARIABLE", "DOES", "POINTS", "QUOTED", "READER", "PAPER"];

/// The section about requests to follow a quotation.
const HANDS_OVER: &str = "hands-over";

/// The section about mere pointers.
const POINTERS: &str = "pointers";

/// A rule.
struct Rule {
    id: &'static str,
    /// Applied to plain text.
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

/// Returns the matching passages of a plain text, in the order of the rules.
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

/// Returns true if a plain text tells its reader to follow a quotation.
pub(super) fn hands_over(plain: &Plain) -> bool {
    static READ: LazyLock<Rule> = LazyLock::new(|| Rule::read(HANDS_OVER));
    first(&READ, plain).is_some()
}

fn first(rule: &Rule, plain: &Plain) -> Option<Range<usize>> {
    let mut all = rule.patterns.iter().flat_map(|pattern| pattern.find_iter(&plain.text)).map(|found| found.range());
    all.find(|range| !is_spared(plain, range, rule.id))
}

/// Returns a line that is only a pointer to other content: the whole text, or a list entry.
///
/// The heading of a part is not such a line.
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
