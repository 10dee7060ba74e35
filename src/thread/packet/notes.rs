//! Parses packets in common forms: JSON, YAML and Markdown notes, with common names.
//!
//! The form only determines where the fields are. The rest of a note is checked too, to the last
//! byte.

mod fields;
mod markdown;
mod names;
mod yaml;

use std::ops::Range;

use serde_json::{Map, Value};

use fields::{Said, collect, fields_named};
use markdown::{Block, Body, Part};

use super::fence;
use crate::model::json;
use crate::model::packet::{
    FACT_FIELDS, Fault, Form, MAX_BYTES, Packet, Passage, Unusable, consumed, may_quote, passages, read_fields,
};
use crate::model::problems::Problems;

/// The number of fields that an object in a fenced block must have to be the packet.
const TELLING: usize = 3;

/// Parses a packet from bytes.
pub fn read(bytes: &[u8]) -> Result<Packet, Unusable> {
    if bytes.len() > MAX_BYTES {
        return Err(Unusable::too_large());
    }
    let bytes = json::unmarked(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unusable::absent("the packet is empty".into()));
    }
    let mut problems = Problems::default();
    match json::read(bytes, &mut problems) {
        Some(Value::Object(map)) => of_object(Form::Json, &map, problems, passages(&Value::Object(map.clone()))),
        Some(_) => Err(unusable(bytes, "the packet is not a JSON object")),
        None => {
            let why = problems.first().map_or_else(|| "not JSON".into(), |problem| problem.message.clone());
            match std::str::from_utf8(bytes) {
                Ok(text) if !text.trim_start().starts_with('{') => of_note(text),
                _ => Err(unusable(bytes, &format!("the packet is {why}"))),
            }
        }
    }
}

fn unusable(bytes: &[u8], why: &str) -> Unusable {
    let text = String::from_utf8_lossy(bytes).into_owned();
    Unusable { why: why.into(), passages: vec![Passage::new("the packet", text)] }
}

/// Parses a packet from an object; `passages` are all texts to check.
fn of_object(
    form: Form,
    map: &Map<String, Value>,
    problems: Problems,
    passages: Vec<Passage>,
) -> Result<Packet, Unusable> {
    let mut packet = of_sayings(form, &Said::by_keys(map), passages)?;
    packet.consumed = consumed(map);
    packet.faults.extend(problems.into_iter().map(|problem| Fault { field: problem.path, what: problem.message }));
    Ok(packet)
}

fn of_sayings(form: Form, said: &[Said], passages: Vec<Passage>) -> Result<Packet, Unusable> {
    let fields = collect(said, form);
    match read_fields(&fields.map) {
        Ok(packet) => {
            let unknown = packet.unknown.into_iter().chain(fields.unread).collect();
            Ok(Packet { form, renamed: fields.renamed, unknown, passages, ..packet })
        }
        Err(missing) => Err(Unusable { why: format!("the packet says nothing to resume from: {missing}"), passages }),
    }
}

/// Parses a packet from text other than JSON.
fn of_note(text: &str) -> Result<Packet, Unusable> {
    let front = front_matter(text);
    let whole = front.clone().map_or(0..text.len(), |front| if front.behind_is_empty { front.yaml } else { 0..0 });
    if !whole.is_empty() {
        match yaml::read(&text[whole.clone()]) {
            Ok(Value::Object(map)) if fields_named(&map) > 0 => {
                let passages = with_comments(&map, &text[whole.clone()], line_of(text, whole.start));
                return of_object(Form::Yaml, &map, Problems::default(), passages);
            }
            Err(error) if looks_like_yaml(text) => {
                let error = error.below(line_of(text, whole.start) - 1);
                return Err(unusable(text.as_bytes(), &format!("the packet is not YAML: {error}")));
            }
            _ => {}
        }
    }
    if fence::depth(text) > fence::MOST_DEEP {
        let why = format!("more than {} lists and quotations stand in each other in the packet", fence::MOST_DEEP);
        return Err(unusable(text.as_bytes(), &why));
    }
    Note::read(text, front).and_then(Note::packet)
}

/// Returns true if the first line with content is a YAML key, and no line is a heading of a field.
fn looks_like_yaml(text: &str) -> bool {
    let (parts, _) = markdown::split(text, 0);
    let mut lines =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(['#', '%']) && *line != "---");
    let is_key = |line: &str| {
        line.split_once(':').is_some_and(|(key, _)| {
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        })
    };
    lines.next().is_some_and(is_key) && !parts.iter().any(Part::is_section)
}

/// Returns the texts of a YAML object, and its comments.
fn with_comments(map: &Map<String, Value>, text: &str, first_line: usize) -> Vec<Passage> {
    let mut all = passages(&Value::Object(map.clone()));
    let comments = yaml::comments(text);
    all.extend(comments.map(|(line, comment)| Passage {
        first_line: first_line + line - 1,
        ..Passage::new("a comment", comment.to_owned())
    }));
    all
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// YAML front matter between two lines of hyphens.
#[derive(Clone, Debug)]
struct Front {
    yaml: Range<usize>,
    behind: usize,
    /// Whether nothing follows, so that it is the packet.
    behind_is_empty: bool,
}

fn front_matter(text: &str) -> Option<Front> {
    let from = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?.len();
    let mut end = from;
    for line in text[from..].split_inclusive('\n') {
        let behind = end + line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return Some(Front { yaml: from..end, behind, behind_is_empty: text[behind..].trim().is_empty() });
        }
        end = behind;
    }
    None
}

/// A Markdown note.
struct Note {
    said: Vec<Said>,
    passages: Vec<Passage>,
    faults: Vec<Fault>,
    consumed: Option<String>,
}

impl Note {
    fn read(text: &str, front: Option<Front>) -> Result<Self, Unusable> {
        let mut note = Self { said: Vec::new(), passages: Vec::new(), faults: Vec::new(), consumed: None };
        let at = front.as_ref().map_or(0, |front| front.behind);
        if let Some(front) = front {
            note.take_front(text, &front.yaml);
        }
        let (parts, blocks) = markdown::split(text, at);
        let packet = note.take_block(text, &blocks)?;
        for part in &parts {
            note.take_part(text, part, packet.as_ref());
        }
        Ok(note)
    }

    fn take_front(&mut self, text: &str, yaml: &Range<usize>) {
        let shown = &text[yaml.clone()];
        match yaml::read(shown) {
            Ok(Value::Object(map)) => {
                self.said.extend(Said::by_keys(&map));
                self.consumed = consumed(&map);
                self.passages.extend(with_comments(&map, shown, 2));
            }
            Ok(Value::Null) => self.passages.push(Passage::new("the front matter", shown.to_owned())),
            other => {
                let why = other.err().map_or_else(|| "no object".to_owned(), |error| error.below(1).to_string());
                self.faults.push(Fault { field: "the front matter".into(), what: format!("is not YAML: {why}") });
                self.passages.push(Passage { first_line: 2, ..Passage::new("the front matter", shown.to_owned()) });
            }
        }
    }

    /// Uses the packet in a fenced block; then the rest of the note has no fields.
    fn take_block(&mut self, text: &str, blocks: &[Block]) -> Result<Option<Range<usize>>, Unusable> {
        let mut found: Option<(Range<usize>, usize)> = None;
        for block in blocks.iter().filter(|block| matches!(block.language.as_str(), "" | "json" | "yaml" | "yml")) {
            let shown = &text[block.content.clone()];
            let Some((map, problems)) = packet_in(shown, block).map_err(|why| unusable(text.as_bytes(), &why))? else {
                continue;
            };
            if let Some((_, line)) = found {
                let why = format!("the note has two packets, in lines {line} and {}: leave one", block.line);
                return Err(unusable(text.as_bytes(), &why));
            }
            found = Some((block.whole.clone(), block.line));
            self.said = Said::by_keys(&map);
            self.consumed = self.consumed.take().or_else(|| consumed(&map));
            self.passages.extend(with_comments(&map, shown, block.line));
            let faults = problems.into_iter().map(|problem| Fault { field: problem.path, what: problem.message });
            self.faults.extend(faults);
        }
        Ok(found.map(|(whole, _)| whole))
    }

    /// Reads a part of the note; the texts of `packet`, the block with the packet, are already
    /// read.
    fn take_part(&mut self, text: &str, part: &Part, packet: Option<&Range<usize>>) {
        let meaning = names::of_heading(&part.name).filter(|_| part.is_field());
        let mut shown = text[part.whole.clone()].to_owned();
        if let Some(packet) = packet.filter(|packet| part.whole.contains(&packet.start)) {
            let inside = packet.start - part.whole.start..packet.end.min(part.whole.end) - part.whole.start;
            let room: String = shown[inside.clone()].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            shown.replace_range(inside, &room);
        }
        let name = part.name.trim();
        if !shown.trim().is_empty() {
            let field = match meaning {
                Some(meaning) => meaning.field,
                None if name.is_empty() => "the note",
                None => name,
            };
            let quotes = may_quote(field);
            self.passages.push(Passage { quotes, first_line: part.line, ..Passage::new(field, shown) });
        }
        if packet.is_some() {
            return;
        }
        // `## Objective: migrate the users` has the text in the heading.
        let inline =
            name.split_once(':').filter(|(name, _)| names::of_heading(name) == meaning).map(|(_, text)| text.trim());
        let body = &text[part.body.clone()];
        let value = inline.map_or_else(|| value_of(body), |inline| value_of(&format!("{inline}\n{body}")));
        let key = markdown::key(name);
        let marks = Map::from_iter([(key, value.clone())]);
        self.consumed = self.consumed.take().or_else(|| consumed(&marks).filter(|_| part.is_field()));
        let is_title = text[part.whole.clone()].trim_start().starts_with("# ") || name.starts_with('/');
        let is_fact = FACT_FIELDS.contains(&name);
        if !name.is_empty() && !is_fact && (meaning.is_some() || (part.is_heading() && !is_title)) {
            self.said.push(Said { name: name.to_owned(), meaning, value });
        }
    }

    fn packet(self) -> Result<Packet, Unusable> {
        let mut packet = of_sayings(Form::Markdown, &self.said, self.passages)?;
        packet.faults.extend(self.faults);
        packet.consumed = self.consumed;
        Ok(packet)
    }
}

/// Returns the content of a part as JSON: a text or a list.
fn value_of(text: &str) -> Value {
    match markdown::body(text) {
        Body::Text(text) => {
            let mut paragraphs = markdown::paragraphs(&text);
            match paragraphs.len() {
                0 | 1 => Value::String(paragraphs.pop().unwrap_or_default()),
                _ => Value::Array(paragraphs.into_iter().map(Value::String).collect()),
            }
        }
        Body::Entries(entries) => {
            let value = |entry: markdown::Entry| match entry.done {
                Some(done) => serde_json::json!({ "text": entry.text, "done": done }),
                None => Value::String(entry.text),
            };
            Value::Array(entries.into_iter().map(value).collect())
        }
    }
}

/// The fields of a packet, and faults in its JSON.
type Fields = (Map<String, Value>, Problems);

/// Returns the packet in a block, if any.
fn packet_in(text: &str, block: &Block) -> Result<Option<Fields>, String> {
    let is_packet = |map: &Map<String, Value>| fields_named(map) >= TELLING;
    let mut problems = Problems::default();
    if text.trim_start().starts_with('{') {
        return match json::read(text.as_bytes(), &mut problems) {
            Some(Value::Object(map)) if is_packet(&map) => Ok(Some((map, problems))),
            None if text.contains("\"objective\"") && text.contains("\"next_action\"") => {
                let why = problems.first().map_or("not JSON", |problem| &problem.message);
                Err(format!("the packet in the block that begins in line {} is {why}", block.line))
            }
            _ => Ok(None),
        };
    }
    match yaml::read(text) {
        Ok(Value::Object(map)) if is_packet(&map) => Ok(Some((map, problems))),
        Err(error) if text.contains("objective:") && text.contains("next_action:") => {
            Err(format!("the packet in the block is not YAML: {}", error.below(block.line - 1)))
        }
        _ => Ok(None),
    }
}
