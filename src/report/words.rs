//! Formats values for the page. The page's own script has the same rules.

use serde_json::{Value, json};

use crate::model::driver::MAX_TEXT;
use crate::model::format;
use crate::model::printable;
use crate::model::protected::judged_in_words;
use crate::model::state::checks::IN_WORKTREE;

/// The longest value of a fact, in characters.
const LONGEST: usize = 2000;

/// Facts in the order of the page. Empty values are left out.
#[derive(Default)]
pub(super) struct Facts(Vec<Value>);

impl Facts {
    /// Adds a fact unless its value is empty.
    pub(super) fn add(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.0.push(json!({ "name": name, "value": printable::cut_to(value, LONGEST) }));
        }
    }

    /// Adds a fact whose value is a field of a JSON object.
    pub(super) fn add_field(&mut self, name: &str, of: &Value, field: &str) {
        self.add(name, plain(&of[field]));
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.0)
    }
}

/// Returns a string as it is, nothing for a missing or empty value, and others as canonical JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(false) => String::new(),
        Value::Array(elements) if elements.is_empty() => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        value => String::from_utf8_lossy(&format::canonical(value)).into_owned(),
    }
}

/// Returns the first line of a text.
pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the strings of an array, separated by commas.
pub(super) fn list(value: &Value) -> String {
    let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(", ")
}

/// Returns keys with their roles: `SHA256:fe85…: own, seal; SHA256:4A9j…: approve`.
pub(super) fn roles(value: &Value) -> String {
    let keys = value.as_object().into_iter().flatten();
    keys.map(|(key, roles)| format!("{key}: {}", list(roles))).collect::<Vec<_>>().join("; ")
}

/// Formats milliseconds: `51 ms`, `2.1 s`, `3 min 20 s`, `2 h 5 min`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Formats the digest and the size of bytes: `sha256:…, 12 bytes`.
pub(super) fn digest_and_size(value: &Value) -> String {
    match (value["sha256"].as_str(), value["size"].as_u64()) {
        (Some(digest), Some(size)) => format!("{digest}, {size} bytes"),
        _ => String::new(),
    }
}

/// Formats the end of a process: `exit 3` or `signal 9`.
pub(super) fn exit(value: &Value) -> String {
    match (value["code"].as_i64(), value["signal"].as_i64()) {
        (Some(code), _) => format!("exit {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => String::new(),
    }
}

/// Formats the driver that dispatches an attempt, or from which it was taken; empty for others.
fn driver(entry: &Value) -> String {
    let Some(driver) = short_id("driver", entry) else { return String::new() };
    if let Some(because) = entry["because"].as_str() {
        let by = short_id("taker", entry).map(|taker| format!(" by {taker}")).unwrap_or_default();
        return format!("taken from {driver}{by}: {because}");
    }
    if entry["kind"] != "item.fired" {
        return String::new();
    }
    let host = short_claim("host", entry).map(|host| format!(" on {host}")).unwrap_or_default();
    let job = short_claim("job", entry).map(|job| format!(", job {job}")).unwrap_or_default();
    format!("driver {driver}{host}{job}")
}

fn short_claim<'e>(name: &str, entry: &'e Value) -> Option<&'e str> {
    entry["claims"][name].as_str().filter(|text| text.len() <= MAX_TEXT)
}

fn short_id(field: &str, entry: &Value) -> Option<String> {
    entry[field].as_str().map(|id| id.chars().take(8).collect::<String>())
}

/// Says that a check judged changes of protected files, or decided while nothing was protected.
pub(super) fn protection(entry: &Value) -> String {
    let changes = entry["protected"].as_array().map_or(0, Vec::len);
    let is_checked = entry["status"] == "done" && entry["verify"]["by"] == "command";
    let is_bare = entry["reference"].is_null() && entry["reused"].is_null();
    match (entry["protectedJudged"] == true, is_checked && is_bare) {
        (true, _) => format!("! {}", judged_in_words(changes)),
        (false, true) => "check: nothing protected".to_owned(),
        (false, false) => String::new(),
    }
}

/// Says that a check passed in the worktree that the worker left.
pub(super) fn check_place(manifest: &Value, entry: &Value) -> &'static str {
    let is_passed = entry["verify"]["passed"] == true && entry["verify"]["by"] == "command";
    let is_in_worktree = manifest.is_object() && manifest["verifyIn"].is_null();
    if entry["status"] == "done" && is_passed && is_in_worktree { IN_WORKTREE } else { "" }
}

/// Formats the result that an entry records, such as `done, red, exit 0, 51 ms`.
pub(super) fn note(entry: &Value) -> String {
    let decided = entry["decision"].as_str().map(|decision| format!("{decision} by {}", plain(&entry["by"])));
    let words = [
        plain(&entry["status"]),
        if entry["red"] == true { "red".to_owned() } else { String::new() },
        if entry["protectedJudged"] == true { protection(entry) } else { String::new() },
        decided.unwrap_or_default(),
        plain(&entry["message"]),
        plain(&entry["rule"]),
        plain(&entry["outcome"]),
        plain(&entry["grade"]),
        plain(&entry["reason"]),
        plain(&entry["detail"]),
        driver(entry),
        exit(&entry["exit"]),
        entry["durationMs"].as_u64().map(duration).unwrap_or_default(),
    ];
    printable::cut_to(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", "), LONGEST)
}
