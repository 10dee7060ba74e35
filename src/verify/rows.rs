//! The rows of reports: each is a field, named here once.

/// Defines the rows of one kind of report, in the order in which they are shown.
macro_rules! rows {
    ($(#[$of_all:meta])* $name:ident { $($(#[$of_one:meta])* $row:ident,)* }) => {
        $(#[$of_all])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name<T> {
            $($(#[$of_one])* pub $row: T,)*
        }

        impl<T> $name<T> {
            /// The names of the rows, in their order.
            pub const NAMES: &[&str] = &[$(stringify!($row)),*];

            /// Returns the rows in their order.
            pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
                [$(&self.$row),*].into_iter()
            }

            /// Makes something else of each row, by its name.
            pub(crate) fn map<U>(&self, mut made: impl FnMut(&'static str, &T) -> U) -> $name<U> {
                $name { $($row: made(stringify!($row), &self.$row)),* }
            }
        }
    };
}

rows! {
    /// What is asked of a run.
    Rows {
        /// The entries follow one another, and nothing was changed that they do not speak of.
        chain,
        /// The Merkle root is the one that was sealed and is held elsewhere.
        root,
        /// Every entry is signed by who may write the run, and whom the verifier trusts.
        signature,
        /// Something outside the run holds its root.
        anchor,
        /// What was consumed is what the plan binds.
        handoff,
        /// The run is what its plan said.
        plan,
        /// Every dispatch is bound to its manifest.
        manifest,
        /// The products' bytes are those that were handed over.
        content,
    }
}

rows! {
    /// What is asked of a thread.
    ThreadRows {
        /// The entries follow one another, and nothing was changed that they do not speak of.
        chain,
        /// Every entry is signed by the thread's one writer, whom the verifier trusts.
        signature,
        /// The log of the writer's key holds how far the thread went.
        anchor,
        /// What it was forked, adopted or resumed from is there and sound.
        lineage,
        /// The saved bytes are those that the entries name.
        content,
    }
}
