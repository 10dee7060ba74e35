//! Failures of proofs, exports and bundles.

use git_handoff::model::hints;
use git_handoff::report::export::operations as export;
use git_handoff::run::proving;
use git_handoff::share::bundling;

use super::Failure;

impl From<proving::Error> for Failure {
    fn from(error: proving::Error) -> Self {
        match error {
            proving::Error::WholeRun | proving::Error::NotSaid | proving::Error::NoProduct(_) => {
                Self::usage(error.to_string())
            }
            proving::Error::Target(inner) => inner.into(),
            proving::Error::Prove(inner) => inner.into(),
        }
    }
}

impl From<export::Error> for Failure {
    fn from(error: export::Error) -> Self {
        match error {
            export::Error::WholeRun | export::Error::NoLines => Self::usage(error.to_string()),
            export::Error::NotOfRun { commit, .. } => Self::of("not-of-run", &error).hint(hints::whence(commit)),
            export::Error::Whence(inner) => inner.into(),
            export::Error::Target(inner) => inner.into(),
            export::Error::Gate(inner) => inner.into(),
            export::Error::Export(inner) => inner.into(),
            export::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<bundling::Error> for Failure {
    fn from(error: bundling::Error) -> Self {
        match error {
            bundling::Error::Nothing => Self::of("no-runs", &error),
            bundling::Error::File { .. } => Self::of("io", &error),
            bundling::Error::Repository(inner) => inner.into(),
            bundling::Error::Log(inner) => inner.into(),
            bundling::Error::Refs(inner) => inner.into(),
            bundling::Error::Target(inner) => inner.into(),
            bundling::Error::ThreadTarget(inner) => inner.into(),
            bundling::Error::Thread(inner) => inner.into(),
            bundling::Error::Bundle(inner) => inner.into(),
        }
    }
}
