//! Failures of decisions and admissions.

use git_handoff::model::entry::Role;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::name::RunId;
use git_handoff::model::role::Refused;
use git_handoff::model::state::Illegal;
use git_handoff::run::adopt;
use git_handoff::run::people::Error;
use git_handoff::run::statements;
use git_handoff::verify::Barred;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NoItem
            | Error::WholeRun
            | Error::NoKey(_)
            | Error::BadKey(_)
            | Error::Keyless(_)
            | Error::SeveralKeys(_)
            | Error::Private(_)
            | Error::Key { .. }
            | Error::Long(_) => Self { causes: Self::of("usage", &error).causes, ..Self::usage(error.to_string()) },
            Error::NotForPeople(_) => Self::of("not-for-people", &error).hint(hints::waiting()),
            Error::Decided { .. } => Self::of("decided", &error).hint(hints::waiting()),
            Error::TooEarly { .. } | Error::NoDocument { .. } => Self::of("too-early", &error).hint(hints::waiting()),
            Error::NoRole { ref run, ref key, role } => Self::of("no-role", &error).hint(hints::admit(run, key, role)),
            Error::HasRoles { .. } => Self::of("has-role", &error),
            Error::Illegal(Illegal::SecondVote(..)) => Self::of("second-vote", &error),
            Error::Illegal(_) => Self::of("not-an-approver", &error),
            Error::Target(inner) => inner.into(),
            Error::Steer(inner) => inner.into(),
            Error::Denied(inner) => inner.into(),
            Error::Run(inner) => inner.into(),
            Error::Log(inner) => inner.into(),
            Error::Repository(inner) => inner.into(),
        }
    }
}

/// Returns the command that gives a key the missing role.
pub(super) fn missing_role(run: &RunId, key: &str, why: Refused) -> Hint {
    match why {
        Refused::Stranger => hints::admit_any(run, key),
        Refused::Role([Role::Seal]) => hints::admit_to_seal(run, key),
        Refused::Role(roles) => match roles.last() {
            Some(role @ (Role::Own | Role::Work)) => hints::admit_or_continue(run, key, role),
            Some(role) => hints::admit(run, key, role),
            None => hints::admit_any(run, key),
        },
        Refused::Admission => hints::owners(run),
        // Its driver can end the attempt, and anyone can see which one that is.
        Refused::Holder | Refused::Dismissal => hints::drivers(run),
    }
}

impl From<adopt::Error> for Failure {
    fn from(error: adopt::Error) -> Self {
        match error {
            adopt::Error::SameId(_) => Self::usage(error.to_string()),
            adopt::Error::Stranger { .. } => Self::of("unknown-key", &error).hint(hints::know_signer()),
            adopt::Error::Other { ref run, .. } => Self::of("run-exists", &error).hint(hints::other_id(run.as_str())),
            adopt::Error::TooLarge { .. } => Self::of("too-large", &error),
            adopt::Error::Absent { .. } => Self::of("absent", &error).hint(hints::fetch_content()),
            adopt::Error::Unreadable(ref run) => Self::of("not-a-run", &error).hint(hints::verify(run)),
            // An untrusted key cannot be accepted by an option here.
            adopt::Error::Barred(inner @ Barred::Untrusted { .. }) => {
                Self { hint: None, ..Self::from(inner) }.hint(hints::know_signer())
            }
            adopt::Error::Barred(inner @ Barred::Conflict { .. }) => Self { hint: None, ..Self::from(inner) },
            adopt::Error::Barred(inner) => inner.into(),
            adopt::Error::Target(inner) => inner.into(),
            adopt::Error::Submission(inner) => inner.into(),
            adopt::Error::Denied(inner) => inner.into(),
            adopt::Error::Run(inner) => inner.into(),
            adopt::Error::Coordinate(inner) => inner.into(),
            adopt::Error::Verify(inner) => inner.into(),
            adopt::Error::Trust(inner) => inner.into(),
            adopt::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<statements::Error> for Failure {
    fn from(error: statements::Error) -> Self {
        match error {
            statements::Error::Copy(_) => Self::of("io", &error),
            statements::Error::Denied(inner) => inner.into(),
            statements::Error::Run(inner) => inner.into(),
            statements::Error::Target(inner) => inner.into(),
            statements::Error::Store(inner) => inner.into(),
            statements::Error::Refs(inner) => inner.into(),
            statements::Error::Trust(inner) => inner.into(),
            statements::Error::Repository(inner) => inner.into(),
        }
    }
}
