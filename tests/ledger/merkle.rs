//! The Merkle tree, compared with the recursive definitions of RFC 6962.

use git_handoff::ledger::merkle::{TreeHead, consistency, extends, includes, inclusion, root};
use git_handoff::model::digest::Digest;
use git_handoff::model::format::leaf_hash;

/// Returns the hash of an inner node, as section 2.1 defines it.
fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::compute(&[&[1][..], left.as_bytes(), right.as_bytes()].concat())
}

/// Returns the root by the recursive definition of section 2.1.
fn by_definition(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest::compute(b""),
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

/// Returns the path by the recursive definition of section 2.1.1.
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

/// Returns the path by the recursive definition of section 2.1.2.
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
            let proven = |leaf_index: usize, leaf: Digest, place: &[Digest]| {
                includes(whole, size as u64, leaf_index as u64, leaf, place)
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
