//! What was found to hold, as a type.

use std::ops::Deref;

/// What verification has just found to hold, at the very commit that it names.
///
/// Only this room makes one, and nobody changes one: whoever holds it need not ask again. A run or a thread is opened for appending
/// by nothing else.
///
/// ```compile_fail,E0423
/// fn forged(sound: git_handoff::verify::Sound) -> git_handoff::verify::Proven<git_handoff::verify::Sound> {
///     git_handoff::verify::Proven(sound)
/// }
/// ```
///
/// ```compile_fail,E0594
/// fn moved(mut sound: git_handoff::verify::Proven<git_handoff::verify::Sound>) {
///     sound.entries = 7;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Proven<T>(T);

impl<T> Proven<T> {
    pub(super) fn new(found: T) -> Self {
        Self(found)
    }

    /// Returns what was found, to be taken apart; it proves nothing any more.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Proven<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
