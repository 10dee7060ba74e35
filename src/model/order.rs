//! Topological order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the positions in topological order, preferring the first.
///
/// Leaves out cycles and what depends on them. `waits_for` must have valid positions.
pub fn topological(waits_for: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); waits_for.len()];
    for (at, on) in waits_for.iter().enumerate() {
        on.iter().for_each(|on| dependents[*on].push(at));
    }
    let free = missing.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut free: BinaryHeap<_> = free.map(|(at, _)| Reverse(at)).collect();
    let mut order = Vec::with_capacity(waits_for.len());
    while let Some(Reverse(at)) = free.pop() {
        order.push(at);
        for &dependent in &dependents[at] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                free.push(Reverse(dependent));
            }
        }
    }
    order
}

/// Returns the first position on a cycle, or depending on one.
pub fn stuck(waits_for: &[Vec<usize>]) -> Option<usize> {
    let mut goes = vec![false; waits_for.len()];
    topological(waits_for).into_iter().for_each(|at| goes[at] = true);
    goes.into_iter().position(|goes| !goes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goes_after_what_it_waits_for_and_otherwise_in_its_place() {
        assert_eq!(topological(&[vec![], vec![3], vec![0], vec![]]), [0, 2, 3, 1]);
        // Counts duplicate dependencies once.
        assert_eq!(topological(&[vec![1, 1], vec![]]), [1, 0]);
        assert_eq!(topological(&[]), [0usize; 0]);
    }

    #[test]
    fn who_waits_in_a_circle_or_behind_one_does_not_go() {
        let circle = [vec![], vec![2], vec![1], vec![2], vec![0]];
        assert_eq!(topological(&circle), [0, 4]);
        assert_eq!(stuck(&circle), Some(1));
        assert_eq!(stuck(&[vec![0]]), Some(0));
        assert_eq!(stuck(&[vec![], vec![0]]), None);
    }
}
