//! The edits of a tree, and the durability of a write.

use crate::model::digest::Oid;

/// When objects are synced to disk, before a ref may point at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before every swap of a ref.
    Strict,
    /// As git is configured; by default never.
    Relaxed,
}

/// One change to a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets a file with mode 100644 to these bytes, which are written as a blob with the tree.
    Bytes(Vec<u8>),
    /// Sets a file with mode 100644.
    Blob(Oid),
    /// Sets a folder.
    Tree(Oid),
    /// Removes the entry, if it exists.
    Remove,
}
