//! The order of those that wait for one another.

use git_handoff::model::order::{stuck, topological};

#[test]
fn each_goes_after_what_it_waits_for_and_otherwise_in_its_place() {
    assert_eq!(topological(&[vec![], vec![3], vec![0], vec![]]), [0, 2, 3, 1]);
    // Duplicate dependencies count once.
    assert_eq!(topological(&[vec![1, 1], vec![]]), [1, 0]);
    assert_eq!(topological(&[]), [0usize; 0]);
}

#[test]
fn order_excludes_cycles_and_their_dependents() {
    let circle = [vec![], vec![2], vec![1], vec![2], vec![0]];
    assert_eq!(topological(&circle), [0, 4]);
    assert_eq!(stuck(&circle), Some(1));
    assert_eq!(stuck(&[vec![0]]), Some(0));
    assert_eq!(stuck(&[vec![], vec![0]]), None);
}
