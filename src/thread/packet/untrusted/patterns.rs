//! The patterns of U1 to U8, and of requests to follow a quotation.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::plain::Plain;
use crate::thread::packet::data::UNTRUSTED;

/// The rules, in order of findings.
const RULES: [&str; 7] = ["U1", "U2", "U3", "U4", "U5", "U7", "U8"];

/// Placeholders in patterns; each may contain later ones.
const PARTS: [&str; 6] = ["RUN", "ASK", "ANY", "SECRET", "FILE", "PAPER"];

/// The section about requests to follow a quotation.
const FOLLOW: &str = "follow";

/// Returns the first match of each rule in a plain text, in the order of the rules.
pub(super) fn matches(plain: &Plain) -> Vec<(&'static str, Range<usize>)> {
    static READ: LazyLock<[Vec<Regex>; RULES.len()]> = LazyLock::new(|| RULES.map(compiled));
    RULES
        .into_iter()
        .zip(READ.iter())
        .filter_map(|(id, patterns)| Some((id, patterns.iter().find_map(|pattern| pattern.find(&plain.text))?.range())))
        .collect()
}

/// Returns true if a plain text tells its reader to follow a quotation.
pub(super) fn asks_to_follow(plain: &Plain) -> bool {
    static READ: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(FOLLOW));
    READ.iter().any(|pattern| pattern.is_match(&plain.text))
}

/// Compiles the patterns of a section. Their spaces match line ends, too.
fn compiled(section: &str) -> Vec<Regex> {
    let patterns = UNTRUSTED.section(section).iter().map(|pattern| format!("(?m){}", fill(pattern)));
    patterns.map(|pattern| Regex::new(&pattern).expect("a test compiles every pattern")).collect()
}

fn fill(pattern: &str) -> String {
    PARTS
        .iter()
        .fold((*pattern).to_owned(), |pattern, part| pattern.replace(part, UNTRUSTED.section(part)[0]))
        .replace(' ', r"\s")
}
