//! Warns about misspelt keys of `inputs`.

use crate::model::json::JsonPath;
use crate::model::plan::{AGENT, APPROVERS, BuiltIn, CHECK, COMMAND, DIRECTORY, ENV, PIPELINE, STDIN};
use crate::plan::draft::Draft;

/// The minimum similarity to a known key, ignoring case and separators.
const LIKENESS: f64 = 0.92;

/// The known keys, with the executor that reads them if it is only one.
const READ: [(&str, Option<BuiltIn>); 13] = [
    (COMMAND, Some(BuiltIn::Command)),
    (ENV, Some(BuiltIn::Command)),
    (CHECK, Some(BuiltIn::Command)),
    (STDIN, Some(BuiltIn::Command)),
    (DIRECTORY, Some(BuiltIn::Command)),
    (AGENT, Some(BuiltIn::Command)),
    ("subagent", Some(BuiltIn::Dispatch)),
    ("workerInput", Some(BuiltIn::Dispatch)),
    (APPROVERS, Some(BuiltIn::Approval)),
    (PIPELINE, None),
    ("gate", None),
    ("mapReduce", None),
    ("quorum", None),
];

/// Returns a warning for each key that resembles a known one.
pub(crate) fn misses(draft: &Draft) -> Vec<String> {
    let items = draft.items.iter().flatten();
    let keys = items.flat_map(|item| {
        let executor = item.executor.as_deref().and_then(BuiltIn::from_name);
        let keys = item.inputs.iter().flat_map(|inputs| inputs.keys());
        keys.filter_map(move |key| Some((item.path.key("inputs").key(key), nearest(key, executor)?)))
    });
    let notes = keys.map(|(at, meant): (JsonPath, &str)| format!("nothing reads `{at}`; did you mean `{meant}`?"));
    notes.collect()
}

/// Returns the known key that another resembles without being equal.
fn nearest(key: &str, executor: Option<BuiltIn>) -> Option<&'static str> {
    let readable = || READ.into_iter().filter(|(_, of)| of.is_none() || *of == executor).map(|(read, _)| read);
    if key.len() > 64 || readable().any(|read| read == key) {
        return None;
    }
    let own = key.to_ascii_lowercase().replace(['-', '_'], "");
    readable().find(|read| {
        let read = read.to_ascii_lowercase().replace(['-', '_'], "");
        // In short words, two different letters may make another word.
        own == read || (read.len() > 5 && strsim::jaro_winkler(&own, &read) > LIKENESS)
    })
}
