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
