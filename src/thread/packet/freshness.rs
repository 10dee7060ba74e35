//! The row `freshness`: how old is the packet?

use std::sync::OnceLock;

use regex::Regex;

use crate::model::packet::Age;
use crate::model::time::Moment;

use super::quote::quoted;
use super::{Row, Terms};

/// The tolerated clock difference of a writer ahead of us.
const AHEAD: u64 = 5 * 60;

/// Checks the time of a packet.
pub(super) fn row(updated_at: Option<&str>, terms: &Terms) -> Row {
    let limit = terms.max_age.exact();
    let Some(text) = updated_at else {
        return failed(format!("no usable updated_at, so its age is unknown (limit {limit})"));
    };
    let moment = match parse(text) {
        Ok(moment) => moment,
        Err(why) => return failed(format!("updated_at {} {why} (limit {limit})", quoted(text))),
    };
    let age = terms.now.millis().saturating_sub(moment.millis());
    let seconds = Age::seconds(age.unsigned_abs() / 1000);
    if age < 0 {
        // To the millisecond, so that nothing of a sixth minute is accepted.
        if age.unsigned_abs() > AHEAD * 1000 {
            return failed(format!("updated_at is {seconds} in the future (more than 5 min ahead)"));
        }
        return Row::new("freshness", true, format!("updated just now (within {limit} limit)"));
    }
    if age.unsigned_abs() > terms.max_age.millis() {
        let same = seconds.to_string() == terms.max_age.to_string();
        let written_age = if same { seconds.exact() } else { seconds.to_string() };
        let age_text = if written_age == limit { format!("just over {written_age}") } else { written_age };
        return failed(format!("updated {age_text} ago (exceeds {limit} limit)"));
    }
    Row::new("freshness", true, format!("updated {seconds} ago (within {limit} limit)"))
}

fn failed(detail: String) -> Row {
    Row::new("freshness", false, detail)
}

/// Parses an RFC 3339 time with a zone.
pub(super) fn parse(text: &str) -> Result<Moment, &'static str> {
    static FORM: OnceLock<Regex> = OnceLock::new();
    let form = FORM.get_or_init(|| {
        Regex::new(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})?$")
            .expect("the pattern is valid")
    });
    let not = "is not an RFC 3339 time like 2024-06-10T14:32:00Z";
    let parts = form.captures(text).ok_or(not)?;
    if parts.get(1).is_none() {
        return Err("has no time zone");
    }
    let stamp: jiff::Timestamp = text.to_uppercase().parse().map_err(|_| not)?;
    Ok(Moment::from_millis(stamp.as_millisecond()))
}
