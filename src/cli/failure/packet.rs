//! Failures of packets.

use git_handoff::thread::packets::Error;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Target(inner) => inner.into(),
            Error::ThreadTarget(inner) => inner.into(),
            Error::Thread(inner) => inner.into(),
            Error::Attached(inner) => inner.into(),
            Error::Barred(inner) => inner.into(),
            Error::Run(inner) => inner.into(),
            Error::Document(inner) => inner.into(),
            Error::DocumentName(inner) => inner.into(),
            Error::Head(_) => Self::of("head", &error),
            Error::Git(inner) => inner.into(),
        }
    }
}
