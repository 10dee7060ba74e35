//! Splits texts into clauses of words, and recognises names.

use std::sync::LazyLock;

use regex::Regex;

use super::data::NAMES;
use super::vocabulary::{GENERIC, List, MAKING, NO_NAME, START, STOP, VAGUE, VERB, on, plain};

/// The kind of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// An ordinary word.
    Plain,
    /// A capitalised word in mid-sentence: a name or abbreviation.
    Name,
    /// A file, a folder or a URL.
    Path,
    /// An identifier: `retry_policy`, `v2`, `#12`, `--fast`.
    Identifier,
    /// Text in backticks.
    Command,
    /// Text in quotation marks.
    Quoted,
    /// A number.
    Number,
}

/// A word.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// As written, without surrounding punctuation.
    pub(super) text: String,
    /// The form to compare: lower case, and marked if it is a quotation.
    pub(super) form: String,
    /// Its kind.
    pub(super) kind: Kind,
}

impl Word {
    fn new(text: &str, kind: Kind) -> Self {
        let form = match kind {
            Kind::Plain | Kind::Name => plain(text),
            Kind::Command | Kind::Quoted => format!("\u{ab}{}", text.trim().to_lowercase()),
            Kind::Path | Kind::Identifier | Kind::Number => text.to_lowercase(),
        };
        Self { text: text.to_owned(), form, kind }
    }

    /// Returns true if the word is in a list.
    pub(super) fn is(&self, list: List) -> bool {
        matches!(self.kind, Kind::Plain | Kind::Name) && on(list, &self.form)
    }

    /// Returns true if the word is significant.
    pub(super) fn carries(&self) -> bool {
        !self.is(STOP)
    }
}

/// The maximum length of a text to analyse, in bytes.
const LONGEST: usize = 4096;

/// Splits a text into clauses of words.
pub(super) fn clauses(text: &str) -> Vec<Vec<Word>> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut splitter = Splitter { clauses: vec![Vec::new()], after_mark: true };
    splitter.split(&text[..end]);
    let shouted = shouts(&splitter.clauses);
    let mut clauses = splitter.clauses;
    clauses.retain(|clause| !clause.is_empty());
    if shouted {
        let names = clauses.iter_mut().flatten().filter(|word| word.kind == Kind::Name);
        names.for_each(|word| word.kind = Kind::Plain);
    }
    clauses
}

/// Returns true if nearly every word is capitalised, so that capitals mean nothing.
fn shouts(clauses: &[Vec<Word>]) -> bool {
    let words: Vec<&Word> = clauses
        .iter()
        .flatten()
        .filter(|word| matches!(word.kind, Kind::Plain | Kind::Name) && word.text.len() > 3)
        .collect();
    words.len() > 1 && words.iter().filter(|word| word.text.starts_with(char::is_uppercase)).count() == words.len()
}

struct Splitter {
    clauses: Vec<Vec<Word>>,
    /// Whether a sentence begins, where a capital means nothing.
    after_mark: bool,
}

impl Splitter {
    fn split(&mut self, text: &str) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(inner) = enclosed(rest) {
                let kind = if first == '`' { Kind::Command } else { Kind::Quoted };
                self.push(Word::new(inner, kind));
                let close = rest[first.len_utf8() + inner.len()..].chars().next().map_or(0, char::len_utf8);
                rest = &rest[first.len_utf8() + inner.len() + close..];
                continue;
            }
            if first.is_whitespace()
                || is_quote(first)
                || matches!(first, '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '*')
            {
                if first == '\n' {
                    self.break_clause();
                }
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let end = rest.char_indices().skip(1).find(|(_, c)| ends_chunk(*c)).map_or(rest.len(), |(at, _)| at);
            self.chunk(&rest[..end]);
            rest = &rest[end..];
        }
    }

    /// Adds a chunk between two spaces.
    fn chunk(&mut self, chunk: &str) {
        let bare =
            chunk.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '…') && c != '/');
        if matches!(chunk, "—" | "–" | "-" | "→" | "->" | "&" | "+") || bare.is_empty() {
            self.break_clause();
            return;
        }
        match kind_of(bare) {
            Some(kind) => self.push(Word::new(bare, kind)),
            None => self.plain(bare),
        }
        if chunk.len() > bare.len() && chunk.ends_with(['.', ';', ':', '!', '?', ',']) {
            self.break_clause();
            self.after_mark = !chunk.ends_with(',');
        }
    }

    fn plain(&mut self, text: &str) {
        for part in text
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}' | '-')))
            .map(|part| part.trim_matches('-'))
            .filter(|part| !part.is_empty())
        {
            self.word(part);
        }
    }

    fn word(&mut self, text: &str) {
        if text.chars().any(is_ideograph) {
            // In scripts without spaces, a character counts as a word.
            text.chars().for_each(|c| self.push(Word::new(&c.to_string(), Kind::Plain)));
            return;
        }
        let mut word = Word::new(text, Kind::Plain);
        if word.form == "then" {
            self.break_clause();
            return;
        }
        let capital = text.starts_with(char::is_uppercase);
        let first = self.after_mark || self.clauses.last().is_none_or(Vec::is_empty);
        if capital && !first && !word.is(NO_NAME) && !word.is(GENERIC) && !word.is(STOP) {
            word.kind = Kind::Name;
        }
        // `and` starts another action only before a verb.
        if first_is_and(self.clauses.last()) && begins_action(&word) {
            self.clauses.last_mut().and_then(Vec::pop);
            self.break_clause();
        }
        self.push(word);
    }

    fn push(&mut self, word: Word) {
        self.after_mark = false;
        self.clauses.last_mut().expect("there is always a clause").push(word);
    }

    fn break_clause(&mut self) {
        if self.clauses.last().is_some_and(|clause| !clause.is_empty()) {
            self.clauses.push(Vec::new());
        }
    }
}

fn ends_chunk(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '"' | '\u{201c}' | '\u{201d}' | '—' | '→' | '(' | ')' | '[' | ']')
}

fn first_is_and(clause: Option<&Vec<Word>>) -> bool {
    clause.and_then(|clause| clause.last()).is_some_and(|word| word.form == "and")
}

fn begins_action(word: &Word) -> bool {
    [VERB, VAGUE, START, MAKING].iter().any(|list| word.is(list))
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '`' | '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' | '\u{2018}')
}

/// Returns the quoted text at the start of a text.
fn enclosed(text: &str) -> Option<&str> {
    let open = text.chars().next()?;
    let close = match open {
        '`' | '"' | '\'' => open,
        '\u{201c}' => '\u{201d}',
        '\u{ab}' => '\u{bb}',
        '\u{2018}' => '\u{2019}',
        _ => return None,
    };
    let inner = &text[open.len_utf8()..];
    let end = inner.find(close)?;
    let after = inner[end + close.len_utf8()..].chars().next();
    let is_separate = open != '\'' || after.is_none_or(|c| !c.is_alphanumeric());
    (is_separate && !inner[..end].trim().is_empty()).then_some(&inner[..end])
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the kind of a name by its form.
fn kind_of(text: &str) -> Option<Kind> {
    static FORMS: LazyLock<Vec<(Kind, Regex)>> = LazyLock::new(|| {
        let sections = [(Kind::Path, "path"), (Kind::Number, "number"), (Kind::Identifier, "identifier")];
        sections
            .into_iter()
            .flat_map(|(kind, section)| {
                NAMES
                    .section(section)
                    .iter()
                    .map(move |pattern| (kind, Regex::new(pattern).expect("a test compiles every pattern")))
            })
            .collect()
    });
    if ["e.g", "i.e", "etc", "a.k.a"].contains(&text.to_lowercase().as_str()) || is_abbreviated(text) {
        return None;
    }
    let found = FORMS.iter().find(|(_, form)| form.is_match(text)).map(|(kind, _)| *kind)?;
    // `Stub/` and `and/or` are words, `#12` is a reference.
    Some(if found == Kind::Number && text.starts_with('#') { Kind::Identifier } else { found })
}

fn is_abbreviated(text: &str) -> bool {
    let ordinal = ["1st", "2nd", "3rd"].contains(&text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let amount =
        !digits.is_empty() && digits.len() < text.len() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    ordinal || (amount && text.len() - digits.len() <= 3)
}
