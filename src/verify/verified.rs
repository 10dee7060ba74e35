//! The type for values that passed verification.

use std::ops::Deref;

/// A value that passed verification, as of the commit that it names.
///
/// Only the verifier creates one, and it cannot be changed. Runs and threads are opened for
/// appending, and bytes are read from a run, only with such a value.
///
/// ```compile_fail,E0423
/// use git_handoff::verify::{ThreadSnapshot, Verified};
///
/// fn forge(thread: ThreadSnapshot) -> Verified<ThreadSnapshot> {
///     Verified(thread)
/// }
/// ```
///
/// ```compile_fail,E0594
/// use git_handoff::verify::{ThreadSnapshot, Verified};
///
/// fn change(mut thread: Verified<ThreadSnapshot>) {
///     thread.entries = 7;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    pub(super) fn new(found: T) -> Self {
        Self(found)
    }

    /// Returns the value, which is no longer known to be verified.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
