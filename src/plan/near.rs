//! Warns about misspelt keys of `inputs`.

use crate::model::json::JsonPath;
use crate::model::plan::{BuiltIn, PIPELINE};
use crate::plan::draft::Draft;

/// The minimum similarity to a known key, ignoring case and separators.
const LIKENESS: f64 = 0.92;

/// The known keys that are read whatever the executor is.
const READ: [&str; 4] = [PIPELINE, "gate", "mapReduce", "quorum"];

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
    let readable = || executor.into_iter().flat_map(BuiltIn::reads).chain(READ);
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
