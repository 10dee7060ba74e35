//! The keys that a verifier trusts no more, whoever else does.

use std::collections::BTreeMap;

use ssh_key::PublicKey;

use crate::ledger::sign;
use crate::model::time::Moment;

use super::lines::{lines, names_a_key};

/// Fingerprints, each with the moment since which it is revoked, where somebody says; one without was never to be trusted.
pub type Revoked = BTreeMap<String, Option<Moment>>;

/// Reads a list of revoked keys: on each line one fingerprint or one public key, as `ssh-keygen -l` and `.pub` files show them,
/// perhaps after `since=<time>`, perhaps before a comment.
///
/// A line that cannot be understood as a whole is an error: a key that was meant to be revoked must not count for want of a
/// letter, nor because another one stands before it.
pub fn revoked(text: &str) -> Result<Revoked, RevokedError> {
    let mut revoked = Revoked::new();
    for (number, line) in lines(text).map_err(RevokedError::Divided)? {
        let (key, since) = read(line).ok_or(RevokedError::Line(number))?;
        // Of two lines about one key, the stricter counts.
        let earliest = revoked.get(&key).map_or(since, |known| (*known).min(since));
        revoked.insert(key, earliest);
    }
    Ok(revoked)
}

fn read(line: &str) -> Option<(String, Option<Moment>)> {
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty()).peekable();
    let since = match words.next_if(|word| word.starts_with("since=")) {
        Some(word) => Some(time(word.strip_prefix("since=")?)?),
        None => None,
    };
    // What `ssh-keygen -l` prints has the length of the key before its fingerprint.
    let length = words.next_if(|word| word.bytes().all(|b| b.is_ascii_digit()));
    let first = words.next()?;
    let key = if first.starts_with("SHA256:") {
        fingerprint(first)?
    } else {
        let key = PublicKey::from_openssh(&format!("{first} {}", words.next()?)).ok()?;
        length.is_none().then(|| sign::fingerprint(&key))?
    };
    let comment = words.collect::<Vec<_>>().join(" ");
    (!names_a_key(&comment)).then_some((key, since))
}

/// Reads a fingerprint. One in a single letter case, which 43 letters of base64 never are by chance, lost its own on the way and
/// would revoke nobody's key.
fn fingerprint(word: &str) -> Option<String> {
    let letters = word.strip_prefix("SHA256:")?;
    let both = letters.contains(char::is_lowercase) && letters.contains(char::is_uppercase);
    word.parse::<ssh_key::Fingerprint>().ok().filter(|_| both).map(|found| found.to_string())
}

/// Reads a time as RFC 3339 writes it, in quotes or without.
fn time(text: &str) -> Option<Moment> {
    let text = match text.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => text,
    };
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Moment::from_millis(time.as_millisecond()))
}

/// Why a list of revoked keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RevokedError {
    #[error(
        "line {0} is not one SHA256 fingerprint or one public key, perhaps after since=2026-06-04T02:00:00Z and before a \
         comment that names no other"
    )]
    Line(usize),
    #[error(
        "line {0} holds a control character, such as a CR alone, or a mark of byte order; lines end with LF or CR LF"
    )]
    Divided(usize),
}
