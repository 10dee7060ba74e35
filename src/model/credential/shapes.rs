//! Shapes of ours: what gitleaks does not know, holds too narrowly for a text that tokens are glued into, or leaves to a rule that
//! finds too much.

use std::sync::Arc;

use super::rule::{Exception, Level, Pattern, Rule, entropy};
use Level::{Eager, Likely, Sure};

/// Its name, the name of what stands in its place where that is older, its level, its words, its pattern, and what else it must be.
type Row = (&'static str, &'static str, Level, &'static [&'static str], &'static str, fn(&[u8]) -> bool);

const SHAPES: &[Row] = &[
    ("github-pat", "github-token", Sure, &["ghp_"], "ghp_[A-Za-z0-9]{36,255}", is_varied),
    ("github-oauth", "github-token", Sure, &["gho_"], "gho_[A-Za-z0-9]{36,255}", is_varied),
    ("github-app-token", "github-token", Sure, &["ghu_", "ghs_"], "gh[us]_[A-Za-z0-9]{36,255}", is_varied),
    ("github-refresh-token", "github-token", Sure, &["ghr_"], "ghr_[A-Za-z0-9]{36,255}", is_varied),
    ("github-fine-grained-pat", "github-token", Sure, &["github_pat_"], "github_pat_[A-Za-z0-9_]{36,255}", is_varied),
    ("github-token", "", Likely, &["gh"], "(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})", any),
    ("aws-access-key-id", "", Likely, &["akia", "asia"], "(?:AKIA|ASIA)[A-Z0-9]{16}", any),
    (
        "aws-secret-access-key",
        "",
        Sure,
        &["secret"],
        r#"(?i:aws_?secret(?:_?access)?_?key|secret_?access_?key)\\?["']?[ \t]*(?:[:=]>?|,)[ \t]*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
        is_key,
    ),
    (
        "aws-secret-access-key",
        "",
        Eager,
        &["akia", "asia"],
        r#"(?:AKIA|ASIA)[A-Z0-9]{16}[,;:\t "']{1,4}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
        any,
    ),
    (
        "aws-secret-access-key",
        "",
        Eager,
        &["/", "+"],
        r"(?:^|[^A-Za-z0-9/+=_-])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=_-]|$)",
        is_random,
    ),
    ("slack-token", "", Likely, &["xox"], "xox[abeoprs]-[A-Za-z0-9-]{10,}", has_digit),
    (
        "slack-bot-token",
        "slack-token",
        Sure,
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"],
        "xox[abprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}",
        is_varied,
    ),
    ("slack-app-token", "", Sure, &["xapp-"], "xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]{16,}", is_varied),
    ("slack-app-token", "", Likely, &["xapp-"], "xapp-[A-Za-z0-9-]{16,}", has_digit),
    (
        "slack-webhook-url",
        "",
        Sure,
        &["hooks.slack.com"],
        "hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{23,}",
        is_varied,
    ),
    (
        "discord-webhook-url",
        "",
        Sure,
        &["webhooks/"],
        "(?:discord|discordapp)\\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,}",
        is_varied,
    ),
    ("gitlab-pat", "", Sure, &["glpat-"], "glpat-[A-Za-z0-9_.-]{20,}", is_varied),
    ("npm-access-token", "", Sure, &["npm_"], "npm_[A-Za-z0-9]{36}", is_varied),
    ("huggingface-access-token", "", Sure, &["hf_"], "hf_[A-Za-z0-9]{34,}", is_mixed),
    ("pypi-upload-token", "", Sure, &["pypi-"], "pypi-[A-Za-z0-9_-]{50,}", is_varied),
    ("sendgrid-api-token", "", Sure, &["sg."], "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", is_varied),
    ("sendgrid-api-token", "", Likely, &["sg."], "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}", has_digit),
    ("stripe-access-token", "", Sure, &["k_live_", "k_prod_"], "[rs]k_(?:live|prod)_[A-Za-z0-9]{16,}", is_varied),
    ("stripe-access-token", "", Likely, &["k_test_", "k_live_"], "[rs]k_(?:live|test)_[A-Za-z0-9]{10,}", any),
    ("google-api-key", "", Likely, &["aiza"], "AIza[A-Za-z0-9_-]{35}", any),
    (
        "api-key",
        "",
        Sure,
        &["sk-proj-", "sk-ant-", "sk-svcacct-", "sk-or-"],
        "sk-(?:proj|ant|svcacct|or)-[A-Za-z0-9_-]{32,}",
        is_varied,
    ),
    ("api-key", "", Sure, &["sk-"], "(?:^|[^A-Za-z0-9_-])(sk-[A-Za-z0-9]{40,})", is_mixed),
    ("api-key", "", Likely, &["sk-"], r"\bsk-[A-Za-z0-9_-]{20,}", has_digit),
    ("jwt", "", Likely, &["eyj"], r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+", any),
    (
        "authorization",
        "",
        Likely,
        &["authorization"],
        r#"(?i)\bauthorization\\?["']?[ \t]*[:=][ \t]*\\?["']?(?:bearer|basic|token)[ \t]+([^ \t\r\n"'\\]+)"#,
        any,
    ),
    (
        "url-credentials",
        "",
        Likely,
        &["://"],
        r#"\b[A-Za-z][A-Za-z0-9+.-]*://([^ \t\r\n/:@"']*:[^ \t\r\n/@"']+)@"#,
        any,
    ),
    (
        "private-key",
        "",
        Sure,
        &["private key"],
        r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[ \t\r\n+>|,;:.A-Za-z0-9/=-]|\\[rnt]|'|\x22){0,400}?[A-Za-z0-9+/]{32,})",
        any,
    ),
    (
        "password",
        "",
        Eager,
        &["passw", "pwd", "passphrase"],
        r#"(?i)(?:passw(?:or)?d|passwd|pwd|passphrase)\\?["']?[ \t]*(?:=>|:=|[:=])[ \t]*(?:\\?"([^"\\\s]{4,128})|'([^'\s]{4,128})'|([^\s"'`,;&<>(){}\[\]$\\]{4,128}))"#,
        is_password,
    ),
    (
        "secret",
        "",
        Eager,
        &[
            "secret",
            "api_key",
            "api-key",
            "apikey",
            "access_key",
            "access_token",
            "auth_token",
            "private_token",
            "token",
        ],
        r#"(?i)(?:secret(?:[_-]?key)?|api[_-]?key|access[_-]?key|(?:access|auth|private|api|bot|deploy)[_-]?token)\\?["']?[ \t]*(?:=>|:=|[:=])[ \t]*\\?["']?([A-Za-z0-9_/+=.~-]{12,256})"#,
        is_opaque,
    ),
];

/// What stands where a secret belongs, in lower case.
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

/// Returns the shapes.
pub(super) fn rules() -> Vec<Rule> {
    let examples = Arc::new(examples());
    let rules = SHAPES.iter().map(|(name, label, level, words, pattern, holds)| Rule {
        name: (*name).to_owned(),
        label: if label.is_empty() { (*name).to_owned() } else { (*label).to_owned() },
        level: *level,
        pattern: Pattern::new((*pattern).to_owned()),
        group: None,
        entropy: 0.0,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        path: None,
        exceptions: if *level == Sure { vec![Arc::clone(&examples)] } else { Vec::new() },
        holds: *holds,
    });
    rules.collect()
}

/// What is written in the place of a key to show how it looks.
fn examples() -> Exception {
    let words = [
        "abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdef0123",
        "example",
        "xxxxxxxx",
        "00000000",
        "12345678901234567890",
    ];
    Exception { stop_words: words.map(str::to_owned).to_vec(), ..Exception::default() }
}

fn any(_: &[u8]) -> bool {
    true
}

fn has_digit(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
}

/// Has at least a digit, a letter, and four different characters behind what such keys begin with.
fn is_varied(secret: &[u8]) -> bool {
    let body = secret.iter().rposition(|byte| matches!(byte, b'_' | b'/')).map_or(secret, |at| &secret[at + 1..]);
    let body = if body.len() < 16 { secret } else { body };
    has_digit(body) && body.iter().any(u8::is_ascii_alphabetic) && entropy(body) >= 2.0
}

/// Has letters of both cases, as random ones do.
fn is_mixed(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_lowercase) && secret.iter().any(u8::is_ascii_uppercase) && entropy(secret) > 3.0
}

/// Has small and large letters, and is no repetition.
fn is_key(secret: &[u8]) -> bool {
    is_mixed(secret) && !secret.ends_with(b"EXAMPLEKEY")
}

/// Is what only chance writes: all kinds of characters, nearly all of them different.
fn is_random(secret: &[u8]) -> bool {
    is_mixed(secret) && has_digit(secret) && secret.iter().any(|b| matches!(b, b'/' | b'+')) && entropy(secret) > 4.5
}

fn is_placeholder(secret: &[u8]) -> bool {
    let text = String::from_utf8_lossy(secret).to_ascii_lowercase();
    let one = text.bytes().all(|byte| Some(&byte) == secret.first());
    one || text.starts_with(['$', '%', '<', '{', '[', '@', '/']) || PLACEHOLDERS.iter().any(|word| text.contains(word))
}

/// Is no word, as those are that stand there in code and prose.
fn is_password(secret: &[u8]) -> bool {
    let odd = |byte: &u8| byte.is_ascii_digit() || b"!@#%^*+?~".contains(byte);
    secret.iter().any(odd)
        && secret.iter().any(u8::is_ascii_alphanumeric)
        && !is_placeholder(secret)
        && !is_digest(secret)
}

/// Mixes letters and digits, and is no digest and no place.
fn is_opaque(secret: &[u8]) -> bool {
    let letters = secret.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = secret.iter().filter(|byte| byte.is_ascii_digit()).count();
    letters >= 2 && digits >= 2 && entropy(secret) > 3.0 && !is_placeholder(secret) && !is_digest(secret)
}

/// Is what names a commit, a file or a thing: a hash in hexadecimal digits, a UUID, a digest with its algorithm before it.
fn is_digest(secret: &[u8]) -> bool {
    let hex = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let named = [b"sha1-".as_slice(), b"sha256", b"sha384", b"sha512", b"SHA256", b"md5"];
    (secret.len() >= 32 && hex(secret)) || named.iter().any(|name| secret.starts_with(name))
}
