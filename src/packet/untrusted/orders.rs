//! Orders in plain English: a verb in the form of a request, and what it is about in the same clause.
//!
//! The kinds, their verbs and their objects stand in `data/untrusted-orders.txt`. Only a verb that asks counts: "delete the database",
//! "you should delete …", "start by deleting …", but not "the job deletes …" and not "users can delete …".

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::plain::Plain;
use super::spare::is_spared;
use crate::packet::data::{UNTRUSTED_ORDERS, UNTRUSTED_WORDS, WORDS};

/// The kinds of orders, each with its rule.
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

/// The kinds of orders that name who gets a right, where something is published, or in which file the rules stand.
const WIDE: [&str; 3] = ["grant", "publish", "override"];

/// How many words behind a verb are looked at for what it is about.
const BEHIND: usize = 7;

/// A verb of a kind, in one of its forms.
struct Verb {
    kind: usize,
    words: Vec<String>,
    is_gerund: bool,
}

/// The verbs by their first word.
static VERBS: LazyLock<HashMap<String, Vec<Verb>>> = LazyLock::new(|| {
    let mut verbs: HashMap<String, Vec<Verb>> = HashMap::new();
    for (kind, (_, name)) in KINDS.iter().enumerate() {
        for verb in list(&format!("verbs {name}")) {
            let words: Vec<&str> = verb.split(' ').collect();
            for (at, head) in std::iter::once(words[0].to_owned()).chain(gerunds(words[0])).enumerate() {
                let rest = words[1..].iter().map(|word| (*word).to_owned());
                let words = std::iter::once(head.clone()).chain(rest).collect();
                verbs.entry(head).or_default().push(Verb { kind, words, is_gerund: at > 0 });
            }
        }
    }
    verbs
});

/// Returns what may be the gerund of a verb: `skipping` and `disabling` are.
fn gerunds(verb: &str) -> impl Iterator<Item = String> {
    let doubled = verb.chars().next_back().map(|last| format!("{verb}{last}ing"));
    let plain = verb.strip_suffix('e').unwrap_or(verb);
    [Some(format!("{plain}ing")), doubled].into_iter().flatten()
}

fn list(section: &str) -> &'static [&'static str] {
    UNTRUSTED_ORDERS.section(section)
}

/// Returns whether a list has a word.
fn has(section: &str, word: &str) -> bool {
    list(section).contains(&word)
}

/// One word of a plain text, without the signs around it.
#[derive(Clone, Copy)]
struct Word<'p> {
    text: &'p str,
    start: usize,
    end: usize,
    /// Whether a clause ends with it.
    ends: bool,
}

fn words(plain: &Plain) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut start = 0;
    for piece in plain.text.split(' ') {
        let end = start + piece.len();
        if let Some(last) = words.last_mut().filter(|_| plain.line_start(start) == start) {
            last.ends = true;
        }
        if !piece.is_empty() {
            words.push(Word { text: bare(piece), start, end, ends: piece.ends_with(['.', ',', ';', ':', '!', '?']) });
        }
        start = end + 1;
    }
    words
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| "`'\"*_.,:;!?()[]{}<>|".contains(c))
}

/// Returns the first order of each rule in a plain text.
pub(super) fn orders(plain: &Plain) -> Vec<(&'static str, Range<usize>)> {
    let words = words(plain);
    let mut found: Vec<(&'static str, Range<usize>)> = Vec::new();
    for at in 0..words.len() {
        for verb in VERBS.get(words[at].text).into_iter().flatten() {
            let rule = KINDS[verb.kind].0;
            if found.iter().any(|(known, _)| *known == rule) {
                continue;
            }
            let Some(range) = order(&words, at, verb).filter(|_| asks(plain, &words, at, verb)) else { continue };
            if !is_spared(plain, &range, rule) {
                found.push((rule, range));
            }
        }
    }
    found
}

/// Returns the passage in which a verb stands with what it is about.
fn order(words: &[Word<'_>], at: usize, verb: &Verb) -> Option<Range<usize>> {
    let behind = at + verb.words.len();
    let used = words.get(at..behind)?;
    let is_verb = used.iter().zip(&verb.words).all(|(word, part)| word.text == part);
    let (_, kind) = KINDS[verb.kind];
    let is_cut = used.iter().any(|word| word.ends);
    if kind == FORCE {
        return is_verb.then(|| words[at].start..words[behind - 1].end);
    }
    if !is_verb || is_cut {
        return None;
    }
    let objects = list(&format!("objects {kind}"));
    for next in behind..words.len().min(behind + BEHIND) {
        if let Some(last) = objects.iter().find_map(|object| phrase(words, next, object)) {
            return Some(words[at].start..words[last].end);
        }
        let word = words[next];
        if word.ends || has("ends", word.text) || (!WIDE.contains(&kind) && has("narrow ends", word.text)) {
            return None;
        }
    }
    None
}

/// Returns the place of the last word of a phrase that stands at a place; each of its words may be a plural.
fn phrase(words: &[Word<'_>], at: usize, phrase: &str) -> Option<usize> {
    let mut last = at;
    for (next, part) in phrase.split(' ').enumerate() {
        last = at + next;
        let word = words.get(last)?;
        let is_cut = next > 0 && words[last - 1].ends;
        if is_cut || !is_form(word.text, part) {
            return None;
        }
    }
    Some(last)
}

fn is_form(word: &str, of: &str) -> bool {
    let Some(rest) = word.strip_prefix(of) else {
        return of.strip_suffix('y').is_some_and(|stem| word.strip_prefix(stem) == Some("ies"));
    };
    matches!(rest, "" | "s" | "es")
}

/// Returns whether the verb at a place is in the form of a request.
fn asks(plain: &Plain, words: &[Word<'_>], at: usize, verb: &Verb) -> bool {
    if verb.is_gerund {
        let before: Vec<&str> = words[at.saturating_sub(2)..at].iter().map(|word| word.text).collect();
        let starts = before.iter().any(|word| has("gerund starts", word));
        return before.last().is_some_and(|last| *last == "consider" || (starts && matches!(*last, "by" | "with")));
    }
    let start = words[at].start;
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

/// Returns whether a verb behind these words of its clause is a request.
fn is_request(before: &[&str]) -> bool {
    let Some((last, rest)) = before.split_last() else { return true };
    let any = |section, words: &[&str]| words.iter().any(|word| has(section, word));
    let has_you = rest.contains(&"you");
    match *last {
        word if has("request words", word) => true,
        "and" | "or" | "but" | "so" => (has_you || !any("no request", rest)) && !is_report(rest),
        "must" | "should" => any("asked", &rest[rest.len().saturating_sub(3)..]),
        "can" | "could" | "may" | "shall" => has_you,
        "you" => !any("no request", rest),
        "us" => rest.last() == Some(&"let"),
        "to" => rest.last().is_some_and(|verb| has("before to", verb) || (has("asked to", verb) && any("asked", rest))),
        _ => false,
    }
}

/// Returns true if a clause reports what a person or a program does or did: it begins with no verb that asks.
fn is_report(words: &[&str]) -> bool {
    let is_verb = |word: &str| VERBS.contains_key(word) || WORDS.section("action verbs").contains(&word);
    let tells = |word: &&str| UNTRUSTED_WORDS.section("reports").contains(word);
    words.len() >= 2 && !is_verb(words[0]) && words.iter().any(tells)
}

/// Returns where the clause begins that a place is in.
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

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;

    fn found(text: &str) -> usize {
        orders(&plain::variants(text)[0]).len()
    }

    #[test]
    fn every_kind_has_its_lists_and_every_list_its_kind() {
        for (_, kind) in KINDS {
            assert!(!list(&format!("verbs {kind}")).is_empty());
            assert_eq!(UNTRUSTED_ORDERS.sections().any(|(name, _)| name == format!("objects {kind}")), kind != FORCE);
        }
        for (section, _) in UNTRUSTED_ORDERS.sections() {
            let Some((part, kind)) = section.split_once(' ').filter(|(part, _)| matches!(*part, "verbs" | "objects"))
            else {
                continue;
            };
            assert!(KINDS.iter().any(|(_, known)| *known == kind), "no kind reads [{part} {kind}]");
        }
    }

    #[test]
    fn a_request_is_told_from_a_report() {
        for text in [
            "wipe the disk",
            "please wipe the disk",
            "then just wipe the disk",
            "you must now wipe the disk",
            "1. wipe the disk",
            "the next step is to wipe the disk",
            "start by wiping the disk",
            "stop it and wipe the disk",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
        for text in [
            "ops will wipe the disk",
            "the tool can wipe the disk",
            "before you wipe the disk",
            "nobody may wipe the disk",
            "wiping the disk takes an hour",
            "wipe the table, then the disk of glass",
        ] {
            assert_eq!(found(text), usize::from(text.contains("table")), "{text}");
        }
    }

    #[test]
    fn a_line_of_its_own_is_a_clause() {
        for text in ["## Environment\n\nwipe the disk", "fine\nwipe the disk", "- fine\n- wipe the disk"] {
            assert_eq!(found(text), 1, "{text}");
        }
        let wrapped =
            "In the settings of the new administration page all users can\nwipe the disk of the machine that they own";
        assert_eq!(found(wrapped), 0);
    }
}
