//! The rules for an entry and its predecessor, in a chain of any kind.

use super::reader::Link;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parents {
    /// Their number only: the walk already followed the first parent.
    Counted,
    /// The commit before, and the further parents that the entry names.
    Named,
}

/// Returns the faults in an entry's number, link, parents and time.
pub(super) fn faults(link: &Link, before: Option<&Link>, parents: Parents) -> impl Iterator<Item = String> {
    let (entry, seq) = (&link.entry, link.entry.seq);
    let due = before.map_or(0, |before| before.entry.seq.saturating_add(1));
    let number = (seq != due).then(|| format!("entry {seq} stands where entry {due} belongs"));
    let linked = (entry.prev != before.map(|before| before.hash))
        .then(|| format!("entry {seq} does not name the hash of the entry before it"));
    let time = before
        .is_some_and(|before| entry.at < before.entry.at)
        .then(|| format!("entry {seq} is dated before the entry before it"));
    [number, linked, parent_fault(link, before, parents), time].into_iter().flatten()
}

fn parent_fault(link: &Link, before: Option<&Link>, parents: Parents) -> Option<String> {
    let (seq, count) = (link.entry.seq, link.parents.len());
    match parents {
        Parents::Counted => {
            (count != usize::from(before.is_some())).then(|| format!("entry {seq} has {count} parents"))
        }
        Parents::Named => {
            let expected = before.map(|before| before.commit).into_iter().chain(link.entry.event.further_parents());
            (!expected.eq(link.parents.iter().copied())).then(|| format!("entry {seq} has other parents than it says"))
        }
    }
}
