//! The keys that a verifier trusts no more, whoever else does.

use std::collections::BTreeMap;

use ssh_key::PublicKey;

use crate::model::time::Moment;
use crate::sign;

/// Fingerprints, each with the moment since which it is revoked, where somebody says; one without was never to be trusted.
pub type Revoked = BTreeMap<String, Option<Moment>>;

/// Reads a list of revoked keys: on each line a fingerprint or a public key, as `ssh-keygen -l` and `.pub` files show them,
/// perhaps after `since=<time>`.
///
/// A line that cannot be understood is an error: a key that was meant to be revoked must not count for want of a letter.
pub fn revoked(text: &str) -> Result<Revoked, RevokedError> {
    let lines = text.lines().map(str::trim).enumerate();
    let mut revoked = Revoked::new();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (key, since) = read(line).ok_or(RevokedError(at + 1))?;
        // Of two lines about one key, the stricter counts.
        let earliest = revoked.get(&key).map_or(since, |known| (*known).min(since));
        revoked.insert(key, earliest);
    }
    Ok(revoked)
}

fn read(line: &str) -> Option<(String, Option<Moment>)> {
    let (since, line) = match line.strip_prefix("since=") {
        Some(rest) => {
            let (time, rest) = rest.split_once(char::is_whitespace)?;
            let time: jiff::Timestamp = time.trim_matches('"').parse().ok()?;
            (Some(Moment::from_millis(time.as_millisecond())), rest.trim())
        }
        None => (None, line),
    };
    if let Ok(key) = PublicKey::from_openssh(line) {
        return Some((sign::fingerprint(&key), since));
    }
    // What `ssh-keygen -l` prints has the length of the key before its fingerprint, and its comment behind.
    let fingerprint = line.split_whitespace().find(|word| word.starts_with("SHA256:"))?;
    fingerprint.parse::<ssh_key::Fingerprint>().ok().map(|fingerprint| (fingerprint.to_string(), since))
}

/// Why a list of revoked keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "line {0} is neither the SHA256 fingerprint of a key nor a public key, perhaps after since=2026-06-04T02:00:00Z"
)]
pub struct RevokedError(usize);
