//! Which errors have a code of their own, and which functions add to it.
//!
//! An error that only wraps another has no code: its source is asked. The first decision from the
//! outermost error inward counts, and the message and the causes begin at the error that made it.
//! Codes and exit codes are beside the messages, in the tables of [`errors`]; tables here add
//! hints. A function returns the whole failure if it depends on more than the variant.
//! An error that adds a hint to a deeper decision calls [`Failure::new`] with its source, and
//! [`Failure::hint`] keeps the deeper hint.
//!
//! [`errors`]: git_handoff::model::errors

use std::error::Error;

use git_handoff::git::{scratch_repo, verified_stream};
use git_handoff::model::errors::Coded;
use git_handoff::model::hints::Hint;
use git_handoff::model::schema::SchemaError;
use git_handoff::report::{self, export};
use git_handoff::repository::pipelines;
use git_handoff::run::operate::{documents, revisions, statements};
use git_handoff::run::query::proving;
#[cfg(feature = "anchors")]
use git_handoff::share::anchor::{ProgramError, StampsError, TokenError};
use git_handoff::share::anchor::{missing_runs, verification};
use git_handoff::share::bundling;
use git_handoff::thread::{gate, nonce, packet_operations, used};
use git_handoff::upkeep::{clean, disk, doctor, operations};
use git_handoff::verify;

#[cfg(feature = "anchors")]
use super::web;
use super::{
    Failure, anchor, apply, checking, document, driving, evidence, people, repository, running, share, sharing,
};
use super::{target, thread, upkeep};

/// Asks functions about the error. Each is for errors of another type, so the order is free.
macro_rules! first {
    ($error:ident; $($file:ident: $($function:ident)+;)+) => {
        None$($(.or_else(|| of_type($error, $file::$function)))+)+
    };
}

/// Defines `by_hint` from a table: for each type, the hints of its errors by pattern. The code of
/// an error is the one that it states.
macro_rules! hint_table {
    ($($kind:ty $(as $alias:ident)? {
        $($pattern:pat $(if $guard:expr)? => $hint:expr;)*
    } $(else $rest:pat => $otherwise:expr;)?)+) => {
        /// Returns the failure of an error whose type is in the table, with its hint.
        pub(super) fn by_hint(error: &(dyn std::error::Error + 'static)) -> Option<super::Failure> {
            None$(.or_else(|| super::rules::hinted(error, |error: &$kind| {
                $(type $alias = $kind;)?
                $(if let $pattern = error $(&& $guard)? {
                    return $hint.into();
                })*
                None$(.or_else(|| match error { $rest => $otherwise.into() }))?
            })))+
        }
    };
}
pub(super) use hint_table;

/// Asks for the codes of errors that have no hint.
macro_rules! coded {
    ($error:ident; $($kind:ty),+ $(,)?) => {
        None$(.or_else(|| of_type($error, Failure::coded::<$kind>)))+
    };
}

/// Returns the failure if the type of the error has a code or a function that decides.
pub(super) fn decide(error: &(dyn Error + 'static)) -> Option<Failure> {
    by_function(error).or_else(|| by_hint(error)).or_else(|| by_code(error))
}

fn by_function(error: &(dyn Error + 'static)) -> Option<Failure> {
    #[cfg(feature = "anchors")]
    if let Some(failure) = of_type(error, web::credentials) {
        return Some(failure);
    }
    first! {
        error;
        anchor: push;
        apply: inner;
        checking: threads packed;
        document: drift put_revision documents put_document;
        driving: snapshot not_driven execute not_rechecked;
        repository: saved no_cache secret left_out;
        people: second_vote barred;
        running: damaged;
        share: push vanished protected;
        target: vouched packet;
        thread: unsound unclean unfinished not_written;
        upkeep: still_driven write_error;
    }
}

fn by_hint(error: &(dyn Error + 'static)) -> Option<Failure> {
    let files = [
        anchor::by_hint,
        #[cfg(feature = "anchors")]
        web::by_hint,
        apply::by_hint,
        checking::by_hint,
        document::by_hint,
        driving::by_hint,
        evidence::by_hint,
        people::by_hint,
        repository::by_hint,
        running::by_hint,
        share::by_hint,
        sharing::by_hint,
        target::by_hint,
        thread::by_hint,
        upkeep::by_hint,
    ];
    files.into_iter().find_map(|by_hint| by_hint(error))
}

fn by_code(error: &(dyn Error + 'static)) -> Option<Failure> {
    #[cfg(feature = "anchors")]
    if let Some(failure) = coded! { error; ProgramError, StampsError, TokenError } {
        return Some(failure);
    }
    coded! {
        error;
        SchemaError, bundling::Error, clean::Error, doctor::Error, export::Error, gate::Error, missing_runs::Missed,
        operations::Error, packet_operations::Error, pipelines::AddError, proving::Error, report::Error,
        scratch_repo::Error, statements::Error, used::Error, verification::Error, verified_stream::Error, verify::Error,
        documents::Error, revisions::Error,
    }
    .or_else(|| of_type(error, |error: &disk::Error| Failure::from_error("clean", error)))
    .or_else(|| of_type(error, |error: &nonce::Error| Failure::from_error("nonce", error)))
}

/// Calls the function if the error, perhaps boxed, is of its type.
fn of_type<E: Error + 'static, D: Into<Option<Failure>>>(
    error: &(dyn Error + 'static),
    decide: impl FnOnce(&E) -> D,
) -> Option<Failure> {
    error.downcast_ref::<E>().or_else(|| error.downcast_ref::<Box<E>>().map(AsRef::as_ref)).map(decide)?.into()
}

/// Returns the failure with the hint of the function, if the error is of its type and has a code.
pub(super) fn hinted<E: Error + Coded + 'static>(
    error: &(dyn Error + 'static),
    hint: fn(&E) -> Option<Hint>,
) -> Option<Failure> {
    of_type(error, |error| Some(Failure::coded(error)?.hint_if(hint(error))))
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
        let store_error = verified_stream::Error::Store(git_handoff::git::store::Error::Name("broken".into()));
        assert_eq!(Failure::from(store_error).code, "store");
    }

    #[test]
    fn an_error_without_a_rule_is_a_defect() {
        let failure = Failure::from(Strange::Itself);
        assert_eq!((failure.code, failure.exit, failure.message.as_str()), ("defect", 70, "cannot do it"));
    }
}
