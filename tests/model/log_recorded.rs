//! Which statements a log may make one after another.

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{LogRecorded, Subject};

fn run() -> Subject {
    Subject::Run("r".parse().unwrap())
}

fn thread() -> Subject {
    Subject::Thread("t".parse().unwrap())
}

/// Returns a statement about the chain that begins with `first`.
fn at(first: &str, last_seq: u64, root: Option<&str>) -> LogRecorded {
    let hash = |text: &str| Digest::compute(text.as_bytes());
    let last = if last_seq == 0 { hash(first) } else { hash(&format!("{first}{last_seq}")) };
    LogRecorded { root: root.map(hash), ..LogRecorded::new("SHA256:x".to_owned(), hash(first), last_seq, last) }
}

#[test]
fn a_run_has_a_root_from_its_seal_on_and_a_thread_has_none() {
    let (begin, seal, later) = (at("a", 0, None), at("a", 3, Some("root")), at("a", 3, None));
    for (about, recorded, may) in [
        (run(), &begin, true),
        (run(), &seal, true),
        (run(), &later, false),
        (thread(), &begin, true),
        (thread(), &later, true),
        (thread(), &seal, false),
        (run(), &at("a", 0, Some("root")), false),
        (run(), &LogRecorded { last: Digest::compute(b"other"), ..begin.clone() }, false),
    ] {
        assert_eq!(recorded.may_follow(&about, None), may, "{about} {recorded:?}");
    }
}

#[test]
fn a_chain_only_grows_in_a_log_and_ends_with_its_seal() {
    let (begin, seal) = (at("a", 0, None), at("a", 3, Some("root")));
    for (before, recorded, may) in [
        (&begin, &seal, true),
        (&begin, &begin, true),
        (&seal, &seal, true),
        (&seal, &begin, false),
        (&seal, &at("a", 4, Some("root")), false),
        (&seal, &at("a", 3, Some("other")), false),
        (&begin, &at("b", 0, None), false),
        (&begin, &at("b", 3, Some("root")), false),
    ] {
        assert_eq!(recorded.may_follow(&run(), Some(before)), may, "{recorded:?} after {before:?}");
    }
    let two = at("a", 2, None);
    for (recorded, may) in [(at("a", 3, None), true), (two.clone(), true), (at("a", 1, None), false)] {
        assert_eq!(recorded.may_follow(&thread(), Some(&two)), may, "{recorded:?}");
    }
}

#[test]
fn the_last_statement_covers_the_earlier_ones() {
    let (begin, seal, two) = (at("a", 0, None), at("a", 3, Some("root")), at("a", 2, None));
    assert!(seal.covers(&begin) && seal.covers(&at("a", 5, Some("root"))) && begin.covers(&begin));
    assert!(!begin.covers(&seal) && two.covers(&at("a", 1, None)) && !two.covers(&at("a", 3, None)));
    assert!(seal.implies(&begin) && two.implies(&begin) && two.implies(&two));
    assert!(!two.implies(&at("a", 1, None)) && !seal.implies(&at("b", 0, None)));
}
