//! Hints and failures of the repository, its configuration, objects, refs, keys and chains.

use std::io;

use git_handoff::engine::machine::NoCache;
use git_handoff::git::{packed, program, refs, save, store};
use git_handoff::ledger::{chain, sign};
use git_handoff::model::credential::gate::Secret;
use git_handoff::model::hints;
use git_handoff::model::left_out::LeftOut;
use git_handoff::model::pipeline::Unusable;
use git_handoff::repository::{self, config};

use super::{Failure, hint_table};

hint_table! {
    store::Error as E {
        E::Nowhere(_) => hints::init();
        E::Foreign(place) => hints::safe_directory(place.display());
        E::InWorkTree(git_dir, _) => hints::name_git_dir(git_dir.display());
        E::Missing(_) => hints::bring_object();
        E::RefStorage(_) => hints::ref_format();
    }
    repository::Error as E {
        E::Attempt => hints::hand_over_files();
    }
    save::Error as E {
        E::TooLarge(_) => hints::max_product_size();
    }
    refs::Error as E {
        E::LostRace(_) => hints::again();
        E::Locked { .. } => hints::mend_lock();
        E::Archive(_) => hints::doctor();
    }
    packed::Error as E {
        E::Ambiguous(..) => hints::refs();
    }
    sign::Error as E {
        E::Program(_) => hints::own_signing_key();
        E::Read(file, why) if why.kind() == io::ErrorKind::PermissionDenied => {
            hints::take_over_files(file.parent().unwrap_or(file).display())
        };
    } else _ => hints::signing_key();
    chain::Error as E {
        E::LostRace(_) => hints::again();
    }
    program::Error as E {
        // The file of `blame.ignoreRevsFile` is missing.
        E::Failed { call, stderr, .. } if call.contains("blame") && stderr.contains("object name list") => {
            hints::setting("blame.ignoreRevsFile")
        };
    }
    config::Error {} else error => error.hint();
    Unusable {
        error if !matches!(error, Unusable::NoReference(_)) => hints::pipelines();
    }
}

pub(super) fn saved(error: &repository::Error) -> Option<Failure> {
    let repository::Error::Saved { name, source } = error else { return None };
    let failure = Failure::new(source);
    Some(Failure { message: format!("{}: {}", name.display(), failure.message), ..failure })
}

pub(super) fn no_cache(error: &NoCache) -> Failure {
    Failure::from_error("no-cache", error).hint(hints::workspace_root())
}

pub(super) fn secret(secret: &Secret) -> Failure {
    Failure::from_error("secret-found", secret).hint(hints::allow_secret(secret))
}

pub(super) fn left_out(error: &LeftOut) -> Failure {
    Failure::from_error("left-out", error).hint(hints::build_whole())
}
