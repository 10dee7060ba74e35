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
