//! The refs that travel, by their names.

use git_handoff::model::format::{FETCHED_REFS, REFS};
use git_handoff::model::place::Place;

#[test]
fn only_what_we_would_write_ourselves_is_a_place() {
    let fingerprint = "logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg";
    let archive = "archives/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.0123456789ab";
    for good in ["runs/a", "runs/nightly%402026", "threads/x", "transcripts/a", "thread-stamps/a", fingerprint, archive]
    {
        let place = Place::parse(good).expect(good);
        assert_eq!(place.below(REFS), format!("{REFS}{good}"));
        for remote in ["origin", "a/runs/b"] {
            let fetched = format!("{FETCHED_REFS}{remote}/{good}");
            assert_eq!(Place::fetched(&fetched), Some((remote, place.clone())));
            assert!(place.is_fetched_at(&fetched) && !place.is_fetched_at(&format!("{REFS}{good}")));
        }
    }
    for bad in [
        "runs",
        "runs/",
        "runs/a/b",
        "runs/%61",
        "runs/%2e%2e",
        "runs/%40x",
        "runs/a.lock",
        "logs/x",
        "logs/SHA256%3Ax",
        "archives/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg",
        "bases/a",
        "salvage/a",
        "remotes/origin/runs/a",
        "heads/main",
        "runs/%0A",
        "runs/a%20",
        "",
    ] {
        assert_eq!(Place::parse(bad), None, "{bad}");
    }
}

#[test]
fn time_stamps_belong_to_one_chain_of_that_name() {
    let place = |below: &str| Place::parse(below).expect(below);
    assert_eq!(place("runs/a").stamps(), Some(place("stamps/a")));
    assert_eq!(place("threads/a").stamps(), Some(place("thread-stamps/a")));
    assert_eq!(place("stamps/a").stamps(), None);
    for (below, chain, belongs) in [
        ("stamps/a", "runs/a", true),
        ("transcripts/a", "runs/a", true),
        ("thread-stamps/a", "threads/a", true),
        ("stamps/a", "threads/a", false),
        ("thread-stamps/a", "runs/a", false),
        ("transcripts/a", "threads/a", false),
        ("stamps/a", "runs/b", false),
    ] {
        assert_eq!(place(below).belongs_to(&place(chain)), belongs, "{below} {chain}");
    }
}
