//! C1 and C2: is something both done and still to be started, or still open? Ignores word forms.

use std::collections::BTreeSet;

use crate::model::packet::Packet;
use crate::thread::packet::Finding;
use crate::thread::packet::quote::quoted;
use crate::thread::packet::vocabulary::{self, DONE, MAKING, PARTIAL, START, is_none};
use crate::thread::packet::words::{Word, clauses};

/// The maximum number of findings.
const ENOUGH: usize = 8;

/// Compares finished work with the next action and with open work.
pub(super) fn findings(packet: &Packet, next_action: Option<&str>) -> Vec<Finding> {
    let deeds: Vec<(usize, Deed)> = deeds(&packet.completed).filter(|(_, deed)| !deed.partial).collect();
    let mut findings = Vec::new();
    if let Some(text) = next_action {
        let next: Vec<Deed> = clauses(text).iter().map(|clause| Deed::from_clause(clause)).collect();
        for (at, done) in &deeds {
            let again = next.iter().find(|next| same(next, done));
            findings.extend(again.map(|repeated| Finding {
                rule: "C1",
                field: "next_action".into(),
                what: format!(
                    "completed[{at}] {} is to be started in next_action ({})",
                    quoted(&packet.completed[*at]),
                    repeated.words.join(" ")
                ),
            }));
        }
    }
    for (open_at, open) in self::deeds(&packet.unresolved) {
        let done = deeds.iter().find(|(_, done)| same(&open, done));
        findings.extend(done.map(|(at, _)| Finding {
            rule: "C2",
            field: format!("unresolved[{open_at}]"),
            what: format!(
                "completed[{at}] {} is still in unresolved[{open_at}] {}",
                quoted(&packet.completed[*at]),
                quoted(&packet.unresolved[open_at])
            ),
        }));
        if findings.len() >= ENOUGH {
            break;
        }
    }
    findings.truncate(ENOUGH);
    findings
}

fn deeds(texts: &[String]) -> impl Iterator<Item = (usize, Deed)> + '_ {
    let entries = texts.iter().enumerate().filter(|(_, text)| !is_none(text));
    entries.map(|(at, text)| (at, Deed::from_clause(&clauses(text).into_iter().flatten().collect::<Vec<_>>())))
}

/// A deed that a text reports or requests.
struct Deed {
    /// The words of its object, without making verbs.
    core: BTreeSet<String>,
    /// All words.
    all: BTreeSet<String>,
    /// Whether it is only partly done.
    partial: bool,
    /// Its words, for display.
    words: Vec<String>,
}

impl Deed {
    fn from_clause(clause: &[Word]) -> Self {
        let forms = |selects: &dyn Fn(&Word) -> bool| -> BTreeSet<String> {
            clause
                .iter()
                .filter(|word| carries_meaning(word))
                .filter(|word| selects(word))
                .map(|word| word.form.clone())
                .collect()
        };
        Self {
            core: forms(&|word| !word.is(MAKING)),
            all: forms(&|_| true),
            partial: clause
                .iter()
                .any(|word| word.is(PARTIAL) || matches!(word.form.as_str(), "not" | "never" | "without")),
            words: clause.iter().filter(|word| carries_meaning(word)).take(8).map(|word| quoted(&word.text)).collect(),
        }
    }
}

fn carries_meaning(word: &Word) -> bool {
    word.carries() && !word.is(DONE) && !word.is(START)
}

/// Returns true if the objects of two deeds match.
fn same(one: &Deed, other: &Deed) -> bool {
    is_within(&one.core, &other.all) && is_within(&other.core, &one.all)
}

fn is_within(core: &BTreeSet<String>, all: &BTreeSet<String>) -> bool {
    !core.is_empty() && core.iter().all(|word| all.iter().any(|other| vocabulary::same(word, other)))
}
