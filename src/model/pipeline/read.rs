//! Parses the file of a pipeline, and reports all problems.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Block, CaptureKind, Lens, Pipeline, Script};
use crate::model::json::{self, JsonPath};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, wrong_type};

/// The maximum size of a pipeline's file, in bytes.
pub const MAX_BYTES: u64 = 256 << 10;

/// The maximum number of blocks.
pub const MAX_BLOCKS: usize = 100;

/// The maximum length of a script's command, in bytes.
const MAX_COMMAND: usize = 16 << 10;

/// The maximum length of an id, in bytes.
const MAX_ID: usize = 128;

/// The default time limit of a script, in seconds.
const TIMEOUT: u64 = 600;

/// The maximum time limit in seconds, as for an item.
const MAX_TIMEOUT: u64 = 10 * 365 * 86_400;

/// The only version of the file format.
const VERSION: u64 = 1;

const FIELDS: [&str; 5] = ["schemaVersion", "id", "blocks", "outputEdgeType", "inputEdgeTypes"];
const OF_AGENT: [&str; 1] = ["kind"];
const OF_SCRIPT: [&str; 4] = ["kind", "command", "lens", "timeoutSeconds"];
const OF_CAPTURE: [&str; 2] = ["kind", "what"];

/// Parses a pipeline.
pub(super) fn pipeline(bytes: &[u8]) -> Result<Pipeline, Problems> {
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the pipeline has more than the {MAX_BYTES} bytes that are read");
        return Err(Problem::new(Code::TooLarge, &JsonPath::root(), message).into());
    }
    let value = json::parse(bytes)?;
    let mut problems = Problems::default();
    match read_pipeline(&value, &mut problems) {
        Some(pipeline) if problems.is_empty() => Ok(pipeline),
        _ => Err(problems),
    }
}

/// Returns true if a text is a valid id: `<pack>.<name>`.
pub(super) fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID && text.split_once('.').is_some_and(|(pack, name)| is_id_part(pack) && is_id_part(name))
}

fn is_id_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn read_pipeline(value: &Value, problems: &mut Problems) -> Option<Pipeline> {
    let fields = Fields::read(value, JsonPath::root(), &FIELDS, problems)?;
    if let Some(version) = fields.required("schemaVersion", problems)
        && version.as_u64() != Some(VERSION)
    {
        problems.push(wrong_type(&fields.at("schemaVersion"), "1, the only version there is", version));
    }
    fields.required("id", problems);
    let id = fields.string("id", problems);
    if let Some(id) = id.filter(|id| !is_id(id)) {
        let message = format!(
            "the id {id:?} is not <pack>.<name>, both of lower-case letters, digits and hyphens, in at most {MAX_ID} bytes"
        );
        problems.push(Problem::new(Code::BadId, &fields.at("id"), message));
    }
    fields.required("blocks", problems);
    let blocks = fields.list("blocks", problems).map(|list| blocks(list, &fields.at("blocks"), problems));
    let output_edge_type = fields.text("outputEdgeType", problems).map(str::to_owned);
    let mut input_edge_types = BTreeMap::new();
    if let Some(map) = fields.object("inputEdgeTypes", problems) {
        let types = Fields::open(map, fields.at("inputEdgeTypes"));
        for key in map.keys() {
            input_edge_types.extend(types.text(key, problems).map(|name| (key.clone(), name.to_owned())));
        }
    }
    Some(Pipeline { id: id?.to_owned(), blocks: blocks?, output_edge_type, input_edge_types })
}

fn blocks(list: &[Value], at: &JsonPath, problems: &mut Problems) -> Vec<Block> {
    if list.is_empty() {
        problems.push(bad(at, "a pipeline has at least one block"));
    }
    if list.len() > MAX_BLOCKS {
        problems.push(bad(at, format!("{} blocks; at most {MAX_BLOCKS} are allowed", list.len())));
        return Vec::new();
    }
    list.iter().enumerate().filter_map(|(index, value)| block(value, &at.index(index), problems)).collect()
}

fn block(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<Block> {
    let Value::Object(map) = value else {
        problems.push(wrong_type(at, "an object", value));
        return None;
    };
    let open = Fields::open(map, at.clone());
    open.required("kind", problems)?;
    let kind = open.string("kind", problems)?;
    let mut fields = |known: &[&str]| Fields::read(value, at.clone(), known, problems);
    match kind {
        "agent" => fields(&OF_AGENT).map(|_| Block::Agent),
        "script" => {
            let fields = fields(&OF_SCRIPT)?;
            script(&fields, problems).map(Block::Script)
        }
        "capture" => {
            let fields = fields(&OF_CAPTURE)?;
            fields.required("what", problems)?;
            let found = fields.string("what", problems)?;
            let known = [("patch", CaptureKind::Patch), ("outputs", CaptureKind::Outputs)];
            word(found, &known, &fields.at("what"), problems).map(Block::Capture)
        }
        "seal" => {
            let message = "`seal` is reserved: what comes of an item is sealed by itself; remove the block";
            problems.push(bad(&open.at("kind"), message));
            None
        }
        other => {
            let message = format!("there is no kind of block {other:?}: it is agent, script or capture");
            problems.push_near(bad(&open.at("kind"), message), other, ["agent", "script", "capture"]);
            None
        }
    }
}

fn script(fields: &Fields<'_>, problems: &mut Problems) -> Option<Script> {
    fields.required("command", problems);
    let command = fields.string("command", problems);
    if let Some(command) = command {
        let at = fields.at("command");
        if command.trim().is_empty() || command.contains('\0') {
            problems.push(bad(&at, "expected a command line for `sh -c`, not empty and without NUL"));
        }
        if command.len() > MAX_COMMAND {
            let message = format!("the command has {} bytes; at most {MAX_COMMAND} are allowed", command.len());
            problems.push(bad(&at, message));
        }
    }
    let known = [("gate", Lens::Gate), ("verify", Lens::Verify)];
    let lens = if fields.get("lens").is_some() {
        let found = fields.string("lens", problems);
        found.and_then(|found| word(found, &known, &fields.at("lens"), problems))
    } else {
        Some(Lens::Gate)
    };
    let timeout = fields.integer("timeoutSeconds", &(1..=MAX_TIMEOUT), problems).unwrap_or(TIMEOUT);
    Some(Script { command: command?.to_owned(), lens: lens?, timeout })
}

/// Parses one of several words.
fn word<T: Copy>(found: &str, known: &[(&str, T)], at: &JsonPath, problems: &mut Problems) -> Option<T> {
    let meant = known.iter().find(|(word, _)| *word == found);
    if meant.is_none() {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let message = format!("expected {}, found {found:?}", words.join(" or "));
        problems.push_near(bad(at, message), found, words.iter().copied());
    }
    meant.map(|(_, value)| *value)
}

fn bad(at: &JsonPath, message: impl Into<String>) -> Problem {
    Problem::new(Code::BadPipeline, at, message)
}
