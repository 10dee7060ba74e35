//! Detects the type of an unsupported key, for error messages.

use base64ct::{Base64, Encoding as _};
use ssh_key::PublicKey;
use ssh_key::public::{Ed25519PublicKey, KeyData};

/// The key types of OpenSSH that are not supported.
const OTHERS: [&str; 15] = [
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa-cert-v01@openssh.com",
    "ssh-dss-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
];

/// The type of a certificate for an ed25519 key.
const CERTIFICATE: &str = "ssh-ed25519-cert-v01@openssh.com";

/// The labels of private keys in formats older than OpenSSH's own.
const LABELS: [(&str, &str); 3] =
    [("RSA PRIVATE KEY", "ssh-rsa"), ("EC PRIVATE KEY", "ecdsa"), ("DSA PRIVATE KEY", "ssh-dss")];

/// Returns the key that a certificate is about, or `None` if the text is no certificate for an
/// ed25519 key. The certificate's own signature does not matter.
pub(super) fn certified(text: &str) -> Option<PublicKey> {
    let mut words = text.split_whitespace();
    let encoded = words.next().filter(|word| *word == CERTIFICATE).and(words.next())?;
    let bytes = Base64::decode_vec(encoded).ok()?;
    let mut rest = bytes.as_slice();
    // The type and a nonce stand before the key.
    let (kind, _, key) = (field(&mut rest)?, field(&mut rest)?, field(&mut rest)?);
    let key = Ed25519PublicKey(key.try_into().ok().filter(|_| kind == CERTIFICATE.as_bytes())?);
    Some(PublicKey::from(KeyData::Ed25519(key)))
}

/// Returns the type of a public or private key other than ed25519, or `None` if it is unknown.
pub(super) fn other_type(text: &str) -> Option<&'static str> {
    let first = text.split_whitespace().next()?;
    if let Some(found) = find_other_type(first) {
        return Some(found);
    }
    if let Some((_, found)) = LABELS.into_iter().find(|(label, _)| text.starts_with(&format!("-----BEGIN {label}"))) {
        return Some(found);
    }
    let body = text.trim().strip_prefix("-----BEGIN OPENSSH PRIVATE KEY-----")?;
    let body = body.split("-----END").next()?.split_whitespace().collect::<String>();
    let bytes = Base64::decode_vec(&body).ok()?;
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    // Cipher, key derivation function, and its options.
    for _ in 0..3 {
        field(&mut rest)?;
    }
    // The number of keys, then the first public key, which begins with its type.
    rest = rest.get(4..)?;
    let mut public = field(&mut rest)?;
    find_other_type(std::str::from_utf8(field(&mut public)?).ok()?)
}

fn find_other_type(name: &str) -> Option<&'static str> {
    OTHERS.into_iter().find(|other| *other == name)
}

/// Splits a length-prefixed field off the bytes.
fn field<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let found = behind.get(..length)?;
    *rest = &behind[length..];
    Some(found)
}
