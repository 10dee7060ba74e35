//! Keys of `inputs` that are almost one that the tool reads: what an author misspells is read by nothing.

use crate::model::json::JsonPath;
use crate::model::plan::{APPROVAL, APPROVERS, COMMAND, DISPATCH, ENV, PIPELINE};
use crate::plan::draft::Draft;

/// How like a key must be to one that is read, as strings without case and separators.
const LIKENESS: f64 = 0.92;

/// The keys that the tool or a pattern reads, each with the executor that it is for, if it is for one.
const READ: [(&str, Option<&str>); 9] = [
    ("command", Some(COMMAND)),
    (ENV, Some(COMMAND)),
    ("subagent", Some(DISPATCH)),
    ("workerInput", Some(DISPATCH)),
    (APPROVERS, Some(APPROVAL)),
    (PIPELINE, None),
    ("gate", None),
    ("mapReduce", None),
    ("quorum", None),
];

/// Returns a warning for each key of an item's inputs that is almost one that is read.
pub(crate) fn misses(draft: &Draft) -> Vec<String> {
    let items = draft.items.iter().flatten();
    let keys = items.flat_map(|item| {
        let executor = item.executor.as_deref();
        let keys = item.inputs.iter().flat_map(|inputs| inputs.keys());
        keys.filter_map(move |key| Some((item.path.key("inputs").key(key), nearest(key, executor)?)))
    });
    let told = keys.map(|(at, meant): (JsonPath, &str)| format!("nothing reads `{at}`; did you mean `{meant}`?"));
    told.collect()
}

/// Returns the key that is read and that another is almost, but not quite.
fn nearest(key: &str, executor: Option<&str>) -> Option<&'static str> {
    let folded = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
    let readable = || READ.into_iter().filter(|(_, of)| of.is_none() || *of == executor).map(|(read, _)| read);
    if key.len() > 64 || readable().any(|read| read == key) {
        return None;
    }
    let own = folded(key);
    readable().find(|read| {
        let read = folded(read);
        // Of short words, any two letters may be two words.
        own == read || (read.len() > 5 && strsim::jaro_winkler(&own, &read) > LIKENESS)
    })
}
