//! What sharing can fail of.

use git_handoff::git::{remote, scratch};
use git_handoff::model::hints;
use git_handoff::share::{bundle, fetch, push, shown};
use git_handoff::verify::BundleError;

use super::Failure;

impl From<scratch::Error> for Failure {
    fn from(error: scratch::Error) -> Self {
        Self::of("scratch", &error)
    }
}

impl From<remote::Error> for Failure {
    fn from(error: remote::Error) -> Self {
        let failure = Self::of("remote", &error);
        match &error {
            remote::Error::Unknown(_) => Self { code: "unknown-remote", ..failure },
            remote::Error::TooLarge(..) => Self { code: "too-large", ..failure }.hint(hints::fetch_less_or_raise()),
            remote::Error::Unsound(..)
            | remote::Error::Failed(..)
            | remote::Error::Quarantine(_)
            | remote::Error::Outgoing(_)
            | remote::Error::Git(_) => failure,
        }
    }
}

impl From<push::Error> for Failure {
    fn from(error: push::Error) -> Self {
        match error {
            push::Error::Unknown(_) => Self::of("unknown-run", &error).hint(hints::runs_and_threads()),
            push::Error::Diverged(_) => Self::of("diverged", &error),
            push::Error::Declined { ref said, .. } => {
                let causes = said.lines().filter_map(|line| line.strip_prefix("remote: "));
                let causes = causes.map(|line| line.trim_end().to_owned()).collect();
                Self { causes, ..Self::of("declined", &error) }
            }
            push::Error::Blocked(_) => Self::of("unsound", &error),
            push::Error::ReadBack { .. } => Self::of("read-back", &error),
            push::Error::Secret(inner) => inner.into(),
            push::Error::Git(inner) => inner.into(),
            push::Error::Head(_) => Self::of("git", &error),
            push::Error::Remote(inner) => inner.into(),
            push::Error::Ref(inner) => inner.into(),
            push::Error::Log(inner) => inner.into(),
            push::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<fetch::Error> for Failure {
    fn from(error: fetch::Error) -> Self {
        match error {
            fetch::Error::Unknown(..) => Self::of("unknown-run", &error),
            fetch::Error::Vanished(ref vanished, _) => {
                let exit = if vanished.seen { 3 } else { 1 };
                Self { exit, ..Self::of("vanished", &error) }
            }
            fetch::Error::Shown(inner) => inner.into(),
            fetch::Error::Logs(inner) => inner.into(),
            fetch::Error::TooMany(_) => Self::of("too-many", &error).hint(hints::fetch_less()),
            fetch::Error::Remote(inner) => inner.into(),
            fetch::Error::Ref(inner) => inner.into(),
            fetch::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<shown::Error> for Failure {
    fn from(error: shown::Error) -> Self {
        let failure = Self::of("remote-record", &error);
        match error {
            // What was seen is forgotten, and nothing that was fetched.
            shown::Error::Read(path, _) | shown::Error::Bad(path, _) => {
                failure.hint(hints::forget_seen(path.display()))
            }
            shown::Error::Write(..) => failure,
        }
    }
}

impl From<bundle::Error> for Failure {
    fn from(error: bundle::Error) -> Self {
        match error {
            bundle::Error::Scratch(inner) => inner.into(),
            bundle::Error::Ref(inner) => inner.into(),
            bundle::Error::Write(_) => Self::of("bundle", &error).hint(hints::fetch_content()),
            _ => Self::of("bundle", &error),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Missing(_) => Self::of("unknown-run", &error),
            BundleError::Empty => Self::of("no-runs", &error),
            BundleError::Scratch(inner) => inner.into(),
            BundleError::Ref(inner) => inner.into(),
            BundleError::Logs(inner) => inner.into(),
            _ => Self::of("bundle", &error),
        }
    }
}
