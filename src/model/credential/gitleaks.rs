//! The rules of gitleaks as rules of ours.
//!
//! Their patterns are Go's RE2. Three things are read differently by the crate `regex`, and are written out for it by
//! [`translated`]: a brace that begins no repetition is itself, and so are a bracket and the doubled signs `&&`, `--`, `~~` inside
//! of brackets. That `\w`, `\b` and letter case know of ASCII alone is said where patterns are compiled. Rules that look at a path
//! and at no content are none of ours.

use std::sync::Arc;

use serde::Deserialize;

use super::rule::{Exception, Level, Pattern, Rule, Target};

/// The file, as it is published.
const FILE: &str = include_str!("gitleaks.toml");

/// Rules that are wrong too often to refuse somebody's work for, or that take a word for a secret; measured, see
/// `docs/threat-model.md`.
const LIKELY: [&str; 0] = [];

/// Rules that find more of what is none than of what is: nothing is done by them.
const UNUSED: [&str; 1] = ["generic-api-key"];

#[derive(Deserialize)]
struct File {
    allowlist: Allowlist,
    rules: Vec<Written>,
}

#[derive(Deserialize)]
struct Written {
    id: String,
    regex: Option<String>,
    path: Option<String>,
    #[serde(rename = "secretGroup")]
    secret_group: Option<usize>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<Allowlist>,
}

#[derive(Deserialize)]
struct Allowlist {
    condition: Option<String>,
    #[serde(rename = "regexTarget")]
    regex_target: Option<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
}

/// What every SSH signature of git's by an ed25519 key has after the key, in Base64 and lower case. With what one key in some hundreds
/// ends with, it looks like a token of Square's.
const SIGNATURE: &str = "2dpdaaaaaaaaaagc2hhntey";

/// Returns the rules, and the exceptions that hold for all.
///
/// The paths that gitleaks never looks into are not among these: it passes over images and archives to save time, and here
/// nothing is stored unseen.
pub(super) fn rules() -> Vec<Rule> {
    let file: File = basic_toml::from_str(FILE).expect("a test reads the file");
    let of_all = [
        Exception { paths: Vec::new(), ..exception(&file.allowlist) },
        Exception { stop_words: vec![SIGNATURE.to_owned()], ..Exception::default() },
    ]
    .map(Arc::new);
    let mut rules = Vec::new();
    for written in file.rules {
        let Some(regex) = written.regex.filter(|_| !UNUSED.contains(&written.id.as_str())) else { continue };
        let own = written.allowlists.iter().map(exception).map(Arc::new);
        let exceptions = own.chain(of_all.iter().cloned()).collect();
        let level = if LIKELY.contains(&written.id.as_str()) { Level::Likely } else { Level::Sure };
        rules.push(Rule {
            label: written.id.clone(),
            name: written.id,
            level,
            pattern: pattern(&regex),
            group: written.secret_group.filter(|group| *group > 0),
            entropy: written.entropy,
            words: written.keywords.iter().map(|word| word.to_ascii_lowercase()).collect(),
            path: written.path.as_deref().map(pattern),
            exceptions,
            holds: |_| true,
        });
    }
    rules
}

fn exception(written: &Allowlist) -> Exception {
    let target = match written.regex_target.as_deref() {
        Some("match") => Target::Match,
        Some("line") => Target::Line,
        _ => Target::Secret,
    };
    let all = written.condition.as_deref().is_some_and(|word| matches!(word, "AND" | "and" | "&&"));
    let patterns = |sources: &[String]| sources.iter().map(|source| pattern(source)).collect();
    Exception {
        all,
        target,
        patterns: patterns(&written.regexes),
        stop_words: written.stopwords.iter().map(|word| word.to_ascii_lowercase()).collect(),
        paths: patterns(&written.paths),
    }
}

fn pattern(source: &str) -> Pattern {
    Pattern::foreign(source.to_owned(), translated)
}

/// Returns a pattern of Go's as one of ours that means the same.
fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.char_indices().peekable();
    // Where the brackets began that are open.
    let mut class: Option<usize> = None;
    while let Some((at, c)) = chars.next() {
        let rest = &source[at..];
        match (c, class) {
            ('\\', _) => {
                out.push(c);
                out.extend(chars.next().map(|(_, escaped)| escaped));
                continue;
            }
            ('[', None) => {
                class = Some(at);
                out.push(c);
                // A bracket that closes is itself at the beginning.
                if chars.peek().is_some_and(|(_, next)| *next == '^') {
                    out.extend(chars.next().map(|(_, next)| next));
                }
                if chars.peek().is_some_and(|(_, next)| *next == ']') {
                    out.push('\\');
                    out.extend(chars.next().map(|(_, next)| next));
                }
                continue;
            }
            ('[', Some(_)) if rest.starts_with("[:") => {
                let end = rest.find(":]").map_or(rest.len(), |end| end + 2);
                out.push_str(&rest[..end]);
                while chars.peek().is_some_and(|(next, _)| *next < at + end) {
                    chars.next();
                }
                continue;
            }
            (']', Some(_)) => class = None,
            ('[', Some(_)) => out.push('\\'),
            ('&' | '-' | '~', Some(_)) if out.ends_with(c) && !out.ends_with(&format!("\\{c}")) => out.push('\\'),
            ('{', None) if !is_repetition(rest) => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns whether a brace begins `{2}`, `{2,}` or `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest[1..].split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_that_looks_at_content_compiles() {
        let file: File = basic_toml::from_str(FILE).expect("the file is TOML");
        let content: Vec<&str> = file.rules.iter().filter(|rule| rule.regex.is_some()).map(|r| r.id.as_str()).collect();
        // One rule looks at a path alone.
        assert_eq!((file.rules.len(), content.len()), (222, 221));
        let rules = rules();
        assert_eq!(rules.len(), content.len() - UNUSED.len(), "none is dropped");
        for name in LIKELY.iter().chain(&UNUSED) {
            assert!(content.contains(name), "{name}");
        }
        for rule in &rules {
            let exceptions = rule.exceptions.iter().flat_map(|one| one.patterns.iter().chain(&one.paths));
            for pattern in exceptions.chain(&rule.path).chain([&rule.pattern]) {
                pattern.try_compile().unwrap_or_else(|error| panic!("{}: {error}", rule.name));
            }
            assert!(!rule.words.is_empty(), "{} is looked for by a word", rule.name);
        }
    }

    #[test]
    fn what_go_reads_differently_is_written_out() {
        for (go, ours) in [
            (r"^\${(?:[A-Z_]+)}$", r"^\$\{(?:[A-Z_]+)}$"),
            (r"a{2}b{3,}c{4,5}", r"a{2}b{3,}c{4,5}"),
            (r"[[:alnum:]]{14}", r"[[:alnum:]]{14}"),
            (r"[a[b]", r"[a\[b]"),
            (r"[]a]", r"[\]a]"),
            (r"[^]a]", r"[^\]a]"),
            (r"[!-&&]", r"[!-&\&]"),
            (r"[\[{]", r"[\[{]"),
            (r"\{\{[ \t]*", r"\{\{[ \t]*"),
        ] {
            assert_eq!(translated(go), ours);
            pattern(go).try_compile().expect("it compiles");
        }
    }
}
