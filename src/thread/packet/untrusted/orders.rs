//! Orders in plain English: a verb in the form of a request, and its object in the same clause.
//!
//! `data/untrusted-orders.txt` has the kinds, verbs and objects. Only requests count: "delete the
//! database", "you should delete …", "start by deleting …", but not "the job deletes …" or "users
//! can delete …".

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Match, Regex};

use super::plain::Plain;
use super::spare::is_spared;
use crate::thread::packet::data::UNTRUSTED_ORDERS;

/// The kinds of orders with their rules.
const KINDS: [(&str, &str); 9] = [
    ("U1", "bypass"),
    ("U1", "weaken"),
    ("U2", "grant"),
    ("U4", "delete"),
    ("U4", "discard"),
    ("U4", "force"),
    ("U5", "override"),
    ("U7", "publish"),
    ("U8", "obey"),
];

/// The kind whose verbs need no object.
const FORCE: &str = "force";

/// The kinds that name who gets a right, where something is published, or the file of the rules.
const WIDE: [&str; 3] = ["grant", "publish", "override"];

/// The maximum number of words between a verb and its object.
const BETWEEN: usize = 6;

/// Punctuation around words, and the part of it that does not end a clause.
const SIGNS: &str = r#"[`'"*_.,:;!?()\[\]{}<>|]*"#;
const QUOTES: &str = r#"[`'"*_()\[\]{}<>|]*"#;

/// The orders of one kind.
struct Orders {
    rule: &'static str,
    /// Whether the object must not follow a word such as `from`.
    is_narrow: bool,
    pattern: Regex,
}

static ORDERS: LazyLock<Vec<Orders>> = LazyLock::new(|| {
    let orders = |(rule, kind): (&'static str, &str)| {
        let verbs = list(&format!("verbs {kind}")).iter().flat_map(|verb| forms(verb));
        let verbs = verbs.map(|verb| phrase(verb.split(' ').map(regex::escape))).collect::<Vec<_>>().join("|");
        let about = if kind == FORCE {
            String::new()
        } else {
            let objects = list(&format!("objects {kind}")).iter();
            let objects =
                objects.map(|object| phrase(object.split(' ').map(with_plural))).collect::<Vec<_>>().join("|");
            format!("(?P<between>(?: [^ ]*[^ .,;:!?]){{0,{BETWEEN}}}?) {SIGNS}(?:{objects})")
        };
        let pattern = format!("(?:^| ){SIGNS}(?P<order>(?P<verb>{verbs}){QUOTES}{about}){SIGNS}(?: |$)");
        let pattern = Regex::new(&pattern).expect("a test compiles every pattern");
        Orders { rule, is_narrow: !WIDE.contains(&kind), pattern }
    };
    KINDS.into_iter().map(orders).collect()
});

/// Returns a verb and its possible gerunds: `skipping` and `disabling`.
fn forms(verb: &str) -> [String; 3] {
    let (head, rest) = verb.split_at(verb.find(' ').unwrap_or(verb.len()));
    let last = head.chars().next_back().map_or_else(String::new, String::from);
    let short = head.strip_suffix('e').unwrap_or(head);
    [verb.to_owned(), format!("{short}ing{rest}"), format!("{head}{last}ing{rest}")]
}

/// Returns a pattern of a word and its plural.
fn with_plural(word: &str) -> String {
    let plural = word.strip_suffix('y').map(|stem| format!("|{}ies", regex::escape(stem)));
    format!("(?:{}(?:s|es)?{})", regex::escape(word), plural.unwrap_or_default())
}

/// Returns a pattern of words that follow each other.
fn phrase(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(&format!("{QUOTES} {QUOTES}"))
}

fn list(section: &str) -> &'static [&'static str] {
    UNTRUSTED_ORDERS.section(section)
}

/// Returns true if a list has a word.
fn has(section: &str, word: &str) -> bool {
    list(section).contains(&word)
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| "`'\"*_.,:;!?()[]{}<>|".contains(c))
}

/// Returns the first order of each rule in a plain text.
pub(super) fn orders(plain: &Plain) -> Vec<(&'static str, Range<usize>)> {
    let mut found: Vec<(&'static str, Range<usize>)> = Vec::new();
    for orders in ORDERS.iter() {
        if found.iter().all(|(known, _)| *known != orders.rule) {
            found.extend(orders.first(plain).map(|range| (orders.rule, range)));
        }
    }
    found
}

impl Orders {
    /// Returns the first passage with a requested verb and its object.
    fn first(&self, plain: &Plain) -> Option<Range<usize>> {
        let mut from = 0;
        while let Some(found) = self.pattern.captures_at(&plain.text, from) {
            let (order, verb) = (found.name("order")?.range(), found.name("verb")?);
            from = verb.end();
            let between = found.name("between").map_or("", |between| between.as_str());
            let is_apart = self.is_narrow && between.split(' ').any(|word| has("narrow ends", bare(word)));
            // A separate line is a separate clause.
            let is_one = plain.line_start(order.end - 1) <= order.start;
            if is_one && !is_apart && asks(plain, &verb) && !is_spared(plain, &order, self.rule) {
                return Some(order);
            }
        }
        None
    }
}

/// Returns true if a verb is in the form of a request.
fn asks(plain: &Plain, verb: &Match<'_>) -> bool {
    let start = verb.start();
    if verb.as_str().split(' ').next().is_some_and(|head| head.ends_with("ing")) {
        let mut before = plain.text[..start].split(' ').map(bare).filter(|word| !word.is_empty()).rev();
        let (last, starts) = (before.next(), before.next());
        return last.is_some_and(|last| matches!(last, "by" | "with"))
            && starts.is_some_and(|word| has("gerund starts", word));
    }
    let from = clause_start(&plain.text, start).max(plain.line_start(start));
    let clause = &plain.text[from..start];
    let said =
        |word: &&str| !word.is_empty() && !matches!(*word, "-" | "+" | "$" | "#" | "x") && word.parse::<u32>().is_err();
    let mut before: Vec<&str> = clause.split(' ').map(bare).filter(said).collect();
    while before.last().is_some_and(|last| has("request adverbs", last)) {
        before.pop();
    }
    is_request(&before)
}

/// Returns true if a verb after these words of its clause is a request.
fn is_request(before: &[&str]) -> bool {
    let Some((last, rest)) = before.split_last() else { return true };
    let any = |section, words: &[&str]| words.iter().any(|word| has(section, word));
    let has_you = rest.contains(&"you");
    match *last {
        word if has("request words", word) => true,
        "and" | "or" | "but" | "so" => has_you || !any("no request", rest),
        "must" | "should" => any("asked", &rest[rest.len().saturating_sub(3)..]),
        "can" | "could" | "may" | "shall" => has_you,
        "you" => !any("no request", rest),
        "us" => rest.last() == Some(&"let"),
        "to" => rest.last().is_some_and(|verb| has("before to", verb) || (has("asked to", verb) && any("asked", rest))),
        _ => false,
    }
}

/// Returns the start of a position's clause.
fn clause_start(plain: &str, at: usize) -> usize {
    let mut next = plain[at..].chars().next().unwrap_or(' ');
    for (place, c) in plain[..at].char_indices().rev() {
        let is_dash = c == '-' && next == ' ' && plain[..place].ends_with(' ');
        let is_mark = matches!(c, '.' | ':' | ',') && next == ' ';
        if matches!(c, ';' | '!' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | '|') || is_mark || is_dash {
            return place + c.len_utf8();
        }
        next = c;
    }
    0
}
