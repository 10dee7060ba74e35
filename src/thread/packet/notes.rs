//! Parses packets: a JSON object, or a Markdown note with a JSON block or a heading for each field.
//!
//! The form only determines where the fields are. The rest of a note is checked too, to the last
//! byte.

mod markdown;
mod names;

use serde_json::{Map, Value};

use markdown::{Block, Entry, Section};

use super::fence;
use crate::model::json;
use crate::model::packet::{
    FIELDS, Fault, Form, MAX_BYTES, Packet, Passage, Renamed, Unusable, consumed, may_quote, passages, read_fields,
    says_consumption,
};
use crate::model::problems::Problems;

/// The number of fields that an object in a fenced block must have to be the packet.
const TELLING: usize = 3;

/// The fields that are lists.
const LISTS: [&str; 4] = ["completed", "unresolved", "assumptions", "risks"];

/// The reason why YAML is not a packet.
const YAML: &str =
    "the packet is YAML, which is not read: write it as JSON, or as Markdown with a heading for each field";

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
        Some(Value::Object(map)) => {
            let packet = of_fields(&map, passages(&Value::Object(map.clone())))?;
            Ok(with_faults(packet, problems))
        }
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

/// Parses a packet from its fields; `passages` are all texts to check.
fn of_fields(map: &Map<String, Value>, passages: Vec<Passage>) -> Result<Packet, Unusable> {
    match read_fields(map) {
        Ok(packet) => Ok(Packet { consumed: consumed(map), passages, ..packet }),
        Err(missing) => Err(Unusable { why: format!("the packet says nothing to resume from: {missing}"), passages }),
    }
}

fn with_faults(mut packet: Packet, problems: Problems) -> Packet {
    packet.faults.extend(problems.into_iter().map(|problem| Fault { field: problem.path, what: problem.message }));
    packet
}

/// Parses a packet from a Markdown note.
fn of_note(text: &str) -> Result<Packet, Unusable> {
    if fence::depth(text) > fence::MOST_DEEP {
        let why = format!("more than {} lists and quotations stand in each other in the packet", fence::MOST_DEEP);
        return Err(unusable(text.as_bytes(), &why));
    }
    let (sections, blocks) = markdown::split(text);
    let block = packet_block(text, &blocks).map_err(|why| unusable(text.as_bytes(), &why))?;
    let mut all: Vec<Passage> =
        sections.iter().filter_map(|section| passage(text, section, block.as_ref().map(|found| found.block))).collect();
    let packet = if let Some(Found { map, problems, .. }) = block {
        all.extend(passages(&Value::Object(map.clone())));
        with_faults(of_fields(&map, all)?, problems)
    } else {
        let fields = Fields::read(text, &sections);
        if fields.renamed.is_empty() && !FIELDS.iter().any(|field| fields.map.contains_key(*field)) && is_yaml(text) {
            return Err(unusable(text.as_bytes(), YAML));
        }
        let mut packet = of_fields(&fields.map, all)?;
        packet.faults.extend(fields.faults);
        Packet { renamed: fields.renamed, unknown: fields.unknown, ..packet }
    };
    Ok(Packet { form: Form::Markdown, ..packet })
}

/// Returns true if a line begins with the name of a field and a colon.
fn is_yaml(text: &str) -> bool {
    text.lines().any(|line| line.split_once(':').is_some_and(|(key, _)| FIELDS.contains(&key)))
}

/// Returns a section as a text to check, without the block that holds the packet.
fn passage(text: &str, section: &Section, packet: Option<&Block>) -> Option<Passage> {
    let mut own = text[section.whole.clone()].to_owned();
    if let Some(packet) = packet.filter(|packet| section.whole.contains(&packet.whole.start)) {
        let start = section.whole.start;
        let inside = packet.whole.start - start..packet.whole.end - start;
        let lines = own[inside.clone()].matches('\n').count();
        own.replace_range(inside, &"\n".repeat(lines));
    }
    let field = names::field(&section.name).unwrap_or(match section.name.as_str() {
        "" => "the note",
        name => name,
    });
    let passage = Passage { quotes: may_quote(field), first_line: section.line, ..Passage::new(field, own) };
    (!passage.text.trim().is_empty()).then_some(passage)
}

/// The packet in a block of a note.
struct Found<'b> {
    block: &'b Block,
    map: Map<String, Value>,
    problems: Problems,
}

/// Returns the packet in a block of JSON, if one block has it.
fn packet_block<'b>(text: &str, blocks: &'b [Block]) -> Result<Option<Found<'b>>, String> {
    let mut found: Option<Found<'b>> = None;
    for block in blocks.iter().filter(|block| matches!(block.language.as_str(), "" | "json")) {
        let content = &text[block.content.clone()];
        let mut problems = Problems::default();
        let map = match json::read(content.as_bytes(), &mut problems) {
            Some(Value::Object(map)) if FIELDS.iter().filter(|field| map.contains_key(**field)).count() >= TELLING => {
                map
            }
            None if content.contains("\"objective\"") && content.contains("\"next_action\"") => {
                let why = problems.first().map_or("not JSON", |problem| &problem.message);
                return Err(format!("the packet in the block that begins in line {} is {why}", block.line));
            }
            _ => continue,
        };
        if let Some(first) = found {
            let lines = format!("{} and {}", first.block.line, block.line);
            return Err(format!("the note has two packets, in lines {lines}: leave one"));
        }
        found = Some(Found { block, map, problems });
    }
    Ok(found)
}

/// The fields of a note with headings.
#[derive(Default)]
struct Fields {
    map: Map<String, Value>,
    /// Fields under other names.
    renamed: Vec<Renamed>,
    /// Headings that name no field.
    unknown: Vec<String>,
    faults: Vec<Fault>,
}

impl Fields {
    fn read(text: &str, sections: &[Section]) -> Self {
        let mut fields = Self::default();
        for section in sections.iter().filter(|section| !section.name.is_empty()) {
            let entries = markdown::entries(&text[section.body.clone()]);
            match names::field(&section.name) {
                Some(field) => fields.add(field, &section.name, entries),
                None if says_consumption(&names::key(&section.name)) => {
                    fields.map.insert(names::key(&section.name), text_of(entries));
                }
                None if section.level > 1 => fields.unknown.push(section.name.clone()),
                None => {}
            }
        }
        fields
    }

    fn add(&mut self, field: &'static str, name: &str, entries: Vec<Entry>) {
        if names::key(name) != field {
            match self.renamed.iter_mut().find(|known| known.field == field) {
                Some(known) => known.from.push(name.to_owned()),
                None => self.renamed.push(Renamed { field, from: vec![name.to_owned()] }),
            }
        }
        if !LISTS.contains(&field) {
            if self.map.insert(field.into(), text_of(entries)).is_some() {
                self.faults.push(Fault { field: field.into(), what: "has two headings".into() });
            }
            return;
        }
        let Value::Array(list) = self.map.entry(field).or_insert_with(|| Value::Array(Vec::new())) else { return };
        for entry in entries {
            if entry.is_open && field == "completed" {
                let field = format!("{field}[{}]", list.len());
                self.faults.push(Fault { field, what: "is not done: its box is empty".into() });
            }
            list.push(Value::String(entry.text));
        }
    }
}

/// Joins the entries of a text field.
fn text_of(entries: Vec<Entry>) -> Value {
    Value::String(entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>().join("\n"))
}
