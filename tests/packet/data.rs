//! The data files of the packet rules are sorted and without duplicates, their patterns compile.

use std::collections::BTreeSet;

use regex::Regex;

/// Each file with whether the order of its entries means something, and whether they are patterns.
const FILES: [(&str, bool, bool); 5] = [
    (include_str!("../../src/thread/packet/data/words.txt"), true, false),
    (include_str!("../../src/thread/packet/data/look-alikes.txt"), false, false),
    (include_str!("../../src/thread/packet/data/names.txt"), true, true),
    (include_str!("../../src/thread/packet/data/credentials.txt"), true, true),
    (include_str!("../../src/thread/packet/data/untrusted.txt"), true, true),
];

/// Returns the sections of a file, each with its entries.
fn sections(text: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(heading) => sections.push((heading, Vec::new())),
            None => sections.last_mut().expect("an entry stands below a heading").1.push(line),
        }
    }
    sections
}

#[test]
fn sections_and_entries_stand_once_and_in_order() {
    for (text, is_ordered, _) in FILES {
        let sections = sections(text);
        let headings: BTreeSet<_> = sections.iter().map(|(heading, _)| heading).collect();
        assert_eq!(headings.len(), sections.len(), "{headings:?}");
        for (section, entries) in &sections {
            assert!(!entries.is_empty(), "[{section}] is empty");
            assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len(), "[{section}] has an entry twice");
            assert_eq!(entries.iter().find(|entry| entry.trim() != **entry), None, "[{section}]");
            assert!(is_ordered || entries.is_sorted(), "[{section}] is not sorted");
        }
    }
}

#[test]
fn every_pattern_compiles_by_itself() {
    for (text, ..) in FILES.into_iter().filter(|(.., are_patterns)| *are_patterns) {
        for (section, entries) in sections(text) {
            for entry in entries {
                let pattern =
                    if section == "shapes" { entry.split_once(' ').expect("a name comes first").1 } else { entry };
                assert!(Regex::new(pattern).is_ok(), "{pattern} is no pattern");
            }
        }
    }
}

#[test]
fn nothing_looks_like_two_letters() {
    let mut letters = BTreeSet::new();
    for entry in &sections(FILES[1].0)[0].1 {
        let (letter, others) = entry.split_once(' ').expect("a letter comes first");
        assert_eq!(letter.len(), 1, "{letter:?} is not one letter or sign of ASCII");
        assert!(others.split(' ').all(|other| letters.insert(other)), "one of {others} stands twice");
    }
}

#[test]
fn every_section_of_patterns_is_a_rule_or_a_part() {
    const PARTS: [&str; 6] = ["RUN", "ASK", "ANY", "SECRET", "FILE", "PAPER"];
    const RULES: [&str; 8] = ["U1", "U2", "U3", "U4", "U5", "U7", "U8", "follow"];
    for (section, entries) in sections(FILES[4].0) {
        assert!(RULES.contains(&section) || PARTS.contains(&section), "no rule reads [{section}]");
        assert!(!PARTS.contains(&section) || entries.len() == 1, "[{section}] is more than one pattern");
    }
    let part = |name: &str| sections(FILES[4].0).into_iter().find(|(section, _)| *section == name).unwrap().1[0];
    for (rule, entries) in sections(FILES[4].0).into_iter().filter(|(section, _)| RULES.contains(section)) {
        for entry in entries {
            let filled = PARTS.iter().fold(entry.to_owned(), |text, name| text.replace(name, part(name)));
            assert!(!PARTS.iter().any(|name| filled.contains(name)), "a part of {entry} of {rule} is not filled in");
            assert!(Regex::new(&filled).is_ok(), "{entry} is no pattern");
        }
    }
}
