//! The keys that a verifier knows, in the format of `ssh-keygen`'s allowed-signers files.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use ssh_key::{Algorithm, PublicKey};

use crate::ledger::sign;
use crate::model::time::Moment;

use super::key_lines::{lines, names_a_key};

/// The keys of an allowed-signers file, by fingerprint.
///
/// Only lines that allow git's namespace count. Of several lines for a key, the first valid one
/// counts.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    grants: BTreeMap<String, Vec<Grant>>,
    keys: Vec<PublicKey>,
    skipped: Vec<Skipped>,
}

/// A line that cannot be about a key that signs entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// A certificate authority, by line.
    Authority(usize),
    /// A key of this type, by line.
    KeyType(usize, String),
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Authority(line) => {
                write!(
                    f,
                    "line {line} names a `cert-authority`; certificates are not supported, name the keys themselves"
                )
            }
            Self::KeyType(line, kind) => write!(f, "line {line} names a key of type {kind}, which signs no entries"),
        }
    }
}

#[derive(Clone, Debug)]
struct Grant {
    principal: String,
    after: Option<Moment>,
    before: Option<Moment>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyStanding<'a> {
    /// Valid, with its principal.
    Trusted(&'a str),
    /// Not valid at that time, with its principal.
    Outside(&'a str),
    /// Not in the file.
    Unknown,
}

impl Signers {
    /// Parses an allowed-signers file. Times without a `Z` are in `zone`, as for `ssh-keygen`.
    ///
    /// A line that is not fully understood is an error: the file must not be obeyed in part. Lines
    /// that cannot be about a key that signs entries are skipped.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, SignersError> {
        let mut signers = Self::default();
        for (number, line) in lines(text).map_err(SignersError::Divided)? {
            signers.read(line, number, zone)?;
        }
        Ok(signers)
    }

    fn read(&mut self, line: &str, number: usize, zone: &TimeZone) -> Result<(), SignersError> {
        let mut words = words(line).ok_or(SignersError::Line(number))?.into_iter().peekable();
        let principal = words.next().ok_or(SignersError::Line(number))?;
        let principal = principals(&principal).ok_or(SignersError::Line(number))?;
        let mut grant = Grant { principal, after: None, before: None };
        let mut ours = true;
        let mut names = Vec::new();
        // Options and key types are both single words. Only key types have names that OpenSSH
        // knows.
        let options = words.next_if(|word| !is_key_type(word)).unwrap_or_default();
        if split(&options, ',').iter().any(|option| option.eq_ignore_ascii_case("cert-authority")) {
            self.skipped.push(Skipped::Authority(number));
            return Ok(());
        }
        if !options.is_empty() {
            for option in split(&options, ',') {
                let (name, value) = option.split_once('=').unwrap_or((option.as_str(), ""));
                let name = name.to_ascii_lowercase();
                let value = || quoted(value).ok_or_else(|| SignersError::Quotes(number, name.clone()));
                if names.contains(&name) {
                    return Err(SignersError::Twice(number, name));
                }
                match name.as_str() {
                    "namespaces" => ours = is_listed(value()?, sign::NAMESPACE),
                    "valid-after" => grant.after = Some(moment(value()?, zone).ok_or(SignersError::Time(number))?),
                    "valid-before" => grant.before = Some(moment(value()?, zone).ok_or(SignersError::Time(number))?),
                    _ => return Err(SignersError::Option(number, name)),
                }
                names.push(name);
            }
            if grant.after.zip(grant.before).is_some_and(|(after, before)| before <= after) {
                return Err(SignersError::Never(number));
            }
        }
        let (Some(kind), Some(key)) = (words.next(), words.next()) else {
            return Err(SignersError::Line(number));
        };
        if names_a_key(&words.collect::<Vec<_>>().join(" ")) {
            return Err(SignersError::TwoKeys(number));
        }
        let key = match PublicKey::from_openssh(&format!("{kind} {key}")) {
            Ok(key) => key,
            // A DSA key, or a certificate.
            Err(_) if kind != Algorithm::Ed25519.as_str() => {
                self.skipped.push(Skipped::KeyType(number, kind));
                return Ok(());
            }
            Err(error) => return Err(SignersError::Key(number, error)),
        };
        if ours {
            self.grants.entry(sign::fingerprint(&key)).or_default().push(grant);
            self.keys.push(key);
        }
        Ok(())
    }

    /// Returns the skipped lines.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns all keys, whenever they are valid.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter()
    }

    /// Returns true if a line names the key, whenever it is valid.
    pub(super) fn names(&self, fingerprint: &str) -> bool {
        self.grants.contains_key(fingerprint)
    }

    /// Returns the principal of a key, whenever it is valid.
    pub(crate) fn principal(&self, fingerprint: &str) -> Option<&str> {
        self.grants.get(fingerprint)?.first().map(|grant| grant.principal.as_str())
    }

    /// Returns the standing of a key by the lines whose principals match `principal`, or by all
    /// lines.
    pub(super) fn standing(&self, fingerprint: &str, at: Moment, principal: Option<&str>) -> KeyStanding<'_> {
        let grants = self.grants.get(fingerprint).into_iter().flatten();
        let grants = grants.filter(|grant| principal.is_none_or(|principal| is_listed(&grant.principal, principal)));
        let grants: Vec<&Grant> = grants.collect();
        // Git asks `ssh-keygen` about the second that the commit names.
        let valid = grants.iter().copied().find(|grant| {
            let (after, before) = (grant.after.map(Moment::seconds), grant.before.map(Moment::seconds));
            after.is_none_or(|after| at.seconds() >= after) && before.is_none_or(|before| at.seconds() <= before)
        });
        match (valid, grants.first()) {
            (Some(grant), _) => KeyStanding::Trusted(&grant.principal),
            (None, Some(grant)) => KeyStanding::Outside(&grant.principal),
            (None, None) => KeyStanding::Unknown,
        }
    }
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start))
}

/// Splits a line at blanks outside quotes.
fn words(line: &str) -> Option<Vec<String>> {
    if line.matches('"').count() % 2 == 1 {
        return None;
    }
    let words = split(&line.replace('\t', " "), ' ');
    Some(words.into_iter().filter(|word| !word.is_empty()).collect())
}

fn split(text: &str, separator: char) -> Vec<String> {
    let mut quoted = false;
    let parts = text.split(|c: char| {
        quoted ^= c == '"';
        c == separator && !quoted
    });
    parts.map(str::to_owned).collect()
}

/// Returns the principals, which are in quotes as a whole or not at all.
fn principals(word: &str) -> Option<String> {
    if word.contains('\\') {
        return None;
    }
    quoted(word).or((!word.contains('"')).then_some(word)).map(str::to_owned)
}

/// Returns the text between a pair of quotes; `None` if it contains another quote or a backslash.
fn quoted(text: &str) -> Option<&str> {
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['"', '\\'])).then_some(text)
}

/// Returns true if a pattern of the list matches, and no pattern after `!` does.
fn is_listed(list: &str, text: &str) -> bool {
    let fits = |negated: bool| {
        let patterns = list.split(',').filter(move |pattern| pattern.starts_with('!') == negated);
        patterns.map(|pattern| pattern.strip_prefix('!').unwrap_or(pattern)).any(|pattern| matches(pattern, text))
    };
    fits(false) && !fits(true)
}

/// Matches an OpenSSH pattern with `*` and `?`.
///
/// Only the last `*` is retried, so the time is at most text times pattern.
fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut star: Option<(&str, &str)> = None;
    loop {
        let (mut expected, mut found) = (pattern.chars(), text.chars());
        match (expected.next(), found.next()) {
            (Some('*'), _) => {
                pattern = expected.as_str();
                star = Some((pattern, text));
            }
            (Some(c), Some(here)) if c == '?' || c == here => (pattern, text) = (expected.as_str(), found.as_str()),
            (None, None) => return true,
            _ => {
                let Some((after, from)) = star else { return false };
                let mut rest = from.chars();
                if rest.next().is_none() {
                    return false;
                }
                (pattern, text) = (after, rest.as_str());
                star = Some((after, text));
            }
        }
    }
}

/// Parses `YYYYMMDD[HHMM[SS]]`, in UTC with a final `Z` and in `zone` without.
fn moment(text: &str, zone: &TimeZone) -> Option<Moment> {
    let (digits, utc) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let all = format!("{digits:0<14}");
    let part = |range: std::ops::Range<usize>| all[range].parse::<i8>().ok();
    let year = all[..4].parse().ok()?;
    let (date, time) = ((part(4..6)?, part(6..8)?), (part(8..10)?, part(10..12)?, part(12..14)?));
    let civil = jiff::civil::DateTime::new(year, date.0, date.1, time.0, time.1, time.2, 0).ok()?;
    let zone = if utc { TimeZone::UTC } else { zone.clone() };
    Some(Moment::from_millis(civil.to_zoned(zone).ok()?.timestamp().as_millisecond()))
}

errors! {
    /// A reason why an allowed-signers file cannot be used.
    #[derive(Debug, thiserror::Error)] pub enum SignersError;
    Line(usize): "line {0} is not `principals [options] key`";
    Divided(usize):
        "line {0} contains a control character, such as a bare CR, or a byte order mark; lines end with LF or CR LF";
    Quotes(usize, String): "line {0}: the value of the option {1:?} is not in one pair of quotes";
    TwoKeys(usize): "line {0} names more than one key";
    Option(usize, String): "line {0} has the unknown option {1:?}";
    Twice(usize, String): "line {0} has the option {1:?} twice";
    Never(usize): "line {0} is valid at no time: `valid-before` is not after `valid-after`";
    Time(usize): "line {0} has a time that is not YYYYMMDD[HHMM[SS]][Z]";
    Key(usize, #[source] ssh_key::Error): "line {0} holds no OpenSSH public key";
}
