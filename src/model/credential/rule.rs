//! A rule for one shape of a credential.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// The certainty of a match; each level includes the previous ones.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Certain enough to refuse storage.
    #[default]
    Sure,
    /// Certain enough to redact in displayed text.
    Likely,
    /// Suspected by a preceding word.
    Eager,
}

/// A pattern, compiled on first use, because few of hundreds are needed. A test compiles each.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    source: String,
    compiled: OnceLock<Regex>,
}

impl From<String> for Pattern {
    fn from(source: String) -> Self {
        Self { source, compiled: OnceLock::new() }
    }
}

impl Pattern {
    /// Compiles a pattern over bytes with Go's semantics: `\w`, `\b` and case are ASCII only.
    pub(super) fn try_compile(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source).unicode(false).size_limit(64 << 20).build()
    }

    pub(super) fn get(&self) -> &Regex {
        self.compiled.get_or_init(|| self.try_compile().expect("a test compiles every pattern"))
    }
}

/// The part of a match that an exception examines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    /// The secret.
    #[default]
    Secret,
    /// The whole match.
    Match,
    /// Its lines.
    Line,
}

/// An exception for text that only looks like a credential.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Exception {
    /// Whether all conditions must hold, or any.
    pub(super) all: bool,
    pub(super) target: Target,
    pub(super) patterns: Vec<Pattern>,
    /// Lower-case words in the secret.
    pub(super) stop_words: Vec<String>,
    /// Paths of the file.
    pub(super) paths: Vec<Pattern>,
}

/// A shape.
#[derive(Debug)]
pub(super) struct Rule {
    /// The displayed name.
    pub(super) name: String,
    /// The replacement text.
    pub(super) label: String,
    pub(super) level: Level,
    pub(super) pattern: Pattern,
    /// The group with the secret; by default the first that matched.
    pub(super) group: Option<usize>,
    /// The minimum entropy of the secret in bits, if required.
    pub(super) entropy: f64,
    /// Lower-case keywords; every match has one.
    pub(super) words: Vec<String>,
    /// The paths it applies to, if limited.
    pub(super) path: Option<Pattern>,
    /// Exceptions, some of them of all rules.
    pub(super) exceptions: Vec<Arc<Exception>>,
    /// An additional check of the secret.
    pub(super) holds: fn(&[u8]) -> bool,
}

/// A match of a rule in a text.
pub(super) struct Match<'t> {
    pub(super) text: &'t [u8],
    pub(super) whole: Range<usize>,
    pub(super) secret: Range<usize>,
    pub(super) path: Option<&'t str>,
}

impl Match<'_> {
    fn part(&self, target: Target) -> &[u8] {
        match target {
            Target::Secret => &self.text[self.secret.clone()],
            Target::Match => &self.text[self.whole.clone()],
            Target::Line => {
                let start = self.text[..self.whole.start].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                let end = self.text[self.whole.end..].iter().position(|b| *b == b'\n');
                &self.text[start..end.map_or(self.text.len(), |at| self.whole.end + at)]
            }
        }
    }
}

impl Exception {
    fn excuses(&self, found: &Match<'_>) -> bool {
        let secret = || String::from_utf8_lossy(found.part(Target::Secret)).to_ascii_lowercase();
        let mut checks = Vec::with_capacity(3);
        if !self.paths.is_empty() {
            checks.push(found.path.is_some_and(|path| any(&self.paths, path.as_bytes())));
        }
        if !self.patterns.is_empty() {
            checks.push(any(&self.patterns, found.part(self.target)));
        }
        if !self.stop_words.is_empty() {
            let secret = secret();
            checks.push(self.stop_words.iter().any(|word| secret.contains(word.as_str())));
        }
        if self.all { !checks.is_empty() && checks.iter().all(|is_met| *is_met) } else { checks.contains(&true) }
    }
}

fn any(patterns: &[Pattern], text: &[u8]) -> bool {
    patterns.iter().any(|pattern| pattern.get().is_match(text))
}

impl Rule {
    /// Adds the matches that begin in a part of a text.
    pub(super) fn find(&self, text: &[u8], part: Range<usize>, path: Option<&str>, add: &mut dyn FnMut(Range<usize>)) {
        if let Some(pattern) = &self.path
            && !path.is_some_and(|path| pattern.get().is_match(path.as_bytes()))
        {
            return;
        }
        let text = &text[..part.end];
        let mut from = part.start;
        while from <= text.len()
            && let Some(captures) = self.pattern.get().captures_at(text, from)
        {
            let whole = captures.get(0).expect("a match has a whole").range();
            let secret = match self.group {
                Some(group) => captures.get(group),
                None => captures.iter().skip(1).flatten().next().or_else(|| captures.get(0)),
            };
            // The text after a secret may precede the next one.
            from = secret.map_or(whole.end, |secret| secret.end()).max(whole.start + 1);
            let Some(secret) = secret.filter(|secret| !secret.is_empty()) else { continue };
            let found = Match { text, whole: whole.clone(), secret: secret.range(), path };
            if self.counts(&found) {
                add(secret.range());
            }
        }
    }

    fn counts(&self, found: &Match<'_>) -> bool {
        let secret = found.part(Target::Secret);
        (self.holds)(secret)
            && (self.entropy <= 0.0 || entropy(secret) > self.entropy)
            && !self.exceptions.iter().any(|exception| exception.excuses(found))
    }
}

/// Returns the entropy of bytes, in bits for each byte.
pub(super) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / all)
        .map(|share| -share * share.log2())
        .sum()
}
