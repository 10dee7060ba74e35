//! Which function decides for which error.
//!
//! An error that only wraps another decides nothing: its function, if any, returns `None`, and its
//! source is asked. The first decision from the outermost error inward counts, and the message
//! and the causes begin at the error that made it. An error that adds a hint to a deeper decision
//! calls [`Failure::new`] with its source, and [`Failure::hint`] keeps the deeper hint.

use std::error::Error;

use git_handoff::git::scratch_repo;
use git_handoff::report;
use git_handoff::run::operate::statements;
use git_handoff::thread::{nonce, packet_operations, used};
use git_handoff::upkeep::{clean, disk, doctor, operations};

#[cfg(feature = "anchors")]
use super::anchor::web;
use super::{
    Failure, anchor, apply, checking, document, driving, evidence, people, repository, running, share, sharing,
};
use super::{target, thread, upkeep, whence};

/// Asks the functions of each file in turn. Each is for another type, so the order is free.
macro_rules! first {
    ($error:ident; $($file:ident: $($function:ident)+;)+) => {
        None$($(.or_else(|| of_type($error, $file::$function)))+)+
    };
}

/// Gives all errors of a type one code, and no hint.
macro_rules! code {
    ($error:ident; $($code:literal: $($kind:ty),+;)+) => {
        None$($(.or_else(|| of_type($error, |error: &$kind| Failure::of($code, error))))+)+
    };
}

/// Returns the failure if the type of the error has a code or a function that decides.
pub(super) fn decide(error: &(dyn Error + 'static)) -> Option<Failure> {
    let coded = code! {
        error;
        "bad-name": report::Error;
        "clean": clean::Error, disk::Error;
        "doctor": doctor::Error;
        "head": packet_operations::Error;
        "io": statements::Error;
        "nonce": nonce::Error;
        "not-ours": operations::Error;
        "scratch": scratch_repo::Error;
        "unreadable-thread": used::Error;
    };
    #[cfg(feature = "anchors")]
    let coded = coded.or_else(|| first! { error; web: s3 token stamps program; });
    coded.or_else(|| by_function(error))
}

fn by_function(error: &(dyn Error + 'static)) -> Option<Failure> {
    first! {
        error;
        anchor: setting_error anchor;
        apply: apply;
        checking: operations verification threads refusal verify;
        document: revision put_revision documents put_document schema_error;
        driving: operations record drive execute recheck;
        evidence: proving export_operation bundling prove export lineage piece;
        repository: store repository no_cache verified_stream secret save refs packed sign chain log program;
        repository: left_out config unusable add_error;
        people: people adopt;
        running: submit submission query run extend steer coordinate;
        share: remote push fetch shown bundle bundle_error;
        sharing: sharing drivers denied;
        target: target thread_target operations trust gate barred missed;
        thread: unsound gate vouch thread adopt checkout worktree;
        upkeep: archive fault delete setup write_error;
        whence: whence;
    }
}

/// Calls the function if the error, perhaps boxed, is of its type.
fn of_type<E: Error + 'static, D: Into<Option<Failure>>>(
    error: &(dyn Error + 'static),
    decide: fn(&E) -> D,
) -> Option<Failure> {
    let boxed = || error.downcast_ref::<Box<E>>().map(AsRef::as_ref);
    error.downcast_ref::<E>().or_else(boxed).map(decide)?.into()
}

#[cfg(test)]
mod tests {
    use git_handoff::git::{refs, verified_stream};
    use git_handoff::run::operate::{self, sharing};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Strange {
        #[error("cannot do it")]
        Itself,
        #[error("{0}")]
        Wraps(#[from] Box<operate::Denied>),
    }

    fn moved() -> refs::Error {
        refs::Error::LostRace("refs/heads/main".into())
    }

    #[test]
    fn the_source_of_an_error_that_only_wraps_decides() {
        let failure = Failure::from(operate::Error::Ref(moved()));
        assert_eq!((failure.code, failure.exit), ("lost-race", 5));
        assert_eq!(failure.message, moved().to_string());
        assert!(failure.causes.is_empty() && failure.hint.is_some(), "{failure:?}");
    }

    #[test]
    fn a_boxed_source_decides_and_the_message_begins_there() {
        let remote = operate::Denied::Remote(Box::new(sharing::Error::Ref(moved())));
        let failure = Failure::from(Strange::from(Box::new(remote)));
        assert_eq!((failure.code, failure.message), ("lost-race", moved().to_string()));
    }

    #[test]
    fn the_outermost_decision_counts() {
        let error = git_handoff::apply::Error::Ref(refs::Error::Other("refs/x".into(), "broken".into()));
        assert_eq!(Failure::from(error).code, "apply");
        let error = verified_stream::Error::Store(git_handoff::git::store::Error::Name("broken".into()));
        assert_eq!(Failure::from(error).code, "store");
    }

    #[test]
    fn an_error_without_a_rule_is_a_defect() {
        let failure = Failure::from(Strange::Itself);
        assert_eq!((failure.code, failure.exit, failure.message.as_str()), ("defect", 70, "cannot do it"));
    }
}
