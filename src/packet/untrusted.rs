//! The row `untrusted_content`: does anything in the packet ask its reader for what no packet may ask?
//!
//! Every string is looked through, in a form in which hiding does not help. What is found is quoted and never followed.

mod patterns;
mod plain;

use patterns::matches;

use crate::model::credential;
use crate::model::packet::Passage;
use crate::model::printable::written_out;

use super::quote::quoted;
use super::schema::listed;
use super::{Finding, Row, rule_name};

/// How many findings are shown.
const SHOWN: usize = 5;

/// How many findings are made.
const ENOUGH: usize = 20;

/// Looks through the texts of a packet.
pub(super) fn row(passages: &[Passage]) -> Row {
    let mut findings = Vec::new();
    for passage in passages {
        look(passage, &mut findings);
        if findings.len() >= ENOUGH {
            break;
        }
    }
    if findings.is_empty() {
        let texts = passages.len();
        let s = if texts == 1 { "" } else { "s" };
        return Row::new(
            "untrusted_content",
            true,
            format!("{texts} text{s} looked through, nothing asks for unsafe action"),
        );
    }
    let shown =
        findings.iter().take(SHOWN).map(|found| format!("{} {}: {}", found.rule, rule_name(found.rule), found.what));
    let detail = format!("quoted as data, not followed — {}", listed(&shown.collect::<Vec<_>>(), findings.len(), "; "));
    Row { findings, ..Row::new("untrusted_content", false, detail) }
}

/// Returns where a quotation that holds a match may end: with its line, or a little behind the match.
fn end_of_line(text: &str, from: usize) -> usize {
    let mut rest = text[from..].char_indices().take(60);
    rest.find(|(_, c)| *c == '\n').map_or_else(
        || text[from..].char_indices().nth(60).map_or(text.len(), |(at, _)| from + at),
        |(at, _)| from + at,
    )
}

/// Returns whether a text of our own making would be taken for an instruction.
pub(super) fn is_suspect(text: &str) -> bool {
    let mut findings = Vec::new();
    look(&Passage { field: String::new(), text: text.to_owned() }, &mut findings);
    !findings.is_empty()
}

fn look(passage: &Passage, findings: &mut Vec<Finding>) {
    let text = &passage.text;
    let mut add = |rule: &'static str, at: usize, what: String| {
        let line = text[..at].matches('\n').count() + 1;
        let place = format!("{} line {line}", written_out(&passage.field));
        if !findings.iter().any(|known| known.rule == rule && known.field == passage.field) {
            findings.push(Finding { rule, field: passage.field.clone(), what: format!("{place}: {what}") });
        }
    };
    for variant in plain::variants(text) {
        for (rule, range) in matches(&variant.text) {
            let original = variant.original(range, text);
            let end = end_of_line(text, original.end);
            add(rule, original.start, quoted(&text[original.start..end]));
        }
    }
    // The token has a row of its own.
    if passage.field != "resume_token"
        && let Some((at, name)) = credential::find(text.as_bytes()).into_iter().next()
    {
        add("U3", at.start, format!("a credential stands here ({name})"));
    }
    if let Some((at, c)) = text.char_indices().find(|(_, c)| plain::steers_reading(*c)) {
        let from = text[..at].char_indices().rev().nth(20).map_or(0, |(at, _)| at);
        let to = text[at..].char_indices().nth(40).map_or(text.len(), |(more, _)| at + more);
        add("U6", at, format!("the hidden character {} in {}", c.escape_unicode(), quoted(&text[from..to])));
    }
}
