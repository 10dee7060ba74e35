//! Reads what an agent prints about itself: its model, session, tokens, price, and errors.
//!
//! The output is the worker's, so nothing in it is trusted: unknown lines and values of a wrong
//! type count as silence, and no line can take much memory.

mod aider;
mod messages;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use serde_json::Value;

use crate::model::claims::Reported;
use crate::model::json::MAX_SAFE_INTEGER;
use crate::model::usage::{Dollars, Usage};
use crate::repository::config::Preset;

/// The longest line or JSON value that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// The most sessions of one command.
const MOST_SESSIONS: usize = 1000;

/// The words of an agent about itself, from the output of one command.
#[derive(Debug, Default)]
pub(super) struct Report {
    model: Option<String>,
    session: Option<String>,
    /// The latest numbers of each session.
    sessions: BTreeMap<String, Session>,
    /// The error that the agent ended with.
    pub(super) error: Option<String>,
}

/// The numbers of one session. Agents report those of a whole session each time.
#[derive(Debug, Default)]
struct Session {
    usage: Usage,
    denials: Option<u64>,
}

impl Report {
    /// Reads the output of a command.
    pub(super) fn read(preset: &Preset, output: impl Read) -> io::Result<Self> {
        let mut report = Self::default();
        if preset.prints_text {
            each_line(output, |line| aider::read(&mut report, &String::from_utf8_lossy(line)))?;
        } else if !preset.messages.is_empty() {
            each_value(output, |value| messages::read(&mut report, &preset.messages, value))?;
        }
        Ok(report)
    }

    /// Returns the claims, or `None` if there are none.
    pub(super) fn claims(&self) -> Option<Reported> {
        let usage: Usage = self.sessions.values().map(|session| session.usage).sum();
        let denials = self.sessions.values().filter_map(|session| session.denials);
        let denials = denials.reduce(|one, other| count(one.saturating_add(other)).unwrap_or(MAX_SAFE_INTEGER));
        let claims = Reported {
            model: non_empty(self.model.as_ref()),
            session: non_empty(self.session.as_ref()),
            usage: Some(within(usage)).filter(|usage| !usage.is_empty()),
            permission_denials: denials.filter(|denials| *denials > 0),
        };
        (claims != Reported::default()).then_some(claims)
    }

    /// Records the numbers of a session in place of earlier ones.
    fn record(&mut self, session: Option<&str>, numbers: Session) {
        let session = session.unwrap_or_default();
        if self.sessions.len() < MOST_SESSIONS || self.sessions.contains_key(session) {
            self.sessions.insert(session.to_owned(), numbers);
        }
        if !session.is_empty() {
            self.session = Some(session.to_owned());
        }
    }
}

fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// Joins the claims of an earlier command and of a later one, of which the model and the session
/// count.
pub(super) fn joined(earlier: Option<Reported>, later: Option<Reported>) -> Option<Reported> {
    let (Some(earlier), Some(later)) = (&earlier, &later) else { return later.or(earlier) };
    let usage: Usage = [earlier.usage, later.usage].into_iter().flatten().sum();
    let denials = [earlier.permission_denials, later.permission_denials].into_iter().flatten();
    Some(Reported {
        model: later.model.clone().or_else(|| earlier.model.clone()),
        session: later.session.clone().or_else(|| earlier.session.clone()),
        usage: Some(within(usage)).filter(|usage| !usage.is_empty()),
        permission_denials: denials.reduce(|one, other| one.saturating_add(other).min(MAX_SAFE_INTEGER)),
    })
}

/// Removes the numbers that no entry can hold.
fn within(usage: Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens.and_then(count),
        output_tokens: usage.output_tokens.and_then(count),
        cached_tokens: usage.cached_tokens.and_then(count),
        cost_usd: usage.cost_usd.filter(|price| price.to_string().parse::<Dollars>().is_ok()),
    }
}

/// Returns a number that an entry can hold.
fn count(number: u64) -> Option<u64> {
    (number <= MAX_SAFE_INTEGER).then_some(number)
}

/// Calls a function with each JSON object that a line holds, or that stands between a line `{` and
/// a line `}`.
fn each_value(output: impl Read, mut each: impl FnMut(&Value)) -> io::Result<()> {
    let mut block = None::<Vec<u8>>;
    each_line(output, |text| {
        if let Some(lines) = block.as_mut().filter(|lines| lines.len() + text.len() < LONGEST) {
            lines.extend_from_slice(text);
            lines.push(b'\n');
        }
        match text {
            b"{" => block = Some(b"{\n".to_vec()),
            b"}" => {
                let whole = block.take().and_then(|lines| serde_json::from_slice(&lines).ok());
                whole.iter().for_each(&mut each);
            }
            [b'{', ..] => serde_json::from_slice(text).iter().for_each(&mut each),
            _ => {}
        }
    })
}

/// Calls a function with each line, without white space at its end.
fn each_line(output: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut output, mut line) = (BufReader::new(output), Vec::new());
    while next_line(&mut output, &mut line)? {
        each(line.trim_ascii_end());
    }
    Ok(())
}

/// Reads the next line, of which one that is too long becomes empty. Returns false at the end.
fn next_line(output: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let (mut any, mut is_long) = (false, false);
    loop {
        let buffer = output.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let length = end.unwrap_or(buffer.len());
        is_long |= line.len() + length > LONGEST;
        if is_long {
            line.clear();
        } else {
            line.extend_from_slice(&buffer[..length]);
        }
        output.consume(length);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests;
