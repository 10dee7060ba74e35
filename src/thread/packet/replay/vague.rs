//! R1 to R6: is there something concrete to act on?

use crate::thread::packet::Finding;
use crate::thread::packet::data::WORDS;
use crate::thread::packet::quote::quoted;
use crate::thread::packet::vocabulary::{
    DETERMINER, GENERIC, LEAD, MAKING, START, UNIT, VAGUE, VERB, is_none, is_placeholder,
};
use crate::thread::packet::words::{Kind, Word, clauses};

/// The number of significant words that make up for a vague verb.
const ENOUGH: usize = 3;

/// Checks the next action: one of its clauses must be concrete.
pub(super) fn next_action(text: &str) -> Option<Finding> {
    if is_none(text) || is_placeholder(text) {
        return Some(finding("R4", "next_action", format!("next_action {} is only a placeholder", quoted(text))));
    }
    let clauses = clauses(text);
    let mut first = None;
    for clause in &clauses {
        match judge(clause) {
            None => return None,
            found => first = first.or(found),
        }
    }
    Some(match first {
        Some((rule, what)) => finding(rule, "next_action", format!("next_action {} {what}", quoted(text))),
        None => finding("R4", "next_action", format!("next_action {} has no words", quoted(text))),
    })
}

fn finding(rule: &'static str, field: &str, what: String) -> Finding {
    Finding { rule, field: field.into(), what }
}

/// Checks the objective: a word must be significant.
pub(super) fn objective(text: &str) -> Option<Finding> {
    if is_none(text) || is_placeholder(text) {
        return Some(finding("R4", "objective", format!("objective {} is only a placeholder", quoted(text))));
    }
    let words: Vec<Word> = clauses(text).into_iter().flatten().collect();
    let general = [GENERIC, VAGUE, START, MAKING];
    if words.iter().any(|word| word.carries() && !general.iter().any(|kind| word.is(kind))) {
        return None;
    }
    let what = format!("objective {} holds only general words ({})", quoted(text), list_words(words.iter()));
    Some(finding("R6", "objective", what))
}

/// Returns the reason why a clause is not an executable action.
fn judge(clause: &[Word]) -> Option<(&'static str, String)> {
    if (0..clause.len()).any(|at| is_concrete(clause, at)) {
        return None;
    }
    let mut words: Vec<&Word> = clause.iter().collect();
    // "please", "now", "next": what comes before the action.
    while words.first().is_some_and(|word| is_lead(word)) {
        words.remove(0);
    }
    let Some(verb) = words.first().copied() else {
        return Some(("R3", "names nothing to act on".into()));
    };
    let objects: Vec<&Word> = words[1..].iter().copied().filter(|word| word.carries()).collect();
    let content: Vec<&Word> =
        objects.iter().copied().filter(|word| !word.is(GENERIC) && word.kind != Kind::Number).collect();
    if let Some(vague) = vague_verb(&words) {
        let nouns = content.iter().filter(|word| !word.is(VAGUE)).count();
        let what = format!("begins with {}, which names no action, and has no concrete object", quoted(&vague));
        return (nouns < ENOUGH).then_some(("R1", what));
    }
    if verb.is(DETERMINER) || verb.is(GENERIC) && !is_verb(verb) {
        let what = format!("begins with {}, which is no action, and has no concrete object", quoted(&verb.text));
        return (content.len() < ENOUGH).then_some(("R5", what));
    }
    if !content.is_empty() {
        return None;
    }
    if objects.is_empty() {
        return Some(("R3", format!("says {} of nothing", quoted(&verb.text))));
    }
    Some(("R2", format!("says {} of general words only ({})", quoted(&verb.text), list_words(objects.into_iter()))))
}

fn is_lead(word: &Word) -> bool {
    word.kind == Kind::Plain && word.is(LEAD)
}

fn is_verb(word: &Word) -> bool {
    [VERB, VAGUE, MAKING].iter().any(|list| word.is(list))
}

fn vague_verb(words: &[&Word]) -> Option<String> {
    let first = words.first()?;
    if let Some(second) = words.get(1) {
        let pair = format!("{} {}", first.text, second.text);
        if WORDS.section("vague pairs").iter().any(|known| known.eq_ignore_ascii_case(&pair)) {
            return Some(pair);
        }
    }
    // "add" and "write" say what to do; "do" and "make" say nothing.
    first.is(VAGUE).then(|| first.text.clone())
}

/// Returns true if a word names a particular thing.
fn is_concrete(clause: &[Word], at: usize) -> bool {
    let word = &clause[at];
    match word.kind {
        Kind::Plain => false,
        Kind::Name | Kind::Path | Kind::Identifier | Kind::Command => true,
        Kind::Quoted => {
            let is_specific =
                |part: &Word| part.kind != Kind::Plain || (part.carries() && !part.is(GENERIC) && !part.is(VAGUE));
            clauses(&word.text).iter().flatten().any(is_specific)
        }
        // "step 4" is particular; "the remaining 3 tasks" and "in 2 days" are not.
        Kind::Number => {
            let after = clause[at + 1..].iter().take(2).any(|next| next.is(GENERIC) || next.is(UNIT));
            let before = at > 0 && clause[at - 1].carries() && !clause[at - 1].is(VAGUE);
            before && !after
        }
    }
}

fn list_words<'a>(words: impl Iterator<Item = &'a Word>) -> String {
    words.filter(|word| word.carries()).take(8).map(|word| quoted(&word.text)).collect::<Vec<_>>().join(", ")
}
