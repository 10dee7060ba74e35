//! Failures of decisions and admissions.

use git_handoff::model::entry::Role;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::name::RunId;
use git_handoff::model::role::Refused;
use git_handoff::model::state::Illegal;
use git_handoff::run::operate::adopt;
use git_handoff::run::operate::people::Error;
use git_handoff::verify::Barred;

use super::Failure;

pub(super) fn people(error: &Error) -> Failure {
    match error {
        Error::NoItem
        | Error::WholeRun
        | Error::NoKey(_)
        | Error::BadKey(_)
        | Error::Keyless(_)
        | Error::SeveralKeys(_)
        | Error::Private(_)
        | Error::Key { .. }
        | Error::Long(_) => Failure { causes: Failure::of("usage", error).causes, ..Failure::usage(error.to_string()) },
        Error::NotForPeople(_) => Failure::of("not-for-people", error).hint(hints::waiting()),
        Error::Decided { .. } => Failure::of("decided", error).hint(hints::waiting()),
        Error::TooEarly { .. } | Error::NoDocument { .. } => Failure::of("too-early", error).hint(hints::waiting()),
        Error::NoRole { run, key, role } => Failure::of("no-role", error).hint(hints::admit(run, key, role)),
        Error::HasRoles { .. } => Failure::of("has-role", error),
        Error::Illegal(Illegal::SecondVote(..)) => Failure::of("second-vote", error),
        Error::Illegal(_) => Failure::of("not-an-approver", error),
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

pub(super) fn adopt(error: &adopt::Error) -> Option<Failure> {
    Some(match error {
        adopt::Error::SameId(_) => Failure::usage(error.to_string()),
        adopt::Error::Stranger { .. } => Failure::of("unknown-key", error).hint(hints::know_signer()),
        adopt::Error::Other { run, .. } => Failure::of("run-exists", error).hint(hints::other_id(run.as_str())),
        adopt::Error::TooLarge { .. } => Failure::of("too-large", error),
        adopt::Error::Absent { .. } => Failure::of("absent", error).hint(hints::fetch_content()),
        adopt::Error::Unreadable(run) => Failure::of("not-a-run", error).hint(hints::verify(run)),
        // An untrusted key cannot be accepted by an option here.
        adopt::Error::Barred(inner @ Barred::Untrusted { .. }) => {
            Failure { hint: None, ..Failure::new(inner) }.hint(hints::know_signer())
        }
        adopt::Error::Barred(inner @ Barred::Conflict { .. }) => Failure { hint: None, ..Failure::new(inner) },
        adopt::Error::Barred(_) => return None,
    })
}
