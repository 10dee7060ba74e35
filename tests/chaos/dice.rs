//! Chance that can be had again.

use std::ops::Range;

use proptest::prelude::RngExt as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// A sequence of random choices that follows from a seed and the number of a round.
pub(crate) struct Dice(TestRng);

impl Dice {
    pub(crate) fn new(seed: u64, round: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&round.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// Returns a number of a range, which must not be empty.
    pub(crate) fn roll(&mut self, range: Range<u64>) -> u64 {
        self.0.random_range(range)
    }

    /// Returns whether something that happens once in so many times happens now.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.roll(0..times) == 0
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.0.random_range(0..length)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}
