//! What a write is told: the changes to a tree, and how far to force objects to disk.

use crate::model::digest::Oid;

/// How far objects are forced to disk before a ref may show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before every swap of a ref.
    Strict,
    /// As git itself does it, which by default is not at all.
    Relaxed,
}

/// One change to a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets a file with mode 100644 to these bytes, which are written with the tree.
    Bytes(Vec<u8>),
    /// Sets a file with mode 100644.
    Blob(Oid),
    /// Sets a folder.
    Tree(Oid),
    /// Removes what is there, if anything.
    Remove,
}
