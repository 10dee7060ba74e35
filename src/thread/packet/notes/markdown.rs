//! Splits a Markdown note into parts, by headings, labels (`**Goal:** …`) and tags
//! (`<next_action>`).
//!
//! Every byte of the note belongs to one part, so that all of it is checked. Fenced code is never
//! split.

use std::ops::Range;

use super::names;
use crate::model::packet::says_consumption;

/// One part of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The heading, label or tag as written; empty before the first heading.
    pub(super) name: String,
    /// The number of its first line.
    pub(super) line: usize,
    /// The whole part.
    pub(super) whole: Range<usize>,
    /// The text below the heading or after the label.
    pub(super) body: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text without a field.
    Plain,
    /// A heading of this level, or a tag.
    Heading(usize),
    /// A label with text after it, which ends with its paragraph.
    Line,
    /// A label alone on its line, which extends to the next one.
    Label,
}

/// A fenced code block that is not indented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The word after the opening fence, in lower case.
    pub(super) language: String,
    /// The number of the first line inside.
    pub(super) line: usize,
    /// The block with its fences.
    pub(super) whole: Range<usize>,
    /// The content.
    pub(super) content: Range<usize>,
}

/// Splits the text from `at` on.
pub(super) fn split(text: &str, at: usize) -> (Vec<Part>, Vec<Block>) {
    let line = text[..at].matches('\n').count() + 1;
    let plain = Part { name: String::new(), line, whole: at..at, body: at..at, kind: Kind::Plain };
    let mut splitter = Splitter { text, parts: vec![plain], blocks: Vec::new(), open: None, level: 0, last: at..at };
    let mut start = at;
    for (number, line) in text[at..].split_inclusive('\n').enumerate() {
        splitter.take(start..start + line.len(), splitter.parts[0].line + number);
        start += line.len();
    }
    (splitter.parts, splitter.blocks)
}

struct Splitter<'t> {
    text: &'t str,
    parts: Vec<Part>,
    blocks: Vec<Block>,
    /// The character and length of the open fence.
    open: Option<(char, usize)>,
    /// The heading level of the present part.
    level: usize,
    /// The previous line.
    last: Range<usize>,
}

impl Splitter<'_> {
    fn take(&mut self, line: Range<usize>, number: usize) {
        let shown = self.text[line.clone()].trim_end();
        let is_fenced = self.fence(shown, &line, number);
        if !is_fenced {
            self.begin(shown, &line, number);
        }
        if let Some(part) = self.parts.last_mut() {
            part.whole.end = line.end;
            part.body.end = line.end.max(part.body.start);
        }
        self.last = if is_fenced { line.end..line.end } else { line };
    }

    /// Returns true if a line belongs to a fenced block.
    fn fence(&mut self, shown: &str, line: &Range<usize>, number: usize) -> bool {
        let marks = shown.trim_start();
        let sign = marks.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = marks.chars().take_while(|c| Some(*c) == sign).count();
        let is_indented = shown.len() - marks.len() > 3;
        if let Some((open, least)) = self.open {
            if sign == Some(open) && length >= least && marks.len() == length && !is_indented {
                self.open = None;
                if let Some(block) = self.blocks.last_mut() {
                    (block.content.end, block.whole.end) = (line.start, line.end);
                }
            }
            return true;
        }
        let Some(sign) = sign.filter(|sign| length >= 3 && !(*sign == '`' && marks[length..].contains('`'))) else {
            return false;
        };
        self.open = Some((sign, length));
        if is_indented {
            self.blocks.push(Block { language: "indented".into(), line: number + 1, whole: 0..0, content: 0..0 });
        } else {
            let language = marks[length..].split_whitespace().next().unwrap_or_default().to_lowercase();
            let end = self.text.len();
            self.blocks.push(Block { language, line: number + 1, whole: line.start..end, content: line.end..end });
        }
        true
    }

    /// Starts another part, if the line does.
    fn begin(&mut self, shown: &str, line: &Range<usize>, number: usize) {
        let is_field = self.parts.last().is_some_and(|part| part.kind != Kind::Plain);
        if let Some((name, level)) = heading(shown) {
            // A heading below a field's own belongs to that field, unless it names another.
            let goes_on = is_field && level > self.level && names::of_heading(name).is_none();
            if !goes_on {
                self.level = level;
                self.push(name, line, number, line.end, is_known(name).then_some(Kind::Heading(level)));
            }
        } else if let Some(level) = self.underline(shown) {
            let above = self.last.clone();
            self.level = level;
            let name = self.text[above.clone()].trim().to_owned();
            if let Some(part) = self.parts.last_mut() {
                part.whole.end = above.start;
                part.body.end = above.start.max(part.body.start);
            }
            self.push(&name, &above, number - 1, line.end, is_known(&name).then_some(Kind::Heading(level)));
        } else if let Some(name) = tag(shown) {
            self.push(name, line, number, line.end, (!name.starts_with('/')).then_some(Kind::Heading(0)));
        } else if self.parts.last().is_some_and(|part| matches!(part.kind, Kind::Heading(_))) {
            // A label inside a field is part of its text.
        } else if let Some((name, at)) = label(shown).filter(|(name, _)| is_known(name)) {
            let kind = if shown[at..].trim().is_empty() { Kind::Label } else { Kind::Line };
            self.push(name, line, number, line.start + at, Some(kind));
        } else if is_field && self.ends_label(shown) {
            self.push("", line, number, line.start, None);
        }
    }

    /// Returns true if a line starts something other than the label's text.
    fn ends_label(&self, shown: &str) -> bool {
        let is_line = self.parts.last().is_some_and(|part| part.kind == Kind::Line);
        let is_bold = shown.trim_start().starts_with("**") && label(shown).is_some();
        is_bold
            || (is_line && (label(shown).is_some() || !shown.starts_with(|c: char| c.is_alphanumeric() || c == ' ')))
    }

    fn push(&mut self, name: &str, line: &Range<usize>, number: usize, body: usize, kind: Option<Kind>) {
        let kind = kind.unwrap_or(Kind::Plain);
        self.parts.push(Part {
            name: name.to_owned(),
            line: number,
            whole: line.clone(),
            body: body..line.end.max(body),
            kind,
        });
    }

    /// Returns the level of a setext heading that the line makes of the previous one.
    fn underline(&self, shown: &str) -> Option<usize> {
        let above = self.text[self.last.clone()].trim();
        let all = |sign| !shown.is_empty() && shown.chars().all(|c| c == sign);
        if above.is_empty() || heading(above).is_some() {
            return None;
        }
        // After other text, a line of hyphens is a rule.
        if all('=') { Some(1) } else { (all('-') && names::of_heading(above).is_some()).then_some(2) }
    }
}

impl Part {
    /// Returns true if the part begins with a heading of a field.
    pub(super) fn is_heading(&self) -> bool {
        matches!(self.kind, Kind::Heading(_)) || (self.kind == Kind::Plain && !self.name.is_empty())
    }

    /// Returns true if the part begins with a heading of a field at the second level or below.
    pub(super) fn is_section(&self) -> bool {
        matches!(self.kind, Kind::Heading(level) if level > 1)
    }

    /// Returns true if the part has a heading, label or tag of a field.
    pub(super) fn is_field(&self) -> bool {
        self.kind != Kind::Plain
    }
}

fn is_known(name: &str) -> bool {
    names::of_heading(name).is_some() || says_consumption(&key(name))
}

/// Returns a name in the form of a key.
pub(super) fn key(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

/// Returns the text and level of a heading.
fn heading(line: &str) -> Option<(&str, usize)> {
    let marks = line.trim_start_matches(' ');
    let rest = marks.trim_start_matches('#');
    let level = marks.len() - rest.len();
    let is_heading = line.len() - marks.len() <= 3 && (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    is_heading.then(|| (rest.trim().trim_end_matches('#').trim().trim_matches('*'), level))
}

/// Returns the name of a tag that stands alone and is a field's: `<next_action>`, `</next_action>`.
fn tag(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('<')?.strip_suffix('>')?;
    let plain = name.trim_start_matches('/');
    let is_name = plain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (is_name && names::of_key(plain).is_some()).then_some(name)
}

/// Returns the label at the start of a line, and where its text begins.
fn label(line: &str) -> Option<(&str, usize)> {
    let mut rest = line.trim_start();
    for mark in ["- ", "* ", "+ "] {
        rest = rest.strip_prefix(mark).unwrap_or(rest).trim_start();
    }
    let colon = rest.find(':')?;
    let name = rest[..colon].trim_matches(['*', '_', ' ']);
    let text = rest[colon + 1..].trim_start_matches(['*', '_']);
    // A colon in a time or address does not end a label.
    let ends = text.is_empty() || text.starts_with([' ', '\t']);
    (ends && (1..=40).contains(&name.len())).then_some((name, line.len() - text.len()))
}

/// The content of a part, as text or as list entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Text(String),
    Entries(Vec<Entry>),
}

/// A list entry, with the state of its checkbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) done: Option<bool>,
}

/// Parses the body of a part; ignores comments.
pub(super) fn body(text: &str) -> Body {
    let text = without_comments(text);
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    let mut before = String::new();
    let (mut fenced, mut is_below) = (false, false);
    for line in text.lines() {
        let room = line.len() - line.trim_start().len();
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        let outermost = entries.first().map_or(usize::MAX, |(room, _)| *room);
        if !fenced && heading(line).is_some() {
            is_below = true;
            continue;
        }
        match entry(line).filter(|_| !fenced && !is_fence) {
            Some(entry) if room <= outermost || (is_below && entries.is_empty()) => entries.push((room, entry)),
            _ => match entries.last_mut() {
                Some((_, last)) => last.text.extend(["\n", line]),
                None => before.extend([line, "\n"]),
            },
        }
        fenced ^= is_fence;
    }
    let before = before.trim();
    if entries.is_empty() {
        return Body::Text(before.to_owned());
    }
    let entries = entries.into_iter().map(|(_, entry)| Entry { text: entry.text.trim().to_owned(), ..entry });
    Body::Entries(entries.collect())
}

/// Returns the paragraphs of a text.
pub(super) fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fenced = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        // A block belongs to the previous paragraph.
        if line.trim().is_empty() && !fenced {
            paragraphs.push(String::new());
        } else if let Some(last) = paragraphs.last_mut() {
            last.extend([line, "\n"]);
        }
        fenced ^= is_fence;
    }
    paragraphs.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Returns the list entry that a line starts.
fn entry(line: &str) -> Option<Entry> {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let signs: &[char] = if number.len() == line.len() { &['-', '*', '+'] } else { &['.', ')'] };
    let rest = number.strip_prefix(signs)?;
    let text = rest.trim_start();
    if text.len() == rest.len() && !text.is_empty() {
        return None;
    }
    let boxed = |mark| text.strip_prefix(mark).map(str::trim_start);
    let (text, done) = match (boxed("[ ]"), boxed("[x]").or_else(|| boxed("[X]"))) {
        (Some(text), _) => (text, Some(false)),
        (_, Some(text)) => (text, Some(true)),
        _ => (text, None),
    };
    Some(Entry { text: text.to_owned(), done })
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut said = String::with_capacity(text.len());
    while let Some((before, behind)) = rest.split_once("<!--") {
        said.push_str(before);
        rest = behind.split_once("-->").map_or("", |(_, behind)| behind);
    }
    said + rest
}
