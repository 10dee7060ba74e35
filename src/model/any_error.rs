//! An error of any type, for operations whose callers only report what went wrong.

use std::error::Error;
use std::fmt;
use std::ops::Deref;

/// An error of any type, with its sources.
///
/// Operations that call many others return it: `?` converts every error into it and adds nothing.
/// The `Error` of such a module has only the failures of its own, which `downcast_ref` finds. To
/// make the error of another module one of these, name the variant: `.map_err(Error::Hold)?`.
///
/// It does not implement [`Error`], whose implementation would contradict the conversion.
pub struct AnyError(Box<dyn Error + Send + Sync>);

impl AnyError {
    /// Returns the error if it is of this type.
    pub fn downcast<E: Error + 'static>(self) -> Result<E, Self> {
        self.0.downcast().map(|error| *error).map_err(Self)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for AnyError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl From<AnyError> for Box<dyn Error + Send + Sync> {
    fn from(error: AnyError) -> Self {
        error.0
    }
}

impl From<AnyError> for Box<dyn Error> {
    fn from(error: AnyError) -> Self {
        error.0
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
