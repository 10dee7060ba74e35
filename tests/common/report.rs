//! Reads single lines of printed reports, so that a test names a row and compares all of it.

use base64ct::{Base64, Encoding as _};

/// Returns the verdict in the heading of a report of `verify`, with its mark.
#[track_caller]
pub(crate) fn verdict(text: &str) -> &str {
    let is_heading =
        |line: &str| line.starts_with("git handoff verify · ") || line.starts_with("git handoff thread verify · ");
    let heading = only(text, "the verdict", is_heading);
    heading.split_once("  ").expect("spaces stand before the verdict").1.trim_start()
}

/// Returns the event of an entry that `log` lists, without the columns before it.
#[track_caller]
pub(crate) fn find_entry<'a>(text: &'a str, begin: &str) -> &'a str {
    // Number, hash, time and actor.
    let event = |line: &'a str| line.split("  ").map(str::trim_start).filter(|column| !column.is_empty()).nth(4);
    let line = only(text, begin, |line| event(line).is_some_and(|event| event.starts_with(begin)));
    &line[line.find(begin).expect("the event begins like this")..]
}

/// Returns the row of a report that has this name, with its mark.
#[track_caller]
pub(crate) fn find_row<'a>(text: &'a str, name: &str) -> &'a str {
    only(text, name, |line| {
        let row = line.strip_prefix(['✓', '✗', '─', '!']).and_then(|row| row.strip_prefix(' '));
        row.and_then(|row| row.strip_prefix(name)).is_some_and(|rest| rest.is_empty() || rest.starts_with("  "))
    })
}

/// Returns the line that begins like this, such as `warning: `.
#[track_caller]
pub(crate) fn find_line<'a>(text: &'a str, begin: &str) -> &'a str {
    only(text, begin, |line| line.starts_with(begin))
}

#[track_caller]
fn only<'a>(text: &'a str, what: &str, is_match: impl Fn(&'a str) -> bool) -> &'a str {
    let mut found = text.lines().filter(|line| is_match(line));
    match (found.next(), found.next()) {
        (Some(line), None) => line,
        (None, _) => panic!("no line for {what}:\n{text}"),
        (Some(_), Some(_)) => panic!("several lines for {what}:\n{text}"),
    }
}

/// Returns the code of the error that a command with `--json` prints last.
#[track_caller]
pub(crate) fn error_code(stderr: &str) -> String {
    let last = stderr.lines().last().unwrap_or_default();
    let error: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("no error in JSON:\n{stderr}"));
    error["code"].as_str().expect("an error has a code").to_owned()
}

/// Hides fingerprints of keys and hashes: they differ in each run of a test that makes a key.
pub(crate) fn masked(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find("sha256:") {
        let (before, hash) = rest.split_at(at + "sha256:".len());
        result += before;
        result.push('…');
        rest = hash.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'));
    }
    result + rest
}

/// Hides hashes, fingerprints of keys, and names of objects, so that a test need not know them.
pub(crate) fn without_hashes(text: &str) -> String {
    let text = masked(text);
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '%').map(|word| {
        let hash = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '%');
        let rest = &word[hash.len()..];
        let is_hash = hash.len() >= 7 && hash.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let name = hash.starts_with("SHA256%3A").then(|| format!("SHA256%3A…{rest}"));
        name.unwrap_or_else(|| if is_hash { format!("…{rest}") } else { word.to_owned() })
    });
    words.collect()
}

/// Returns the bundle that a page carries as evidence.
#[track_caller]
pub(crate) fn evidence(page: &str) -> Vec<u8> {
    let (_, after) = page.split_once("<script type=\"application/octet-stream\" id=\"evidence\">").expect("evidence");
    let (encoded, _) = after.split_once('<').expect("its end");
    Base64::decode_vec(encoded).expect("base64 without line breaks")
}
