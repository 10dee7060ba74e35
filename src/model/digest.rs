//! SHA-256 digests and git object names as types.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::words::as_text;

/// A SHA-256 digest, written `sha256:<64 lower-case hex digits>` wherever it appears.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

as_text!(Digest, Oid);

impl Digest {
    /// Hashes `bytes`.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Wraps 32 raw bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the 64 hex digits without the `sha256:` prefix.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns the first eight hex digits, for display.
    pub fn short(&self) -> String {
        hex(&self.0[..4])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let digits = text.strip_prefix("sha256:").ok_or_else(|| BadDigest(text.to_owned()))?;
        let bytes = unhex(digits).ok_or_else(|| BadDigest(text.to_owned()))?;
        Ok(Self(bytes.try_into().map_err(|_| BadDigest(text.to_owned()))?))
    }
}

/// A text that is not `sha256:` and 64 lower-case hex digits.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not sha256: followed by 64 lower-case hex digits")]
pub struct BadDigest(String);

/// An incremental SHA-256 with a byte count.
#[derive(Default, Clone)]
pub struct Hasher {
    inner: Sha256,
    size: u64,
}

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.inner.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// Returns the digest and the number of bytes.
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.inner.finalize().into()), self.size)
    }
}

/// A reader that hashes the bytes read through it.
pub struct HashingReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: std::io::Read> HashingReader<R> {
    /// Wraps `inner`.
    pub fn new(inner: R) -> Self {
        Self { inner, hasher: Hasher::default() }
    }

    /// Returns the digest and number of bytes so far.
    pub fn finish(self) -> (Digest, u64) {
        self.hasher.finish()
    }
}

impl<R: std::io::Read> std::io::Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

/// The name git gives an object: SHA-1 or SHA-256, by the repository's object format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub gix::ObjectId);

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Oid {
    type Err = BadOid;

    fn from_str(text: &str) -> Result<Self, BadOid> {
        let lower = !text.bytes().any(|b| b.is_ascii_uppercase());
        match gix::ObjectId::from_hex(text.as_bytes()) {
            Ok(id) if lower => Ok(Self(id)),
            _ => Err(BadOid(text.to_owned())),
        }
    }
}

/// A text that is not a git object name of 40 or 64 lower-case hex digits.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a git object name")]
pub struct BadOid(String);

/// Returns bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).map(char::from).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.as_bytes().chunks(2).map(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?)).collect()
}

fn hex_digit(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    }
}
