//! The row `untrusted_content`: does any text of the packet request something that no packet may?
//!
//! Every string is checked in a normalised form that reveals hidden text. Findings are quoted and
//! never followed. Only quotations that the reader is not told to follow are exempt.

mod patterns;
mod plain;

use std::borrow::Cow;
use std::fmt::Write as _;

use patterns::{asks_to_follow, matches};

use crate::model::credential;
use crate::model::packet::Passage;
use crate::model::printable::written_out;

use super::fence;
use super::quote::quoted;
use super::schema::listed;
use super::{Finding, Row, rule_name};

/// The maximum number of displayed findings.
const SHOWN: usize = 5;

/// The maximum number of findings.
const ENOUGH: usize = 20;

/// Checks the texts of a packet.
pub(super) fn row(passages: &[Passage]) -> Row {
    let (own_texts, quotations) = without_quotations(passages);
    let mut findings = Vec::new();
    for (passage, own_text) in passages.iter().zip(&own_texts) {
        check_text(passage, own_text, &mut findings);
        if findings.len() >= ENOUGH {
            break;
        }
    }
    if findings.is_empty() {
        let s = if passages.len() == 1 { "" } else { "s" };
        let mut detail = format!("{} text{s} looked through, nothing asks for unsafe action", passages.len());
        if quotations > 0 {
            let plural = if quotations == 1 { "" } else { "s" };
            let _ = write!(detail, " ({quotations} quotation{plural} in code fences aside)");
        }
        return Row::new("untrusted_content", true, detail);
    }
    let first_findings =
        findings.iter().take(SHOWN).map(|found| format!("{} {}: {}", found.rule, rule_name(found.rule), found.what));
    let detail =
        format!("quoted as data, not followed — {}", listed(&first_findings.collect::<Vec<_>>(), findings.len(), "; "));
    Row { findings, ..Row::new("untrusted_content", false, detail) }
}

/// Returns each text without its quotations, and the number of quotations.
///
/// Keeps quotations if anything in the packet tells its reader to follow them.
fn without_quotations(passages: &[Passage]) -> (Vec<Cow<'_, str>>, usize) {
    let (mut own_texts, mut quotations) = (Vec::with_capacity(passages.len()), 0);
    for Passage { text, quotes, .. } in passages {
        let (own, count) = if *quotes { fence::unquoted(text) } else { (Cow::Borrowed(text.as_str()), 0) };
        quotations += count;
        own_texts.push(own);
    }
    if quotations > 0 && own_texts.iter().any(|text| plain::variants(text).iter().any(asks_to_follow)) {
        return (passages.iter().map(|passage| Cow::Borrowed(passage.text.as_str())).collect(), 0);
    }
    (own_texts, quotations)
}

/// Returns where a quotation around a match may end: with its line, or a little after the match.
fn end_of_line(text: &str, from: usize) -> usize {
    let mut rest = text[from..].char_indices().take(60);
    rest.find(|(_, c)| *c == '\n').map_or_else(
        || text[from..].char_indices().nth(60).map_or(text.len(), |(at, _)| from + at),
        |(at, _)| from + at,
    )
}

/// Returns true for a mark between clauses, which a match may begin with.
fn is_mark(c: char) -> bool {
    c.is_whitespace() || matches!(c, '.' | ',' | ':' | ';' | '!' | '?' | '>' | '*' | ')' | '|')
}

/// Returns true if a text of ours would be taken for an instruction.
pub(super) fn is_suspect(text: &str) -> bool {
    let mut findings = Vec::new();
    check_text(&Passage::new("", text.to_owned()), text, &mut findings);
    !findings.is_empty()
}

/// Checks a text; `own_text` is the text without quotations, at the same positions. Credentials and
/// hidden characters count everywhere.
fn check_text(passage: &Passage, own_text: &str, findings: &mut Vec<Finding>) {
    let text = &passage.text;
    let mut add = |rule: &'static str, at: usize, what: String| {
        // Positions are in bytes: quotations are replaced by spaces, which may not be at character
        // boundaries.
        let line = passage.first_line + text.as_bytes()[..at].split(|byte| *byte == b'\n').count() - 1;
        let place = format!("{} line {line}", written_out(&passage.field));
        if !findings.iter().any(|known| known.rule == rule && known.field == passage.field) {
            findings.push(Finding { rule, field: passage.field.clone(), what: format!("{place}: {what}") });
        }
    };
    for variant in plain::variants(own_text) {
        for (rule, range) in matches(&variant) {
            let original = variant.original(range, own_text);
            let trimmed = own_text[original.clone()].trim_start_matches(is_mark);
            let start = original.end - trimmed.len();
            add(rule, start, quoted(&own_text[start..end_of_line(own_text, original.end)]));
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
