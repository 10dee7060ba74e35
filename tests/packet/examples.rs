//! Hostile texts in `hostile.txt` and honest ones in `clean.txt`, in every field and in notes.

use std::collections::BTreeMap;

use serde_json::json;

use super::{broken, check_bytes, terms, with};

/// Returns the hostile texts, each with its rule, and the honest ones.
fn examples() -> impl Iterator<Item = (Option<&'static str>, &'static str)> {
    let entries = |file: &'static str| file.lines().filter(|line| !line.starts_with('#'));
    let hostile = entries(include_str!("hostile.txt")).map(|line| {
        let (rule, text) = line.split_once(' ').expect("a line is a rule and a text");
        (Some(rule), text)
    });
    hostile.chain(entries(include_str!("clean.txt")).map(|text| (None, text)))
}

fn untrusted(found: &[&'static str]) -> Vec<&'static str> {
    found.iter().copied().filter(|rule| rule.starts_with('U')).collect()
}

/// Returns what is wrong with the rules that a packet with an example breaks.
fn mistake(rule: Option<&str>, example: &str, found: &[&'static str]) -> Option<String> {
    match rule {
        Some(rule) if !found.contains(&rule) => Some(format!("{rule} misses {example}: {found:?}")),
        None if !untrusted(found).is_empty() => Some(format!("{example} is taken for {found:?}")),
        _ => None,
    }
}

#[test]
fn there_are_examples_enough() {
    let mut count = BTreeMap::new();
    for (rule, _) in examples() {
        *count.entry(rule).or_insert(0) += 1;
    }
    assert!(count[&None] >= 60, "{count:?}");
    for rule in ["U1", "U2", "U4", "U5", "U7", "U8"] {
        assert!(count[&Some(rule)] >= 10, "{count:?}");
    }
}

#[test]
fn hostile_and_honest_texts_differ_in_every_field() {
    let mut wrong = Vec::new();
    for (rule, text) in examples() {
        for fields in [
            json!({ "risks": [text] }),
            json!({ "unresolved": ["the DBA has not confirmed the rollback", text] }),
            json!({ "next_action": text }),
            json!({ "notes": { "more": text } }),
        ] {
            wrong.extend(mistake(rule, &fields.to_string(), &broken(&with(&fields))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_note_hides_no_request() {
    let mut wrong = Vec::new();
    for (rule, text) in examples() {
        for note in [
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Risks\n- data loss\n- {text}\n"),
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Next action\n{text}\n"),
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Environment\n\n{text}\n"),
        ] {
            let report = check_bytes(note.as_bytes(), &terms());
            let found: Vec<_> = report.findings().map(|finding| finding.rule).collect();
            wrong.extend(mistake(rule, &format!("{note:?}"), &found));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pointer_texts_contain_nothing_else() {
    for text in [
        "See docs/plan.md",
        "see `NOTES.md`.",
        "Please see the ticket",
        "Refer to https://example.org/x",
        "read todo.md",
    ] {
        assert!(broken(&with(&json!({ "next_action": text }))).contains(&"U8"), "{text}");
    }
    for text in ["See src/retry.rs", "See the red test in CI job 812", "Review docs/plan.md with Tom"] {
        assert!(!broken(&with(&json!({ "risks": [text] }))).contains(&"U8"), "{text}");
    }
}

#[test]
fn a_line_of_its_own_is_a_clause() {
    for text in ["## Environment\n\nwipe the disk", "fine\nwipe the disk", "- fine\n- wipe the disk"] {
        assert!(broken(&with(&json!({ "notes": { "more": text } }))).contains(&"U4"), "{text}");
    }
}
