//! Parts of documents that tests own: each stands between a line of its own and `<!-- end -->`.

use std::fs;
use std::path::Path;

/// Compares such a part of a document with what it has to be, or writes it there where `HANDOFF_UPDATE_DOCS` asks for it.
#[track_caller]
pub(crate) fn check(document: &str, begin: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let lock = fs::File::open(&path).expect("the document is there");
    let update = std::env::var_os("HANDOFF_UPDATE_DOCS").is_some();
    if update {
        // Other tests write their parts at the same time.
        lock.lock().expect("the document can be locked");
    }
    let text = fs::read_to_string(&path).expect("the document is text");
    let begin = format!("{begin}\n");
    let start = text.find(&begin).unwrap_or_else(|| panic!("{document} has no line {begin}")) + begin.len();
    let end = start + text[start..].find("<!-- end -->").expect("the part has an end");
    if update {
        fs::write(&path, format!("{}{now}{}", &text[..start], &text[end..])).expect("the document can be written");
        return;
    }
    assert!(&text[start..end] == now, "{document} shows something else at {begin}what was found is\n{now}");
}
