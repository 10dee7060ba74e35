//! The keys that a verifier trusts no more, whoever else does.

use std::collections::BTreeSet;

use ssh_key::PublicKey;

use crate::sign;

/// Reads a list of revoked keys: on each line a fingerprint or a public key, as `ssh-keygen -l` and `.pub` files show them.
///
/// A line that cannot be understood is an error: a key that was meant to be revoked must not count for want of a letter.
pub fn revoked(text: &str) -> Result<BTreeSet<String>, RevokedError> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| read(line).ok_or(RevokedError(at + 1))).collect()
}

fn read(line: &str) -> Option<String> {
    if let Ok(key) = PublicKey::from_openssh(line) {
        return Some(sign::fingerprint(&key));
    }
    // What `ssh-keygen -l` prints has the length of the key before its fingerprint, and its comment behind.
    let fingerprint = line.split_whitespace().find(|word| word.starts_with("SHA256:"))?;
    fingerprint.parse::<ssh_key::Fingerprint>().ok().map(|fingerprint| fingerprint.to_string())
}

/// Why a list of revoked keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("line {0} is neither the SHA256 fingerprint of a key nor a public key")]
pub struct RevokedError(usize);
