//! Hints and failures of decisions, admissions and adoptions.

use git_handoff::model::entry::Role;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::name::RunId;
use git_handoff::model::role::Refused;
use git_handoff::model::state::Illegal;
use git_handoff::run::operate::{adopt, people};
use git_handoff::verify::Barred;

use super::{Failure, hint_table};

hint_table! {
    people::Error as E {
        E::NotForPeople(_) | E::Decided { .. } | E::TooEarly { .. } | E::NoDocument { .. } => hints::waiting();
        E::NoRole { run, key, role } => hints::admit(run, key, role);
    }
    adopt::Error as E {
        E::Stranger { .. } => hints::know_signer();
        E::Other { run, .. } => hints::other_id(run.as_str());
        E::Absent { .. } => hints::fetch_content();
        E::Unreadable(run) => hints::verify(run);
    }
}

pub(super) fn second_vote(error: &people::Error) -> Option<Failure> {
    matches!(error, people::Error::Illegal(Illegal::SecondVote(..))).then(|| Failure::from_error("second-vote", error))
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

/// An untrusted key, or another run of that id, cannot be accepted by an option here.
pub(super) fn barred(error: &adopt::Error) -> Option<Failure> {
    let adopt::Error::Barred(inner) = error else { return None };
    let hint = match inner {
        Barred::Untrusted { .. } => Some(hints::know_signer()),
        Barred::Conflict { .. } => None,
        _ => return None,
    };
    Some(Failure { hint, ..Failure::new(inner) })
}
