//! The rows of reports. Each row is a field, and is named only here.

macro_rules! rows {
    ($(#[$of_all:meta])* $name:ident { $($(#[$of_one:meta])* $row:ident,)* }) => {
        $(#[$of_all])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name<T> {
            $($(#[$of_one])* pub $row: T,)*
        }

        impl<T> $name<T> {
            /// The names of the rows, in order.
            pub const NAMES: &[&str] = &[$(stringify!($row)),*];

            /// Returns the rows in order.
            pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
                [$(&self.$row),*].into_iter()
            }

            /// Maps each row; `made` also receives its name.
            pub(crate) fn map<U>(&self, mut made: impl FnMut(&'static str, &T) -> U) -> $name<U> {
                $name { $($row: made(stringify!($row), &self.$row)),* }
            }
        }
    };
}

rows! {
    /// The rows of a run.
    Rows {
        /// The entries follow one another, and account for all changes to the tree.
        chain,
        /// The Merkle root is the sealed and anchored one.
        root,
        /// Every entry is signed by a key that may write it and that the verifier trusts.
        signature,
        /// An anchor outside the run holds its root.
        anchor,
        /// Each attempt consumed the products that the plan binds.
        handoff,
        /// The run followed its plan.
        plan,
        /// Every dispatch matches its manifest.
        manifest,
        /// The products have the recorded bytes.
        content,
    }
}

rows! {
    /// The rows of a thread.
    ThreadRows {
        /// The entries follow one another, and account for all changes to the tree.
        chain,
        /// Every entry is signed by the thread's only key, which the verifier trusts.
        signature,
        /// The log of the thread's key agrees with its entries.
        anchor,
        /// The thread's origin is here and valid.
        lineage,
        /// The saved bytes are the recorded ones.
        content,
    }
}
