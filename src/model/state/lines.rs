//! Lines of items, each replacing the one before.

use crate::model::item_index::{ItemIndex, ItemVec};

/// The newest item of each line, by position.
///
/// Rules look it up for every named item in every round, and a line can be as long as the run, so a
/// lookup takes logarithmic time.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// A nearer item of the same line, or itself at the root.
    up: ItemVec<ItemIndex>,
    /// At the roots: the length of the line and its newest item.
    known: ItemVec<(usize, ItemIndex)>,
}

impl Lines {
    /// Returns the newest replacement of an item, or the item itself.
    pub(super) fn newest(&self, at: ItemIndex) -> ItemIndex {
        // Unconnected items are not stored.
        if at.get() < self.up.len() { self.known[self.head(at)].1 } else { at }
    }

    /// Replaces an item, and everything it replaced, by a new one; also ends the new one's own
    /// line.
    pub(super) fn join(&mut self, old: ItemIndex, new: ItemIndex) {
        for at in (self.up.len()..=old.max(new).get()).map(ItemIndex::new) {
            self.up.push(at);
            self.known.push((1, at));
        }
        let (one, other) = (self.head(old), self.head(new));
        if one == other {
            return;
        }
        let newest = self.known[other].1;
        let (small, large) = if self.known[one].0 < self.known[other].0 { (one, other) } else { (other, one) };
        self.up[small] = large;
        self.known[large] = (self.known[one].0 + self.known[other].0, newest);
    }

    fn head(&self, mut at: ItemIndex) -> ItemIndex {
        while self.up[at] != at {
            at = self.up[at];
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_knows_the_newest_state_soon() {
        let mut lines = Lines::default();
        assert_eq!(newest(&lines, 7), 7);
        (0..100_000).for_each(|at| join(&mut lines, at, at + 1));
        assert!((0..=100_000).all(|at| newest(&lines, at) == 100_000));
        assert_eq!(newest(&lines, 100_001), 100_001);
        // One item may replace two.
        join(&mut lines, 200_000, 200_002);
        join(&mut lines, 100_000, 200_002);
        assert_eq!([0, 200_000, 200_001].map(|at| newest(&lines, at)), [200_002, 200_002, 200_001]);
    }

    fn newest(lines: &Lines, at: usize) -> usize {
        lines.newest(ItemIndex::new(at)).get()
    }

    fn join(lines: &mut Lines, old: usize, new: usize) {
        lines.join(ItemIndex::new(old), ItemIndex::new(new));
    }
}
