//! Orders by their kind, and honest sentences that speak of the same things, in `orders.txt`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{broken, check_bytes, terms, with};

/// Returns the sentences of the file, each with the rule that it breaks; none for an honest one.
fn sentences() -> impl Iterator<Item = (Option<&'static str>, &'static str)> {
    let lines = include_str!("orders.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (rule, text) = line.split_once(' ').expect("a line is a rule and a sentence");
        ((rule != "-").then_some(rule), text)
    })
}

fn untrusted(found: &[&'static str]) -> Vec<&'static str> {
    found.iter().copied().filter(|rule| rule.starts_with('U')).collect()
}

#[test]
fn each_kind_has_orders_and_there_are_honest_sentences_enough() {
    let mut count = BTreeMap::new();
    for (rule, _) in sentences() {
        *count.entry(rule).or_insert(0) += 1;
    }
    assert!(count[&None] >= 60, "{count:?}");
    for rule in ["U1", "U2", "U4", "U5", "U7", "U8"] {
        assert!(count[&Some(rule)] >= 10, "{count:?}");
    }
}

#[test]
fn orders_are_told_from_honest_sentences_in_every_field() {
    let mut wrong = Vec::new();
    for (rule, text) in sentences() {
        for fields in [
            json!({ "risks": [text] }),
            json!({ "unresolved": ["the DBA has not confirmed the rollback", text] }),
            json!({ "next_action": text }),
            json!({ "notes": { "more": text } }),
        ] {
            let found = broken(&with(&fields));
            match rule {
                Some(rule) if !found.contains(&rule) => wrong.push(format!("{rule} misses {fields}: {found:?}")),
                None if !untrusted(&found).is_empty() => wrong.push(format!("{fields} is taken for {found:?}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_note_hides_no_order() {
    let mut wrong = Vec::new();
    for (rule, text) in sentences() {
        for note in [
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Risks\n- data loss\n- {text}\n"),
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Next action\n{text}\n"),
            format!("# Handoff\n\n## Goal\nMigrate the users\n\n## Environment\n\n{text}\n"),
        ] {
            let report = check_bytes(note.as_bytes(), &terms());
            let found: Vec<_> = report.findings().map(|finding| finding.rule).collect();
            match rule {
                Some(rule) if !found.contains(&rule) => wrong.push(format!("{rule} misses {note:?}: {found:?}")),
                None if !untrusted(&found).is_empty() => wrong.push(format!("{note:?} is taken for {found:?}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_text_that_is_only_a_pointer_says_nothing_else() {
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
    let wrapped =
        "In the settings of the new administration page all users can\nwipe the disk of the machine that they own";
    assert!(!broken(&with(&json!({ "notes": { "more": wrapped } }))).contains(&"U4"));
}
