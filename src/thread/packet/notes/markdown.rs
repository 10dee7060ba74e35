//! Splits a Markdown note into sections by its headings, and finds its fenced blocks.
//!
//! Every byte of the note belongs to one section, so that all of it is checked. Fenced code is
//! never split.

use std::ops::Range;

use super::names;

/// A heading with the text below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The heading; empty before the first one.
    pub(super) name: String,
    /// The level of the heading.
    pub(super) level: usize,
    /// The number of its first line.
    pub(super) line: usize,
    /// The whole section.
    pub(super) whole: Range<usize>,
    /// The text below the heading.
    pub(super) body: Range<usize>,
}

/// A fenced code block.
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

/// Splits a note into its sections and finds its blocks.
pub(super) fn split(text: &str) -> (Vec<Section>, Vec<Block>) {
    let mut sections = vec![Section { name: String::new(), level: 0, line: 1, whole: 0..0, body: 0..0 }];
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = None;
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = start + line.len();
        if let Some((sign, length)) = open {
            if is_closing(line, sign, length) {
                open = None;
            } else if let Some(block) = blocks.last_mut() {
                block.content.end = end;
            }
            if let Some(block) = blocks.last_mut() {
                block.whole.end = end;
            }
        } else if let Some((sign, length, info)) = opening(line) {
            open = Some((sign, length));
            let language = info.split_whitespace().next().unwrap_or_default().to_lowercase();
            blocks.push(Block { language, line: number + 1, whole: start..end, content: end..end });
        } else if let Some((name, level)) = heading(line) {
            let is_part = sections.last().is_some_and(|section| is_part(section, name, level));
            if !is_part {
                sections.push(Section {
                    name: name.to_owned(),
                    level,
                    line: number,
                    whole: start..end,
                    body: end..end,
                });
            }
        }
        if let Some(section) = sections.last_mut() {
            (section.whole.end, section.body.end) = (end, end);
        }
        start = end;
    }
    (sections, blocks)
}

/// Returns true if a heading below a field's own belongs to that field.
fn is_part(section: &Section, name: &str, level: usize) -> bool {
    level > section.level && names::field(&section.name).is_some() && names::field(name).is_none()
}

/// Returns the text and level of a heading.
fn heading(line: &str) -> Option<(&str, usize)> {
    let marks = unindented(line)?;
    let rest = marks.trim_start_matches('#');
    let level = marks.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    is_heading.then(|| (rest.trim().trim_end_matches('#').trim().trim_matches('*'), level))
}

/// Returns the sign, the length and the info string of an opening fence.
fn opening(line: &str) -> Option<(char, usize, &str)> {
    let marks = unindented(line)?.trim_end();
    let sign = marks.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = marks.trim_start_matches(sign);
    let length = marks.len() - info.len();
    (length >= 3 && !(sign == '`' && info.contains('`'))).then_some((sign, length, info))
}

fn is_closing(line: &str, sign: char, least: usize) -> bool {
    unindented(line).is_some_and(|marks| marks.trim_end().len() >= least && marks.trim_end().chars().all(|c| c == sign))
}

/// Returns a line without its indentation, unless that makes it code.
fn unindented(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(' ');
    (line.len() - rest.len() <= 3).then_some(rest)
}

/// An entry of a list, or a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) text: String,
    /// Whether its box is empty.
    pub(super) is_open: bool,
}

/// Returns the entries of the list in a body, or else its paragraphs; ignores comments.
pub(super) fn entries(body: &str) -> Vec<Entry> {
    let (mut items, mut paragraphs) = (Vec::<(usize, Entry)>::new(), vec![String::new()]);
    let mut open = None;
    for line in without_comments(body).lines() {
        let is_fence = match open {
            Some((sign, length)) => is_closing(line.trim_start(), sign, length),
            None => opening(line.trim_start()).is_some(),
        };
        if open.is_none() && heading(line).is_some() {
            continue;
        }
        let room = line.len() - line.trim_start().len();
        let outermost = items.first().map_or(usize::MAX, |(indent, _)| *indent);
        let starts = if open.is_none() && !is_fence && room <= outermost { item(line) } else { None };
        if let Some(entry) = starts {
            items.push((room, entry));
        } else if let Some((_, last)) = items.last_mut() {
            last.text.extend(["\n", line]);
        } else if line.trim().is_empty() && open.is_none() {
            paragraphs.push(String::new());
        } else if let Some(last) = paragraphs.last_mut() {
            // A block belongs to the paragraph before it.
            last.extend([line, "\n"]);
        }
        if is_fence {
            open =
                if open.is_some() { None } else { opening(line.trim_start()).map(|(sign, length, _)| (sign, length)) };
        }
    }
    let paragraphs = paragraphs.into_iter().map(|text| Entry { text, is_open: false });
    let found: Vec<Entry> =
        if items.is_empty() { paragraphs.collect() } else { items.into_iter().map(|(_, entry)| entry).collect() };
    let trimmed = found.into_iter().map(|entry| Entry { text: entry.text.trim().to_owned(), ..entry });
    trimmed.filter(|entry| !entry.text.is_empty()).collect()
}

/// Returns the list entry that a line starts.
fn item(line: &str) -> Option<Entry> {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let signs: &[char] = if number.len() == line.len() { &['-', '*', '+'] } else { &['.', ')'] };
    let text = number.strip_prefix(signs)?.strip_prefix([' ', '\t'])?.trim_start();
    let unboxed = |mark| text.strip_prefix(mark).map(str::trim_start);
    let done = unboxed("[x]").or_else(|| unboxed("[X]"));
    let open = unboxed("[ ]");
    Some(Entry { text: open.or(done).unwrap_or(text).to_owned(), is_open: open.is_some() })
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some((before, behind)) = rest.split_once("<!--") {
        plain.push_str(before);
        rest = behind.split_once("-->").map_or("", |(_, behind)| behind);
    }
    plain + rest
}
