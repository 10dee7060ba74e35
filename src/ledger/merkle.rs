//! The Merkle tree of RFC 6962, section 2.1, grown one leaf at a time.

use sha2::{Digest as _, Sha256};

use crate::model::digest::Digest;

/// The roots of the perfect subtrees that cover the leaves so far, largest first.
///
/// It takes one hash a leaf on average and holds at most one digest a bit of the leaf count, so that a chain of any length
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

    /// Returns how many leaves were added.
    pub fn len(&self) -> u64 {
        self.leaves
    }

    /// Returns whether no leaf was added yet.
    pub fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    /// Returns the tree hash; that of no leaves is the hash of nothing.
    pub fn root(&self) -> Digest {
        let mut right_to_left = self.subtrees.iter().rev().map(|(_, hash)| *hash);
        let Some(last) = right_to_left.next() else {
            return Digest::of(b"");
        };
        right_to_left.fold(last, |right, left| node_hash(&left, &right))
    }
}

/// Returns the tree hash over `leaves`.
pub fn root(leaves: impl IntoIterator<Item = Digest>) -> Digest {
    let mut frontier = Frontier::default();
    leaves.into_iter().for_each(|leaf| frontier.push(leaf));
    frontier.root()
}

/// Returns the path that proves the leaf at `index` to be in the tree over `leaves`, from the leaf up (RFC 6962, 2.1.1); none
/// where there is no such leaf.
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

/// Whether `path` proves that `leaf` stands at `index` in a tree of `size` leaves with the root `root`.
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

/// Returns the path that proves the tree over the first `old` leaves to be the beginning of the tree over all (RFC 6962,
/// 2.1.2); none where there are fewer leaves, or none at all in the beginning.
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
    // The subtree that ends where the old tree ended is the old tree itself only if nothing stood left of it.
    path.extend((!whole).then(|| root(below.iter().copied())));
    path.reverse();
    Some(path)
}

/// One state of a growing tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// How many leaves it has.
    pub size: u64,
    /// Its root.
    pub root: Digest,
}

/// Whether `path` proves that the tree `old` is the beginning of the tree `new`.
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

/// Returns the largest power of two below the number of leaves, where RFC 6962 splits a tree of more than one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::leaf_hash;

    /// The recursive definition of RFC 6962, section 2.1, to hold the incremental one against.
    fn by_definition(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => Digest::of(b""),
            [one] => *one,
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                node_hash(&by_definition(&leaves[..split]), &by_definition(&leaves[split..]))
            }
        }
    }

    #[test]
    fn grows_into_the_tree_that_the_rfc_defines() {
        let leaves: Vec<Digest> = (0..200u8).map(|n| leaf_hash(&[n])).collect();
        for count in 0..=leaves.len() {
            assert_eq!(root(leaves[..count].iter().copied()), by_definition(&leaves[..count]), "{count} leaves");
        }
    }

    /// The paths of RFC 6962, sections 2.1.1 and 2.1.2, as they are defined there.
    fn path_by_definition(index: usize, leaves: &[Digest]) -> Vec<Digest> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
        let (mut path, sibling) = if index < left.len() {
            (path_by_definition(index, left), right)
        } else {
            (path_by_definition(index - left.len(), right), left)
        };
        path.push(by_definition(sibling));
        path
    }

    fn proof_by_definition(old: usize, leaves: &[Digest], whole: bool) -> Vec<Digest> {
        if old == leaves.len() {
            return if whole { Vec::new() } else { vec![by_definition(leaves)] };
        }
        let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
        let (mut path, sibling) = if old <= left.len() {
            (proof_by_definition(old, left, whole), right)
        } else {
            (proof_by_definition(old - left.len(), right, false), left)
        };
        path.push(by_definition(sibling));
        path
    }

    #[test]
    fn a_leaf_is_proven_at_its_place_and_nowhere_else() {
        let leaves: Vec<Digest> = (0..130u8).map(|n| leaf_hash(&[n])).collect();
        for size in 1..=leaves.len() {
            let (all, whole) = (&leaves[..size], root(leaves[..size].iter().copied()));
            for index in 0..size {
                let path = inclusion(all, index).expect("the leaf is there");
                assert_eq!(path, path_by_definition(index, all), "leaf {index} of {size}");
                let proven = |index: usize, leaf: Digest, path: &[Digest]| {
                    includes(whole, size as u64, index as u64, leaf, path)
                };
                assert!(proven(index, all[index], &path), "leaf {index} of {size}");
                assert!(!proven(index, leaf_hash(b"another"), &path));
                assert!(size == 1 || !proven((index + 1) % size, all[index], &path));
                assert!(!proven(index, all[index], &[&path[..], &[whole]].concat()));
                assert!(path.is_empty() || !proven(index, all[index], &path[1..]));
                assert!(path.is_empty() || !proven(index, all[index], &path[..path.len() - 1]));
                assert!(!includes(leaf_hash(b"another"), size as u64, index as u64, all[index], &path));
            }
            assert_eq!(inclusion(all, size), None);
            assert!(!includes(whole, size as u64, size as u64, all[0], &[]));
        }
    }

    #[test]
    fn a_tree_is_proven_to_go_on_from_its_beginnings_only() {
        let leaves: Vec<Digest> = (0..130u8).map(|n| leaf_hash(&[n])).collect();
        let head = |size: usize| TreeHead { size: size as u64, root: root(leaves[..size].iter().copied()) };
        for size in 1..=leaves.len() {
            for old in 1..=size {
                let path = consistency(&leaves[..size], old).expect("there is a beginning");
                assert_eq!(path, proof_by_definition(old, &leaves[..size], true), "{old} of {size}");
                assert!(extends(head(old), head(size), &path), "{old} of {size}");
                let other = TreeHead { root: leaf_hash(b"another"), ..head(old) };
                assert!(!extends(other, head(size), &path));
                assert!(!extends(head(old), TreeHead { root: other.root, ..head(size) }, &path));
                assert!(!extends(head(old), head(size), &[&path[..], &[other.root]].concat()));
                assert!(path.is_empty() || !extends(head(old), head(size), &path[1..]), "{old} of {size}");
            }
            assert_eq!(consistency(&leaves[..size], 0), None);
            assert_eq!(consistency(&leaves[..size], size + 1), None);
        }
        assert!(!extends(head(5), head(3), &[]));
        assert!(!extends(TreeHead { size: 0, root: root([]) }, head(3), &[]));
    }

    #[test]
    fn agrees_with_the_published_vectors() {
        // The test vectors of the Certificate Transparency reference implementation.
        let inputs: [&[u8]; 3] = [b"", b"\x00", b"\x10"];
        assert_eq!(
            root(inputs.iter().map(|input| leaf_hash(input))).hex(),
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
        );
        assert_eq!(root([]).hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
