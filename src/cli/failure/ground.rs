//! Failures of the repository, objects, refs, keys and chains.

use std::io;

use git_handoff::engine::machine::NoCache;
use git_handoff::git::{packed, refs, save, store, verified_stream};
use git_handoff::ledger::{chain, log, sign};
use git_handoff::model::credential::gate::Secret;
use git_handoff::model::hints;
use git_handoff::repository;

use super::Failure;

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let failure = Self::of("store", &error);
        match error {
            store::Error::Nowhere(_) => Self { code: "no-repository", ..failure }.hint(hints::init()),
            store::Error::Open(..) => Self { code: "no-repository", ..failure },
            store::Error::Foreign(ref place) => {
                let hint = hints::safe_directory(place.display());
                Self { code: "foreign-repository", ..failure }.hint(hint)
            }
            store::Error::Missing(_) => failure.hint(hints::bring_object()),
            store::Error::RefStorage(_) => Self { code: "ref-storage", ..failure }.hint(hints::ref_format()),
            _ => failure,
        }
    }
}

impl From<repository::Error> for Failure {
    fn from(error: repository::Error) -> Self {
        match error {
            repository::Error::Actor | repository::Error::Principal(_) => Self::usage(error.to_string()),
            repository::Error::Rules { .. } => Self::of("bad-rule", &error),
            repository::Error::Save(inner) => inner.into(),
            repository::Error::Saved { name, source } => {
                let failure = Self::from(source);
                Self { message: format!("{}: {}", name.display(), failure.message), ..failure }
            }
            repository::Error::Secret(inner) => inner.into(),
            repository::Error::Sign(inner) => inner.into(),
            repository::Error::Config(inner) => inner.into(),
            repository::Error::ScratchRepo(inner) => inner.into(),
            repository::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<NoCache> for Failure {
    fn from(error: NoCache) -> Self {
        Self::of("no-cache", &error).hint(hints::workspace_root())
    }
}

impl From<verified_stream::Error> for Failure {
    fn from(error: verified_stream::Error) -> Self {
        let failure = Self::of("altered", &error);
        match error {
            verified_stream::Error::Store(inner) => inner.into(),
            verified_stream::Error::Damaged(_) | verified_stream::Error::Altered { .. } => Self { exit: 3, ..failure },
        }
    }
}

impl From<Secret> for Failure {
    fn from(secret: Secret) -> Self {
        Self::of("secret-found", &secret).hint(hints::allow_secret(&secret))
    }
}

impl From<save::Error> for Failure {
    fn from(error: save::Error) -> Self {
        match error {
            save::Error::Store(inner) => inner.into(),
            save::Error::TooLarge(_) => Self::of("too-large", &error).hint(hints::max_product_size()),
            save::Error::Read(_) => Self::of("io", &error),
        }
    }
}

impl From<refs::Error> for Failure {
    fn from(error: refs::Error) -> Self {
        let failure = Self::of("ref", &error);
        match error {
            refs::Error::LostRace(_) => failure.race(),
            refs::Error::Locked { .. } => failure.locked(),
            refs::Error::Packed(inner) => inner.into(),
            refs::Error::Archive(_) => failure.hint(hints::doctor()),
            _ => failure,
        }
    }
}

impl From<packed::Error> for Failure {
    fn from(error: packed::Error) -> Self {
        let failure = Self::of("packed-refs", &error);
        match error {
            packed::Error::Ambiguous(..) => failure.hint(hints::refs()),
            packed::Error::Read(..) => failure,
        }
    }
}

impl From<sign::Error> for Failure {
    fn from(error: sign::Error) -> Self {
        let failure = Self::of("signing", &error);
        match error {
            sign::Error::Program(_) => failure.hint(hints::own_signing_key()),
            sign::Error::Read(file, source) if source.kind() == io::ErrorKind::PermissionDenied => {
                failure.hint(hints::take_over_files(file.parent().unwrap_or(&file).display()))
            }
            _ => failure.hint(hints::signing_key()),
        }
    }
}

impl From<chain::Error> for Failure {
    fn from(error: chain::Error) -> Self {
        match error {
            chain::Error::Store(inner) => inner.into(),
            chain::Error::Ref(inner) => inner.into(),
            chain::Error::Sign(inner) => inner.into(),
            chain::Error::LostRace(_) => Self::of("lost-race", &error).race(),
            chain::Error::TooLarge(..) => Self::of("too-large", &error),
            chain::Error::Entry(..) | chain::Error::Broken(..) | chain::Error::TooMuch(..) => Self::of("chain", &error),
        }
    }
}

impl From<log::Error> for Failure {
    fn from(error: log::Error) -> Self {
        Self::of("log", &error).hint(hints::doctor())
    }
}
