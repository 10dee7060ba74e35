//! Lines of items, each of which stands for the one before it.

/// The newest item of each line, by positions.
///
/// Rules ask for it of every item that they name, for every round, and a line may be as long as its run has items: so a question takes
/// as many steps as the length has binary digits.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// Of each item another of its line that is nearer to the one that knows the newest; itself where it is that one.
    up: Vec<usize>,
    /// Of those that know it: how many items the line has, and the newest.
    known: Vec<(usize, usize)>,
}

impl Lines {
    /// Returns the item that stands for another now, or that one itself.
    pub(super) fn newest(&self, at: usize) -> usize {
        // What was never joined to anything is not kept.
        if at < self.up.len() { self.known[self.head(at)].1 } else { at }
    }

    /// Has a new item stand for all that an older one stands for; its own line, should it have one already, ends with it too.
    pub(super) fn join(&mut self, old: usize, new: usize) {
        for at in self.up.len()..=old.max(new) {
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

    fn head(&self, mut at: usize) -> usize {
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
    fn whoever_is_asked_knows_the_newest_and_soon() {
        let mut lines = Lines::default();
        assert_eq!(lines.newest(7), 7);
        (0..100_000).for_each(|at| lines.join(at, at + 1));
        assert!((0..=100_000).all(|at| lines.newest(at) == 100_000));
        assert_eq!(lines.newest(100_001), 100_001);
        // One item may stand for two.
        lines.join(200_000, 200_002);
        lines.join(100_000, 200_002);
        assert_eq!([0, 200_000, 200_001].map(|at| lines.newest(at)), [200_002, 200_002, 200_001]);
    }
}
