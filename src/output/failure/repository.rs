//! Failures of the repository, its configuration, objects, refs, keys and chains.

use std::io;

use git_handoff::engine::machine::NoCache;
use git_handoff::git::{packed, program, refs, save, store, verified_stream};
use git_handoff::ledger::{chain, log, sign};
use git_handoff::model::credential::gate::Secret;
use git_handoff::model::hints;
use git_handoff::model::left_out::LeftOut;
use git_handoff::model::pipeline::Unusable;
use git_handoff::repository;
use git_handoff::repository::config;
use git_handoff::repository::pipelines::AddError;

use super::Failure;

pub(super) fn store(error: &store::Error) -> Failure {
    let failure = Failure::of("store", error);
    match error {
        store::Error::Nowhere(_) => Failure { code: "no-repository", ..failure }.hint(hints::init()),
        store::Error::Open(..) => Failure { code: "no-repository", ..failure },
        store::Error::Foreign(place) => {
            let hint = hints::safe_directory(place.display());
            Failure { code: "foreign-repository", ..failure }.hint(hint)
        }
        store::Error::InWorkTree(git_dir, _) => {
            Failure { code: "bare-in-work-tree", ..failure }.hint(hints::name_git_dir(git_dir.display()))
        }
        store::Error::Missing(_) => failure.hint(hints::bring_object()),
        store::Error::RefStorage(_) => Failure { code: "ref-storage", ..failure }.hint(hints::ref_format()),
        _ => failure,
    }
}

pub(super) fn repository(error: &repository::Error) -> Failure {
    match error {
        repository::Error::Attempt => Failure::refused("in-attempt", error.to_string()).hint(hints::hand_over_files()),
        repository::Error::Actor | repository::Error::Principal(_) => Failure::usage(error.to_string()),
        repository::Error::Rules { .. } => Failure::of("bad-rule", error),
        repository::Error::Saved { name, source } => {
            let failure = Failure::new(source);
            Failure { message: format!("{}: {}", name.display(), failure.message), ..failure }
        }
    }
}

pub(super) fn no_cache(error: &NoCache) -> Failure {
    Failure::of("no-cache", error).hint(hints::workspace_root())
}

pub(super) fn verified_stream(error: &verified_stream::Error) -> Option<Failure> {
    let failure = Failure::of("altered", error);
    Some(match error {
        verified_stream::Error::Damaged(_) | verified_stream::Error::Altered { .. } => Failure { exit: 3, ..failure },
        verified_stream::Error::Store(_) => return None,
    })
}

pub(super) fn secret(secret: &Secret) -> Failure {
    Failure::of("secret-found", secret).hint(hints::allow_secret(secret))
}

pub(super) fn save(error: &save::Error) -> Option<Failure> {
    Some(match error {
        save::Error::TooLarge(_) => Failure::of("too-large", error).hint(hints::max_product_size()),
        save::Error::Read(_) => Failure::of("io", error),
        save::Error::Store(_) => return None,
    })
}

pub(super) fn refs(error: &refs::Error) -> Option<Failure> {
    let failure = Failure::of("ref", error);
    Some(match error {
        refs::Error::LostRace(_) => failure.race(),
        refs::Error::Locked { .. } => failure.locked(),
        refs::Error::Packed(_) => return None,
        refs::Error::Archive(_) => failure.hint(hints::doctor()),
        _ => failure,
    })
}

pub(super) fn packed(error: &packed::Error) -> Failure {
    let failure = Failure::of("packed-refs", error);
    match error {
        packed::Error::Ambiguous(..) => failure.hint(hints::refs()),
        packed::Error::Read(..) => failure,
    }
}

pub(super) fn sign(error: &sign::Error) -> Failure {
    let failure = Failure::of("signing", error);
    match error {
        sign::Error::Program(_) => failure.hint(hints::own_signing_key()),
        sign::Error::Read(file, source) if source.kind() == io::ErrorKind::PermissionDenied => {
            failure.hint(hints::take_over_files(file.parent().unwrap_or(file).display()))
        }
        _ => failure.hint(hints::signing_key()),
    }
}

pub(super) fn chain(error: &chain::Error) -> Option<Failure> {
    Some(match error {
        chain::Error::LostRace(_) => Failure::of("lost-race", error).race(),
        chain::Error::TooLarge(..) => Failure::of("too-large", error),
        chain::Error::Entry(..) | chain::Error::Broken(..) | chain::Error::TooMuch(..) => Failure::of("chain", error),
        _ => return None,
    })
}

pub(super) fn log(error: &log::Error) -> Failure {
    Failure::of("log", error).hint(hints::doctor())
}

pub(super) fn program(error: &program::Error) -> Failure {
    let failure = Failure::of("git", error);
    match error {
        // The file of `blame.ignoreRevsFile` is missing.
        program::Error::Failed { call, said, .. } if call.contains("blame") && said.contains("object name list") => {
            failure.hint(hints::setting("blame.ignoreRevsFile"))
        }
        _ => failure,
    }
}

/// The code of failures because of features that this build lacks.
pub(super) const LEFT_OUT: &str = "left-out";

pub(super) fn left_out(error: &LeftOut) -> Failure {
    Failure::of(LEFT_OUT, error).hint(hints::build_whole())
}

pub(super) fn config(error: &config::Error) -> Failure {
    Failure::of("config", error).hint_if(error.hint())
}

pub(super) fn unusable(error: &Unusable) -> Failure {
    let failure = Failure::of("unknown-pipeline", error);
    match error {
        Unusable::NoReference(_) => Failure::usage(failure.message),
        _ => failure.hint(hints::pipelines()),
    }
}

pub(super) fn add_error(error: &AddError) -> Option<Failure> {
    (!matches!(error, AddError::Repository(_))).then(|| Failure::of("pipeline", error))
}
