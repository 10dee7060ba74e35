//! The Merkle tree of RFC 6962, section 2.1, built one leaf at a time.

use sha2::{Digest as _, Sha256};

use crate::model::digest::Digest;

/// The roots of the perfect subtrees over the leaves so far, largest first.
///
/// Adding a leaf takes one hash on average, and the memory is logarithmic. So a chain of any length
/// can be sealed without reading it again.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    subtrees: Vec<(u64, Digest)>,
    leaves: u64,
}

impl Frontier {
    /// Adds the next leaf hash.
    pub fn push(&mut self, leaf: Digest) {
        self.leaves += 1;
        let mut node = (1, leaf);
        while let Some(&(size, left)) = self.subtrees.last()
            && size == node.0
        {
            self.subtrees.pop();
            node = (size * 2, node_hash(&left, &node.1));
        }
        self.subtrees.push(node);
    }

    /// Returns the number of leaves.
    pub fn len(&self) -> u64 {
        self.leaves
    }

    /// Returns true if there are no leaves.
    pub fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    /// Returns the root. Without leaves, it is the hash of the empty string.
    pub fn root(&self) -> Digest {
        let mut right_to_left = self.subtrees.iter().rev().map(|(_, hash)| *hash);
        let Some(last) = right_to_left.next() else {
            return Digest::compute(b"");
        };
        right_to_left.fold(last, |right, left| node_hash(&left, &right))
    }
}

/// Returns the root of the tree over `leaves`.
pub fn root(leaves: impl IntoIterator<Item = Digest>) -> Digest {
    let mut frontier = Frontier::default();
    leaves.into_iter().for_each(|leaf| frontier.push(leaf));
    frontier.root()
}

/// Returns the inclusion proof for the leaf at `index`, from the leaf up (RFC 6962, 2.1.1); `None`
/// if there is no such leaf.
pub fn inclusion(leaves: &[Digest], index: usize) -> Option<Vec<Digest>> {
    if index >= leaves.len() {
        return None;
    }
    let mut path = Vec::new();
    let (mut below, mut index) = (leaves, index);
    while below.len() > 1 {
        let (left, right) = below.split_at(split(below.len()));
        let goes_left = index < left.len();
        path.push(root(if goes_left { right } else { left }.iter().copied()));
        index -= if goes_left { 0 } else { left.len() };
        below = if goes_left { left } else { right };
    }
    path.reverse();
    Some(path)
}

/// Returns true if `path` proves that `leaf` is at `index` in a tree of `size` leaves with this
/// root.
pub fn includes(root: Digest, size: u64, index: u64, leaf: Digest, path: &[Digest]) -> bool {
    if index >= size {
        return false;
    }
    // RFC 9162, 2.1.3.2.
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = node_hash(sibling, &hash);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && hash == root
}

/// Returns the consistency proof between the tree over the first `old` leaves and the tree over all
/// (RFC 6962, 2.1.2). Returns `None` if `old` is 0 or exceeds the number of leaves.
pub fn consistency(leaves: &[Digest], old: usize) -> Option<Vec<Digest>> {
    if old == 0 || old > leaves.len() {
        return None;
    }
    let mut path = Vec::new();
    let (mut below, mut old, mut whole) = (leaves, old, true);
    while old < below.len() {
        let (left, right) = below.split_at(split(below.len()));
        if old <= left.len() {
            path.push(root(right.iter().copied()));
            below = left;
        } else {
            path.push(root(left.iter().copied()));
            old -= left.len();
            below = right;
            whole = false;
        }
    }
    // The old tree's root is known only if the last subtree is the whole old tree.
    path.extend((!whole).then(|| root(below.iter().copied())));
    path.reverse();
    Some(path)
}

/// A state of a growing tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// The number of leaves.
    pub size: u64,
    /// The root.
    pub root: Digest,
}

/// Returns true if `path` proves that the tree `new` extends the tree `old`.
pub fn extends(old: TreeHead, new: TreeHead, path: &[Digest]) -> bool {
    if old.size == 0 || old.size > new.size {
        return false;
    }
    if old.size == new.size {
        return path.is_empty() && old.root == new.root;
    }
    // RFC 9162, 2.1.4.2.
    let mut path = path.iter();
    let first = if old.size.is_power_of_two() { Some(&old.root) } else { path.next() };
    let Some(first) = first else { return false };
    let (mut at, mut last) = (old.size - 1, new.size - 1);
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let (mut was, mut is) = (*first, *first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            (was, is) = (node_hash(sibling, &was), node_hash(sibling, &is));
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            is = node_hash(&is, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && was == old.root && is == new.root
}

/// Returns the size of the left subtree: the largest power of two below the number of leaves.
fn split(leaves: usize) -> usize {
    leaves.next_power_of_two() / 2
}

fn node_hash(left: &Digest, right: &Digest) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([1]);
    hasher.update(left.as_bytes());
    hasher.update(right.as_bytes());
    Digest::from_bytes(hasher.finalize().into())
}
