//! Fenced code blocks in the texts of a packet, as `CommonMark` has them: what a packet quotes and does not say itself.
//!
//! Every text is a document of its own, so that a fence reaches no other field.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::model::packet::{Fault, Packet};

/// One block.
struct Block {
    /// All of it, with its fences.
    whole: Range<usize>,
    /// What stands between the fences, piece by piece: what a list or a quotation puts before a line is no part of it.
    content: Vec<Range<usize>>,
    /// Whether a fence ends it, and not the end of what it stands in.
    closed: bool,
}

/// Returns the text in which what is between fences is room, and how many blocks that were.
///
/// The word behind an opening fence stays, with a colon before it. A block that no fence ends stays as it is: of that, nobody can
/// say where the quotation was meant to end.
pub(super) fn unquoted(text: &str) -> (Cow<'_, str>, usize) {
    let closed: Vec<Block> = blocks(text).into_iter().filter(|block| block.closed).collect();
    if closed.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    let mut bytes = text.as_bytes().to_vec();
    for block in &closed {
        let line = first_line(text, block);
        let info = line.end - text[line.clone()].trim_start().trim_start_matches(['`', '~']).len();
        blank(&mut bytes, line.start..info);
        blank(&mut bytes, line.end..block.whole.end);
        bytes[block.whole.start] = b':';
    }
    (Cow::Owned(String::from_utf8(bytes).expect("whole characters were blanked out")), closed.len())
}

/// Returns the text as if its fences were not there, with all that they hold.
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

/// Returns the packet without what stands in fences, which counts for nothing; a field that says nothing else is missing.
///
/// Entries keep their places; one that says nothing else is empty.
pub(super) fn own_words(packet: &Packet) -> Packet {
    let mut own = packet.clone();
    let Packet { objective, next_action, completed, unresolved, assumptions, risks, faults, .. } = &mut own;
    for (field, text) in [("objective", objective), ("next_action", next_action)] {
        let said = text.take();
        *text = said.as_deref().map(outside).filter(|text| !text.trim().is_empty());
        if said.is_some() && text.is_none() {
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

/// Returns what a text says outside of fences; nothing where that is room alone.
fn outside(text: &str) -> String {
    let blocks = blocks(text);
    if blocks.is_empty() {
        return text.to_owned();
    }
    let mut bytes = text.as_bytes().to_vec();
    blocks.iter().for_each(|block| blank(&mut bytes, block.whole.clone()));
    let outside = String::from_utf8(bytes).expect("whole characters were blanked out");
    // The signs and numbers of the list or the quotation that a fence stands in say nothing.
    if outside.contains(char::is_alphabetic) { outside } else { String::new() }
}

/// Makes room of all but the ends of lines.
fn blank(bytes: &mut [u8], range: Range<usize>) {
    bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

fn blocks(text: &str) -> Vec<Block> {
    // Nothing else opens one.
    if !text.contains("```") && !text.contains("~~~") {
        return Vec::new();
    }
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                open = Some(Block { whole: range, content: Vec::new(), closed: false });
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

/// Returns whether anything but room and the signs of a quotation follows what a block holds: only its closing fence can.
fn is_closed(text: &str, block: &Block) -> bool {
    let first = first_line(text, block);
    let from = block.content.last().map_or(first.end, |piece| piece.end.max(first.end));
    let fence = text[first].trim_start().chars().next();
    text[from..block.whole.end].chars().any(|c| Some(c) == fence)
}

fn first_line(text: &str, block: &Block) -> Range<usize> {
    let Range { start, end } = block.whole;
    start..text[start..end].find('\n').map_or(end, |line| start + line)
}
