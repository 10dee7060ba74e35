//! Positions of items in the graph of a run, and values that are stored by them.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// The position of an item in the graph of its run.
///
/// Only the graph and an [`ItemVec`] make one. It is valid in that run as long as the run exists,
/// because items are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemIndex(usize);

impl ItemIndex {
    pub(super) fn new(at: usize) -> Self {
        Self(at)
    }

    /// Returns the position as a number, counted from 0.
    pub fn get(self) -> usize {
        self.0
    }
}

/// A vector with one value for each item of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemVec<T>(Vec<T>);

impl<T> ItemVec<T> {
    /// Returns all positions.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = ItemIndex> + use<T> {
        (0..self.0.len()).map(ItemIndex)
    }

    /// Returns the values with their positions.
    pub fn indexed(&self) -> impl DoubleEndedIterator<Item = (ItemIndex, &T)> {
        self.0.iter().enumerate().map(|(at, value)| (ItemIndex(at), value))
    }

    /// Returns a vector with a value made from each of these.
    pub fn map<U>(&self, make: impl FnMut(&T) -> U) -> ItemVec<U> {
        self.0.iter().map(make).collect()
    }

    /// Appends the value of the next item.
    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }
}

impl<T> Default for ItemVec<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for ItemVec<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T> FromIterator<T> for ItemVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T> Extend<T> for ItemVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl<'a, T> IntoIterator for &'a ItemVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> Deref for ItemVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for ItemVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Index<ItemIndex> for ItemVec<T> {
    type Output = T;

    fn index(&self, at: ItemIndex) -> &T {
        &self.0[at.0]
    }
}

impl<T> IndexMut<ItemIndex> for ItemVec<T> {
    fn index_mut(&mut self, at: ItemIndex) -> &mut T {
        &mut self.0[at.0]
    }
}
