//! Failures of documents.

use git_handoff::git::store;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::schema::SchemaError;
use git_handoff::model::state::Illegal;
use git_handoff::plan::schemas::Unfit;
use git_handoff::run::operate::documents as put;
use git_handoff::run::operate::revisions::Error;
use git_handoff::run::query::{documents, revisions};

use super::{Failure, repository};

pub(super) fn revision(error: &revisions::Error) -> Option<Failure> {
    let failure = Failure::of("document", error);
    Some(match error {
        revisions::Error::Unknown { run, .. } => {
            Failure { code: "unknown-document", ..failure }.hint(hints::documents(run))
        }
        revisions::Error::NoRevision { .. } => Failure { code: "unknown-revision", ..failure },
        revisions::Error::Drift { drift, at, commit } => {
            let causes = [
                format!("revision {} was produced by {}", drift.revision.number, drift.revision.author),
                format!("{}; at {at}, in commit {commit}", drift.origin()),
            ];
            Failure { code: "drift", causes: causes.into(), ..failure }
        }
        revisions::Error::Altered { .. } => Failure { code: "altered", exit: 3, ..failure },
        revisions::Error::Store(_) => return None,
    })
}

pub(super) fn put_revision(error: &Error) -> Option<Failure> {
    let failure = Failure::of("document", error);
    Some(match error {
        Error::Unfit(_, unfit) => match unfit.as_ref() {
            Unfit::Unknown(schema) => {
                Failure { code: "unknown-schema", ..failure }.hint(hints::register_schema(schema))
            }
            Unfit::Unreadable(_, why) => {
                Failure { code: "schema-unreadable", ..failure }.hint(hints::set_file(&why.place.key))
            }
            Unfit::LeftOut(..) => Failure { code: repository::LEFT_OUT, ..failure }.hint(hints::build_whole()),
            _ => Failure { code: "not-as-declared", ..failure },
        },
        Error::Changed { .. } => Failure { code: "lost-race", exit: 5, ..failure },
        Error::Illegal(_, Illegal::NoPlace(_, other)) => {
            Failure { code: "name-clash", ..failure }.hint(hints::name_there(other))
        }
        Error::Illegal(_, Illegal::AfterSeal) => Failure { code: "sealed", ..failure },
        Error::Illegal(_, Illegal::WrittenAfterEnd(_)) => Failure { code: "ended", ..failure },
        Error::Illegal(..) => failure,
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

pub(super) fn put_document(error: &put::Error) -> Failure {
    match error {
        put::Error::Match(_) | put::Error::OnItem | put::Error::NothingElsewhere => Failure::usage(error.to_string()),
        put::Error::Document { run, name, source } => {
            let hint = match source.as_ref() {
                Error::Changed { found: Some(_), .. } => Some(hints::revisions(run, name)),
                Error::Changed { found: None, .. } => Some(hints::documents(run)),
                Error::Store(why) => Some(unread(why, run)),
                _ => None,
            };
            Failure::new(source.as_ref()).hint_if(hint)
        }
    }
}

fn unread(why: &store::Error, run: &str) -> Hint {
    match why {
        store::Error::Missing(oid) => hints::fetch_object(oid),
        _ => hints::verify(run),
    }
}

pub(super) fn schema_error(error: &SchemaError) -> Failure {
    Failure::usage(error.to_string())
}
