//! The keys that a verifier knows, in the format of `ssh-keygen`'s allowed-signers files.

use std::collections::BTreeMap;

use ssh_key::PublicKey;

use crate::model::time::Moment;
use crate::sign;

/// The keys of an allowed-signers file, by fingerprint.
///
/// Only lines that let a key sign in git's namespace count. A key on several lines is trusted as the first that is valid.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    grants: BTreeMap<String, Vec<Grant>>,
}

#[derive(Clone, Debug)]
struct Grant {
    principal: String,
    after: Option<Moment>,
    before: Option<Moment>,
}

/// What a verifier's signers say of a key at a time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing<'a> {
    /// It is this principal's.
    Trusted(&'a str),
    /// It is this principal's, but not at that time.
    Outside(&'a str),
    /// It stands nowhere.
    Unknown,
}

impl Signers {
    /// Reads an allowed-signers file.
    ///
    /// A line that cannot be understood is an error, not a key less: what a team wrote down must not be half obeyed.
    pub fn parse(text: &str) -> Result<Self, SignersError> {
        let mut signers = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                signers.read(line, at + 1)?;
            }
        }
        Ok(signers)
    }

    fn read(&mut self, line: &str, number: usize) -> Result<(), SignersError> {
        let mut words = words(line).ok_or(SignersError::Line(number))?.into_iter().peekable();
        let principal = words.next().ok_or(SignersError::Line(number))?;
        let mut grant = Grant { principal: unquoted(&principal), after: None, before: None };
        let mut ours = true;
        // Options and the key's type are both words without a blank; only types are names that OpenSSH knows.
        if let Some(options) = words.next_if(|word| !is_key_type(word)) {
            for option in split(&options, ',') {
                let (name, value) = option.split_once('=').unwrap_or((option.as_str(), ""));
                let value = unquoted(value);
                match name.to_ascii_lowercase().as_str() {
                    "cert-authority" => return Err(SignersError::CertAuthority(number)),
                    "namespaces" => ours = value.split(',').any(|pattern| matches(pattern, sign::NAMESPACE)),
                    "valid-after" => grant.after = Some(moment(&value).ok_or(SignersError::Time(number))?),
                    "valid-before" => grant.before = Some(moment(&value).ok_or(SignersError::Time(number))?),
                    _ => return Err(SignersError::Option(number, name.to_owned())),
                }
            }
        }
        let (Some(kind), Some(key)) = (words.next(), words.next()) else {
            return Err(SignersError::Line(number));
        };
        let key = PublicKey::from_openssh(&format!("{kind} {key}")).map_err(|e| SignersError::Key(number, e))?;
        if ours {
            self.grants.entry(sign::fingerprint(&key)).or_default().push(grant);
        }
        Ok(())
    }

    /// Returns what is said of a key at a time.
    pub(super) fn standing(&self, fingerprint: &str, at: Moment) -> Standing<'_> {
        let Some(grants) = self.grants.get(fingerprint) else {
            return Standing::Unknown;
        };
        let valid = |grant: &&Grant| {
            grant.after.is_none_or(|after| at >= after) && grant.before.is_none_or(|before| at <= before)
        };
        match (grants.iter().find(valid), grants.first()) {
            (Some(grant), _) => Standing::Trusted(&grant.principal),
            (None, Some(grant)) => Standing::Outside(&grant.principal),
            (None, None) => Standing::Unknown,
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

fn unquoted(text: &str) -> String {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// Matches one of OpenSSH's patterns, with `*` and `?`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(&pattern[1..], &text[at..])),
        Some(c) => {
            let mut rest = text.chars();
            rest.next().is_some_and(|found| c == '?' || c == found) && matches(&pattern[c.len_utf8()..], rest.as_str())
        }
    }
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`, as UTC with and without the `Z`: a verdict must not hang on the reader's time zone.
fn moment(text: &str) -> Option<Moment> {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let all = format!("{digits:0<14}");
    let [year, month, day] = [&all[..4], &all[4..6], &all[6..8]];
    let [hour, minute, second] = [&all[8..10], &all[10..12], &all[12..]];
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}.000Z").parse().ok()
}

/// Why an allowed-signers file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignersError {
    /// A line is no allowed-signers line.
    #[error("line {0} is not `principals [options] key`")]
    Line(usize),
    /// A line trusts whatever a certificate authority signs.
    #[error("line {0} names a `cert-authority`; certificates are not supported, name the keys themselves")]
    CertAuthority(usize),
    /// A line has an option that is not known.
    #[error("line {0} has the unknown option {1:?}")]
    Option(usize, String),
    /// A validity is no time.
    #[error("line {0} has a time that is not YYYYMMDD[HHMM[SS]][Z]")]
    Time(usize),
    /// A key cannot be read.
    #[error("line {0} holds no OpenSSH public key")]
    Key(usize, #[source] ssh_key::Error),
}
