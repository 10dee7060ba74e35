//! Failures of documents.

use git_handoff::git::store;
use git_handoff::model::hints;
use git_handoff::model::schema::SchemaError;
use git_handoff::model::state::Illegal;
use git_handoff::plan::schemas::Unfit;
use git_handoff::run::documents;
use git_handoff::run::revisions::Error;

use super::{Failure, left_out};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::of("document", &error);
        match error {
            Error::Unknown { run, .. } => Self { code: "unknown-document", ..failure }.hint(hints::documents(run)),
            Error::NoRevision { .. } => Self { code: "unknown-revision", ..failure },
            Error::Drift { drift, at, commit } => {
                let causes = [
                    format!("revision {} was produced by {}", drift.revision.number, drift.revision.author),
                    format!("{}; at {at}, in commit {commit}", drift.origin()),
                ];
                Self { code: "drift", causes: causes.into(), ..failure }
            }
            Error::Altered { .. } => Self { code: "altered", exit: 3, ..failure },
            Error::Unfit(_, unfit) => match *unfit {
                Unfit::Unknown(schema) => {
                    Self { code: "unknown-schema", ..failure }.hint(hints::register_schema(schema))
                }
                Unfit::Unreadable(_, why) => {
                    Self { code: "schema-unreadable", ..failure }.hint(hints::set_file(&why.place.key))
                }
                Unfit::LeftOut(..) => Self { code: left_out::CODE, ..failure }.hint(hints::build_whole()),
                _ => Self { code: "not-as-declared", ..failure },
            },
            Error::Changed { .. } => Self { code: "lost-race", exit: 5, ..failure },
            Error::Illegal(_, Illegal::NoPlace(_, other)) => {
                Self { code: "name-clash", ..failure }.hint(hints::name_there(other))
            }
            Error::Illegal(_, Illegal::AfterSeal) => Self { code: "sealed", ..failure },
            Error::Illegal(_, Illegal::WrittenAfterEnd(_)) => Self { code: "ended", ..failure },
            Error::Illegal(..) => failure,
            Error::Run(inner) => inner.into(),
            Error::Store(inner) => inner.into(),
        }
    }
}

impl From<documents::Error> for Failure {
    fn from(error: documents::Error) -> Self {
        match error {
            documents::Error::Name { .. }
            | documents::Error::Match(_)
            | documents::Error::OnItem
            | documents::Error::NothingElsewhere => Self::usage(error.to_string()),
            documents::Error::People(inner) => inner.into(),
            documents::Error::Schema(inner) => inner.into(),
            documents::Error::Steer(inner) => inner.into(),
            documents::Error::Target(inner) => inner.into(),
            documents::Error::Document { run, name, source } => {
                let hint = match source.as_ref() {
                    Error::Changed { found: Some(_), .. } | Error::Drift { .. } => Some(hints::revisions(run, name)),
                    Error::Changed { found: None, .. } => Some(hints::documents(run)),
                    Error::Store(store::Error::Missing(oid)) => Some(hints::fetch_object(oid)),
                    Error::Altered { .. } | Error::Store(_) => Some(hints::verify(run)),
                    _ => None,
                };
                let failure = Self::from(*source);
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }
}

impl From<SchemaError> for Failure {
    fn from(error: SchemaError) -> Self {
        Self::usage(error.to_string())
    }
}
