//! Names with numbers in them, in order.

use git_handoff::model::natural::compare;

#[test]
fn digits_count_as_numbers() {
    let mut names = ["map-10", "map-2", "map-1", "map", "map-2b", "map-02", "a10b2", "a10b10", "a9"];
    names.sort_by(|one, other| compare(one, other));
    assert_eq!(names, ["a9", "a10b2", "a10b10", "map", "map-1", "map-02", "map-2", "map-2b", "map-10"]);
}
