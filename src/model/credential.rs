//! What credentials look like, by named shapes. Pure.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// A name, a pattern whose first group, if it has one, is the secret part, and whether the secret must hold a digit, which
/// tells keys from words.
const SHAPES: [(&str, &str, bool); 8] = [
    ("github-token", r"\b(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})", false),
    ("aws-access-key-id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", false),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", true),
    ("api-key", r"\bsk-[A-Za-z0-9_-]{20,}", true),
    ("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}", false),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+", false),
    (
        "authorization",
        r#"(?i)\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:bearer|basic|token)[ \t]+([^ \t\r\n"']+)"#,
        false,
    ),
    ("url-credentials", r#"\b[A-Za-z][A-Za-z0-9+.-]*://([^ \t\r\n/:@"']*:[^ \t\r\n/@"']+)@"#, false),
];

/// Finds every credential by its shape: where it stands, and the name of the shape. Those of two shapes may overlap.
pub fn find(text: &[u8]) -> Vec<(Range<usize>, &'static str)> {
    static COMPILED: OnceLock<Vec<Regex>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| SHAPES.iter().map(|(_, pattern, _)| compiled(pattern)).collect());
    let mut found = Vec::new();
    for ((name, _, digit), pattern) in SHAPES.iter().zip(compiled) {
        for captures in pattern.captures_iter(text) {
            let Some(secret) = captures.get(captures.len() - 1) else { continue };
            if !digit || secret.as_bytes().iter().any(u8::is_ascii_digit) {
                found.push((secret.range(), *name));
            }
        }
    }
    found
}

fn compiled(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("the patterns in this file are valid")
}
