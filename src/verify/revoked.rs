//! The list of keys that a verifier does not trust, even if its signers name them.

use std::collections::BTreeMap;

use ssh_key::PublicKey;

use crate::ledger::sign;
use crate::model::time::Moment;

use super::key_lines::{lines, names_a_key};

/// Revoked fingerprints, each with the time of its revocation. A key without a time was never
/// valid.
pub type Revoked = BTreeMap<String, Option<Moment>>;

/// Parses a list of revoked keys.
///
/// Each line holds one fingerprint or one public key, as in the output of `ssh-keygen -l` and in
/// `.pub` files. `since=<time>` may precede it, and a comment may follow.
///
/// A line that is not fully understood is an error, so that no revocation is lost to a typo.
pub fn revoked(text: &str) -> Result<Revoked, RevokedError> {
    let mut revoked = Revoked::new();
    for (number, line) in lines(text).map_err(RevokedError::Divided)? {
        let (key, since) = read(line).ok_or(RevokedError::Line(number))?;
        // The stricter of two lines about one key counts.
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
    // `ssh-keygen -l` prints the length of the key before its fingerprint.
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

/// Parses a fingerprint. One in a single letter case was changed by a tool, and would revoke no
/// key.
fn fingerprint(word: &str) -> Option<String> {
    let letters = word.strip_prefix("SHA256:")?;
    let both = letters.contains(char::is_lowercase) && letters.contains(char::is_uppercase);
    word.parse::<ssh_key::Fingerprint>().ok().filter(|_| both).map(|found| found.to_string())
}

fn time(text: &str) -> Option<Moment> {
    let text = match text.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => text,
    };
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Moment::from_millis(time.as_millisecond()))
}

errors! {
    /// A reason why a list of revoked keys cannot be used.
    #[derive(Debug, thiserror::Error)] pub enum RevokedError;
    Line(usize):
        "line {0} is not one SHA256 fingerprint or one public key, perhaps after since=2026-06-04T02:00:00Z and before a \
         comment that names no other";
    Divided(usize):
        "line {0} contains a control character, such as a bare CR, or a byte order mark; lines end with LF or CR LF";
}
