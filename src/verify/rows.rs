//! The rows of reports, each a field, and those of a thread. [`super::codes`] has those of a run.

macro_rules! rows {
    ($(#[$of_all:meta])* $name:ident { $($(#[$of_one:meta])* $row:ident,)* }) => {
        $(#[$of_all])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Checks"))]
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

            /// Maps each row to a value that may borrow from it.
            pub(crate) fn map_ref<'a, U>(&'a self, mut made: impl FnMut(&'a T) -> U) -> $name<U> {
                $name { $($row: made(&self.$row)),* }
            }

            /// Maps each row; `made` also receives its name.
            pub(crate) fn map<U>(&self, mut made: impl FnMut(&'static str, &T) -> U) -> $name<U> {
                $name { $($row: made(stringify!($row), &self.$row)),* }
            }
        }
    };
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

pub(super) use rows;
