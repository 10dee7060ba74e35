//! Hints and failures of documents.

use git_handoff::git::store;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::state::Illegal;
use git_handoff::plan::schemas::Unfit;
use git_handoff::run::operate::documents as put;
use git_handoff::run::operate::revisions::Error;
use git_handoff::run::query::{documents, revisions};

use super::{Failure, hint_table};

hint_table! {
    revisions::Error as E {
        E::Unknown { run, .. } => hints::documents(run);
    }
}

pub(super) fn drift(error: &revisions::Error) -> Option<Failure> {
    let revisions::Error::Drift { drift, at, commit } = error else { return None };
    let causes = [
        format!("revision {} was produced by {}", drift.revision.number, drift.revision.author),
        format!("{}; at {at}, in commit {commit}", drift.origin()),
    ];
    Some(Failure { causes: causes.into(), ..Failure::from_error("drift", error) })
}

pub(super) fn put_revision(error: &Error) -> Option<Failure> {
    Some(match error {
        Error::Unfit(_, unfit) => match unfit.as_ref() {
            Unfit::Unknown(schema) => Failure::from_error("unknown-schema", error).hint(hints::register_schema(schema)),
            Unfit::Unreadable(_, why) => {
                Failure::from_error("schema-unreadable", error).hint(hints::set_file(&why.place.key))
            }
            Unfit::LeftOut(..) => Failure::from_error("left-out", error).hint(hints::build_whole()),
            _ => return None,
        },
        Error::Illegal(_, Illegal::NoPlace(_, other)) => {
            Failure::from_error("name-clash", error).hint(hints::name_there(other))
        }
        Error::Illegal(_, Illegal::AfterSeal) => Failure::from_error("sealed", error),
        Error::Illegal(_, Illegal::WrittenAfterEnd(_)) => Failure::from_error("ended", error),
        _ => return None,
    })
}

pub(super) fn documents(error: &documents::Error) -> Failure {
    match error {
        documents::Error::Name { .. } => Failure::usage(error.to_string()),
        documents::Error::Document { run, name, source } => {
            let hint = match source.as_ref() {
                revisions::Error::Drift { .. } => Some(hints::revisions(run, name)),
                revisions::Error::Store(why) => Some(unread(why, run)),
                revisions::Error::Altered { .. } => Some(hints::verify(run)),
                _ => None,
            };
            Failure::new(source.as_ref()).hint_if(hint)
        }
    }
}

pub(super) fn put_document(error: &put::Error) -> Option<Failure> {
    let put::Error::Document { run, name, source } = error else { return None };
    let hint = match source.as_ref() {
        Error::Changed { found: Some(_), .. } => Some(hints::revisions(run, name)),
        Error::Changed { found: None, .. } => Some(hints::documents(run)),
        Error::Store(why) => Some(unread(why, run)),
        _ => None,
    };
    Some(Failure::new(source.as_ref()).hint_if(hint))
}

fn unread(why: &store::Error, run: &str) -> Hint {
    match why {
        store::Error::Missing(oid) => hints::fetch_object(oid),
        _ => hints::verify(run),
    }
}
