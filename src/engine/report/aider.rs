//! aider's lines for people: it has no other form, and ends with 0 if its service refuses a
//! request.

use super::{Report, Session, count};
use crate::model::usage::{Dollars, Usage};

/// Reads one line.
pub(super) fn read(report: &mut Report, line: &str) {
    let model = line.strip_prefix("Model: ").or_else(|| line.strip_prefix("Main model: "));
    if let Some((model, _)) = model.and_then(|rest| rest.split_once(" with ")) {
        report.model = Some(model.to_owned());
    } else if let Some(numbers) = line.strip_prefix("Tokens: ") {
        // It answered, so an error before was one that passed.
        report.error = None;
        let before = report.sessions.remove("").unwrap_or_default();
        report.record(None, Session { usage: added(before.usage, numbers), denials: None });
    } else if is_error(line) {
        report.error = Some(line.to_owned());
    }
}

/// Adds the numbers of one message: its tokens, and the price of the session so far.
fn added(before: Usage, numbers: &str) -> Usage {
    let (tokens, price) = numbers.split_once(" Cost: ").unwrap_or((numbers, ""));
    let message = Usage {
        input_tokens: token_count(tokens, " sent"),
        output_tokens: token_count(tokens, " received"),
        cached_tokens: token_count(tokens, " cache hit"),
        cost_usd: None,
    };
    let session = price.split(", ").find_map(|part| part.trim_end_matches('.').strip_suffix(" session"));
    let cost = session.and_then(|text| text.trim().strip_prefix('$')?.parse().ok()).and_then(Dollars::rounded);
    Usage { cost_usd: cost, ..[before, message].into_iter().sum() }
}

/// Returns the number before a word.
fn token_count(tokens: &str, what: &str) -> Option<u64> {
    let part = tokens.trim_end_matches('.').split(", ").find_map(|part| part.strip_suffix(what));
    part.and_then(|number| rounded(number.trim()))
}

/// Returns a number of tokens, which aider rounds from 1000 on: `2.3k`, `12k`.
fn rounded(number: &str) -> Option<u64> {
    let Some(thousands) = number.strip_suffix('k') else { return number.parse().ok().and_then(count) };
    let (whole, tenth) = thousands.split_once('.').unwrap_or((thousands, "0"));
    let tenth = tenth.parse().ok().filter(|tenth: &u64| *tenth < 10)?;
    count(whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(tenth * 100)?)
}

/// Returns true for a line such as `litellm.AuthenticationError: …`.
fn is_error(line: &str) -> bool {
    let name = line.strip_prefix("litellm.").and_then(|rest| rest.split_once(": "));
    name.is_some_and(|(name, _)| name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphabetic()))
}
