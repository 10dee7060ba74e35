//! Parts of files that tests own: each stands between a line of its own and `<!-- end -->`, or
//! `// end` in a script, which a page contains and so must have no sign of HTML.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Returns where such a part begins and ends in the text of its document.
#[track_caller]
fn span(document: &str, text: &str, begin: &str) -> Range<usize> {
    let begin = format!("{begin}\n");
    let start = text.find(&begin).unwrap_or_else(|| panic!("{document} has no line {begin}")) + begin.len();
    let end = if begin.starts_with("//") { "// end\n" } else { "<!-- end -->" };
    start..start + text[start..].find(end).expect("the part has an end")
}

fn path(document: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(document)
}

/// Compares such a part of a document with what it has to be, or writes it there where
/// `HANDOFF_UPDATE_DOCS` asks for it.
#[track_caller]
pub(crate) fn check(document: &str, begin: &str, now: &str) {
    let path = path(document);
    let lock = fs::File::open(&path).expect("the document is there");
    let update = std::env::var_os("HANDOFF_UPDATE_DOCS").is_some();
    if update {
        // Other tests write their parts at the same time.
        lock.lock().expect("the document can be locked");
    }
    let text = fs::read_to_string(&path).expect("the document is text");
    let part = span(document, &text, begin);
    if update {
        let written = format!("{}{now}{}", &text[..part.start], &text[part.end..]);
        fs::write(&path, written).expect("the document can be written");
        return;
    }
    assert!(&text[part] == now, "{document} shows something else at {begin}what was found is\n{now}");
}
