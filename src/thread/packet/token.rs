//! The row `resume_token`: is it a plain continuity marker, and unused?

use std::sync::LazyLock;

use regex::Regex;

use crate::model::credential;
use crate::model::packet::{Packet, marker};
use crate::model::printable::written_out;

use super::data::CREDENTIALS;
use super::quote::quoted;
use super::{Row, Terms};

/// The minimum length of a part after a label that counts as a secret if it mixes letters and
/// digits.
const SHORTEST_SECRET: usize = 8;

/// Checks the marker of a packet.
pub(super) fn row(packet: &Packet, terms: &Terms) -> Row {
    let Some(token) = packet.resume_token.as_deref() else {
        let empty = packet.faults.iter().any(|fault| fault.field == "resume_token" && fault.what == "is empty");
        let missing = packet.faults.iter().any(|fault| fault.field == "resume_token" && fault.what == "is missing");
        let what = if empty {
            "empty"
        } else if missing {
            "missing"
        } else {
            "not a string"
        };
        return failed(format!("{what} — fails continuity ID check"));
    };
    if let Some(shape) = credential_shape(token) {
        // Never displayed: it may be a secret.
        return failed(format!("credential-like ({shape}) — fails continuity ID check"));
    }
    if let Some(why) = malformed(token) {
        return failed(format!("{} {why} — fails continuity ID check", quoted(token)));
    }
    if terms.consumed.contains(token) {
        return failed(format!(
            "{token} is already consumed (the thread was resumed with it) — fails continuity ID check"
        ));
    }
    if let Some(field) = &packet.consumed {
        return failed(format!("{token} is already consumed ({}) — fails continuity ID check", written_out(field)));
    }
    Row::new("resume_token", true, format!("{token} — valid plain handoff continuity ID"))
}

fn failed(detail: String) -> Row {
    Row::new("resume_token", false, detail)
}

/// Returns the token of a packet if it is a plain marker and may be recorded.
pub fn plain(packet: &Packet) -> Option<&str> {
    packet.resume_token.as_deref().filter(|token| credential_shape(token).is_none() && malformed(token).is_none())
}

/// Returns a plain marker to use instead.
pub(super) fn offer(packet: &Packet, terms: &Terms) -> String {
    let objective = terms.objective.as_deref().or(packet.objective.as_deref()).unwrap_or_default();
    let words = super::words::clauses(objective).into_iter().flatten();
    let name: Vec<String> = words.filter(super::words::Word::carries).map(|word| word.text).take(3).collect();
    let name = name.join(" ");
    let numbered = (2u64..).map(|number| marker(&name, terms.now, Some(&number.to_string())));
    let offered = std::iter::once(marker(&name, terms.now, None))
        .chain(numbered)
        .find(|marker| !(packet.resume_token.as_ref() == Some(marker) || terms.consumed.contains(marker)));
    offered.expect("there are more numbers than used tokens")
}

/// Returns the reason why a token is not a plain marker, by form alone.
fn malformed(token: &str) -> Option<&'static str> {
    if token.len() < 8 {
        return Some("is shorter than 8 characters");
    }
    if token.len() > 128 {
        return Some("is longer than 128 characters");
    }
    let plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    (!plain).then_some("has characters other than letters, digits, - and _")
}

/// Returns the kind of credential that a token looks like.
fn credential_shape(token: &str) -> Option<&'static str> {
    static SHAPES: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        CREDENTIALS
            .pairs("shapes")
            .map(|(name, pattern)| (name, Regex::new(pattern).expect("a test compiles every pattern")))
            .collect()
    });
    if let Some((_, name)) = credential::find(token.as_bytes()).into_iter().next() {
        return Some(name);
    }
    for (name, pattern) in SHAPES.iter() {
        let Some(found) = pattern.captures(token) else { continue };
        let holds = match *name {
            "labelled-secret" => found.get(1).is_some_and(|rest| is_secret(rest.as_str())),
            "opaque-secret" => found.get(0).is_some_and(|run| mixes(run.as_str())),
            _ => true,
        };
        if holds {
            return Some(name);
        }
    }
    None
}

fn is_secret(rest: &str) -> bool {
    rest.split(['-', '_']).any(|part| part.len() >= SHORTEST_SECRET && mixes(part))
}

fn mixes(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}
