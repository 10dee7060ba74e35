//! Fenced code blocks in texts, as in `CommonMark`: quotations of the packet.
//!
//! Every text is a separate document, so that a fence does not extend to other fields.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::model::packet::{Fault, Packet};

/// The maximum nesting of lists and quotations: the parser's work for a line grows with it.
pub(super) const MOST_DEEP: usize = 100;

/// A block.
struct Block {
    /// The range with its fences.
    whole: Range<usize>,
    /// The opening fence with its info string.
    first: Range<usize>,
    /// The content in pieces, without prefixes of lists and quotations.
    content: Vec<Range<usize>>,
    /// Whether a closing fence ends it, unambiguously for every reader.
    closed: bool,
}

/// Replaces the content of fences by spaces; also returns the number of blocks.
///
/// Keeps the info string, with a colon before it. An unclosed block is kept, because its intended
/// end is unknown.
pub(super) fn unquoted(text: &str) -> (Cow<'_, str>, usize) {
    let closed: Vec<Block> = blocks(text).into_iter().filter(|block| block.closed).collect();
    if closed.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    let mut bytes = text.as_bytes().to_vec();
    for block in &closed {
        let line = block.first.clone();
        let info = line.end - text[line.clone()].trim_start().trim_start_matches(['`', '~']).len();
        blank(&mut bytes, line.start..info);
        blank(&mut bytes, line.end..block.whole.end);
        bytes[block.whole.start] = b':';
    }
    (Cow::Owned(String::from_utf8(bytes).expect("whole characters were blanked out")), closed.len())
}

/// Returns the text without its fenced blocks.
pub(super) fn opened(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for block in blocks(text) {
        let mut from = block.whole.start;
        for piece in block.content {
            blank(&mut bytes, from..piece.start);
            from = piece.end;
        }
        blank(&mut bytes, from..block.whole.end);
    }
    String::from_utf8(bytes).expect("whole characters were blanked out")
}

/// Returns the packet without fenced content; a field with nothing else is missing.
///
/// Entries keep their positions; one with nothing else is empty.
pub(super) fn own_words(packet: &Packet) -> Packet {
    let mut own = packet.clone();
    let Packet { objective, next_action, completed, unresolved, assumptions, risks, faults, .. } = &mut own;
    for (field, text) in [("objective", objective), ("next_action", next_action)] {
        let original = text.take();
        *text = original.as_deref().map(outside).filter(|rest| !rest.trim().is_empty());
        if original.is_some() && text.is_none() {
            faults.push(only_quoted(field));
        }
    }
    let lists = [("completed", completed), ("unresolved", unresolved), ("assumptions", assumptions), ("risks", risks)];
    for (field, entries) in lists {
        let some = !entries.is_empty();
        entries.iter_mut().for_each(|entry| *entry = outside(entry));
        if entries.iter().all(String::is_empty) {
            entries.clear();
        }
        if some && entries.is_empty() {
            faults.push(only_quoted(field));
        }
    }
    own
}

fn only_quoted(field: &str) -> Fault {
    Fault { field: field.into(), what: "is missing outside of code fences".into() }
}

/// Returns the text outside fences, or `None` if only spaces remain.
fn outside(text: &str) -> String {
    let blocks = blocks(text);
    if blocks.is_empty() {
        return text.to_owned();
    }
    let mut bytes = text.as_bytes().to_vec();
    blocks.iter().for_each(|block| blank(&mut bytes, block.whole.clone()));
    let outside = String::from_utf8(bytes).expect("whole characters were blanked out");
    // Ignores the markers of an enclosing list or quotation.
    if outside.contains(char::is_alphabetic) { outside } else { String::new() }
}

/// Replaces everything except line ends by spaces.
fn blank(bytes: &mut [u8], range: Range<usize>) {
    bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

fn blocks(text: &str) -> Vec<Block> {
    // Nothing else opens a block.
    if !text.contains("```") && !text.contains("~~~") {
        return Vec::new();
    }
    if depth(text) > MOST_DEEP {
        let all = 0..text.len();
        return Vec::from([Block { whole: all.clone(), first: 0..0, content: Vec::from([all]), closed: false }]);
    }
    let (lines, joined) = (with_ends(text, b'\n'), with_ends(text, b' '));
    let mut blocks = parsed(&lines);
    // A reader that sees one more or fewer fences would take the following text for the opposite.
    if blocks.iter().any(|block| holds_fence(&lines, block))
        || (lines != joined && whole_ranges(&parsed(&joined)) != whole_ranges(&blocks))
    {
        blocks.iter_mut().for_each(|block| block.closed = false);
    }
    blocks
}

fn whole_ranges(blocks: &[Block]) -> Vec<Range<usize>> {
    blocks.iter().map(|block| block.whole.clone()).collect::<Vec<_>>()
}

/// Returns the maximum nesting of lists and quotations: an inner one is indented further than its
/// parents.
pub(super) fn depth(text: &str) -> usize {
    text.split(['\n', '\r']).fold(0, |deepest, line| {
        let (mut rest, mut marks, mut columns) = (line, 0, 0);
        loop {
            let behind = rest.trim_start_matches([' ', '\t']);
            let room = &rest[..rest.len() - behind.len()];
            columns += room.bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum::<usize>();
            let Some(after) = behind_mark(behind) else { break };
            (rest, marks) = (after, marks + 1);
        }
        // A list entry indents each line by at least two columns.
        if marks == 0 { deepest } else { deepest.max(marks + deepest.min(columns / 2)) }
    })
}

/// Returns the text after the marker of a quotation or list entry, with its space.
fn behind_mark(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('>') {
        return Some(rest.strip_prefix(' ').unwrap_or(rest));
    }
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let signs: &[char] = if number.len() == line.len() { &['-', '+', '*'] } else { &['.', ')'] };
    let rest = number.strip_prefix(signs).filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Returns the text at the same positions, with what the parser handles differently from
/// `CommonMark` rewritten: a lone carriage return, which ends a line, and trailing tabs.
fn with_ends(text: &str, lone: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut is_end = true;
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'\r' if bytes.get(at + 1) != Some(&b'\n') => (bytes[at], is_end) = (lone, true),
            b'\n' | b'\r' => is_end = true,
            b'\t' if is_end => bytes[at] = b' ',
            b' ' => {}
            _ => is_end = false,
        }
    }
    String::from_utf8(bytes).expect("one byte characters were put in the place of others")
}

fn parsed(text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                let first = first_line(text, &range);
                open = Some(Block { whole: range, first, content: Vec::new(), closed: false });
            }
            Event::Text(_) => {
                if let Some(block) = &mut open {
                    block.content.push(range);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                blocks.extend(open.take().map(|block| Block { closed: is_closed(text, &block), ..block }));
            }
            _ => {}
        }
    }
    blocks
}

/// Returns true if anything except spaces and quotation markers follows a block's content: only its
/// closing fence can.
fn is_closed(text: &str, block: &Block) -> bool {
    let first = &block.first;
    let from = block.content.last().map_or(first.end, |piece| piece.end.max(first.end));
    let (sign, _) = fence(&text[first.clone()]);
    text[from..block.whole.end].chars().any(|c| Some(c) == sign)
}

/// Returns true if a line of the content looks like a closing fence, at any indentation.
fn holds_fence(text: &str, block: &Block) -> bool {
    let (sign, length) = fence(&text[block.first.clone()]);
    let content: String = block.content.iter().map(|piece| &text[piece.clone()]).collect();
    content.lines().map(str::trim).any(|line| fence(line) == (sign, line.len()) && line.len() >= length)
}

/// Returns the character and length of a fence.
fn fence(line: &str) -> (Option<char>, usize) {
    let line = line.trim_start();
    let sign = line.chars().next();
    (sign, line.chars().take_while(|c| Some(*c) == sign).count())
}

fn first_line(text: &str, block: &Range<usize>) -> Range<usize> {
    let Range { start, end } = *block;
    start..text[start..end].find('\n').map_or(end, |line| start + line)
}
