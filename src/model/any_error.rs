//! An error of any type, for operations whose callers only report what went wrong.

use std::error::Error;
use std::fmt;
use std::ops::Deref;

/// An error of any type, with its sources.
///
/// `?` converts every error into it, and nothing is added: the message and the sources are those of
/// the error itself. It dereferences to the error, so `downcast_ref` finds one of a known type. It
/// is no [`Error`] itself, because the conversion would then overlap with the one of the standard
/// library.
pub struct AnyError(Box<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for AnyError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl Deref for AnyError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}
