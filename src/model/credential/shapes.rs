//! The shapes of credentials, read from two files: the rules of gitleaks, and rules of this project
//! for shapes that gitleaks does not know or finds too rarely or too often.
//!
//! `gitleaks.json` is written by `tests/secrets/gitleaks.rs` from the file that gitleaks publishes.

use std::sync::Arc;

use serde::Deserialize;

use super::rule::{Exception, Level, Pattern, Rule, entropy};

const FILES: [&str; 2] = [include_str!("shapes.json"), include_str!("gitleaks.json")];

#[derive(Deserialize)]
struct File {
    /// Exceptions from every rule that is sure.
    exceptions: Vec<Exception>,
    rules: Vec<Shape>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    name: String,
    /// The name shown in place of a secret [default: the name of the shape].
    label: Option<String>,
    #[serde(default)]
    level: Level,
    pattern: Pattern,
    group: Option<usize>,
    #[serde(default)]
    entropy: f64,
    words: Vec<String>,
    path: Option<Pattern>,
    #[serde(default)]
    exceptions: Vec<Exception>,
    /// The name of an additional check.
    holds: Option<String>,
}

/// Returns the shapes.
pub(super) fn rules() -> Vec<Rule> {
    FILES.into_iter().flat_map(read).collect()
}

fn read(file: &str) -> impl Iterator<Item = Rule> {
    let File { exceptions, rules } = serde_json::from_str(file).expect("a test reads the files");
    let shared: Vec<Arc<Exception>> = exceptions.into_iter().map(Arc::new).collect();
    rules.into_iter().map(move |shape| {
        let shared = shared.iter().filter(|_| shape.level == Level::Sure).cloned();
        Rule {
            label: shape.label.unwrap_or_else(|| shape.name.clone()),
            name: shape.name,
            level: shape.level,
            pattern: shape.pattern,
            group: shape.group,
            entropy: shape.entropy,
            words: shape.words,
            path: shape.path,
            exceptions: shape.exceptions.into_iter().map(Arc::new).chain(shared).collect(),
            holds: shape.holds.as_deref().map_or(|_| true, check),
        }
    })
}

/// Returns the check of a name.
fn check(name: &str) -> fn(&[u8]) -> bool {
    match name {
        "digit" => has_digit,
        "key" => is_key,
        "mixed" => is_mixed,
        "opaque" => is_opaque,
        "password" => is_password,
        "random" => is_random,
        "varied" => is_varied,
        other => unreachable!("a test reads the files, and there is no check {other}"),
    }
}

/// Placeholders for secrets, in lower case.
const PLACEHOLDERS: [&str; 12] = [
    "changeme",
    "change_me",
    "change-me",
    "example",
    "placeholder",
    "redacted",
    "your",
    "xxxx",
    "****",
    "dummy",
    "...",
    "insert",
];

fn has_digit(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
}

/// Requires a digit, a letter, and four different characters after the prefix.
fn is_varied(secret: &[u8]) -> bool {
    let body = secret.iter().rposition(|byte| matches!(byte, b'_' | b'/')).map_or(secret, |at| &secret[at + 1..]);
    let body = if body.len() < 16 { secret } else { body };
    has_digit(body) && body.iter().any(u8::is_ascii_alphabetic) && entropy(body) >= 2.0
}

/// Requires letters of both cases.
fn is_mixed(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_lowercase) && secret.iter().any(u8::is_ascii_uppercase) && entropy(secret) > 3.0
}

/// Requires letters of both cases without repetition.
fn is_key(secret: &[u8]) -> bool {
    is_mixed(secret) && !secret.ends_with(b"EXAMPLEKEY")
}

/// Requires randomness: all kinds of characters, nearly all different.
fn is_random(secret: &[u8]) -> bool {
    is_mixed(secret) && has_digit(secret) && secret.iter().any(|b| matches!(b, b'/' | b'+')) && entropy(secret) > 4.5
}

fn is_placeholder(secret: &[u8]) -> bool {
    let text = String::from_utf8_lossy(secret).to_ascii_lowercase();
    let one = text.bytes().all(|byte| Some(&byte) == secret.first());
    one || text.starts_with(['$', '%', '<', '{', '[', '@', '/']) || PLACEHOLDERS.iter().any(|word| text.contains(word))
}

/// Excludes words of code and prose.
fn is_password(secret: &[u8]) -> bool {
    secret.iter().any(|byte| byte.is_ascii_digit() || b"!@#%^*+?~".contains(byte))
        && secret.iter().any(u8::is_ascii_alphanumeric)
        && !is_placeholder(secret)
        && !is_digest(secret)
}

/// Requires letters and digits; excludes digests and paths.
fn is_opaque(secret: &[u8]) -> bool {
    let letters = secret.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = secret.iter().filter(|byte| byte.is_ascii_digit()).count();
    letters >= 2 && digits >= 2 && entropy(secret) > 3.0 && !is_placeholder(secret) && !is_digest(secret)
}

/// Matches identifiers: hexadecimal hashes, UUIDs, and digests with their algorithm.
fn is_digest(secret: &[u8]) -> bool {
    let prefixes = [b"sha1-".as_slice(), b"sha256", b"sha384", b"sha512", b"SHA256", b"md5"];
    (secret.len() >= 32 && secret.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-'))
        || prefixes.iter().any(|name| secret.starts_with(name))
}
