//! C1 and C2: is something said to be done and yet to be started, or still open? Word forms aside.

use std::collections::BTreeSet;

use crate::model::packet::Packet;
use crate::packet::Finding;
use crate::packet::quote::quoted;
use crate::packet::vocabulary::{List, is_none};
use crate::packet::words::{Word, clauses};

/// How many findings are made; more would say the same.
const ENOUGH: usize = 8;

/// Compares what is completed with the next action and with what is unresolved.
pub(super) fn findings(packet: &Packet, next_action: Option<&str>) -> Vec<Finding> {
    let deeds: Vec<(usize, Deed)> = deeds(&packet.completed).filter(|(_, deed)| !deed.partial).collect();
    let mut findings = Vec::new();
    if let Some(text) = next_action {
        let next: Vec<Deed> = clauses(text).iter().map(|clause| Deed::of(clause)).collect();
        for (at, done) in &deeds {
            let again = next.iter().find(|next| !next.again && begins(next, done) && same(next, done));
            findings.extend(again.map(|next| Finding {
                rule: "C1",
                field: "next_action".into(),
                what: format!(
                    "completed[{at}] {} is to be started in next_action ({})",
                    quoted(&packet.completed[*at]),
                    next.words.join(" ")
                ),
            }));
        }
    }
    for (open_at, open) in self::deeds(&packet.unresolved) {
        let done = deeds.iter().find(|(_, done)| !open.again && same(&open, done));
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
    let said = texts.iter().enumerate().filter(|(_, text)| !is_none(text));
    said.map(|(at, text)| (at, Deed::of(&clauses(text).into_iter().flatten().collect::<Vec<_>>())))
}

/// What a text says is, or is to be, done.
struct Deed {
    /// The stem of its verb: the first word that says something and is no word of being done or started.
    verb: Option<String>,
    /// Whether it begins with a word of starting, or its verb is one of making.
    begins: bool,
    /// The stems of what it is about, up to the first preposition, without verbs of making.
    core: BTreeSet<String>,
    /// The stems of the circumstances behind it.
    rest: BTreeSet<String>,
    /// All stems.
    all: BTreeSet<String>,
    /// Whether only a part is done.
    partial: bool,
    /// Whether another one is meant, or the same once more.
    again: bool,
    /// The words of the core, for people.
    words: Vec<String>,
}

impl Deed {
    fn of(clause: &[Word]) -> Self {
        let negated = |word: &Word| matches!(word.stem.as_str(), "not" | "never" | "without");
        let mut deed = Self {
            verb: None,
            begins: false,
            core: BTreeSet::new(),
            rest: BTreeSet::new(),
            all: BTreeSet::new(),
            partial: clause.iter().any(|word| word.is(List::Partial) || negated(word)),
            again: clause.iter().any(|word| word.is(List::Again)),
            words: Vec::new(),
        };
        let mut behind = false;
        for word in clause {
            // A preposition before anything else is part of the verb: "to review", "in progress".
            behind |= word.is(List::Preposition) && !deed.all.is_empty();
            if !word.carries() || word.is(List::Done) {
                continue;
            }
            if word.is(List::Start) {
                deed.begins |= deed.verb.is_none();
                continue;
            }
            let making = word.is(List::Create);
            if deed.verb.is_none() {
                deed.verb = Some(word.stem.clone());
                deed.begins |= making;
            }
            deed.all.insert(word.stem.clone());
            if behind {
                deed.rest.insert(word.stem.clone());
            } else if !making {
                deed.core.insert(word.stem.clone());
            }
            if !behind && deed.words.len() < 8 {
                deed.words.push(quoted(&word.text));
            }
        }
        deed
    }
}

/// Returns whether the next deed is a start of something, or the very thing that was done.
fn begins(next: &Deed, done: &Deed) -> bool {
    next.begins || (next.verb.is_some() && next.verb == done.verb)
}

/// Returns whether two deeds are about the same: what each is about stands in the other, and so do the circumstances of one.
fn same(one: &Deed, other: &Deed) -> bool {
    !one.core.is_empty()
        && !other.core.is_empty()
        && one.core.is_subset(&other.all)
        && other.core.is_subset(&one.all)
        && (one.rest.is_subset(&other.all) || other.rest.is_subset(&one.all))
}
